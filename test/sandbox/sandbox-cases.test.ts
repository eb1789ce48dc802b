// Calls of the sandbox as data: `cases/*.cases.yaml` have what is sent, one call after the other, and what is answered.

import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { z } from 'zod'
import { createPayloadCheck, defaultRequirements } from '../../src/sandbox/payload-check.ts'
import { batchOf, openSandbox, telemetry, type SandboxWorld } from '../support/sandbox-world.ts'

const changes = z.record(z.string(), z.unknown())

const callSchema = z.strictObject({
  /** Changes of a payload that is valid, or the text of a body. <none> removes a field. */
  single: z.union([changes, z.string()]).optional(),
  /** The same for each payload of a batch. */
  batch: z.union([z.array(changes), z.string()]).optional(),
  /** Changes of what is around the payloads. */
  wrapper: changes.default({}),
  /** The body of the call before. */
  again: z.boolean().default(false),
  /** The payloads of the call before in another batch. */
  again_in_another_batch: z.boolean().default(false),
  headers: z.record(z.string(), z.string()).default({}),
  get: z.string().optional(),
  put_faults: z.unknown().optional(),
  /** `none`: there is no answer, or no whole one. */
  status: z.union([z.int(), z.literal('none')]).default(200),
  /** Parts of the answer: <1> is the id of the first payload of the call, <any> any text. */
  answer: z.unknown().optional(),
})

const caseSchema = z.strictObject({
  name: z.string(),
  /** Of the sandbox. */
  options: z.record(z.string(), z.unknown()).default({}),
  calls: z.array(callSchema).default([]),
  stats: z.record(z.string(), z.unknown()).default({}),
  /** The fields of a payload in which problems are found. */
  payload: changes.optional(),
  problems: z.array(z.string()).default([]),
})

type Call = z.infer<typeof callSchema>
type SandboxCase = z.infer<typeof caseSchema>

const folder = join(import.meta.dirname, 'cases')

describe.each(globSync('*.cases.yaml', { cwd: folder }).toSorted())('%s', (name) => {
  const text = readFileSync(join(folder, name), 'utf8')
  const { cases } = z.strictObject({ cases: z.array(caseSchema) }).parse(parse(text, { merge: true }))
  test.each(cases)('$name', check)
})

async function check({ options, calls, stats, payload, problems }: SandboxCase): Promise<void> {
  const found = payload === undefined ? [] : checkPayload(withoutNone(telemetry(payload)), true)
  expect(found.map(({ field }) => field)).toEqual(problems)
  if (calls.length === 0) return
  await using world = await openSandbox(options)
  let last: Sent = { path: 'single', body: '', ids: [] }
  for (const call of calls) {
    last = sentBy(call, last)
    const answer = await answerTo(world, call, last)
    expect(answer.status).toBe(call.status)
    expect(answer.json).toMatchObject(withIds(call.answer ?? {}, last.ids))
  }
  expect(world.sandbox.stats()).toMatchObject(stats)
}

const checkPayload = createPayloadCheck(new Set(defaultRequirements))

type Sent = { path: 'single' | 'batch'; body: unknown; ids: readonly string[] }

function sentBy({ single, batch, wrapper, again, again_in_another_batch }: Call, last: Sent): Sent {
  if (again) return last
  if (again_in_another_batch) return { ...last, body: batchOf((last.body as { data: object[] }).data) }
  if (typeof single === 'string') return { path: 'single', body: single, ids: [] }
  if (typeof batch === 'string') return { path: 'batch', body: batch, ids: [] }
  const payloads = (batch ?? [single ?? {}]).map((one) => withoutNone(telemetry(one)))
  const ids = payloads.map(({ payloadId }) => String(payloadId))
  if (batch === undefined) return { path: 'single', body: payloads[0], ids }
  return { path: 'batch', body: withoutNone({ ...batchOf(payloads), ...wrapper }), ids }
}

async function answerTo(world: SandboxWorld, call: Call, { path, body }: Sent) {
  if (call.get !== undefined) return world.look(call.get)
  if (call.put_faults !== undefined) return world.putFaults(call.put_faults)
  return world[path](body, { headers: call.headers }).catch(() => ({ status: 'none', json: {} }))
}

function withoutNone(values: Record<string, unknown>): Record<string, unknown> {
  return JSON.parse(JSON.stringify(values), (_key, value: unknown) =>
    value === '<none>' ? undefined : value === '<infinite>' ? Infinity : value,
  ) as Record<string, unknown>
}

function withIds(answer: unknown, ids: readonly string[]): object {
  return JSON.parse(JSON.stringify(answer), (_key, value: unknown) => {
    const [, number] = /^<(\d+)>$/.exec(String(value)) ?? []
    if (number !== undefined) return ids[Number(number) - 1]
    return value === '<any>' ? expect.any(String) : value
  }) as object
}
