// Delivery of a gateway to the sandbox, which verifies every signature and every repeated body with code of its own.

import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { sandboxAccount } from '../../src/sandbox/sandbox.ts'
import { Secret } from '../../src/std/secret.ts'
import { systemClock, type Clock } from '../../src/std/clock.ts'
import { configText, positionMap } from '../support/config-text.ts'
import { newFolder } from '../support/folders.ts'
import { messageOf, startPipeline, type Pipeline } from '../support/pipeline-world.ts'

const hourMs = 3_600_000
const dayMs = 24 * hourMs

const messages = (from: number, count: number) =>
  Array.from({ length: count }, (_, index) => messageOf(from + index))

const isDelivered = (pipeline: Pipeline, count: number) =>
  pipeline.until(() => pipeline.status().totals.delivered === count)

describe('delivery to a service that verifies', () => {
  test('compressed requests are accepted, and their batches are those of the uncompressed body', async () => {
    const pipeline = await startPipeline({
      sandbox: { faults: { after_commit: { cut: 0.3 } } },
      sections: {
        delivery:
          'batch: { max_payloads: 50, linger: 20ms }, compress: gzip, backoff: { min: 10ms, max: 80ms, probe_every: 1s }',
      },
    })
    await pipeline.publish('truck-1', ...messages(0, 500))
    await isDelivered(pipeline, 500)
    const stats = pipeline.sandbox.stats()
    expect(stats).toMatchObject({
      distinctPayloadIds: 500,
      repeatsWithOtherBytes: 0,
      duplicatesAcrossBatches: 0,
      refusedSignatures: {},
      refusedRequests: {},
    })
    const ended = pipeline.events.filter((event) => event.kind === 'submission_ended')
    expect(stats.bytes).toBeLessThan(ended.reduce((sum, { bytes }) => sum + bytes, 0) / 2)
  })
})

const credentials = { north: '{ source: environment }', south: '{ source: file, path: south.json }' }

/** A topic of each provider. */
const configOf = (...names: (keyof typeof credentials)[]) =>
  configText({
    sources: names
      .map(
        (name) =>
          `\n  - { name: ${name}, topic: "${name}/{device}", provider: ${name}, map: ${positionMap} }`,
      )
      .join(''),
    delivery: `batch: { linger: 10ms }, providers: [${names
      .map(
        (name) =>
          `{ name: ${name}, provider_key: ${name}, credentials: ${credentials[name]}, mode: ${name === 'south' ? 'single' : 'batch'} }`,
      )
      .join(', ')}]`,
  })

test('each of several providers is sent with its own credentials and operation, and keeps what it has when it left the config', async () => {
  const folder = await newFolder()
  const keys = { accessKeyId: 'SECONDACCOUNT', secretAccessKey: 'second secret' }
  await writeFile(join(folder, 'south.json'), JSON.stringify(keys), { mode: 0o600 })
  const second = { accessKeyId: keys.accessKeyId, secret: new Secret(keys.secretAccessKey) }
  const accounts = [
    { ...sandboxAccount, aggregator: true, providers: ['north'] },
    { ...second, aggregator: true, providers: ['south'] },
  ]
  const pipeline = await startPipeline({ folder, config: configOf('north', 'south'), sandbox: { accounts } })
  const device = await pipeline.device('truck-1')
  const publish = async (provider: string, from: number, count: number) => {
    for (const payload of messages(from, count)) device.publish({ topic: `${provider}/truck-1`, payload })
    await pipeline.until(() => pipeline.status().totals.payloads === from + count)
  }
  await publish('north', 0, 30)
  await publish('south', 30, 5)
  await isDelivered(pipeline, 35)
  expect(pipeline.sandbox.stats()).toMatchObject({ singles: 5, payloadsAccepted: 35, refusedSignatures: {} })
  pipeline.sandbox.setFaults({ always: 503 })
  await publish('north', 35, 7)
  await pipeline.gateway.stop('the test')
  const next = await startPipeline({ folder, config: configOf('south'), baseUrl: pipeline.baseUrl })
  await next.until(() => next.condition('PROVIDER_UNKNOWN') !== undefined)
  expect(next.condition('PROVIDER_UNKNOWN')?.what).toMatch(/7 payloads.*"?north"?|north.*7 payloads/)
  const north = next.status().lanes.filter(({ provider }) => provider === 'north')
  expect(north.reduce((sum, { pending, sealed }) => sum + pending + sealed, 0)).toBe(7)
})

/** The clock of this machine with an error. */
function wrongBy(ms: number): Clock & { set(ms: number): void } {
  let wrongMs = ms
  return { ...systemClock, now: () => systemClock.now() + wrongMs, set: (next) => void (wrongMs = next) }
}

describe('a daemon whose clock is wrong', () => {
  /** Without the time of the system. */
  const open = (clock: Clock) =>
    startPipeline({
      deps: { clock },
      sections: { delivery: 'batch: { max_payloads: 20, linger: 20ms }, max_in_flight: 1' },
    })
  const refusals = ({ sandbox }: Pipeline) => sandbox.stats().byStatus['403'] ?? 0

  test.each([
    ['an hour behind', -hourMs],
    ['an hour ahead', hourMs],
    ['years behind, as without a battery', -20 * 365 * dayMs],
  ])('%s signs correctly from its third request on', async (_name, wrongMs) => {
    const pipeline = await open(wrongBy(wrongMs))
    await pipeline.publish('truck-1', ...messages(0, 200))
    await isDelivered(pipeline, 200)
    // Two answers that agree show the time.
    expect(refusals(pipeline)).toBe(2)
    expect(pipeline.events.filter(({ kind }) => kind === 'endpoint_changed')).toEqual([])
    expect(pipeline.codes()).toContain('CLOCK_OFF')
  })

  test('continues without a pause when the clock is set while it runs', async () => {
    const clock = wrongBy(-hourMs)
    const pipeline = await open(clock)
    await pipeline.publish('truck-1', ...messages(0, 50))
    await isDelivered(pipeline, 50)
    clock.set(0)
    await pipeline.publish('truck-2', ...messages(50, 50))
    await isDelivered(pipeline, 100)
    // The offset is forgotten when the clock is set, so no further signature is refused.
    expect(refusals(pipeline)).toBe(2)
    clock.set(5 * hourMs)
    await pipeline.publish('truck-3', ...messages(100, 50))
    await isDelivered(pipeline, 150)
    expect(refusals(pipeline)).toBe(4)
    expect(pipeline.events.filter(({ kind }) => kind === 'endpoint_changed')).toEqual([])
  })
})
