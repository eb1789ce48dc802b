import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { KeptStore } from '../../src/domain/kept-store.ts'
import { newFolder } from '../support/folders.ts'
import { createDevice } from '../support/mqtt-device.ts'
import { messageOf, startPipeline, topicOf, type Pipeline } from '../support/pipeline-world.ts'

type Options = { sources?: string; spool?: string; unknown?: string }

const usualSource = `
  - name: trucks
    topic: telemetry/v1/{device}
    map: { time: { path: ts, format: ms }, latitude: { path: lat }, longitude: { path: lon } }
`

/** Two devices are listed; every limit is the smallest that the config allows. */
async function pipelineOf({
  sources = usualSource,
  spool = '',
  unknown = 'quarantine',
}: Options): Promise<Pipeline> {
  const folder = await newFolder()
  await writeFile(join(folder, 'devices.csv'), 'device\ntruck-1\ntruck-2\n')
  return startPipeline({
    folder,
    config: (baseUrl) =>
      [
        'ingest: { broker: { listeners: [{ url: "mqtt://127.0.0.1:0" }], access: { anonymous: true } } }',
        `devices: { file: devices.csv, unknown: ${unknown} }`,
        `sources: ${sources}`,
        'defaults: { carrier: ACME, operator: OP1, asset_type: TRACTOR }',
        `spool: { path: ./spool, max_bytes: 32MiB, min_free_bytes: 1MiB ${spool} }`,
        `delivery: { base_url: "${baseUrl}", batch: { linger: 20ms } }`,
        'ops: { listen: "127.0.0.1:0", stop_deadline: 5s }',
        'log: { level: error }',
      ].join('\n'),
  })
}

/** A client that publishes `count` messages and waits for all acks, 20 at a time. */
async function flood(
  pipeline: Pipeline,
  clientId: string,
  count: number,
  publishOf: (n: number) => { topic: string; payload: string },
): Promise<void> {
  const stranger = await pipeline.device(clientId)
  for (let n = 1; n <= count; n += 1) {
    stranger.publish({ ...publishOf(n), messageId: n })
    if (n % 20 === 0) await stranger.acked(n)
  }
}

/** A listed device gets its acks, and what it sends is delivered. */
async function expectServed(pipeline: Pipeline, clientId = 'truck-1'): Promise<void> {
  const device = await pipeline.device(clientId)
  for (let n = 1; n <= 5; n += 1) {
    device.publish({ topic: topicOf(clientId), payload: messageOf(n), messageId: n })
    await device.acked(n)
  }
  await pipeline.until(() => pipeline.sandbox.received({ device: clientId, limit: 5 }).length === 5)
}

function evictedFrom(pipeline: Pipeline, name: KeptStore): number {
  return pipeline.status().totals.evicted.find(({ store }) => store === name)?.messages ?? 0
}

function storeOf(pipeline: Pipeline, name: KeptStore) {
  return pipeline.status().spool.stores.find(({ store }) => store === name)
}

async function expectEvicted(pipeline: Pipeline, store: KeptStore): Promise<void> {
  await pipeline.until(() => evictedFrom(pipeline, store) > 0)
  const { bytes = 0, bytesMax = 0 } = storeOf(pipeline, store) ?? {}
  expect(bytes).toBeLessThanOrEqual(bytesMax + 1024 ** 2)
  expect(pipeline.status().conditions).toContainEqual(
    expect.objectContaining({ code: 'MESSAGES_EVICTED', key: store, severity: 'error' }),
  )
  expect(pipeline.status().spool.hold).toBeNull()
  expect(pipeline.status().internals.conservation.messages.difference).toBe(0)
}

const padding = 'x'.repeat(6000)

describe('a stranger holds nobody', () => {
  test('messages under invented names that fill the quarantine', async () => {
    const pipeline = await pipelineOf({ spool: ', quarantine_max_bytes: 1MiB' })
    await flood(pipeline, 'stranger', 400, (n) => ({
      topic: topicOf(`name-${n}`),
      payload: messageOf(n, { padding }),
    }))
    await expectServed(pipeline)
    await expectEvicted(pipeline, 'quarantine')
    expect(pipeline.status().totals.quarantined).toBe(400)
  })

  test('unlisted names on a connection do not hold its listed devices', async () => {
    const pipeline = await pipelineOf({ spool: ', quarantine_max_bytes: 1MiB' })
    const gateway = await pipeline.device('gateway')
    for (let n = 1; n <= 400; n += 1) {
      const device = n % 10 === 0 ? 'truck-1' : `name-${n}`
      gateway.publish({ topic: topicOf(device), payload: messageOf(n, { padding }), messageId: n })
      if (n % 20 === 0) await gateway.acked(n)
    }
    await pipeline.until(() => pipeline.sandbox.received({ device: 'truck-1', limit: 50 }).length === 40)
    await expectEvicted(pipeline, 'quarantine')
    expect(pipeline.status()).toMatchObject({ totals: { quarantined: 360 }, waiting: { heldMessages: 0 } })
  })

  test('messages that cannot be mapped, of unknown topics', async () => {
    const pipeline = await pipelineOf({
      spool: ', dead_letters: { max_bytes: 1MiB }',
    })
    await flood(pipeline, 'stranger', 400, (n) => ({ topic: `elsewhere/${n}`, payload: padding }))
    await expectServed(pipeline)
    await expectEvicted(pipeline, 'unlisted_dead_letters')
    // One malformed message of an honest device is kept, and what follows it is delivered.
    const honest = await pipeline.device('truck-2')
    honest.publish({ topic: topicOf('truck-2'), payload: '{"ts": 1,', messageId: 1 })
    honest.publish({ topic: topicOf('truck-2'), payload: messageOf(1), messageId: 2 })
    await honest.acked(2)
    expect(evictedFrom(pipeline, 'dead_letters')).toBe(0)
    expect(storeOf(pipeline, 'dead_letters')?.bytes).toBeGreaterThan(0)
  })

  test('a listed device that fills the dead letters holds its connection, and not an honest malformed message', async () => {
    const pipeline = await pipelineOf({ spool: ', dead_letters: { max_bytes: 1MiB }' })
    const broken = await pipeline.device('truck-1')
    let sent = 0
    while (!pipeline.status().spool.deadLettersFull) {
      for (let n = 0; n < 10; n += 1)
        broken.publish({ topic: topicOf('truck-1'), payload: padding, messageId: (sent += 1) })
      await pipeline.until(() => broken.acks.length === sent || pipeline.status().waiting.heldMessages > 0)
    }
    const honest = await pipeline.device('truck-2')
    honest.publish({ topic: topicOf('truck-2'), payload: '{"ts": 1,', messageId: 1 })
    honest.publish({ topic: topicOf('truck-2'), payload: messageOf(1), messageId: 2 })
    await honest.acked(2)
    broken.publish({ topic: topicOf('truck-1'), payload: 'no json', messageId: sent + 1 })
    await pipeline.until(() => pipeline.status().waiting.heldMessages > 0)
    expect(pipeline.status().conditions.map(({ code }) => code)).toContain('DEAD_LETTERS_FULL')
    expect(pipeline.status().internals.conservation.messages.difference).toBe(0)
  })

  test('dead letters of collected records stay within their bound', async () => {
    const sources = `
  - name: cars
    topic: cars/{device}/{name}
    coalesce: { name: '{name}', value: v, window: 10s, require: [lat], complete: [lat, note] }
    map: { latitude: { path: lat }, longitude: { path: lon }, time: { path: ts, format: ms, missing: arrival } }
`
    const pipeline = await pipelineOf({
      sources,
      unknown: 'accept',
      spool: ', dead_letters: { max_bytes: 1MiB }',
    })
    const stranger = await pipeline.device('stranger')
    const value = (v: unknown) => JSON.stringify({ v })
    for (let n = 1; n <= 200; n += 1) {
      stranger.publish({ topic: `cars/name-${n}/lat`, payload: value('no latitude'), messageId: 2 * n - 1 })
      stranger.publish({ topic: `cars/name-${n}/note`, payload: value('x'.repeat(10_000)), messageId: 2 * n })
      if (n % 10 === 0) await stranger.acked(2 * n)
    }
    await expectEvicted(pipeline, 'part_dead_letters')
    expect(pipeline.status().spool.deadLettersFull).toBe(false)
    expect(storeOf(pipeline, 'dead_letters')?.bytes).toBe(0)
  })
})

test('the wills of all clients have a bound, and large ones keep no client out whose will is small', async () => {
  const pipeline = await pipelineOf({})
  const { port } = new URL(pipeline.gateway.addresses.mqtt[0]!)
  let clients = 0
  const connect = async (clientId: string, willBytes: number) => {
    // An address may make only so many connections in a second.
    const from = `127.0.0.${2 + ((clients += 1) % 20)}`
    const device = await createDevice({ port: Number(port), clientId, from })
    onTestFinished(() => device.destroy())
    const will = {
      topic: topicOf(clientId),
      payload: Buffer.alloc(willBytes),
      qos: 1 as const,
      retain: false,
    }
    return { device, answer: await device.connect({ will }) }
  }
  const large = 60_000
  const room = Math.floor((32 * 1024 ** 2) / large)
  const answers: Awaited<ReturnType<typeof connect>>[] = []
  for (let n = 0; n < room + 20; n += 1) answers.push(await connect(`stranger-${n}`, large))
  const refused = answers.filter(({ answer }) => answer.returnCode === 3)
  expect(refused.length).toBeGreaterThanOrEqual(20)
  expect(refused.length).toBeLessThan(25)
  expect((await connect('truck-1', 200)).answer.returnCode).toBe(0)
  const reasons = pipeline.events.flatMap((event) => (event.kind === 'client_refused' ? event.reason : []))
  expect(new Set(reasons)).toEqual(new Set(['wills_full']))
  // Each that leaves makes room.
  for (const { device } of answers) device.destroy()
  await pipeline.until(() => pipeline.status().clients.connections === 1)
  expect((await connect('truck-2', large)).answer.returnCode).toBe(0)
})
