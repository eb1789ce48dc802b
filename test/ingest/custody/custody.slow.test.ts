// Custody `delivered` with real gateways, a real spool, and the sandbox as the service; the engine is scripted. Its clock is
// fast.

import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { createCustodyParts } from '../../support/custody-parts.ts'
import { startCustodyGateway } from '../../support/custody-world.ts'
import { eventually } from '../../support/eventually.ts'
import { createFastClock } from '../../support/fast-clock.ts'
import { newFolder } from '../../support/folders.ts'
import { messageOf, topicOf } from '../../support/pipeline-world.ts'
import { createScriptedEngine, type ScriptedEngine } from '../../support/scripted-engine.ts'

function publish(engine: ScriptedEngine, device: string, from: number, count: number): void {
  for (let n = from; n < from + count; n += 1) engine.publish(topicOf(device), messageOf(n))
}

const timeout = 180_000
const badFails = [{ fail: [{ device: 'truck-bad', error_type: 'Validation' }] }]
/** One partition: what is behind a failing payload waits for it. */
const onePartition = { partitions: 1 }

describe('the acknowledgement of a message', { timeout }, () => {
  test('is given when the service has accepted its payload, and never before', async () => {
    const engine = createScriptedEngine()
    // Slowly: all of them are taken before it is an outage, also on a busy machine.
    const gateway = await startCustodyGateway(engine, { factor: 10, sandbox: { faults: { always: 503 } } })
    const { sandbox } = gateway
    publish(engine, 'truck-1', 0, 20)
    publish(engine, 'truck-2', 0, 20)
    await eventually(() => gateway.status().totals.payloads === 40 && sandbox.stats().requests > 0)
    await eventually(() => gateway.custody().outstanding === 40)
    expect(engine.counts.acked).toBe(0)
    sandbox.setFaults([])
    await eventually(() => engine.counts.acked === 40)
    expect(sandbox.stats()).toMatchObject({ payloadsAccepted: 40, distinctPayloadIds: 40 })
    expect(gateway.custody()).toMatchObject({
      outstanding: 0,
      oldestSeconds: null,
      waitsFor: null,
      parked: 0,
    })
  })

  test('is given for messages that become no payload, and for duplicates behind the first copy', async () => {
    const engine = createScriptedEngine()
    const gateway = await startCustodyGateway(engine)
    publish(engine, 'truck-1', 0, 5)
    publish(engine, 'truck-1', 0, 5)
    await eventually(() => engine.counts.acked === 10)
    expect(gateway.status().totals).toMatchObject({ payloads: 5, duplicates: 5 })
    expect(gateway.sandbox.stats().payloadsAccepted).toBe(5)
  })
})

describe('what waits', { timeout }, () => {
  test('is a condition, which names the batch, until the service has answered', async () => {
    const engine = createScriptedEngine()
    // The sender thread counts its timeout in real time: a request hangs for a second, then it is made again.
    const gateway = await startCustodyGateway(engine, {
      sandbox: { faults: { hang: 1 } },
      delivery: 'timeout: 1s',
    })
    publish(engine, 'truck-1', 0, 2)
    const waiting = () => gateway.status().conditions.find(({ code }) => code === 'CUSTODY_WAITING')
    await eventually(() => waiting() !== undefined)
    const [batch] = gateway.events.filter(({ kind }) => kind === 'batch_sealed') as { batchId: string }[]
    expect(waiting()?.why).toContain(batch!.batchId)
    expect(engine.counts.acked).toBe(0)
    gateway.sandbox.setFaults([])
    await eventually(() => engine.counts.acked === 2)
    await eventually(() => waiting() === undefined)
    expect(gateway.custody()).toMatchObject({ outstanding: 0, oldestSeconds: null, parked: 0 })
    expect(gateway.sandbox.stats()).toMatchObject({ distinctPayloadIds: 2, payloadsAccepted: 2 })
  })

  test('is one within 30 s after park_after', async () => {
    const world = await createCustodyParts({ script: () => 'hang', provider: { timeoutMs: 600_000 } })
    world.words('a')
    await world.passUntil(() => world.custody.states().length > 0)
    expect(world.custody.states()).toMatchObject([{ code: 'CUSTODY_WAITING' }])
    expect(world.custody.view().oldestMs).toBeLessThan(90_000)
  })
})

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

describe('payloads that fail', { timeout }, () => {
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

  test('are stored once when they come back, also where the engine delivers them again to the next gateway with the same disk', async () => {
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
