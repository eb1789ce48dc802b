// An outage of the ingestion API with custody `delivered`, and a restart with the disk.

import { describe, expect, test } from 'vitest'
import { startCustodyGateway } from '../../support/custody-world.ts'
import { eventually } from '../../support/eventually.ts'
import { createFastClock } from '../../support/fast-clock.ts'
import { newFolder } from '../../support/folders.ts'
import { messageOf, topicOf } from '../../support/pipeline-world.ts'
import { createScriptedEngine } from '../../support/scripted-engine.ts'

const publish = (
  engine: ReturnType<typeof createScriptedEngine>,
  device: string,
  from: number,
  count: number,
) => {
  for (let n = from; n < from + count; n += 1) engine.publish(topicOf(device), messageOf(n))
}

const timeout = 180_000

describe('an outage of the service', { timeout }, () => {
  test('ends what is taken; what was taken stays here until it is delivered', async () => {
    const engine = createScriptedEngine({ partitions: 1, windowMax: 400 })
    const clock = createFastClock(1)
    const gateway = await startCustodyGateway(engine, {
      clock,
      sandbox: { faults: { always: 503 } },
      delivery: 'batch: { linger: 200ms, max_payloads: 10 }, max_in_flight: 2',
    })
    for (let device = 0; device < 10; device += 1) {
      publish(engine, `truck-${device}`, 0, 30)
      await eventually(() => gateway.status().totals.payloads === 30 * (device + 1))
    }
    clock.setFactor(100)
    await eventually(() => gateway.custody().holds)
    expect(gateway.status().conditions.map(({ code }) => code)).toContain('CUSTODY_OUTAGE')
    publish(engine, 'truck-late', 0, 50)
    // Custody looks ten times a second.
    const { oldestSeconds } = gateway.custody()
    await eventually(() => gateway.custody().oldestSeconds! > oldestSeconds! + 60)
    expect(engine.ready()).toBe(50)
    expect(gateway.custody().outstanding).toBe(300)
    expect(gateway.status().lanes.reduce((sum, lane) => sum + lane.sealed + lane.pending, 0)).toBe(300)
    gateway.sandbox.setFaults([])
    await eventually(() => engine.counts.acked === 350)
    expect(gateway.sandbox.stats()).toMatchObject({
      distinctPayloadIds: 350,
      payloadsAccepted: 350,
      duplicatesAcrossBatches: 0,
      duplicatesUnderOneBatch: 0,
    })
    expect(gateway.status().conditions.map(({ code }) => code)).not.toContain('CUSTODY_OUTAGE')
  })

  test('is not one where the service refuses each payload: messages are taken on', async () => {
    const engine = createScriptedEngine({ partitions: 1 })
    const gateway = await startCustodyGateway(engine, {
      sandbox: { faults: { fail: [{ error_type: 'Validation' }] } },
    })
    publish(engine, 'truck-1', 0, 3)
    await eventually(() => engine.parked.length === 3 && engine.counts.acked === 3)
    gateway.sandbox.setFaults({ fail: [{ device: 'truck-1' }] })
    publish(engine, 'truck-2', 0, 3)
    await eventually(() => gateway.sandbox.stats().payloadsAccepted === 3)
    expect(gateway.custody().holds).toBe(false)
  })
})

describe('a gateway that returns with its disk', { timeout }, () => {
  test('delivers what is in its spool, and takes what comes again for duplicates', async () => {
    const engine = createScriptedEngine()
    const folder = await newFolder()
    const clock = createFastClock(10)
    const first = await startCustodyGateway(engine, {
      folder,
      clock,
      sandbox: { faults: { always: 503 } },
    })
    publish(engine, 'truck-1', 0, 40)
    await eventually(() => first.status().totals.payloads === 40)
    engine.leave(first.source)
    await first.gateway.stop('restart')
    // For longer than the dedup window.
    const stoppedAtMs = clock.monotonic()
    clock.setFactor(20_000)
    await eventually(() => clock.monotonic() - stoppedAtMs > 6 * 3_600_000)
    clock.setFactor(10)
    first.sandbox.setFaults([])
    const second = await startCustodyGateway(engine, { folder, clock, baseUrl: first.baseUrl })
    await eventually(() => engine.counts.acked === 40)
    expect(first.sandbox.stats()).toMatchObject({ distinctPayloadIds: 40, payloadsAccepted: 40 })
    expect(second.status().totals).toMatchObject({ payloads: 0, duplicates: 40 })
  })
})
