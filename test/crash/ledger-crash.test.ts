// Kills the real daemon between the copy of receipts into the ledger and their deletion in the spool, and
// around settles. The ledger lists each payload that the service accepted once, with the answer that settled
// it.

import { expect, test } from 'vitest'
import type { LedgerAnswer, LedgerEntry } from '../../src/ledger/ledger.ts'
import { eventually } from '../support/eventually.ts'
import { openPayloads, statusUntil, type Daemon } from '../support/driver/daemon.ts'
import { openKilledWorld } from '../support/driver/killed-world.ts'
import { createResendingDevice } from '../support/driver/resending-device.ts'
import type { AnyPoint } from './kill-points.ts'

/** One daemon each. */
const kills: { point: AnyPoint; after: number }[] = [
  { point: 'after-ledger-copy', after: 1 },
  { point: 'after-settle', after: 4 },
  { point: 'before-ledger-copy', after: 2 },
  { point: 'before-settle', after: 3 },
  { point: 'during-recovery', after: 9 },
  { point: 'after-ledger-copy', after: 1 },
  { point: 'before-ledger-copy', after: 1 },
]

const messagesALife = 60

/** Everything that the ledger lists; null where the daemon died meanwhile. */
async function listed(url: string): Promise<LedgerEntry[] | null> {
  const entries: LedgerEntry[] = []
  let after = ''
  for (;;) {
    const response = await fetch(`${url}/ledger?limit=100${after}`).catch(() => null)
    const answer = (await response?.json().catch(() => null)) as LedgerAnswer | null | undefined
    if (!answer) return null
    entries.push(...answer.entries)
    if (answer.next === null) return entries
    after = `&after=${answer.next}`
  }
}

async function untilDead(daemon: Daemon, url: string): Promise<string> {
  // Each query makes the ledger copy the waiting receipts.
  while (daemon.running) await listed(url)
  return daemon.ended
}

test(
  'killed 7 times while it keeps the ledger, the daemon lists each payload once',
  { timeout: 180_000 },
  async () => {
    const world = await openKilledWorld(
      (
        url,
      ) => `ingest: { broker: { listeners: [{ url: "mqtt://127.0.0.1:0" }], access: { anonymous: true }, limits: { max_messages_per_s: 1000000 } } }
sources:
  - name: trucks
    topic: telemetry/v1/{device}
    map: { time: { path: ts, format: ms }, latitude: { path: lat }, longitude: { path: lon } }
delivery: { base_url: "${url}", max_in_flight: 1, batch: { max_payloads: 7, linger: 5ms } }`,
    )
    const truck = createResendingDevice('truck-7', (n) => ({
      topic: 'telemetry/v1/truck-7',
      payload: JSON.stringify({ ts: 1_763_690_000_000 + n * 1000, lat: 52, lon: 13 }),
    }))
    for (const kill of kills) {
      await using daemon = world.start(kill)
      const ready = await daemon.ready
      await truck.publish(ready?.mqttPort ?? 0, messagesALife)
      if (ready === null) continue
      expect(await untilDead(daemon, ready.opsUrl), `${kill.point}:\n${daemon.log()}`).toBe('SIGKILL')
    }
    await using daemon = world.start()
    const ready = await daemon.ready
    if (ready === null) throw new Error(daemon.log())
    await truck.publish(ready.mqttPort, 0)
    expect(truck.unacked).toEqual([])
    const { published } = truck
    await statusUntil(daemon, (status) => openPayloads(status) === 0, {
      what: 'an empty spool',
      boundMs: 15_000,
    })
    // The ledger copies receipts in the background, and with each query.
    let entries: LedgerEntry[] = []
    await eventually(async () => (entries = (await listed(ready.opsUrl)) ?? []).length >= published)
    const accepted = world.received().map(({ payload }) => String(payload['payloadId']))
    expect(entries.map(({ payloadId }) => payloadId).sort()).toEqual([...new Set(accepted)].sort())
    expect(entries).toHaveLength(published)
    for (const { outcome, requestId, device } of entries)
      expect([outcome, requestId === null, device]).toEqual(['delivered', false, 'truck-7'])
    const { ledger } = (await daemon.status()) ?? {}
    expect(ledger).toMatchObject({ records: published, behind: 0, missed: 0, damaged: 0 })
    expect(await daemon.stop()).toBe('exit 0')
  },
)
