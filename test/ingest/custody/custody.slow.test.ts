// Custody `delivered` with real gateways, a real spool, and the sandbox as the service; the engine is scripted.

import { describe, expect, test } from 'vitest'
import { createCustodyParts } from '../../support/custody-parts.ts'
import { startCustodyGateway } from '../../support/custody-world.ts'
import { eventually } from '../../support/eventually.ts'
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

const timeout = 120_000

describe('the acknowledgement of a message', { timeout }, () => {
  test('is given when the service has accepted its payload, and never before', async () => {
    const engine = createScriptedEngine()
    const gateway = await startCustodyGateway(engine, { sandbox: { faults: { always: 503 } } })
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

  test('is at no moment ahead of what the service has accepted', async () => {
    const engine = createScriptedEngine({ partitions: 3, windowMax: 50 })
    const gateway = await startCustodyGateway(engine, { sandbox: { faults: { latency: '5ms' } } })
    for (let device = 0; device < 10; device += 1) publish(engine, `truck-${device}`, 0, 100)
    let ahead = 0
    while (engine.counts.acked < 1000) {
      if (engine.counts.acked > gateway.sandbox.stats().payloadsAccepted) ahead += 1
      await new Promise(setImmediate)
    }
    expect(ahead).toBe(0)
    expect(gateway.sandbox.stats()).toMatchObject({ distinctPayloadIds: 1000, duplicatesAcrossBatches: 0 })
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

describe('a gateway whose disk is lost', { timeout }, () => {
  test('loses nothing: another one gets everything that was not delivered', async () => {
    const engine = createScriptedEngine()
    const first = await startCustodyGateway(engine, { sandbox: { faults: { always: 503 } } })
    publish(engine, 'truck-1', 0, 60)
    publish(engine, 'truck-2', 0, 60)
    await eventually(() => first.status().totals.payloads === 120)
    await first.lose()
    first.sandbox.setFaults([])
    await startCustodyGateway(engine, { baseUrl: first.baseUrl })
    await eventually(() => engine.counts.acked === 120)
    expect(first.sandbox.stats()).toMatchObject({ distinctPayloadIds: 120, duplicatesAcrossBatches: 0 })
    expect(engine.counts.redelivered).toBe(120)
  })
})

describe('dead letters', { timeout }, () => {
  test('are copied to the engine before their messages are acknowledged, and stay here', async () => {
    const engine = createScriptedEngine()
    engine.refuse('dead')
    const gateway = await startCustodyGateway(engine)
    engine.publish(topicOf('truck-1'), 'not json')
    publish(engine, 'truck-1', 0, 1)
    await eventually(() => gateway.sandbox.stats().payloadsAccepted === 1)
    await eventually(() => gateway.custody().storeFailures > 0)
    expect(engine.counts.acked).toBe(0)
    expect(gateway.status().conditions.map(({ code }) => code)).toContain('CUSTODY_STORE_FAILED')
    engine.refuse()
    await eventually(() => engine.counts.acked === 2)
    expect(engine.dead.map((line) => (JSON.parse(line) as { kind: string }).kind)).toEqual(['message'])
    expect(gateway.status().totals.unmappable).toBe(1)
    await eventually(() => !gateway.status().conditions.some(({ code }) => code === 'CUSTODY_STORE_FAILED'))
  })
})

describe('what waits', { timeout }, () => {
  test('is a condition, which names the batch', async () => {
    const engine = createScriptedEngine()
    const gateway = await startCustodyGateway(engine, {
      sandbox: { faults: { hang: 1 } },
      delivery: 'timeout: 10m',
    })
    publish(engine, 'truck-1', 0, 1)
    const waiting = () => gateway.status().conditions.find(({ code }) => code === 'CUSTODY_WAITING')
    await eventually(() => waiting() !== undefined)
    const event = gateway.events.find(({ kind }) => kind === 'custody_waits')
    expect(event).toMatchObject({ messages: 1 })
    const [batch] = gateway.events.filter(({ kind }) => kind === 'batch_sealed') as { batchId: string }[]
    expect(waiting()?.why).toContain(batch!.batchId)
  })

  test('is one within 30 s after park_after', async () => {
    const world = await createCustodyParts({ script: () => 'hang', provider: { timeoutMs: 600_000 } })
    world.words('a')
    await world.passUntil(() => world.custodyEvents.some(({ kind }) => kind === 'custody_waits'))
    const event = world.custodyEvents.find(({ kind }) => kind === 'custody_waits')
    expect((event as { waitedMs: number }).waitedMs).toBeLessThan(90_000)
  })

  test('is no condition any more when the service has answered', async () => {
    const engine = createScriptedEngine()
    // The sender thread counts its timeout in real time: a request hangs for a second, then it is made again.
    const gateway = await startCustodyGateway(engine, {
      sandbox: { faults: { hang: 1 } },
      delivery: 'timeout: 1s',
    })
    publish(engine, 'truck-1', 0, 2)
    const isWaiting = () => gateway.status().conditions.some(({ code }) => code === 'CUSTODY_WAITING')
    await eventually(isWaiting)
    expect(engine.counts.acked).toBe(0)
    gateway.sandbox.setFaults([])
    await eventually(() => engine.counts.acked === 2)
    await eventually(() => !isWaiting())
    expect(gateway.events.some(({ kind }) => kind === 'custody_moves')).toBe(true)
    expect(gateway.custody()).toMatchObject({ outstanding: 0, oldestSeconds: null, parked: 0 })
    expect(gateway.sandbox.stats()).toMatchObject({ distinctPayloadIds: 2, payloadsAccepted: 2 })
  })
})
