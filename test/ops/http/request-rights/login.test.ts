// Logging in with a browser, and what a page of another site can do with the session: nothing. More of it is in
// login.cases.yaml.

import { describe, expect, test } from 'vitest'
import { Secret } from '../../../../src/std/secret.ts'
import { costMin, hashPassword } from '../../../../src/std/passwords/passwords.ts'
import { changeByForm } from '../../../../src/ops/http/control.ts'
import {
  createWrongPasswords,
  anyNameMax,
  wrongMax,
} from '../../../../src/ops/http/request-rights/wrong-passwords.ts'
import { sessionsOfUserMax } from '../../../../src/ops/http/request-rights/login-sessions.ts'
import { createAuthority } from '../../../support/certificates.ts'
import {
  basic,
  httpWords,
  startHttp,
  userOf,
  usersOf,
  type HttpGiven,
  type HttpWorld,
} from '../../../support/http-steps.ts'
import { rawRequest, type RawRequest } from '../../../support/raw-http.ts'
import { stepCases } from '../../../support/step-cases.ts'

type Rights = Parameters<typeof usersOf>[0]

const otherHash = await hashPassword('right', costMin)
const users: Rights = { alice: ['read', 'change'], bob: ['read'] }

const login = (name: string, password = 'right') => ({
  method: 'POST',
  body: new URLSearchParams({ name, password }).toString(),
  headers: { 'content-type': 'application/x-www-form-urlencoded' },
})

stepCases(import.meta.filename, startHttp, {
  ...httpWords,
  renew: ({ ops }: HttpWorld, others: Rights) => ops.renew({ users: usersOf(others), tls: undefined }),
  renewWithOtherPasswords: ({ ops }: HttpWorld, others: Rights) =>
    ops.renew({
      users: Object.entries(others).map(([name, rights]) => userOf(name, rights, otherHash)),
      tls: undefined,
    }),
  refused: (one: HttpWorld, [code, headers]: [string, Record<string, string>]) =>
    httpWords.ask(one, { path: '/control/reload', method: 'POST', headers, json: { code } }),
  largeLogin: async ({ url }: HttpWorld, status: number) => {
    expect((await rawRequest(url, '/login', login('alice', 'x'.repeat(9000)))).status).toBe(status)
  },
})

async function world(more: Omit<NonNullable<HttpGiven>, 'users'> = {}) {
  const made = await startHttp({ users, ...more })
  const send = (path: string, sent: RawRequest = {}) => rawRequest(made.url, path, sent)
  const logIn = (name: string, password?: string) => send('/login', login(name, password))
  return {
    ...made,
    send,
    logIn,
    reads: async (headers: Record<string, string>) => (await send('/status', { headers })).status,
    async cookieOf(name = 'alice') {
      const [given = ''] = (await logIn(name)).headers['set-cookie'] ?? []
      return { cookie: given.split(';', 1)[0] ?? '' }
    },
  }
}

test('a browser over TLS logs in and reads, with a cookie for HTTPS only', async () => {
  const authority = createAuthority()
  const { cert, key } = authority.issue()
  const ops = await world({ tls: { cert, key: new Secret(key) } })
  const ask = (path: string, sent: RawRequest = {}) => ops.send(path, { ...sent, ca: authority.ca })
  const [set = ''] = (await ask('/login', login('bob'))).headers['set-cookie'] ?? []
  expect(set).toMatch(/^__Host-gateway_session_\d+=.*; Path=\/; .*; Secure$/)
  expect((await ask('/status', { headers: { cookie: set.split(';', 1)[0] ?? '' } })).status).toBe(200)
  expect((await ask('/status')).status).toBe(401)
})

test('a session makes room for newer ones of its user', async () => {
  const ops = await world()
  const others = await ops.cookieOf('bob')
  const first = await ops.cookieOf()
  const second = await ops.cookieOf()
  // The first one was used last.
  expect(await ops.reads(first)).toBe(200)
  for (let count = 2; count < sessionsOfUserMax + 1; count += 1) await ops.cookieOf()
  expect(await ops.reads(second)).toBe(401)
  expect(await ops.reads(first)).toBe(200)
  expect(await ops.reads(others)).toBe(200)
  const metrics = await ops.send('/metrics', { headers: first })
  expect(metrics.text).toContain(`gateway_http_sessions ${sessionsOfUserMax + 1}`)
})

test('a change by GET with the fields of a form is refused', async () => {
  const asked: string[] = []
  const ask = (method: string) =>
    changeByForm(
      {
        request: { method, socket: { setTimeout: () => undefined } },
        form: new URLSearchParams(),
        source: { ourNow: Date.now, stages: { control: { reload: async () => void asked.push(method) } } },
        audit: { begin: async () => async () => {} },
      } as never,
      'reload',
    ).catch(() => null)
  expect(await ask('GET')).toMatchObject({ status: 400 })
  expect(asked).toEqual([])
  await ask('POST')
  expect(asked).toEqual(['POST'])
})

describe('wrong passwords', () => {
  test('of one user of an address are limited, and other users and addresses are not', () => {
    const limits = createWrongPasswords()
    const from = (address: string, name = 'alice') => ({ address, name })
    const waits = (address: string, nowMs = 0, name?: string) => limits.waitMs(from(address, name), nowMs)
    for (let count = 0; count < wrongMax; count += 1) {
      expect(waits('192.0.2.1')).toBe(0)
      limits.note(from('192.0.2.1'), 0)
    }
    expect(waits('192.0.2.1')).toBe(15_000)
    expect(waits('192.0.2.1', 0, 'bob')).toBe(0)
    expect(waits('192.0.2.2')).toBe(0)
    expect(waits('192.0.2.1', 15_000)).toBe(0)
    limits.note(from('192.0.2.1'), 15_000)
    expect(waits('192.0.2.1', 15_000)).toBe(15_000)
    expect(waits('192.0.2.1', 400_000)).toBe(0)
    for (let count = 0; count < wrongMax; count += 1) limits.note(from(`2001:db8:0:1::${count}`), 0)
    expect(waits('2001:db8:0:1:ffff::1')).toBe(15_000)
    expect(waits('2001:db8:0:2::1')).toBe(0)
  })

  test('for many names of one address are limited for each of them', () => {
    const limits = createWrongPasswords()
    for (let count = 0; count < anyNameMax; count += 1)
      limits.note({ address: '192.0.2.1', name: `n-${count}` }, 0)
    expect(limits.waitMs({ address: '192.0.2.1', name: 'alice' }, 0)).toBe(15_000)
    expect(limits.waitMs({ address: '192.0.2.2', name: 'alice' }, 0)).toBe(0)
  })

  test('beyond the limit are not checked, and a known password still is', async () => {
    const ops = await world()
    expect((await ops.send('/status', { headers: basic('alice') })).status).toBe(200)
    const cookie = await ops.cookieOf('bob')
    // Several at once, so that their delays pass together; other names, so that they are short.
    for (let wrong = 0; wrong < anyNameMax; wrong += 2)
      await Promise.all([ops.logIn(`a${wrong}`, 'x'), ops.logIn(`b${wrong}`, 'x')])
    expect((await ops.logIn('bob', 'right')).headers['location']).toBe('/')
    const refused = await ops.logIn('bob', 'wrong')
    expect(refused.headers['location']).toBe('/login?failed=limited')
    const program = await ops.send('/status', { headers: basic('alice', 'wrong') })
    expect(program).toMatchObject({ status: 429, headers: { 'retry-after': '15' } })
    expect((await ops.send('/status', { headers: basic('alice') })).status).toBe(200)
    expect(await ops.reads(cookie)).toBe(200)
    ops.clock.move(15_000)
    expect((await ops.logIn('bob', 'wrong')).headers['location']).toBe('/login?failed=wrong')
    expect(ops.output.lines()).toContainEqual(
      expect.objectContaining({ event: 'request_refused', reason: 'limited' }),
    )
  })
})
