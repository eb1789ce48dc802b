// Pages that stay open: what they get, that many cost little, and that none holds anything up.

import { connect, type Socket } from 'node:net'
import { describe, expect, test } from 'vitest'
import { Secret } from '../../../src/std/secret.ts'
import { costMin, hashPassword } from '../../../src/std/passwords/passwords.ts'
import { createTaps } from '../../../src/ingest/ingest.ts'
import type { OpsConfig } from '../../../src/ops/config.ts'
import { watchersMax } from '../../../src/ops/http/streams/event-stream.ts'
import type { Status } from '../../../src/ops/ops.ts'
import { eventually } from '../../support/eventually.ts'
import { get, ingestCounters, lane, opsConfig, opsWorld, stages, statusOf } from '../../support/ops-world.ts'

type Event = { name: string; data: Record<string, unknown> }

async function world(more: Partial<OpsConfig> = {}) {
  const made = opsWorld({ ops: opsConfig({ host: '127.0.0.1', port: 0 }, more) })
  const views = stages({ ingest: ingestCounters({ received: 7 }), lanes: [lane(1, { pending: 3 })] })
  const asked = { lanes: 0 }
  const { spool } = views
  made.ops.attach({
    ...views,
    spool: spool && {
      ...spool,
      lanes() {
        asked.lanes += 1
        return spool.lanes()
      },
    },
  })
  await made.ops.start()
  const url = made.ops.url() ?? ''
  const readings = async () => {
    const before = asked.lanes
    made.clock.move(2000)
    await Promise.resolve()
    return asked.lanes - before
  }
  return Object.assign(made, { url, asked, readings })
}

async function watch(url: string, path = '/events', headers: Record<string, string> = {}) {
  const end = new AbortController()
  const response = await fetch(`${url}${path}`, {
    signal: end.signal,
    headers: { accept: 'text/event-stream', ...headers },
  })
  const events = eventsOf(response)
  return {
    response,
    end: () => end.abort(),
    async next(name = 'status'): Promise<Record<string, unknown>> {
      for (;;) {
        // A loop over the stream would end it with the first event.
        const { value, done } = await events.next()
        if (done === true) throw new Error('the stream ended')
        if (value.name === name) return value.data
      }
    },
  }
}

/** As EventSource reads them. */
async function* eventsOf({ body }: Response): AsyncGenerator<Event> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of body ?? []) {
    const parts = (rest + decoder.decode(chunk, { stream: true })).split('\n\n')
    rest = parts.pop() ?? ''
    for (const part of parts) {
      const lines = part.split('\n').map((line) => line.split(/: (.*)/s))
      const fields = Object.fromEntries(lines) as Record<string, string>
      if (fields['data'] === undefined) continue
      yield { name: fields['event'] ?? 'message', data: JSON.parse(fields['data']) as Event['data'] }
    }
  }
}

/** Connects, asks, and does what the test says with the answer. */
function rawWatcher(url: string): Promise<Socket> {
  return new Promise((resolve) => {
    const socket = connect(Number(new URL(url).port), '127.0.0.1', () => {
      socket.write('GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n')
      resolve(socket)
    })
    socket.on('error', () => socket.destroy())
  })
}

const metricOf = async (url: string, name: string) =>
  Number(new RegExp(`^${name} (\\d+)$`, 'm').exec((await get(url, '/metrics')).text)?.[1])

describe('a page that watches', () => {
  test('gets the state at once and every 2 s, as /status has it, and each sample', async () => {
    await using ops = await world()
    const page = await watch(ops.url)
    expect(page.response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
    const first = await page.next()
    expect(first).toMatchObject({ lanes: [{ pending: 3 }], totals: { messages: 7 } })
    const status = (await statusOf(ops.url)) as Status & Record<string, unknown>
    for (const name of ['providers', 'lanes', 'waiting', 'verdict', 'sentence', 'ready', 'lastMessageAt'])
      expect([name, first[name]]).toEqual([name, status[name]])
    const second = page.next()
    ops.clock.move(2000)
    expect(Date.parse((await second)['now'] as string) - Date.parse(first['now'] as string)).toBe(2000)
    const sample = page.next('sample')
    ops.clock.move(8000)
    expect(await sample).toMatchObject({ span: 'hour', messages: 7, waiting: 3, seconds: 10, answers: [] })
    page.end()
  })

  test('costs nothing when it is gone, and ten cost as much as one', async () => {
    await using ops = await world()
    const idle = await ops.readings()
    const one = await watch(ops.url)
    await one.next()
    const ofOne = await ops.readings()
    expect(ofOne).toBeGreaterThan(idle)
    const others = await Promise.all(Array.from({ length: 9 }, () => watch(ops.url)))
    await Promise.all(others.map((page) => page.next()))
    expect(await ops.readings()).toBe(ofOne)
    for (const page of [one, ...others]) page.end()
    await eventually(async () => (await metricOf(ops.url, 'gateway_http_watchers')) === 0)
    expect(await ops.readings()).toBe(idle)
  })

  test('is refused where too many watch; others get answers all the time', async () => {
    await using ops = await world()
    const pages = await Promise.all(Array.from({ length: watchersMax }, () => watch(ops.url)))
    const refused = await get(ops.url, '/events')
    expect(refused.status).toBe(503)
    expect(JSON.parse(refused.text)).toMatchObject({
      code: 'UNAVAILABLE',
      what: 'Too many pages watch the gateway.',
    })
    expect((await get(ops.url, '/healthz')).status).toBe(200)
    expect(await metricOf(ops.url, 'gateway_http_watchers_refused_total')).toBe(1)
    pages[0]?.end()
    await eventually(async () => (await metricOf(ops.url, 'gateway_http_watchers')) < watchersMax)
    const next = await watch(ops.url)
    expect(next.response.status).toBe(200)
    for (const page of [...pages, next]) page.end()
  })

  test('and does not read misses events, and holds nothing up', async () => {
    await using ops = await world()
    const slow = await rawWatcher(ops.url)
    slow.pause()
    const fast = await watch(ops.url)
    await fast.next()
    let missed = 0
    for (let round = 0; round < 40 && missed === 0; round += 1) {
      for (let event = 0; event < 200; event += 1) ops.clock.move(2000)
      await fast.next()
      missed = await metricOf(ops.url, 'gateway_http_events_missed_total')
    }
    expect(missed).toBeGreaterThan(0)
    slow.destroy()
    fast.end()
  })

  test('and a thousand others at once leave room for a probe, and none stays', async () => {
    await using ops = await world()
    const sockets = await Promise.all(Array.from({ length: 1000 }, () => rawWatcher(ops.url)))
    expect((await get(ops.url, '/healthz')).status).toBe(200)
    expect(await metricOf(ops.url, 'gateway_http_watchers')).toBeLessThanOrEqual(watchersMax)
    for (const socket of sockets) socket.destroy()
    await eventually(async () => (await metricOf(ops.url, 'gateway_http_watchers')) === 0)
  })

  test('ends with the daemon', async () => {
    const ops = await world()
    const page = await watch(ops.url)
    await page.next()
    const end = page.next()
    await ops[Symbol.asyncDispose]()
    await expect(end).rejects.toThrow()
  })
})

describe('with users', () => {
  test.each(['/events', '/tap'])('%s needs a login, and ends with it', async (path) => {
    const hash = await hashPassword('right', costMin)
    const users = [{ name: 'bob', password_hash: new Secret(hash), rights: ['read' as const] }]
    const login = { idle: 5000, max_age: 20_000, secure_cookie: false }
    await using ops = await world({ users, login })
    ops.ops.attach({ taps: createTaps({ clock: ops.clock }) })
    expect((await get(ops.url, path)).status).toBe(401)
    const { headers } = await get(ops.url, '/login', {
      method: 'POST',
      redirect: 'manual',
      body: new URLSearchParams({ name: 'bob', password: 'right' }),
    })
    const page = await watch(ops.url, path, { cookie: headers.get('set-cookie')?.split(';', 1)[0] ?? '' })
    const name = path === '/events' ? 'status' : 'message'
    await page.next(name)
    // It is used all the time, so it does not end by `idle`.
    for (let passed = 0; passed < 16_000; passed += 4000) {
      const next = page.next(name)
      ops.clock.move(4000)
      await next
    }
    ops.clock.move(4000)
    const rest = async () => {
      for (;;) await page.next(name)
    }
    await expect(rest()).rejects.toThrow('the stream ended')
  })
})

test('/tap as events has the same objects as lines', async () => {
  await using ops = await world()
  const taps = createTaps({ clock: ops.clock })
  ops.ops.attach({ taps })
  const page = await watch(ops.url, '/tap?topic=a/%23')
  expect(page.response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
  expect(await page.next('message')).toEqual({ kind: 'alive' })
  const message = {
    topic: 'a/b',
    bytes: Buffer.from('line\n\ndata: x'),
    qos: 1 as const,
    retain: false,
    dup: false,
    sender: { clientId: 'c\n\nevent: x', userName: null, certificateName: null, identity: null },
    arrivedAt: 1_750_000_000_000,
  }
  taps.record({ ...message, topic: 'b' }, { kind: 'ignored', source: 'trucks', reason: 'r' })
  taps.record(message, { kind: 'ignored', source: 'trucks', reason: 'r' })
  const shown = { kind: 'message', topic: 'a/b', message: 'line\n\ndata: x', client: 'c\n\nevent: x' }
  expect(await page.next('message')).toMatchObject(shown)
  page.end()
})
