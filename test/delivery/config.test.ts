import { describe, expect, test } from 'vitest'
import { deliveryOptions, deliverySchema } from '../../src/delivery/config.ts'

const base = { base_url: 'https://ingest.example.com' }

const problemsOf = (input: unknown) => {
  const parsed = deliverySchema.safeParse(input)
  return parsed.success ? [] : parsed.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`)
}

describe('the section delivery', () => {
  test('needs no more than the address', () => {
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

  test('an error type of one kind leaves the defaults of the others', () => {
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

  test('tells all problems at once', () => {
    const problems = problemsOf({
      ...base,
      max_in_flight: 0,
      timeout: '30',
      batch: { max_payload: 5 },
      credentials: { source: 'file' },
      errors: { Validation: 'never' },
      on_repeat: 'resend',
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
