import { hostname } from 'node:os'
import { describe, expect, test } from 'vitest'
import { createAuthority } from '../support/certificates.ts'
import { ingestOptions, ingestSchema } from '../../src/ingest/config.ts'

function problems(config: unknown): string[] {
  const result = ingestSchema.safeParse(config)
  if (result.success) return []
  return result.error.issues.map(({ path, message }) => `${path.join('.')} ${message}`)
}

const anonymous = { anonymous: true }
const authority = createAuthority()
const mine = authority.issue()

describe('the section ingest', () => {
  test('needs no listener and no access where there is a bridge', () => {
    const bridges = [{ name: 'depot', url: 'mqtt://10.0.0.1', topics: ['a/#'], client_id: 'gw' }]
    expect(problems({ broker: { listeners: [] }, bridges })).toEqual([])
    expect(problems({ broker: { listeners: [] } })).toEqual([
      'broker.listeners must have a listener where `bridges` is empty',
    ])
  })

  test('refuses a config in which no client may connect', () => {
    expect(problems({})).toEqual([
      expect.stringMatching(
        /^broker.access must have anonymous: true, certificates: true, a user, a password_file or a token/,
      ),
    ])
  })

  test.each([
    ['mqtt://127.0.0.1', { host: '127.0.0.1', port: 1883 }],
    ['mqtt://[::1]:2000', { host: '::1', port: 2000 }],
    ['mqtt://localhost:0', { host: 'localhost', port: 0 }],
  ])('accepts %s', (url, address) => {
    const config = ingestSchema.parse({ broker: { listeners: [{ url }], access: anonymous } })
    expect(ingestOptions(config).listeners).toEqual([{ ...address, tls: null }])
  })

  test.each([
    'tcp://127.0.0.1:1883',
    'mqtt://user@127.0.0.1',
    'mqtt://127.0.0.1:1883/path',
    'mqtt://127.0.0.1:99999',
    '127.0.0.1:1883',
  ])('refuses the address %s', (url) => {
    expect(problems({ broker: { listeners: [{ url }], access: anonymous } })).toHaveLength(1)
  })

  test.each([
    [{ url: 'mqtts://127.0.0.1' }, 'tls is required for an mqtts:// listener'],
    [{ url: 'mqtt://127.0.0.1', tls: mine }, 'tls is not allowed for an mqtt:// listener'],
    [{ url: 'wss://127.0.0.1' }, 'tls is required for a wss:// listener'],
    [{ url: 'ws://127.0.0.1', tls: mine }, 'tls is not allowed for a ws:// listener'],
    [
      { url: 'mqtt://127.0.0.1', websocket: { origins: ['*'] } },
      'websocket is not allowed for an mqtt:// listener',
    ],
  ])('refuses the listener %j', (listener, problem) => {
    expect(problems({ broker: { listeners: [listener], access: anonymous } })).toEqual([
      `broker.listeners.0.${problem}`,
    ])
  })

  test('reads path, origins and names of a listener for WebSocket', () => {
    const origins = ['https://Fleet.Example.com', 'http://127.0.0.1:3000', 'capacitor://localhost', '*']
    const listeners = [
      { url: 'ws://127.0.0.1' },
      { url: 'ws://127.0.0.1:1/a', websocket: { origins, hosts: ['Gateway.Example.com'] } },
      { url: 'wss://127.0.0.1', tls: mine },
    ]
    const box = hostname().toLowerCase()
    const read = ingestOptions(ingestSchema.parse({ broker: { listeners, access: anonymous } }))
    expect(read.listeners).toMatchObject([
      { port: 8083, tls: null, webSocket: { path: '/mqtt', origins: [], hosts: new Set([box]) } },
      {
        port: 1,
        webSocket: {
          path: '/a',
          origins: ['https://fleet.example.com', ...origins.slice(1)],
          hosts: new Set([box, 'gateway.example.com']),
          isSecure: false,
        },
      },
      { webSocket: { isSecure: true } },
    ])
  })

  test.each(['https://fleet.example.com/page', 'fleet.example.com', 'null', '', 'https://a b'])(
    'refuses the origin %j',
    (origin) => {
      const listeners = [{ url: 'ws://127.0.0.1', websocket: { origins: [origin] } }]
      expect(problems({ broker: { listeners, access: anonymous } })).toEqual([
        expect.stringContaining('broker.listeners.0.websocket.origins.0 must be an origin such as'),
      ])
    },
  )

  test('refuses two users of one name, and unknown keys', () => {
    expect(
      problems({
        broker: {
          access: {
            users: [
              { name: 'a', password: 'x' },
              { name: 'a', password: 'y' },
            ],
          },
          limits: { max_conections: 3 },
        },
      }),
    ).toEqual([
      'broker.access.users.1.name must be unique, found "a" twice',
      'broker.limits Unrecognized key: "max_conections"',
    ])
  })

  test.each(['mqtt://0.0.0.0', 'mqtt://[::]', 'mqtt://broker.depot:0', 'mqtt://10.0.0.1'])(
    'refuses anonymous clients at %s, unless that is confirmed',
    (url) => {
      const listeners = [{ url }]
      expect(problems({ broker: { listeners, access: anonymous } })).toEqual([
        expect.stringMatching(/^broker.access.anonymous must not be true, because other machines reach/),
      ])
      const confirmed = { anonymous: true, anonymous_beyond_loopback: true }
      expect(problems({ broker: { listeners, access: confirmed } })).toEqual([])
      expect(problems({ broker: { listeners: [{ url, access: anonymous }], access: confirmed } })).toEqual([
        expect.stringMatching(/^broker.listeners.0.access.anonymous must not be true/),
      ])
    },
  )

  test.each([
    ['no certificate', { ...mine, cert: 'PEM' }, /^broker.listeners.0.tls.cert must be a certificate as PEM/],
    [
      'the key of another',
      { ...mine, key: authority.issue().key },
      /must be a certificate and its key as PEM/,
    ],
    ['no authority', { ...mine, client_ca: 'PEM' }, /client_ca must be a certificate as PEM/],
    [
      'no revocation list',
      { ...mine, client_ca: authority.ca, client_crl: 'PEM' },
      /client_crl must be a revocation list as PEM/,
    ],
    ['a list without authority', { ...mine, client_crl: authority.revoke([]) }, /client_crl needs client_ca/],
  ])('refuses TLS with %s', (_what, tls, expected) => {
    const listeners = [{ url: 'mqtts://127.0.0.1', tls }]
    expect(problems({ broker: { listeners, access: anonymous } })).toEqual([expect.stringMatching(expected)])
  })

  test('gives each listener its own rules, or those of the broker', () => {
    const listeners = [{ url: 'mqtt://127.0.0.1:1' }, { url: 'mqtt://127.0.0.1:2', access: anonymous }]
    const users = [{ name: 'a', password: 'x' }]
    const { access } = ingestOptions(ingestSchema.parse({ broker: { listeners, access: { users } } }))
    expect(access.map((rules) => [rules.anonymous, rules.users.length])).toEqual([
      [false, 1],
      [true, 0],
    ])
  })

  test('refuses short tokens, broken hashes, and certificates without client_ca', () => {
    const access = {
      certificates: true,
      users: [{ name: 'a', password: '$scrypt$ln=1' }],
      tokens: [{ name: 't', token: 'short' }],
    }
    const found = problems({ broker: { access } }).join('\n')
    expect(found).toMatch(/broker.access.users.0.password must be a password, or a hash that `passwd` wrote/)
    expect(found).toMatch(/broker.access.tokens.0.token must have at least 16 characters/)
    expect(problems({ broker: { access: { certificates: true } } })).toEqual([
      expect.stringMatching(/^broker.access.certificates needs tls.client_ca/),
    ])
  })

  test('shows no password', () => {
    const config = ingestSchema.parse({ broker: { access: { users: [{ name: 'a', password: 'hunter2' }] } } })
    expect(JSON.stringify(config)).not.toContain('hunter2')
  })
})
