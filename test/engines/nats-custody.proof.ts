// Custody `delivered` with NATS in an outage of the service: nothing is taken meanwhile, and nothing is lost,
// whoever owns the partitions afterwards. With the whole gateway and the clock of the machine.

import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { CustodyView } from '../../src/ingest/ingest.ts'
import { mqttStream } from '../../src/ingest/jetstream/types.ts'
import type { FaultsInput } from '../../src/sandbox/fault-plan.ts'
import { eventually } from '../support/eventually.ts'
import { newFolder } from '../support/folders.ts'
import { mappings, openDevice, openNats, publishAll, type NatsHandle } from '../support/nats-world.ts'
import { messageOf, startPipeline, type Pipeline, type PipelineOptions } from '../support/pipeline-world.ts'
import type { Engine } from './message-engine.ts'
import { hasNats, startNats } from './nats-engine.ts'

const partitions = 4
const devices = 8

function start(engine: Engine, member: string, more: PipelineOptions = {}): Promise<Pipeline> {
  return startPipeline({
    ...more,
    config: (baseUrl) => `
ingest:
  broker: { listeners: [] }
  bridges:
    - name: nats
      url: ${engine.urls[0]}
      member: ${member}
      topics: ["t/{device}"]
      durables: { prefix: gw, partitions: ${partitions} }
      provision: true
      custody: delivered
      park_after: 2s
      park_for: 10s
sources:
  - name: trucks
    topic: t/{device}
    map:
      time:      { path: ts, format: ms }
      latitude:  { path: lat }
      longitude: { path: lon }
defaults: { carrier: ${member}, operator: OP1, asset_type: TRACTOR }
spool: { path: ./spool, max_bytes: 1GiB, min_free_bytes: 1MiB }
delivery: { base_url: "${baseUrl}", batch: { linger: 100ms, max_payloads: 10 }, max_in_flight: 2 }
ops: { listen: "127.0.0.1:0", stop_deadline: 5s }
`,
  })
}

const custodyOf = (gateway: Pipeline) => gateway.status().custody as unknown as CustodyView
const sourceOf = (gateway: Pipeline) => gateway.status().messageSources.find(({ name }) => name === 'nats')!
const activeAt = (gateway: Pipeline) =>
  sourceOf(gateway).partitions.filter(({ role }) => role === 'active').length

type World = Awaited<ReturnType<typeof openWorld>>

async function openWorld(faults: FaultsInput) {
  const engine = await startNats({ lines: mappings })
  const folder = await newFolder()
  const gateway = await start(engine, 'gw-a', { folder, sandbox: { faults } })
  await gateway.until(() => activeAt(gateway) === partitions)
  const device = await openDevice(engine.nodes[0]!.mqttPort)
  let published = 0
  /** Each device publishes `count` messages; one group after the other, each is a commit of its own. */
  async function publish(count: number): Promise<void> {
    for (let n = 0; n < count; n += 1) {
      const number = published
      published += 1
      await publishAll(
        device,
        Array.from({ length: devices }, (_, index) => ({
          topic: `t/truck-${index}`,
          text: messageOf(number),
        })),
      )
    }
  }
  return { engine, folder, gateway, device, publish, count: () => published * devices }
}

/** Of all partitions at NATS: what was delivered and is not acknowledged, and what was not delivered. */
async function waitingAt({ jsm }: NatsHandle) {
  const infos = await Promise.all([0, 1, 2, 3].map((n) => jsm.consumers.info(mqttStream, `gw-${n}`)))
  return infos.reduce((sum, { num_ack_pending, num_pending }) => sum + num_ack_pending + num_pending, 0)
}

/** Until nothing more is taken. */
async function untilHolding({ gateway, publish, count }: World): Promise<number> {
  await publish(5)
  await gateway.until(() => sourceOf(gateway).messages === count() && custodyOf(gateway).holds)
  expect(custodyOf(gateway).outstanding).toBe(count())
  return count()
}

/** The numbers of each device, in the order in which the service accepted them first. */
function ordersOf({ sandbox }: Pipeline): number[][] {
  const orders = new Map<string, number[]>()
  const seen = new Set<string>()
  for (const { payload } of sandbox.received({ limit: Number.MAX_SAFE_INTEGER }).toReversed()) {
    const id = String(payload['payloadId'])
    const device = JSON.stringify(payload['deviceIdentifier'])
    if (!seen.has(id)) orders.set(device, [...(orders.get(device) ?? []), Number(payload['signalTimestamp'])])
    seen.add(id)
  }
  return [...orders.values()]
}

describe.skipIf(!hasNats)('an outage of the service with custody delivered, NATS', () => {
  test('takes nothing, keeps what was taken and its leases, and delivers all once', async () => {
    const world = await openWorld({ always: 503 })
    const { engine, gateway, publish, count } = world
    await using nats = await openNats(engine)
    const outstanding = await untilHolding(world)
    const { messages } = sourceOf(gateway)
    expect(gateway.status().conditions.map(({ code }) => code)).toContain('CUSTODY_OUTAGE')
    await publish(10)
    // Longer than a lease, and than a pull.
    const heldFromMs = performance.now()
    await eventually(async () => performance.now() - heldFromMs > 8000 && (await waitingAt(nats)) === count())
    expect(sourceOf(gateway).messages).toBe(messages)
    expect(activeAt(gateway)).toBe(partitions)
    expect(custodyOf(gateway)).toMatchObject({ outstanding, holds: true })
    expect(sourceOf(gateway).acked).toBe(0)
    gateway.sandbox.setFaults([])
    await eventually(async () => (await waitingAt(nats)) === 0)
    await gateway.until(() => custodyOf(gateway).outstanding === 0)
    expect(gateway.sandbox.stats()).toMatchObject({
      distinctPayloadIds: count(),
      payloadsAccepted: count(),
      duplicatesAcrossBatches: 0,
      duplicatesUnderOneBatch: 0,
    })
    const counted = `${count()} messages, ${outstanding} kept`
    process.stderr.write(`engines: NATS: outage with custody delivered: ${counted}, 0 lost, 0 twice\n`)
  })

  test('the gateway is lost with its disk then: the next one gets everything, in order', async () => {
    const world = await openWorld({ always: 503 })
    const { engine, folder, gateway, publish, count } = world
    const outstanding = await untilHolding(world)
    await publish(5)
    await gateway.gateway.stop('lost')
    await rm(join(folder, 'spool'), { recursive: true, force: true })
    gateway.sandbox.setFaults([])
    const second = await start(engine, 'gw-b', { baseUrl: gateway.baseUrl })
    await second.until(() => sourceOf(second).acked === count())
    expect(gateway.sandbox.stats()).toMatchObject({
      distinctPayloadIds: count(),
      payloadsAccepted: count(),
      duplicatesAcrossBatches: 0,
    })
    for (const order of ordersOf(gateway)) expect(order).toEqual(order.toSorted((one, other) => one - other))
    process.stderr.write(
      `engines: NATS: lost in an outage: ${count()} messages, ${outstanding} kept, 0 lost\n`,
    )
  })

  test('what the service has and did not answer stays; another gateway joins, and the same comes twice at most', async () => {
    const world = await openWorld({ after_commit: { cut: 1 } })
    const { engine, gateway, publish, count } = world
    await using nats = await openNats(engine)
    const outstanding = await untilHolding(world)
    await publish(5)
    const second = await start(engine, 'gw-b', { baseUrl: gateway.baseUrl })
    await second.until(() => activeAt(second) === 2 && activeAt(gateway) === 2)
    gateway.sandbox.setFaults([])
    await eventually(async () => (await waitingAt(nats)) === 0)
    await gateway.until(() => custodyOf(gateway).outstanding + custodyOf(second).outstanding === 0)
    const stats = gateway.sandbox.stats()
    expect(stats.distinctPayloadIds).toBe(count())
    expect(stats.duplicatesAcrossBatches).toBeLessThanOrEqual(outstanding)
    process.stderr.write(
      `engines: NATS: a gateway joins in an outage: ${count()} messages, ${outstanding} kept, ` +
        `0 lost, ${stats.duplicatesAcrossBatches} twice\n`,
    )
  })
})
