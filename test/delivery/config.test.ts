import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { deliveryOptions, deliverySchema } from '../../src/delivery/config.ts'
import { createAuthority } from '../support/certificates.ts'

type Case = {
  name: string
  each?: readonly string[]
  config: Record<string, unknown>
  problems?: readonly string[]
  options?: object
}

const base = { base_url: 'https://ingest.example.com' }
const cases = (parse(readFileSync(join(import.meta.dirname, 'config.cases.yaml'), 'utf8')) as Case[]).flatMap(
  ({ each = [''], ...one }) =>
    each.map((value) => JSON.parse(JSON.stringify(one).replaceAll('{{each}}', value)) as Case),
)

const problemsOf = (input: unknown) => {
  const parsed = deliverySchema.safeParse(input)
  return parsed.success ? [] : parsed.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`)
}

/** Rules as an object. */
function optionsOf(input: Record<string, unknown>) {
  const { providers, ...options } = deliveryOptions(deliverySchema.parse({ ...base, ...input }))
  const own = providers.map(({ retryRules, ...provider }) => ({
    ...provider,
    retryRules: Object.fromEntries(retryRules),
  }))
  return { ...options, providers: own }
}

describe('the section delivery', () => {
  test.each(cases.filter(({ problems }) => problems))('$name', ({ config, problems = [] }) => {
    const patterns = problems.map((text) => expect.stringMatching(`^${text}`))
    const found = problemsOf({ ...base, ...config })
    expect(found).toHaveLength(patterns.length)
    expect(found).toEqual(expect.arrayContaining(patterns))
  })

  test.each(cases.filter(({ options }) => options))('$name', ({ config, options = {} }) => {
    expect(optionsOf(config)).toMatchObject(options)
  })

  test('keys in the config are secrets that print as stars', () => {
    const credentials = { source: 'keys', access_key_id: 'AKID', secret_access_key: 'hush' }
    const proxied = { proxy: 'http://p:3128', proxy_auth: { user: 'u', password: 'hush' } }
    const config = deliverySchema.parse({ ...base, ...proxied, credentials })
    expect(JSON.stringify([config, deliveryOptions(config)])).not.toContain('hush')
  })
})

describe('the certificates', () => {
  const authority = createAuthority()
  const mine = authority.issue()

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
})
