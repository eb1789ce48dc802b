import { connect } from 'node:net'
import { describe, expect, test } from 'vitest'
import { Secret } from '../../../../src/std/secret.ts'
import { costMin, hashPassword } from '../../../../src/std/passwords/passwords.ts'
import type { OpsConfig } from '../../../../src/ops/config.ts'
import { startAskedControl } from '../../../support/asked-control.ts'
import { createAuthority } from '../../../support/certificates.ts'
import { get, opsConfig, opsWorld } from '../../../support/ops-world.ts'
import { exchange, rawRequest as send } from '../../../support/raw-http.ts'

const paths = '/ /healthz /readyz /status /metrics /devices /ledger /audit /tap /no'.split(' ')

async function world(more: Partial<OpsConfig> = {}) {
  const made = opsWorld({ ops: opsConfig({ host: '127.0.0.1', port: 0 }, more) })
  const asked = await startAskedControl(made)
  return Object.assign(made, { url: made.ops.url(), asked })
}

const hash = await hashPassword('right', costMin)
const user = (name: string, ...rights: ('read' | 'change')[]) => ({
  name,
  password_hash: new Secret(hash),
  rights,
})
const login = (name: string, password = 'right') => ({
  authorization: `Basic ${Buffer.from(`${name}:${password}`).toString('base64')}`,
})

describe('a request of a web page', () => {
  test.each([
    [{ host: 'evil.example' }],
    [{ host: 'localhost.evil.example' }],
    [{ host: '127.0.0.1.evil.example:80' }],
    [{ host: '192.0.2.1.nip.example' }],
    [{ 'sec-fetch-site': 'cross-site' }],
    [{ 'sec-fetch-site': 'same-site' }],
    [{ origin: 'http://evil.example' }],
    [{ origin: 'null' }],
    [{ origin: 'http://localhost:1' }],
  ] as Record<string, string>[][])(
    'of another site or host is refused on every path: %j',
    async (headers) => {
      await using ops = await world()
      for (const path of paths) expect((await send(ops.url, path, { headers })).status, path).toBe(403)
    },
  )

  test('is answered under a name of loopback, an allowed name, and any address, as behind a mapped port', async () => {
    await using ops = await world({ allowed_hosts: ['Depot-7.example'] })
    for (const host of [
      'localhost',
      'LOCALHOST:8080',
      '127.0.0.1:1',
      '[::1]:80',
      'depot-7.example:8080',
      '192.0.2.1:8080',
      '[2001:db8::7]:8080',
      'localhost.',
    ])
      expect((await send(ops.url, '/status', { headers: { host } })).status, host).toBe(200)
  })

  test('is answered for the own address, or when a person typed it', async () => {
    await using ops = await world()
    for (const headers of [
      { 'sec-fetch-site': 'none' },
      { 'sec-fetch-site': 'same-origin' },
      { origin: ops.url ?? '' },
    ])
      expect((await send(ops.url, '/status', { headers })).status).toBe(200)
  })

  test('cannot embed, sniff or read an answer, whatever it is', async () => {
    await using ops = await world()
    const answers = [
      ...(await Promise.all(['/', '/status', '/metrics', '/no'].map((path) => send(ops.url, path)))),
      await send(ops.url, '/', { headers: { host: 'evil.example' } }),
      await send(ops.url, '/control/reload', { method: 'POST' }),
    ]
    for (const { headers } of answers)
      expect(headers).toMatchObject({
        'x-content-type-options': 'nosniff',
        'cross-origin-resource-policy': 'same-origin',
        'content-security-policy': expect.stringMatching(/default-src 'none'.*frame-ancestors 'none'/),
        'cache-control': 'no-store',
      })
    expect(answers[0]?.headers).not.toHaveProperty('access-control-allow-origin')
  })
})

test('a health check of HTTP/1.0 without a host is answered', async () => {
  await using ops = await world()
  // It is not ready in this test.
  for (const [path, status] of Object.entries({ '/healthz': 200, '/readyz': 503, '/status': 403 }))
    expect(await exchange(ops.url, `GET ${path} HTTP/1.0\r\n\r\n`)).toMatch(new RegExp(`^\\S+ ${status} `))
})

describe('a request that two programs could read in two ways', () => {
  test.each([
    ['two hosts', 'GET /status HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n'],
    ['no host', 'GET /status HTTP/1.0\r\n\r\n'],
    ['a whole URL', 'GET http://localhost/status HTTP/1.1\r\nHost: localhost\r\n\r\n'],
    [
      'two lengths',
      'POST /control/reload HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx',
    ],
    [
      'length and chunks',
      'POST /control/reload HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    ],
    ['a space before the colon', 'GET /status HTTP/1.1\r\nHost : localhost\r\n\r\n'],
    [
      'a bare line feed in a chunk',
      'POST /status HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n1\n0\r\n\r\n',
    ],
  ])('with %s is refused', async (_, bytes) => {
    await using ops = await world()
    const answer = await exchange(ops.url, bytes, { end: true })
    expect(answer).toMatch(/^HTTP\/1\.1 4\d\d /)
    expect(answer.match(/^HTTP\/1\.1 /gm)).toHaveLength(1)
  })

  test('with a body does not hide a second request in it', async () => {
    await using ops = await world()
    const hidden = 'GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n'
    const head = `GET /status HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${hidden.length}\r\n\r\n`
    const answer = await exchange(ops.url, `${head}${hidden}`, { end: true })
    expect(answer.match(/^HTTP\/1\.1 \d+/gm)).toEqual(['HTTP/1.1 413'])
  })
})

describe('with users', () => {
  const users = [
    { ...user('prometheus', 'read'), password_hash: new Secret(`other:${hash}\nprometheus:${hash}\n`) },
    user('alice', 'read', 'change'),
    user('deploy', 'change'),
  ]

  test.each([
    ['nobody', {}, { '/healthz': 200, '/readyz': 503, '/status': 401, '/control/reload': 401 }],
    ['a reader', login('prometheus'), { '/healthz': 200, '/status': 200, '/control/reload': 403 }],
    ['one who may both', login('alice'), { '/status': 200, '/control/reload': 200 }],
    ['one who may change only', login('deploy'), { '/status': 403, '/control/reload': 200 }],
    ['a wrong password', login('alice', 'wrong'), { '/healthz': 200, '/status': 401 }],
    ['an unknown user', login('eve'), { '/status': 401, '/control/reload': 401 }],
  ])('%s may do what the rights say', async (_, headers, expected) => {
    await using ops = await world({ users })
    for (const [path, status] of Object.entries(expected)) {
      const method = path.startsWith('/control') ? 'POST' : 'GET'
      const answer = await send(ops.url, path, { method, headers })
      expect([path, answer.status]).toEqual([path, status])
      const challenge = answer.headers['www-authenticate'] !== undefined
      expect(challenge).toBe(status === 401)
    }
  })

  test('a change by a web page with a remembered password is refused', async () => {
    await using ops = await world({ users })
    for (const more of [
      { origin: 'http://evil.example' },
      { 'sec-fetch-site': 'cross-site' },
      { host: 'evil.example' },
    ]) {
      const headers = { ...login('alice'), ...more } as Record<string, string>
      expect((await send(ops.url, '/control/reload', { method: 'POST', headers })).status).toBe(403)
    }
    expect(ops.asked).toEqual([])
  })

  test('reading can be left open', async () => {
    await using ops = await world({ users, anonymous_read: true })
    expect((await send(ops.url, '/status')).status).toBe(200)
    expect((await send(ops.url, '/control/reload', { method: 'POST' })).status).toBe(401)
    expect((await send(ops.url, '/control/dead-letters/show?id=1', { method: 'POST' })).status).toBe(401)
  })

  test('reading can need one without a right to change', async () => {
    await using ops = await world({ anonymous_read: false })
    expect((await send(ops.url, '/status')).status).toBe(403)
    expect((await send(ops.url, '/healthz')).status).toBe(200)
  })

  test('wrong passwords are answered later and later, are reported, and do not delay right ones', async () => {
    await using ops = await world({ users })
    const tookMs = async (headers: Record<string, string>) => {
      const before = performance.now()
      await send(ops.url, '/status', { headers })
      return performance.now() - before
    }
    for (let guess = 0; guess < 4; guess += 1) await tookMs(login('alice', `guess ${guess}`))
    expect(await tookMs(login('alice', 'guess'))).toBeGreaterThan(1000)
    const right = await send(ops.url, '/status', { headers: login('alice') })
    expect(right.status).toBe(200)
    expect(await tookMs(login('alice'))).toBeLessThan(500)
    const refused = () =>
      ops.output
        .lines()
        .filter(({ event, reason }) => event === 'request_refused' && reason === 'bad_password')
    expect(refused()).toMatchObject([
      { reason: 'bad_password', count: 1, user: 'alice', address: '127.0.0.1' },
    ])
    ops.clock.move(61_000)
    await Promise.all(
      Array.from({ length: 3 }, (_, n) => send(ops.url, '/status', { headers: login(`u${n}`) })),
    )
    expect(refused()).toMatchObject([{ count: 1 }, { count: 5 }])
    const metrics = (await send(ops.url, '/metrics', { headers: login('alice') })).text
    expect(metrics).toMatch(/gateway_http_refused_total\{reason="bad_password"\} \d+/)
  })

  test('guesses at the same time do not all get a check', async () => {
    await using ops = await world({ users })
    const guesses = Array.from({ length: 20 }, (_, n) =>
      send(ops.url, '/status', { headers: login('alice', `${n}`) }),
    )
    const statuses = (await Promise.all(guesses)).map(({ status }) => status)
    expect(statuses.filter((status) => status === 429).length).toBeGreaterThanOrEqual(10)
    expect(statuses.filter((status) => status === 401).length).toBeGreaterThanOrEqual(2)
  })

  test('changes are made over TLS, in the name of the user', async () => {
    const authority = createAuthority()
    const { cert, key } = authority.issue()
    await using ops = await world({ users, tls: { cert, key: new Secret(key) } })
    expect(ops.url).toMatch(/^https:/)
    const headers = login('alice')
    const answer = await send(ops.url, '/control/reload', { method: 'POST', headers, ca: authority.ca })
    expect(answer.status).toBe(200)
    const audit = await send(ops.url, '/audit', { headers, ca: authority.ca })
    expect(JSON.parse(audit.text)).toMatchObject({
      changes: [
        { change: 'reload', by: { via: 'tcp', user: 'alice', address: '127.0.0.1' }, outcome: 'done' },
      ],
    })
  })

  test('a failed TLS handshake is counted by its reason', async () => {
    const authority = createAuthority()
    const { cert, key } = authority.issue()
    await using ops = await world({ users, tls: { cert, key: new Secret(key) } })
    const plain = connect(Number(new URL(ops.url ?? '').port), '127.0.0.1')
    plain.on('error', () => plain.destroy())
    plain.write('GET / HTTP/1.1\r\n\r\n')
    await new Promise<void>((resolve) => plain.once('close', () => resolve()))
    const headers = login('alice')
    const metrics = (await send(ops.url, '/metrics', { headers, ca: authority.ca })).text
    expect(metrics).toContain('gateway_http_refused_total{reason="http_on_tls_port"} 1')
  })
})

describe('on the control socket', () => {
  test('a request for the gateway with another spool is refused', async () => {
    await using ops = await world()
    const reload = (spool: string) =>
      get(ops.ops.control(), '/control/reload', {
        method: 'POST',
        headers: { 'gateway-spool': encodeURIComponent(spool) },
      })
    expect((await reload('/var/lib/other')).status).toBe(421)
    expect(ops.asked).toEqual([])
    expect((await reload(ops.folder)).status).toBe(200)
  })
})
