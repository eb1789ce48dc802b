// Logging in with a browser, and what a page of another site can do with the session: nothing.

import { describe, expect, test } from 'vitest'
import { Secret } from '../../../../src/std/secret.ts'
import { costMin, hashPassword } from '../../../../src/std/passwords/passwords.ts'
import type { OpsConfig } from '../../../../src/ops/config.ts'
import { changeByForm } from '../../../../src/ops/http/control/control.ts'
import { ownPlace } from '../../../../src/ops/http/request-rights/login-places.ts'
import {
  createWrongPasswords,
  anyNameMax,
  wrongMax,
} from '../../../../src/ops/http/request-rights/wrong-passwords.ts'
import { sessionsOfUserMax } from '../../../../src/ops/http/request-rights/login-sessions.ts'
import { startAskedControl } from '../../../support/asked-control.ts'
import { createAuthority } from '../../../support/certificates.ts'
import { opsConfig, opsWorld } from '../../../support/ops-world.ts'
import { rawRequest, type RawRequest } from '../../../support/raw-http.ts'

const hash = await hashPassword('right', costMin)
const otherHash = await hashPassword('right', costMin)
const user = (name: string, ...rights: ('read' | 'change')[]) => ({
  name,
  password_hash: new Secret(hash),
  rights,
})
const users = [user('alice', 'read', 'change'), user('bob', 'read')]
const form = (fields: Record<string, string>) => ({
  method: 'POST',
  body: new URLSearchParams(fields).toString(),
  headers: { 'content-type': 'application/x-www-form-urlencoded' },
})

async function world(more: Partial<OpsConfig> = {}) {
  const made = opsWorld({ ops: opsConfig({ host: '127.0.0.1', port: 0 }, { users, ...more }) })
  const asked = await startAskedControl(made)
  const url = made.ops.url() ?? ''
  return Object.assign(made, { url, asked, send, reads, login, tokenOf, cookieOf })

  function send(path: string, sent: RawRequest = {}) {
    return rawRequest(url, path, sent)
  }

  /** The status of the answer to who reads with these headers. */
  async function reads(headers: Record<string, string>): Promise<number> {
    return (await send('/status', { headers })).status
  }

  function login(name = 'alice', password = 'right', more: Record<string, string> = {}) {
    return send('/login', form({ name, password, ...more }))
  }

  /** Logs in; the header of the requests that follow. */
  async function cookieOf(name = 'alice'): Promise<{ cookie: string }> {
    const [given = ''] = (await login(name)).headers['set-cookie'] ?? []
    return { cookie: given.split(';', 1)[0] ?? '' }
  }

  async function tokenOf(headers: { cookie: string }): Promise<string> {
    const { token } = JSON.parse((await send('/session', { headers })).text) as { token: string }
    return token
  }
}

describe('a browser', () => {
  test('without a login is sent to the form, and a program is told to send a password', async () => {
    await using ops = await world()
    const browser = await ops.send('/devices?limit=5', { headers: { accept: 'text/html,*/*;q=0.8' } })
    expect(browser).toMatchObject({ status: 303, headers: { location: '/login?to=%2Fdevices%3Flimit%3D5' } })
    const program = await ops.send('/devices?limit=5')
    expect(program).toMatchObject({ status: 401, headers: { 'www-authenticate': /^Basic/ } })
    const script = await ops.send('/devices', { headers: { 'sec-fetch-site': 'same-origin' } })
    expect(script.status).toBe(401)
    expect(script.headers).not.toHaveProperty('www-authenticate')
    expect(await ops.send('/login')).toMatchObject({
      status: 200,
      headers: { 'content-security-policy': expect.stringContaining("form-action 'self'") },
    })
  })

  test('logs in, goes where it came from, reads, and logs out', async () => {
    await using ops = await world()
    const done = await ops.login('alice', 'right', { to: '/status' })
    expect(done).toMatchObject({ status: 303, headers: { location: '/status' } })
    const [set = ''] = done.headers['set-cookie'] ?? []
    expect(set).toMatch(/^gateway_session_\d+=[\w-]{43}; Path=\/; Max-Age=43200; HttpOnly; SameSite=Strict$/)
    const headers = { cookie: set.split(';', 1)[0] ?? '' }
    expect((await ops.send('/status', { headers })).status).toBe(200)
    const token = await ops.tokenOf(headers)
    const out = await ops.send('/logout', {
      ...form({ token }),
      headers: { ...headers, ...form({}).headers },
    })
    expect(out).toMatchObject({ status: 303, headers: { location: '/login' } })
    expect(out.headers['set-cookie']?.[0]).toContain('Max-Age=0')
    expect((await ops.send('/status', { headers })).status).toBe(401)
    const { text } = await ops.send('/audit', { headers: await ops.cookieOf('bob') })
    expect(JSON.parse(text)).toMatchObject({
      changes: [
        { change: 'login', by: { user: 'bob', address: '127.0.0.1' } },
        { change: 'login', by: { user: 'alice' } },
      ],
    })
  })

  test.each(['wrong', ''])('with the password "%s" stays out, and is told why', async (password) => {
    await using ops = await world()
    const refused = await ops.login('alice', password, { to: '/status' })
    expect(refused).toMatchObject({ status: 303, headers: { location: '/login?failed=wrong&to=%2Fstatus' } })
    expect(refused.headers).not.toHaveProperty('set-cookie')
    const unknown = await ops.login('eve', 'right')
    expect(unknown.headers['location']).toBe('/login?failed=wrong')
    expect(ops.output.lines().filter(({ reason }) => reason === 'bad_password')).toHaveLength(1)
  })

  test('gets another session with each login, and cannot bring one along', async () => {
    await using ops = await world()
    const planted = { cookie: (await ops.cookieOf('bob')).cookie }
    const again = await ops.send('/login', {
      ...form({ name: 'alice', password: 'right' }),
      headers: { ...planted, ...form({}).headers },
    })
    expect(again.headers['set-cookie']?.[0]).not.toContain(planted.cookie)
    expect(await ops.reads(planted)).toBe(401)
    const invented = planted.cookie.replace(/=.*/, `=${'A'.repeat(43)}`)
    expect((await ops.send('/status', { headers: { cookie: invented } })).status).toBe(401)
    const both = `${(await ops.cookieOf('bob')).cookie}; ${planted.cookie}`
    expect((await ops.send('/status', { headers: { cookie: both } })).status).toBe(401)
  })

  test('over TLS logs in and reads, with a cookie for HTTPS only', async () => {
    const authority = createAuthority()
    const { cert, key } = authority.issue()
    await using ops = await world({ tls: { cert, key: new Secret(key) } })
    const ask = (path: string, sent: RawRequest = {}) => ops.send(path, { ...sent, ca: authority.ca })
    const [set = ''] =
      (await ask('/login', form({ name: 'bob', password: 'right' }))).headers['set-cookie'] ?? []
    expect(set).toMatch(/^__Host-gateway_session_\d+=.*; Path=\/; .*; Secure$/)
    expect((await ask('/status', { headers: { cookie: set.split(';', 1)[0] ?? '' } })).status).toBe(200)
    expect((await ask('/status')).status).toBe(401)
  })

  test('behind a proxy that ends TLS, with login.secure_cookie, gets a cookie for HTTPS only', async () => {
    await using ops = await world({ login: { idle: 1000, max_age: 60_000, secure_cookie: true } })
    expect((await ops.login()).headers['set-cookie']?.[0]).toMatch(/^__Host-gateway_session_\d+=.*; Secure$/)
  })

  test('is sent nowhere else after its login', async () => {
    for (const to of [
      'https://evil.example',
      '//evil.example',
      '/\\evil.example',
      '/a\r\nx: y',
      '/login',
      '/ä',
      '',
    ])
      expect([to, ownPlace(to)]).toEqual([to, '/'])
    await using ops = await world()
    expect((await ops.login('alice', 'right', { to: '//evil.example' })).headers['location']).toBe('/')
  })
})

describe('a session', () => {
  const login = { idle: 60_000, max_age: 150_000, secure_cookie: false }

  test('ends when it is not used, and at its greatest age', async () => {
    await using ops = await world({ login })
    const unused = await ops.cookieOf()
    const used = await ops.cookieOf()
    ops.clock.move(50_000)
    expect(await ops.reads(used)).toBe(200)
    ops.clock.move(50_000)
    expect(await ops.reads(unused)).toBe(401)
    expect(await ops.reads(used)).toBe(200)
    ops.clock.move(49_000)
    expect(await ops.reads(used)).toBe(200)
    ops.clock.move(1000)
    expect(await ops.reads(used)).toBe(401)
  })

  test('ends when its user changes, and stays when the others change', async () => {
    await using ops = await world()
    const [alice, bob] = [await ops.cookieOf('alice'), await ops.cookieOf('bob')]
    const statuses = async () => [await ops.reads(alice), await ops.reads(bob)]
    ops.ops.renew({ users: [user('alice', 'change', 'read'), user('bob', 'read', 'change')], tls: undefined })
    expect(await statuses()).toEqual([200, 401])
    const changed = { ...user('alice', 'read', 'change'), password_hash: new Secret(otherHash) }
    ops.ops.renew({ users: [changed], tls: undefined })
    expect(await statuses()).toEqual([401, 401])
  })

  test('makes room for newer ones of its user', async () => {
    await using ops = await world()
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
})

describe('a change by a browser', () => {
  const change = (headers: Record<string, string>): RawRequest => ({ method: 'POST', headers })

  test('needs the right, the token, and a page of this server; the audit log has its user', async () => {
    await using ops = await world()
    const alice = await ops.cookieOf()
    const token = { 'gateway-token': await ops.tokenOf(alice) }
    const refused: [Record<string, string>, string][] = [
      [alice, 'TOKEN_MISSING'],
      [{ ...alice, 'gateway-token': '' }, 'TOKEN_MISSING'],
      [{ ...alice, 'gateway-token': `${token['gateway-token']}x` }, 'TOKEN_MISSING'],
      [token, 'LOGIN_REQUIRED'],
      [{ ...alice, ...token, origin: 'http://evil.example' }, 'ORIGIN_REFUSED'],
      [{ ...alice, ...token, origin: 'null' }, 'ORIGIN_REFUSED'],
      [{ ...alice, ...token, 'sec-fetch-site': 'same-site' }, 'ORIGIN_REFUSED'],
      [{ ...alice, ...token, host: 'evil.example' }, 'ORIGIN_REFUSED'],
    ]
    for (const [headers, code] of refused)
      expect(JSON.parse((await ops.send('/control/reload', change(headers))).text)).toMatchObject({ code })
    const bob = await ops.cookieOf('bob')
    const ofBob = { ...bob, 'gateway-token': await ops.tokenOf(bob) }
    for (const headers of [ofBob, { ...bob, ...token }])
      expect((await ops.send('/control/reload', change(headers))).status).toBe(403)
    expect(ops.asked).toEqual([])
    const done = await ops.send('/control/reload', change({ ...alice, ...token, origin: ops.url }))
    expect(done.status).toBe(200)
    expect(JSON.parse((await ops.send('/audit', { headers: alice })).text)).toMatchObject({
      changes: [{ change: 'reload', by: { user: 'alice' } }, { change: 'login' }, { change: 'login' }],
    })
    const metrics = await ops.send('/metrics', { headers: alice })
    expect(metrics.text).toContain('gateway_http_refused_total{reason="no_token"} 3')
  })

  test('by a form without a token, with a wrong one or with two is refused', async () => {
    await using ops = await world()
    const headers = await ops.cookieOf()
    const token = await ops.tokenOf(headers)
    for (const body of ['', 'token=x', `token=${token}&token=${token}`]) {
      const sent = { method: 'POST', body, headers: { ...headers, ...form({}).headers } }
      expect((await ops.send('/logout', sent)).status).toBe(403)
    }
    expect(await ops.reads(headers)).toBe(200)
  })

  test('cannot be made by GET, which needs no token, whatever its fields are', async () => {
    await using ops = await world()
    const headers = await ops.cookieOf()
    for (const fields of ['', '&yes=1', '&dryRun=0', '&token=x', '&sure=1'])
      await ops.send(`/page/change?change=reload${fields}`, { headers })
    await ops.send('/control/reload', { headers })
    expect(ops.asked).toEqual([])
    const ask = (method: string) =>
      changeByForm(
        {
          request: { method, socket: { setTimeout: () => undefined } },
          form: new URLSearchParams(),
          source: { stages: { control: { reload: async () => void ops.asked.push(method) } } },
          audit: { begin: async () => async () => {} },
        } as never,
        'reload',
      ).catch(() => null)
    expect(await ask('GET')).toMatchObject({ status: 400 })
    expect(ops.asked).toEqual([])
    await ask('POST')
    expect(ops.asked).toEqual(['POST'])
  })

  test('by a form of another type, or a large one, is refused', async () => {
    await using ops = await world()
    const large = await ops.login('alice', 'x'.repeat(9000))
    expect(large.status).toBe(413)
    const sent = { method: 'POST', body: '{}', headers: { 'content-type': 'text/plain' } }
    expect((await ops.send('/login', sent)).status).toBe(400)
  })
})

describe('a link of another site', () => {
  const link = {
    accept: 'text/html',
    'sec-fetch-site': 'cross-site',
    'sec-fetch-mode': 'navigate',
    'sec-fetch-dest': 'document',
  }

  test('opens a page, through the login where there are users, because it comes without a cookie', async () => {
    await using ops = await world()
    const first = await ops.send('/', { headers: link })
    expect(first).toMatchObject({ status: 200, text: expect.stringContaining('0; url=/login"') as string })
    expect(first.headers['content-security-policy']).toContain("default-src 'none'")
    const headers = await ops.cookieOf()
    const place = '/login?to=%2Fstatus%3F%22%3E'
    expect((await ops.send(place)).text).toContain('value="/status?&quot;&gt;"')
    expect(await ops.send(place, { headers })).toMatchObject({
      status: 303,
      headers: { location: '/status?">' },
    })
    expect((await ops.send('/login?failed=wrong', { headers })).status).toBe(200)
  })

  test('opens a page, and no frame, no form and no other path', async () => {
    await using ops = await world()
    expect((await ops.send('/login', { headers: link })).status).toBe(200)
    for (const headers of [
      { ...link, 'sec-fetch-dest': 'iframe' },
      { ...link, 'sec-fetch-mode': 'no-cors' },
      { ...link, origin: 'http://evil.example' },
      { ...link, host: 'evil.example' },
    ])
      expect((await ops.send('/login', { headers })).status).toBe(403)
    expect(await ops.reads(link)).toBe(403)
    const posted = {
      ...form({ name: 'alice', password: 'right' }),
      headers: { ...form({}).headers, ...link },
    }
    expect((await ops.send('/login', posted)).status).toBe(403)
  })
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
    await using ops = await world()
    const basic = (password: string) => ({
      authorization: `Basic ${Buffer.from(`alice:${password}`).toString('base64')}`,
    })
    expect((await ops.send('/status', { headers: basic('right') })).status).toBe(200)
    const cookie = await ops.cookieOf('bob')
    // Several at once, so that their delays pass together; other names, so that they are short.
    for (let wrong = 0; wrong < anyNameMax; wrong += 2)
      await Promise.all([ops.login(`a${wrong}`, 'x'), ops.login(`b${wrong}`, 'x')])
    expect((await ops.login('bob', 'right')).headers['location']).toBe('/')
    const refused = await ops.login('bob', 'wrong')
    expect(refused.headers['location']).toBe('/login?failed=limited')
    const program = await ops.send('/status', { headers: basic('wrong') })
    expect(program).toMatchObject({ status: 429, headers: { 'retry-after': '15' } })
    expect((await ops.send('/status', { headers: basic('right') })).status).toBe(200)
    expect(await ops.reads(cookie)).toBe(200)
    ops.clock.move(15_000)
    expect((await ops.login('bob', 'wrong')).headers['location']).toBe('/login?failed=wrong')
    expect(ops.output.lines()).toContainEqual(
      expect.objectContaining({ event: 'request_refused', reason: 'limited' }),
    )
  })
})
