// What promtool of Prometheus says of the metrics of a running gateway, of the alert rules and of their tests. On a
// machine without promtool (Debian: the package prometheus) all of it is skipped, with a message.

import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import { durationHistograms, metricCatalogue } from '../../src/ops/ops.ts'
import { eventSamples } from '../support/event-samples.ts'
import { newFolder } from '../support/folders.ts'
import { createDevice } from '../support/mqtt-device.ts'
import { get, ingestCounters, lane, opsWorld, provider, spoolTotals, stages } from '../support/ops-world.ts'
import { startPipeline, messageOf, topicOf } from '../support/pipeline-world.ts'

const run = promisify(execFile)
const promtool = '/usr/bin/promtool'
if (!existsSync(promtool))
  process.stderr.write('The metrics and alert rules are not checked: promtool is not installed\n')

const monitoring = resolve(import.meta.dirname, '../../config/monitoring')

/** Status and output of `promtool check metrics`; it reads the metrics from its standard input. */
async function checkMetrics(text: string): Promise<{ status: number | null; output: string }> {
  const child = spawn(promtool, ['check', 'metrics'], { stdio: 'pipe' })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += String(chunk)))
  child.stdin.end(text)
  const [status] = (await once(child, 'close')) as [number | null]
  return { status, output }
}

describe.skipIf(!existsSync(promtool))('promtool', () => {
  test('finds nothing in the metrics of a gateway that received, delivered, refused and kept messages', async () => {
    const pipeline = await startPipeline()
    const device = await pipeline.device('truck-1')
    for (const messageId of [1, 2, 3])
      device.publish({ topic: topicOf('truck-1'), payload: messageOf(messageId), messageId })
    device.publish({ topic: topicOf('truck-1'), payload: 'not JSON', messageId: 4 })
    await device.acked(4)
    const port = Number(new URL(pipeline.gateway.addresses.mqtt[0] ?? '').port)
    const newer = await createDevice({ port, clientId: 'truck-2' })
    const will = { topic: 'status', payload: Buffer.from('gone'), qos: 0 as const, retain: true }
    await newer.connect({ protocolVersion: 5, will }).catch(() => undefined)
    await pipeline.until(() => pipeline.status().totals.delivered === 3)
    const { text } = await get(pipeline.gateway.addresses.ops, '/metrics')
    expect(text).toMatch(/^gateway_submission_duration_seconds_count\{outcome="answered"\} [1-9]/m)
    expect(await checkMetrics(text)).toEqual({ status: 0, output: '' })
  })

  test('finds nothing in the metrics of every event, with names of sources that need quotes', async () => {
    await using world = opsWorld()
    const reasons = [{ source: 'my "own"\\trucks\n', reason: 'no fix', count: 1 }]
    world.ops.attach(
      stages({
        lanes: [lane(1, { pending: 3, oldestAt: 1_750_000_000_000 })],
        providers: [provider('North "Haulage"', { clockOffsetMs: -5, lastAcceptedAt: 1_750_000_000_000 })],
        totals: spoolTotals({ freeBytes: 1 }),
        ingest: ingestCounters({ ignoredByReason: reasons, lastMessageAt: 1_750_000_000_000 }),
      }),
    )
    for (const event of Object.values(eventSamples)) world.ops.emit(event)
    await world.ops.start()
    const { text } = await get(world.ops.url(), '/metrics')
    expect(await checkMetrics(text)).toEqual({ status: 0, output: '' })
  })

  test('would find a metric with a wrong name', async () => {
    const { status, output } = await checkMetrics('# TYPE gateway_lag_ms gauge\ngateway_lag_ms 1\n')
    expect(status).toBe(3)
    expect(output).toContain('no help text')
  })

  test('accepts the alert rules', async () => {
    const { stdout } = await run(promtool, ['check', 'rules', join(monitoring, 'alert-rules.yaml')])
    expect(stdout).toMatch(/SUCCESS: \d+ rules found/)
  })

  test('runs the tests of the alert rules', async () => {
    const { stdout } = await run(promtool, ['test', 'rules', join(monitoring, 'alert-rules.test.yaml')])
    expect(stdout).toContain('SUCCESS')
  })

  test('parses each expression of the dashboard', async () => {
    const text = await readFile(join(monitoring, 'grafana-dashboard.json'), 'utf8')
    const expressions = expressionsOf(JSON.parse(text))
    expect(expressions.length).toBeGreaterThan(40)
    expect(await checkExpressions(expressions)).toEqual({
      status: 0,
      output: expect.stringContaining('SUCCESS'),
    })
  })

  test('would find an expression of the dashboard that is wrong', async () => {
    const { status, output } = await checkExpressions(['sum by (instance (up)'])
    expect([status, output]).toEqual([1, expect.stringContaining('could not parse expression')])
  })

  test('knows each metric of the dashboard', async () => {
    const text = await readFile(join(monitoring, 'grafana-dashboard.json'), 'utf8')
    const known = new Set<string>(metricCatalogue.map(({ name }) => name))
    for (const { name } of durationHistograms) known.add(`${name}_bucket`)
    const used = expressionsOf(JSON.parse(text)).flatMap(
      (expression) => expression.match(/\bgateway_\w+/g) ?? [],
    )
    const unknown = used.filter((name) => !known.has(name))
    expect(unknown).toEqual([])
  })
})

/** PromQL of all panels, with the variables of Grafana in force. */
function expressionsOf(node: unknown): string[] {
  if (Array.isArray(node)) return node.flatMap(expressionsOf)
  if (typeof node !== 'object' || node === null) return []
  return Object.entries(node).flatMap(([key, value]) =>
    key === 'expr' && typeof value === 'string'
      ? [
          value
            .replaceAll('$__range', '1h')
            .replaceAll('$__rate_interval', '5m')
            .replaceAll('$instance', '.*'),
        ]
      : expressionsOf(value),
  )
}

/** As recording rules in a file, which promtool reads; YAML is a superset of JSON. */
async function checkExpressions(expressions: readonly string[]) {
  const file = join(await newFolder(), 'rules.yaml')
  const rules = expressions.map((expr, index) => ({ record: `dashboard:expression:${index}`, expr }))
  await writeFile(file, JSON.stringify({ groups: [{ name: 'dashboard', rules }] }))
  const child = spawn(promtool, ['check', 'rules', file], { stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += String(chunk)))
  const [status] = (await once(child, 'close')) as [number | null]
  return { status, output }
}
