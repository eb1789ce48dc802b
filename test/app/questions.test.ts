import { readFileSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { systemClock, type Clock } from '../../src/std/clock.ts'
import { configText, positionMap } from '../support/config-text.ts'
import { runCli } from '../support/cli-world.ts'
import { eventually } from '../support/eventually.ts'
import { newFolder } from '../support/folders.ts'
import { createDevice } from '../support/mqtt-device.ts'
import { messageOf, startPipeline, topicOf, type Pipeline } from '../support/pipeline-world.ts'

const minute = 60_000

type Question = { question: string; command: string; field: string }

/** What the command prints for a person, and what is in the field. */
type Answer = { says: string; holds: unknown }

const text = (pattern: RegExp) => expect.stringMatching(pattern) as string

const anyNumber = expect.any(Number) as number
const answers = parse(readFileSync(new URL('questions.yaml', import.meta.url), 'utf8')) as Record<
  string,
  Answer
>

/** What the field must hold, by the words of the file. */
function wanted(holds: unknown): unknown {
  if (holds === 'a time') return text(/^\d{4}-\d{2}-\d{2}T.*Z$/)
  if (holds === 'a number') return anyNumber
  if (holds === 'a UUID') return text(/^[0-9a-f-]{36}$/)
  const pattern = /^\/(.*)\/$/.exec(String(holds))?.[1]
  return pattern === undefined ? holds : text(new RegExp(pattern))
}

describe('docs/questions.md', () => {
  test('has an answer of a running gateway for every question', async () => {
    const questions = await readQuestions()
    expect(questions.map(({ question }) => question)).toEqual(Object.keys(answers))
    const { path, at, payloadId } = await depot()
    const wrong: unknown[] = []
    for (const { question, command, field } of questions) {
      const argv = command
        .replace('14:03', at)
        .replace('PAYLOAD-ID', payloadId)
        .replace(/( --config gateway\.yaml)?$/, ` --config ${path}`)
        .split(' ')
      const { says, holds } = answers[question] ?? { says: '^$', holds: undefined }
      const forPeople = await runCli(argv, { env })
      if (!new RegExp(says, 'm').test(forPeople.stdout)) wrong.push({ question, ...forPeople })
      const { stdout } = await runCli([...argv, '--json'], { env })
      const found = valueAt(JSON.parse(stdout), field)
      if (!isEqual(found, wanted(holds))) wrong.push({ question, field, found })
    }
    expect(wrong).toEqual([])
  })
})

async function readQuestions(): Promise<Question[]> {
  const page = await readFile(resolve(import.meta.dirname, '../../docs/questions.md'), 'utf8')
  return [...page.matchAll(/^\| (.+?) \| `(.+?)` \| `(.+?)` \|$/gm)].map(
    ([, question = '', command = '', field = '']) => ({ question, command, field }),
  )
}

function isEqual(found: unknown, expected: unknown): boolean {
  try {
    expect(found).toEqual(expected)
    return true
  } catch {
    return false
  }
}

/** `devices[state=silent].device`, `lanes[0].oldestAt`. */
function valueAt(value: unknown, field: string): unknown {
  let found = value
  for (const [, name, key = '', wanted] of field.matchAll(/([\w]+)|\[(\w+)(?:=([^\]]+))?\]/g)) {
    if (name !== undefined) found = (found as Record<string, unknown>)[name]
    else if (wanted === undefined) found = (found as unknown[])[Number(key)]
    else found = (found as Record<string, unknown>[]).find((one) => one[key] === wanted)
  }
  return found
}

const env = { AWS_ACCESS_KEY_ID: 'SANDBOX', AWS_SECRET_ACCESS_KEY: 'sandbox' }

/** Seven trucks of the device table that each have a problem or none, one that is not in it, one that never sent. */
async function depot(): Promise<{ path: string; at: string; payloadId: string }> {
  // It began over an hour ago, so that a device can have been silent for that long.
  let aheadMs = -69 * minute
  const clock: Clock = {
    now: () => systemClock.now() + aheadMs,
    // Counted from the start of the machine, which may have been a minute ago: it is never negative.
    monotonic: () => systemClock.monotonic() + 70 * minute + aheadMs,
    after: systemClock.after,
  }
  const folder = await newFolder()
  const listed = [1, 2, 3, 4, 5, 6, 7, 9].map((n) => `truck-${n},ASSET-${n}\n`)
  await writeFile(join(folder, 'devices.csv'), `device,asset_id\n${listed.join('')}`)
  const fail = [{ device: 'truck-5', error_type: 'Validation', message: 'Unknown asset.' }]
  const pipeline = await startPipeline({ folder, clock, config, sandbox: { faults: { fail } } })
  const path = join(folder, 'gateway.yaml')
  const positionAt = (ts: number, more: Record<string, unknown> = {}) => messageOf(1, { ts, ...more })
  const device = await pipeline.device('truck-2')
  for (let n = 1; n <= 9; n += 1) {
    device.publish({ topic: topicOf('truck-2'), payload: positionAt(clock.now()), messageId: n })
    await device.acked(n)
    aheadMs += minute
  }
  aheadMs = 0
  await runCli(['reload', '--config', path])
  const measuredAt = clock.now()
  await pipeline.publish('truck-1', positionAt(measuredAt))
  await pipeline.publish('truck-3', 'no json')
  await pipeline.publish('truck-5', positionAt(measuredAt))
  await pipeline.publish('truck-6', positionAt(clock.now() + 120 * minute))
  await pipeline.publish('truck-7', positionAt(measuredAt, { speed: 9999 }))
  await pipeline.publish('truck-8', positionAt(measuredAt))
  await refuse(pipeline, 'truck-4')
  await pipeline.until(() => pipeline.status().totals.delivered === 11 && pipeline.status().totals.dead === 1)
  const [received] = pipeline.sandbox.received({ device: 'truck-7', limit: 1 })
  const payloadId = String((received?.payload as { payloadId?: string } | undefined)?.payloadId)
  await eventually(async () => {
    const { stdout } = await runCli(['ledger', '--payload', payloadId, '--config', path])
    return stdout.includes('delivered')
  })
  return { path, at: new Date(measuredAt).toISOString(), payloadId }
}

async function refuse(pipeline: Pipeline, clientId: string): Promise<void> {
  const port = Number(new URL(pipeline.gateway.addresses.mqtt[0] ?? '').port)
  const device = await createDevice({ port, clientId })
  const will = { topic: 'status', payload: Buffer.from('gone'), qos: 0 as const, retain: true }
  await device.connect({ protocolVersion: 5, will }).catch(() => null)
  device.destroy()
}

const config = configText({
  sources: `[{ name: trucks, topic: "telemetry/v1/{device}", map: ${positionMap.replace('}', '}, speed: { path: speed, unit: km/h }')} }]`,
  delivery: 'batch: { linger: 20ms }, errors: { Validation: [10ms] }',
  more: `
devices: { file: devices.csv, unknown: quarantine }
clocks: { trust_local: true }
defaults: { carrier: ACME, operator: OP1, asset_type: TRACTOR }
log: { level: debug }`,
})
