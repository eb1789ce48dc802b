// Three members of one shared subscription whose spools are full for a minute, because the service is away: each hands
// its messages back to Mosquitto, which queues them without bound (max_queued_messages 0), also for a member that is
// killed meanwhile. When the service is back everything arrives, with members killed while they take the queue.
//
// Second effects. A message that is stored, and whose PUBACK the kill prevented, is delivered again by Mosquitto, to the
// same session: its member stores it once (dedup window). Two members see one message only if the session of one of them
// ends meanwhile. A batch that was on the way is submitted again under its batchId, which the service knows.

import { describe, expect, test } from 'vitest'
import { bridgeOf, statusOf } from '../support/bridge-daemons.ts'
import { startFleet } from '../support/bridge-fleet.ts'
import { eventually } from '../support/eventually.ts'
import { hasMosquitto } from '../support/mosquitto.ts'
import type { SpawnedDaemon } from '../support/spawned-daemon.ts'

const minuteMs = 60_000

const statesOf = async (daemon: SpawnedDaemon) =>
  (await bridgeOf(daemon)).connections.map(({ state }) => state)

describe.skipIf(!hasMosquitto)('three members whose spools are full for a minute', () => {
  test('lose nothing that the broker acknowledged', async () => {
    const fleet = await startFleet(['gw-a', 'gw-b', 'gw-c'], 'share_group: g', {
      perTick: 20,
      spoolBytes: '2MiB',
    })
    const { daemons, sandbox, publisher } = fleet
    sandbox.setFaults([{ always: 503 }])
    const allPaused = async () =>
      (await Promise.all(daemons.map((daemon) => statesOf(daemon))))
        .flat()
        .every((state) => state === 'paused')
    await eventually(allPaused)
    const fullFrom = publisher.acked
    const { conditions } = await statusOf(daemons[0]!)
    expect(conditions.map(({ code }) => code)).toContain('MESSAGE_SOURCE_PAUSED')
    const sinceMs = performance.now()
    await daemons[1]!.kill()
    await fleet.start(1)
    let looks = 0
    await eventually(async () => {
      looks += 1
      // A member that starts with a full spool connects to nothing.
      expect((await Promise.all(daemons.map((daemon) => statesOf(daemon)))).flat()).not.toContain('connected')
      return performance.now() - sinceMs >= minuteMs
    })
    const published = publisher.acked - fullFrom
    sandbox.setFaults([])
    await fleet.allConnected()
    for (const index of [0, 2]) {
      await fleet.more(500)
      await daemons[index]!.kill()
      await fleet.restart(index)
    }
    const outcome = await fleet.outcome('spools full for a minute')
    const statuses = await Promise.all(daemons.map((daemon) => statusOf(daemon)))
    process.stderr.write(
      `bridges: ${fullFrom} published until full, ${published} while full, ${looks} looks; since the last start: ` +
        statuses
          .map(
            ({ totals, messageSources }) =>
              `${totals.messages} received, ${messageSources[0]?.redelivered} delivered again, ${totals.duplicates} stored before`,
          )
          .join('; ') +
        '\n',
    )
    expect(outcome).toEqual({ lost: 0, notTaken: 0, twice: 0 })
  })
})
