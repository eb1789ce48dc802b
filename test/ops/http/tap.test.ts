// /tap, read as lines and as the events of a page that stays open. `tap` at the command line: test/cli/tap-command.test.ts.

import { expect, onTestFinished, test } from 'vitest'
import type { Message } from '../../../src/domain/message.ts'
import type { PayloadId, ProviderName } from '../../../src/domain/ids.ts'
import type { MappedPayload } from '../../../src/domain/payload.ts'
import { createTaps } from '../../../src/ingest/ingest.ts'
import type { MapResult } from '../../../src/mapping/mapping.ts'
import { costMin, hashPassword } from '../../../src/std/passwords/passwords.ts'
import { userOf } from '../../support/http-steps.ts'
import { get, handClock, opsConfig, startedOps } from '../../support/ops-world.ts'
import { stepCases } from '../../support/step-cases.ts'

type Line = Record<string, unknown>
type World = Awaited<ReturnType<typeof world>>
type Given = Partial<Message> & { hex?: string; text?: string; client?: string }
type Result = { device?: string; count?: number } & Partial<MapResult>

function messageOf({ hex, text = '{"v":1}', client = 'client-1', ...more }: Given): Message {
  return {
    topic: 'a/b',
    bytes: hex === undefined ? Buffer.from(text) : Buffer.from(hex, 'hex'),
    qos: 1,
    retain: false,
    dup: false,
    sender: { clientId: client, userName: 'bob', certificateName: null, identity: null },
    arrivedAt: 1_750_000_000_000,
    ...more,
  }
}

function payloadsOf(device: string, count: number): MappedPayload[] {
  const payload: MappedPayload = {
    provider: 'default' as ProviderName,
    device,
    deviceTime: null,
    payloadId: 'x' as PayloadId,
    windowKey: '',
    duplicateRule: 'always',
    json: `{"payloadId":"x","of":"${device}"}`,
  }
  return Array.from({ length: count }, () => payload)
}

function resultOf({ count = 1, ...more }: Result): MapResult {
  const { device = 'x' } = more
  const payloads = { kind: 'payloads', device, payloads: payloadsOf(device, count) }
  return { source: 'trucks', ...(more.kind === undefined && payloads), ...more } as MapResult
}

/** The lines of a tap, or the data of its events. */
async function* linesOf({ body }: Response): AsyncGenerator<Line> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of body ?? []) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines.map((one) => one.replace(/^data: /, '')))
      if (line.startsWith('{')) yield JSON.parse(line) as Line
  }
}

async function open(url: string, headers: Record<string, string> = {}) {
  const end = new AbortController()
  onTestFinished(() => end.abort())
  const response = await fetch(url, { signal: end.signal, headers })
  const lines = linesOf(response)
  const any = async () => {
    const { value, done } = await lines.next()
    if (done === true) throw new Error('the stream ended')
    return value
  }
  return { response, end: () => end.abort(), any }
}

async function world(options: Parameters<typeof startedOps>[0] = {}) {
  const made = await startedOps(options)
  onTestFinished(() => made[Symbol.asyncDispose]())
  const taps = createTaps({ clock: made.clock })
  made.ops.attach({ taps })
  return {
    ...made,
    taps,
    url: `${made.url}/tap`,
    tap: null as Awaited<ReturnType<typeof open>> | null,
    last: {},
  }
}

const start = () => world()

/** That is not sent only to show that the tap is alive. */
async function next(one: World): Promise<Line> {
  for (;;) {
    const line = await one.tap!.any()
    if (line['kind'] !== 'alive') return (one.last = line)
  }
}

const events = { accept: 'text/event-stream' }

stepCases(import.meta.filename, start, {
  open: async (one: World, query: string) => void (one.tap = await open(one.url + query)),
  openEvents: async (one: World, query: string) => void (one.tap = await open(one.url + query, events)),
  end: ({ tap }: World) => tap!.end(),
  type: ({ tap }: World, type: string) => expect(tap!.response.headers.get('content-type')).toBe(type),
  record: ({ taps }: World, [message, result]: [Given, Result]) =>
    taps.record(messageOf(message), resultOf(result)),
  recordMany: ({ taps }: World, count: number) => {
    for (let at = 0; at < count; at += 1) taps.record(messageOf({ topic: `t/${at}` }), resultOf({}))
  },
  recordLong: ({ taps }: World, [rest, length]: [string, number]) =>
    taps.record(messageOf({ text: `${'x'.repeat(length)}${rest}` }), resultOf({ count: 30 })),
  recordAndOverwrite: ({ taps }: World, topic: string) => {
    const message = messageOf({ topic })
    taps.record(message, resultOf({}))
    message.topic = 'b'
    message.bytes.fill(0)
  },
  close: ({ taps }: World, device: string) =>
    taps.recordClosed({ payloads: payloadsOf(device, 1), writes: [], closed: 1, unsent: [] }),
  any: async ({ tap }: World, expected: object) => expect(await tap!.any()).toEqual(expected),
  next: async (one: World, expected: object) => expect(await next(one)).toEqual(expected),
  nextHas: async (one: World, expected: object) => expect(await next(one)).toMatchObject(expected),
  nextLong: async (one: World, [length, expected, payloads]: [number, object, number]) => {
    expect(await next(one)).toMatchObject({ message: 'x'.repeat(length), ...expected })
    expect(one.last).toHaveProperty('payloads.length', payloads)
  },
  nextMany: async (one: World, count: number) => {
    for (let at = 0; at < count; at += 1) expect(await next(one)).toMatchObject({ topic: `t/${at}` })
  },
  lacks: ({ last }: World, names: string[]) => {
    for (const name of names) expect(last).not.toHaveProperty(name)
  },
  filtered: async (one: World, [query, topic, device, other]: [string, string, string, string]) => {
    one.tap = await open(one.url + query)
    one.taps.record(messageOf({ topic: 'else/where' }), resultOf({ device: other, source: 'vans' }))
    one.taps.record(messageOf({ topic }), resultOf({ device }))
    expect(await next(one)).toMatchObject({ topic, source: 'trucks' })
  },
  pass: ({ clock }: World, ms: number) => clock.move(ms),
  on: async ({ taps }: World, isOn: boolean) => {
    await expect.poll(() => taps.on()).toBe(isOn)
  },
  refused: async ({ url }: World, [query, status, problem]: [string, number, object]) => {
    const answer = await fetch(url + query)
    expect(answer.status).toBe(status)
    expect(await answer.json()).toMatchObject(problem)
  },
  stop: ({ ops }: World) => ops.stop(),
  ended: (one: World) => expect(next(one)).rejects.toThrow(),
})

test('with users, /tap needs a login, and ends with it', async () => {
  const users = [userOf('bob', ['read'], await hashPassword('right', costMin))]
  const login = { idle: 5000, max_age: 20_000, secure_cookie: false }
  const { url, clock, ops } = await world({ ops: opsConfig(undefined, { users, login }) })
  expect((await fetch(url)).status).toBe(401)
  const { headers } = await get(ops.url(), '/login', {
    method: 'POST',
    redirect: 'manual',
    body: new URLSearchParams({ name: 'bob', password: 'right' }),
  })
  const page = await open(url, { ...events, cookie: headers.get('set-cookie')?.split(';', 1)[0] ?? '' })
  await page.any()
  // It is used all the time, so it does not end by `idle`.
  for (let passed = 0; passed < 16_000; passed += 4000) {
    const alive = page.any()
    clock.move(4000)
    await alive
  }
  clock.move(4000)
  const rest = async () => {
    for (;;) await page.any()
  }
  await expect(rest()).rejects.toThrow('the stream ended')
})

test('a ring without a reader stays small, and counts the messages that it discarded', () => {
  const clock = handClock()
  const taps = createTaps({ clock })
  const opened = taps.open({ device: null, topic: null, source: null }, () => undefined)
  if (opened.kind !== 'open') throw new Error('not open')
  for (let second = 0; second < 5; second += 1) {
    for (let at = 0; at < 100; at += 1) taps.record(messageOf({ topic: 't' }), resultOf({}))
    clock.move(1000)
  }
  expect(opened.reader.take()).toHaveLength(256)
  expect(opened.reader.takeDropped()).toBe(244)
  expect(opened.reader.takeDropped()).toBe(0)
})
