// Members of a share group that are stopped by plan under load, each with four connections. With leave_group_on_stop the
// others get everything: nothing waits for the stopped one. Without it the sessions of the stopped one keep their share,
// and hand it over when it is started again.

import { describe, expect, test } from 'vitest'
import { startFleet } from '../support/bridge-fleet.ts'
import { eventually } from '../support/eventually.ts'
import { hasMosquitto } from '../support/mosquitto.ts'

const clientIds = ['gw-a', 'gw-b', 'gw-c']
const group = 'share_group: g, connections: 4'

describe.skipIf(!hasMosquitto)('a member of a share group that is stopped by plan', () => {
  test('with leave_group_on_stop hands everything to the others', async () => {
    const { daemons, sandbox, publisher, more, start, outcome, allConnected } = await startFleet(
      clientIds,
      `${group}, leave_group_on_stop: true`,
    )
    for (const index of [0, 1, 2]) {
      await more(500)
      await daemons[index]!.stop()
      await more(500)
      await publisher.pause()
      await eventually(() => sandbox.stats().distinctPayloadIds === publisher.acked)
      publisher.resume()
      await start(index)
      await allConnected()
    }
    expect(await outcome('members that leave')).toEqual({ lost: 0, notTaken: 0, twice: 0 })
  })

  test('without it, its sessions keep their share until it is started again', async () => {
    const { daemons, sandbox, publisher, more, start, outcome, allConnected } = await startFleet(
      clientIds,
      group,
    )
    for (const index of [0, 1, 2]) {
      await more(500)
      const before = publisher.acked
      await daemons[index]!.stop()
      await more(600)
      await publisher.pause()
      const share = (publisher.acked - before) / clientIds.length
      // What the others have got is all that they get.
      await eventually(() => publisher.acked - sandbox.stats().distinctPayloadIds < share * 1.5)
      const waiting = publisher.acked - sandbox.stats().distinctPayloadIds
      process.stderr.write(
        `bridges: ${waiting} of ${publisher.acked - before} wait for ${clientIds[index]}\n`,
      )
      expect(waiting).toBeGreaterThan(share / 2)
      await start(index)
      await allConnected()
      await eventually(() => sandbox.stats().distinctPayloadIds === publisher.acked)
      publisher.resume()
    }
    expect(await outcome('members whose sessions keep their share')).toEqual({
      lost: 0,
      notTaken: 0,
      twice: 0,
    })
  })
})
