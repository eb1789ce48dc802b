// Each case: an answer of the service, its outcome, and what becomes of each of the three payloads of the batch.

import { readFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterEach, describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { createDeliveryWorld } from '../support/delivery-world.ts'
import type { DeliveryWorld } from '../support/delivery-world.ts'
import { acceptAll } from '../support/scripted-service.ts'
import type { Received, Reply } from '../support/scripted-service.ts'

type Fields = Record<string, unknown>

type Case = {
  name: string
  each?: readonly (string | number)[]
  answer?: 'reset' | 'hang'
  fields?: Fields
  without?: readonly string[]
  replace?: readonly [text: string, by: string]
  body?: string
  status?: number | string
  headers?: Record<string, string>
  as?: 'latin1' | 'utf16le' | 'gzip'
  raw?: string
  pour?: readonly [head: string, part: string]
  outcome: Fields
  deviation?: string
  becomes: string | readonly string[]
  times?: number
  provider?: { timeoutMs?: number }
}

const file = readFileSync(join(import.meta.dirname, 'hostile-answers.cases.yaml'), 'utf8')
const { batches, singles } = parse(file) as { batches: Case[]; singles: Case[] }

const page = '<!doctype html><html><body>Service\r\nbusy</body></html>'

/** One case for each of `each`. */
const casesOf = (cases: readonly Case[]) =>
  cases.flatMap(({ each = [''], ...one }) =>
    each.map((value) => {
      // A number in the place of a text that is nothing else.
      const shown = JSON.stringify(String(value)).slice(1, -1)
      const text = JSON.stringify(one).replaceAll('"{{each}}"', JSON.stringify(value))
      return JSON.parse(text.replaceAll('{{each}}', () => shown)) as Case
    }),
  )

function goodAnswer({ payloadIds: ids }: Received, { fields = {}, without = [], replace }: Case): string {
  const summary = { total: ids.length, accepted: ids.length, failed: 0 }
  const usual = { requestId: 'request-1', responseCode: 200, accepted: ids, failed: [], summary }
  const members = Object.entries({ ...usual, ...fields }).filter(([name]) => !without.includes(name))
  const text = JSON.stringify(Object.fromEntries(members))
  return replace === undefined ? text : text.replace(replace[0], () => replace[1])
}

/** What stands for the placeholders of a text. */
function filled(text: string, received: Received, good: string): string {
  return text.replace(/\{\{(.*?)\}\}/gs, (_whole, what: string) => {
    const [, repeated = '', times] = /^(.*?) \* (\d+)$/s.exec(what) ?? []
    if (times !== undefined) return repeated.repeat(Number(times))
    const [word = '', rest] = what.split(' ')
    if (word === 'good') return good
    if (word === 'half') return good.slice(0, good.length / 2)
    if (word === 'page') return page
    if (word === 'host') return received.headers.host ?? ''
    if (word === 'nested') return '['.repeat(Number(rest)) + ']'.repeat(Number(rest))
    const id = received.payloadIds[Number(word) - 1] ?? ''
    return rest === 'upper' ? id.toUpperCase() : id
  })
}

/** Writes until the other side closes. */
function pour(socket: Socket, head: string, part: string): void {
  socket.on('error', () => undefined)
  socket.write(head)
  const timer = setInterval(() => (socket.destroyed ? clearInterval(timer) : socket.write(part)), 5)
}

function replyTo(received: Received, one: Case): Reply {
  if (one.answer !== undefined) return one.answer
  const good = filled(goodAnswer(received, one), received, '')
  const fill = (text: string) => filled(text, received, good)
  const { raw, pour: poured, status = 200 } = one
  if (raw !== undefined) return { raw: (socket) => void socket.end(fill(raw)) }
  if (poured !== undefined) return { raw: (socket) => pour(socket, poured[0], fill(poured[1])) }
  const text = fill(one.body ?? '{{good}}')
  const body = one.as === 'gzip' ? gzipSync(text) : Buffer.from(text, one.as ?? 'utf8')
  const headers = Object.entries(one.headers ?? {}).map(([name, value]) => [name, fill(value)])
  return { status: Number(status), body, headers: Object.fromEntries(headers) }
}

const textLike = (pattern: string): unknown => expect.stringMatching(pattern)

/** A text between slashes is a pattern. */
function matching(value: unknown): unknown {
  if (typeof value === 'string' && /^\/.*\/$/.test(value)) return textLike(value.slice(1, -1))
  if (Array.isArray(value)) return value.map(matching)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, matching(inner)]))
}

let world: DeliveryWorld

afterEach(() => world.end())

const minuteMs = 60_000

/** How `id` was sent after its first submission. */
function whatBecameOf(id: string): string {
  const sent = world.service.received.filter(({ payloadIds }) => payloadIds.includes(id))
  const steps = sent.slice(1).map((one, index) => stepOf(sent[index], one))
  return steps.length === 0 ? 'delivered' : steps.join(', ')
}

function stepOf(before: Received | undefined, now: Received): string {
  if (before?.batchId === now.batchId) return before.body.equals(now.body) ? 'again' : 'again, changed'
  const cut = world.ofKind('batch_split').some(({ batchId }) => batchId === before?.batchId)
  return cut ? 'cut' : 'retried'
}

function open(): number {
  return world.spool.lanes().reduce((sum, { pending, sealed }) => sum + pending + sealed, 0)
}

/** Until all is delivered, and for a minute more in which nothing may be sent again. */
async function drained(): Promise<void> {
  for (let passed = 0; passed < 30 && open() > 0; passed += 1) await world.pass(minuteMs)
  await world.pass(minuteMs)
}

/** Gives the answer to the first request, or the first few, and then accepts everything. */
async function ask(row: Case, mode: 'batch' | 'single') {
  const { times = 1, provider = {} } = row
  world = await createDeliveryWorld({
    script: (one, index) => (index < times ? replyTo(one, row) : acceptAll(one)),
    provider: { ...provider, mode, maxInFlight: 1 },
    sockets: true,
  })
  return world.publish(...(mode === 'batch' ? ['a', 'b', 'c'] : ['a']))
}

describe('a batch', () => {
  test.each(casesOf(batches))('$name', async (row) => {
    const ids = await ask(row, 'batch')
    await world.pass(0)

    const [first] = world.ofKind('submission_ended')
    expect(first?.outcome).toMatchObject(matching(row.outcome) as object)
    const deviations = world.ofKind('answer_inconsistent').flatMap((event) => event.deviations)
    expect(deviations.join('\n')).toContain(row.deviation ?? '')
    expect(world.spool.totals().delivered + open()).toBe(ids.length)
    expect(world.spool.totals().dead).toBe(0)

    await drained()
    expect(ids.map(whatBecameOf)).toEqual(
      typeof row.becomes === 'string' ? ids.map(() => row.becomes) : row.becomes,
    )
    expect(open()).toBe(0)
    expect(world.spool.totals()).toMatchObject({ delivered: ids.length, dead: 0 })
    expect(Object.prototype).not.toHaveProperty('failed')
  })
})

describe('a single payload', () => {
  test.each(casesOf(singles))('$name', async (row) => {
    const ids = await ask(row, 'single')
    await world.pass(1000)

    expect(world.service.received.every(({ single }) => single)).toBe(true)
    const [first] = world.ofKind('submission_ended')
    expect(first?.outcome).toMatchObject(matching(row.outcome) as object)
    expect(world.spool.totals().delivered + open()).toBe(1)

    await drained()
    expect(ids.map(whatBecameOf)).toEqual([row.becomes])
    expect(open()).toBe(0)
    expect(world.spool.totals()).toMatchObject({ delivered: 1, dead: 0 })
  })
})
