// /tap for a page that stays open.

import { describe, expect, test } from 'vitest'
import { Secret } from '../../../src/std/secret.ts'
import { costMin, hashPassword } from '../../../src/std/passwords/passwords.ts'
import { createTaps } from '../../../src/ingest/ingest.ts'
import type { OpsConfig } from '../../../src/ops/config.ts'
import { get, opsConfig, opsWorld } from '../../support/ops-world.ts'

type Event = { name: string; data: Record<string, unknown> }

async function world(more: Partial<OpsConfig> = {}) {
  const made = opsWorld({ ops: opsConfig({ host: '127.0.0.1', port: 0 }, more) })
  await made.ops.start()
  const url = made.ops.url() ?? ''
  return Object.assign(made, { url })
}

async function watch(url: string, path: string, headers: Record<string, string> = {}) {
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

describe('with users', () => {
  test('/tap needs a login, and ends with it', async () => {
    const path = '/tap'
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
    const name = 'message'
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
