// What is parked in the engine and what comes back, with real gateways before a scripted engine.

import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { startCustodyGateway } from '../../support/custody-world.ts'
import { eventually } from '../../support/eventually.ts'
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
const badFails = [{ fail: [{ device: 'truck-bad', error_type: 'Validation' }] }]
/** One partition: what is behind a failing payload waits for it. */
const onePartition = { partitions: 1 }

describe('payloads that fail', { timeout }, () => {
  test('are parked after park_after, the partition goes on, and they are delivered when they come back', async () => {
    const engine = createScriptedEngine(onePartition)
    const gateway = await startCustodyGateway(engine, { sandbox: { faults: badFails } })
    const { sandbox } = gateway
    publish(engine, 'truck-bad', 0, 3)
    publish(engine, 'truck-1', 0, 20)
    await eventually(() => sandbox.stats().payloadsAccepted === 20)
    expect(engine.counts.acked).toBe(0)
    await eventually(() => engine.counts.acked === 23)
    expect(engine.parked.length).toBe(3)
    expect(gateway.custody()).toMatchObject({ parked: 3, outstanding: 0 })
    expect(gateway.status().lanes.reduce((sum, { pending, sealed }) => sum + pending + sealed, 0)).toBe(0)
    sandbox.setFaults([])
    await eventually(() => sandbox.stats().payloadsAccepted === 23 && engine.parked.length === 0)
    expect(sandbox.stats()).toMatchObject({ distinctPayloadIds: 23, duplicatesAcrossBatches: 0 })
    expect(gateway.custody()).toMatchObject({ takenBack: 3, parkedDuplicates: 0 })
  })

  test('keep their attempts: what fails for good is a dead letter in the end, with a copy', async () => {
    const engine = createScriptedEngine(onePartition)
    const gateway = await startCustodyGateway(engine, {
      sandbox: { faults: badFails },
      delivery: 'batch: { linger: 200ms }, errors: { Validation: [5m, 10m] }',
      factor: 300,
    })
    publish(engine, 'truck-bad', 0, 1)
    await eventually(() => engine.dead.length === 1)
    await eventually(() => engine.parked.length === 0)
    expect(gateway.custody().parked).toBeGreaterThanOrEqual(1)
    expect(gateway.status().totals.dead).toBe(1)
    expect(JSON.parse(engine.dead[0]!)).toMatchObject({
      kind: 'payload',
      deadLetter: { reason: 'Validation' },
    })
  })

  test('are removed only when the engine has confirmed them', async () => {
    const engine = createScriptedEngine(onePartition)
    engine.refuse('parked')
    const gateway = await startCustodyGateway(engine, { sandbox: { faults: badFails } })
    publish(engine, 'truck-bad', 0, 2)
    publish(engine, 'truck-1', 0, 5)
    await eventually(() => gateway.custody().storeFailures >= 2)
    expect(engine.counts.acked).toBe(0)
    expect(gateway.custody().parked).toBe(0)
    expect(gateway.status().lanes.reduce((sum, { pending }) => sum + pending, 0)).toBe(2)
    expect(gateway.status().conditions.map(({ code }) => code)).toContain('CUSTODY_STORE_FAILED')
    engine.refuse()
    await eventually(() => engine.counts.acked === 7)
    expect(engine.parked.length).toBe(2)
  })
})

describe('an entry that comes back', { timeout }, () => {
  test('is stored once, also where the engine delivers it again to the next gateway with the same disk', async () => {
    const engine = createScriptedEngine(onePartition)
    const folder = await newFolder()
    // Slowly, so that the start is within the dedup window.
    const slowly = { folder, factor: 10, parkAfterMs: 10_000, parkForMs: 20_000 }
    const first = await startCustodyGateway(engine, { ...slowly, sandbox: { faults: badFails } })
    publish(engine, 'truck-bad', 0, 2)
    publish(engine, 'truck-1', 0, 1)
    await eventually(() => engine.parked.length === 2 && engine.counts.acked === 3)
    first.sandbox.setFaults([{ always: 503 }])
    await eventually(() => first.custody().takenBack === 2)
    engine.leave(first.source)
    await first.gateway.stop('restart')
    first.sandbox.setFaults([])
    const second = await startCustodyGateway(engine, { ...slowly, baseUrl: first.baseUrl })
    await eventually(() => engine.parked.length === 0)
    expect(first.sandbox.stats()).toMatchObject({ payloadsAccepted: 3, distinctPayloadIds: 3 })
    expect(second.custody()).toMatchObject({ parkedDuplicates: 2, takenBack: 0 })
  })

  test('and cannot be read becomes a dead letter', async () => {
    const engine = createScriptedEngine(onePartition)
    const gateway = await startCustodyGateway(engine)
    engine.park('nonsense')
    await eventually(() => engine.dead.length === 1 && engine.parked.length === 0)
    expect(JSON.parse(engine.dead[0]!)).toMatchObject({ deadLetter: { reason: 'BAD_PARKED_ENTRY' } })
    expect(gateway.custody().takenBack).toBe(0)
  })
})

describe('messages of a device that is not listed', { timeout }, () => {
  test('are parked, and delivered from there when the device is listed', async () => {
    const engine = createScriptedEngine(onePartition)
    const folder = await newFolder()
    const devices = join(folder, 'devices.csv')
    await writeFile(devices, 'device\ntruck-1\n')
    const gateway = await startCustodyGateway(engine, {
      folder,
      more: 'devices: { file: devices.csv, unknown: quarantine }',
    })
    publish(engine, 'truck-new', 0, 4)
    publish(engine, 'truck-1', 0, 4)
    await eventually(() => engine.counts.acked === 8)
    expect(gateway.sandbox.stats().payloadsAccepted).toBe(4)
    expect(engine.parked.length).toBe(4)
    expect(gateway.status().totals.quarantined).toBe(4)
    await writeFile(devices, 'device\ntruck-1\ntruck-new\n')
    await gateway.gateway.reload('test')
    await eventually(() => gateway.sandbox.stats().payloadsAccepted === 8 && engine.parked.length === 0)
    expect(gateway.sandbox.stats()).toMatchObject({ distinctPayloadIds: 8, duplicatesAcrossBatches: 0 })
  })
})
