import { describe, expect, test } from 'vitest'
import { deliveryOptions, deliverySchema } from '../../src/delivery/config.ts'
import { Secret } from '../../src/std/secret.ts'
import { createAuthority } from '../support/certificates.ts'

const base = { base_url: 'https://ingest.example.com' }

const problemsOf = (input: unknown) => {
  const parsed = deliverySchema.safeParse(input)
  return parsed.success ? [] : parsed.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`)
}

describe('the section delivery', () => {
  test('requires only the address', () => {
    const options = deliveryOptions(deliverySchema.parse(base))
    expect(options.maxInFlightTotal).toBe(4)
    expect(options.providers[0]).toMatchObject({
      name: 'default',
      baseUrl: 'https://ingest.example.com',
      providerKey: null,
      credentials: { source: 'environment' },
      batch: { payloadsMax: 500, bodyBytesMax: 1024 ** 2, lingerMs: 1000 },
      maxInFlight: 4,
      timeoutMs: 30_000,
      onRepeat: 'hold',
    })
    expect(options.providers[0]?.retryRules.get('Validation')).toEqual([300_000, 3_600_000])
    expect(options.providers[0]?.retryRules.get('default')).toHaveLength(8)
    expect(options.providers[0]?.retryRules.get('default')?.at(-1)).toBe(43_200_000)
  })

  test('a configured error type does not change the defaults of the others', () => {
    const errors = { Quota: ['1m'], Duplicate: 'delivered', Validation: [] }
    const rules = deliveryOptions(deliverySchema.parse({ ...base, errors })).providers[0]?.retryRules
    expect(rules?.get('Quota')).toEqual([60_000])
    expect(rules?.get('Duplicate')).toBe('delivered')
    expect(rules?.get('Validation')).toEqual([])
    expect(rules?.get('default')).toHaveLength(8)
  })

  test('a path before /v2 is kept, a slash at its end is not', () => {
    const config = deliverySchema.parse({ base_url: 'http://127.0.0.1:8081/some/path/' })
    expect(deliveryOptions(config).providers[0]?.baseUrl).toBe('http://127.0.0.1:8081/some/path')
  })

  test.each([
    'ingest.example.com',
    'ftp://h',
    'https://user:secret@h',
    'https://h/a?b=c',
    'https://h/a#b',
    'https://h/a/../b',
    'https://h/a b',
    'https://h//a',
    '',
  ])('refuses %j as an address', (base_url) => {
    expect(problemsOf({ base_url })).toEqual([expect.stringMatching(/^base_url: must .*, found /)])
  })

  test('refuses an answer limit that the answer to a full batch does not fit', () => {
    const batch = { max_payloads: 1000 }
    expect(problemsOf({ ...base, batch, max_response_bytes: '63KiB' })).toEqual([])
    expect(problemsOf({ ...base, batch, max_response_bytes: '62KiB' })).toEqual([
      expect.stringMatching(/^max_response_bytes: must be at least 64000: .* 1000 payloads .*found 63488$/),
    ])
    expect(problemsOf({ ...base, mode: 'single', batch, max_response_bytes: '16KiB' })).toEqual([])
    const providers = [
      { name: 'a', provider_key: 'a', max_response_bytes: '16KiB' },
      { name: 'b', provider_key: 'b', batch: { max_payloads: 100 }, max_response_bytes: '16KiB' },
      { name: 'c', provider_key: 'c', batch: { max_payloads: 2000 } },
    ]
    expect(
      problemsOf({ ...base, max_response_bytes: '63KiB', providers }).map((text) => text.slice(0, 60)),
    ).toEqual([
      expect.stringMatching(/^providers.0.max_response_bytes: must be at least 32000/),
      expect.stringMatching(/^providers.2.batch.max_payloads: must be at least 128000/),
    ])
  })

  test('reports all problems at once', () => {
    const problems = problemsOf({
      ...base,
      max_in_flight: 0,
      timeout: '30',
      batch: { max_payload: 5 },
      credentials: { source: 'file' },
      errors: { Validation: 'never' },
      on_repeat: 'again',
    })
    expect(problems.map((problem) => problem.split(':')[0])).toEqual(
      expect.arrayContaining([
        'max_in_flight',
        'timeout',
        'batch',
        'credentials.path',
        'errors.Validation',
        'on_repeat',
      ]),
    )
  })

  test('keys in the config are secrets that print as stars', () => {
    const credentials = { source: 'keys', access_key_id: 'AKID', secret_access_key: 'hush' }
    const config = deliverySchema.parse({ ...base, credentials })
    expect(JSON.stringify([config, deliveryOptions(config)])).not.toContain('hush')
  })
})

describe('providers', () => {
  const optionsOf = (input: Record<string, unknown>) =>
    deliveryOptions(deliverySchema.parse({ ...base, ...input }))
  const two = [
    { name: 'north', provider_key: 'North Haul' },
    { name: 'south', provider_key: 'South Haul' },
  ]

  test('inherit options that they do not set from the section, also single ones', () => {
    const options = optionsOf({
      timeout: '7s',
      batch: { max_payloads: 50, linger: '2s' },
      backfill: { max_share: 0.5 },
      limits: { requests_per_second: 5 },
      errors: { Quota: ['1m'] },
      providers: [
        two[0],
        {
          ...two[1],
          base_url: 'https://other.example.com/',
          batch: { max_payloads: 9 },
          mode: 'single',
          max_in_flight: 2,
          backfill: { order: 'newest-first' },
          limits: { payloads_per_second: 1 },
          errors: { Validation: 'delivered' },
          credentials: { source: 'chain', profile: 'south' },
        },
      ],
    })
    const [north, south] = options.providers
    expect(options.maxInFlightTotal).toBe(6)
    expect(north).toMatchObject({ name: 'north', providerKey: 'North Haul', mode: 'batch', timeoutMs: 7000 })
    expect(north?.batch).toEqual({ payloadsMax: 50, bodyBytesMax: 1024 ** 2, lingerMs: 2000 })
    expect(south).toMatchObject({
      name: 'south',
      baseUrl: 'https://other.example.com',
      mode: 'single',
      maxInFlight: 2,
      timeoutMs: 7000,
      batch: { payloadsMax: 9, bodyBytesMax: 1024 ** 2, lingerMs: 2000 },
      backfill: { order: 'newest-first', shareMax: 0.5, shareMin: 0.1 },
      rate: { payloadsPerS: 1, requestsPerS: 5 },
      credentials: { source: 'chain', profile: 'south' },
    })
    expect(south?.retryRules.get('Quota')).toEqual([60_000])
    expect(south?.retryRules.get('Validation')).toBe('delivered')
    expect(north?.retryRules.get('Validation')).toEqual([300_000, 3_600_000])
  })

  test('share the configured maximum of concurrent submissions', () => {
    expect(optionsOf({ providers: two, max_in_flight_total: 3 }).maxInFlightTotal).toBe(3)
  })

  test.each<[string, Record<string, unknown>, string]>([
    ['an empty list', { providers: [] }, 'providers: '],
    [
      'a name twice',
      { providers: [two[0], { ...two[1], name: 'north' }] },
      'providers.1.name: must be unique',
    ],
    [
      'a name with a space',
      { providers: [{ name: 'north haul' }] },
      'providers.0.name: must be a name of letters',
    ],
    ['no name', { providers: [{ provider_key: 'x' }] }, 'providers.0.name: '],
    [
      'fewer places than providers',
      { providers: two, max_in_flight_total: 1 },
      'max_in_flight_total: must be at least 2, the number of providers, found 1',
    ],
    ['an unknown option', { providers: [{ ...two[0], keys: 1 }] }, 'providers.0: Unrecognized'],
    ['one key for all', { provider_key: 'x', providers: two }, 'provider_key: must be in the entries'],
    [
      'two of one account without a key',
      { providers: [{ name: 'north' }, { name: 'south' }] },
      'providers.1: must have a provider_key of its own',
    ],
    [
      'two of one account with the same key',
      { providers: [two[0], { ...two[1], provider_key: 'North Haul' }] },
      'providers.1.provider_key: must have a provider_key of its own',
    ],
  ])('%s is refused', (_name, input, problem) => {
    expect(problemsOf({ ...base, ...input })).toEqual([expect.stringContaining(problem)])
  })

  test.each([
    ['accounts', { credentials: { source: 'chain', profile: 'south' } }],
    ['addresses', { base_url: 'https://south.example.com' }],
  ])('of different %s need no key', (_name, own) => {
    expect(problemsOf({ ...base, providers: [{ name: 'north' }, { name: 'south', ...own }] })).toEqual([])
  })
})

describe('the proxy', () => {
  const authority = createAuthority()
  const mine = authority.issue()
  const proxyOf = (input: Record<string, unknown>) =>
    deliveryOptions(deliverySchema.parse({ ...base, ...input })).providers.map(({ proxy }) => proxy)

  test('is that of the environment unless the config sets another one', () => {
    expect(proxyOf({})).toEqual([{ from: 'environment' }])
    expect(proxyOf({ proxy: 'none' })).toEqual([{ from: 'none' }])
    expect(proxyOf({ proxy: 'http://p:3128' })).toEqual([
      { from: 'config', url: 'http://p:3128', auth: null },
    ])
  })

  test('uses only the password of the same level', () => {
    const auth = { user: 'u', password: 'hush' }
    const providers = [
      { name: 'a', provider_key: 'a' },
      { name: 'b', provider_key: 'b', proxy: 'https://q' },
    ]
    expect(proxyOf({ proxy: 'http://p:3128', proxy_auth: auth, providers })).toEqual([
      { from: 'config', url: 'http://p:3128', auth: { user: 'u', password: expect.any(Secret) } },
      { from: 'config', url: 'https://q', auth: null },
    ])
  })

  test.each(['http://user@p:3128', 'socks5://p', 'p:3128', 'http://p/path', 'yes'])(
    '%s is no proxy',
    (proxy) => {
      expect(problemsOf({ ...base, proxy })).toEqual([
        expect.stringMatching(/^proxy: must be environment, none, or/),
      ])
    },
  )

  test('is passed with the client certificate of the config', () => {
    const tls = { ca: authority.ca, cert: mine.cert, key: mine.key }
    const [provider] = deliveryOptions(deliverySchema.parse({ ...base, tls })).providers
    expect(provider).toMatchObject({
      ca: authority.ca,
      clientCertificate: { cert: mine.cert, passphrase: null },
    })
    expect(JSON.stringify(provider)).not.toContain('PRIVATE KEY')
  })

  test.each<[string, Record<string, string>, RegExp]>([
    ['a certificate without its key', { cert: mine.cert }, /^tls: must contain key/],
    ['a key without its certificate', { key: mine.key }, /^tls: must contain cert/],
    ['an authority that is no PEM', { ca: '/etc/ssl/ca.pem' }, /^tls.ca: must be a certificate as PEM/],
    [
      'a key of another certificate',
      { cert: mine.cert, key: authority.issue().key },
      /^tls: must be a certificate and/,
    ],
    ['a key that is no PEM', { cert: mine.cert, key: 'key.pem' }, /^tls.key: must be a private key as PEM/],
  ])('%s is refused at once, not at the first batch', (_name, tls, problem) => {
    const problems = problemsOf({ ...base, tls })
    expect(problems).toEqual([expect.stringMatching(problem)])
    expect(problems.join()).not.toContain(mine.key.slice(30, 60))
    const own = problemsOf({ ...base, providers: [{ name: 'north', tls }] })
    expect(own).toEqual([expect.stringMatching(/^providers\.0\.tls(\.ca|\.key)?: must/)])
  })

  test('a password without a proxy to give it to is refused', () => {
    const proxy_auth = { user: 'u', password: 'p' }
    expect(problemsOf({ ...base, proxy_auth })).toEqual([
      expect.stringMatching(/^proxy_auth: must be used with a proxy/),
    ])
  })
})
