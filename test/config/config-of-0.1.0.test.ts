// Configs of version 0.1.0: accepted, or refused with a sentence that says what to write instead.
// options-of-0.1.0.txt has a line for each of its options: the path, and its words if it takes only those.

import { readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { ConfigError, configSchema, loadConfig } from '../../src/config/config.ts'
import { referenceText } from '../../src/config/config-reference.ts'
import { insteadOfWord } from '../../src/mapping/mapping.ts'
import { insteadOf, newKeyOf } from '../../src/config/renamed-keys.ts'
import { newFolder } from '../support/folders.ts'
import { plain, referenceEntries } from '../support/reference-entries.ts'

const options = readFileSync(join(import.meta.dirname, 'options-of-0.1.0.txt'), 'utf8')
  .trim()
  .split('\n')
  .map((line) => line.split(' ') as [path: string, ...words: string[]])

/** By path: the lines of the reference with type, words and examples. */
const entries = referenceEntries(referenceText(configSchema))
const reference = {
  has: (path: string) => entries.has(plain(path)),
  get: (path: string) =>
    entries
      .get(plain(path))
      ?.map(([facts = '']) => facts)
      .join(' '),
}

const keysOf = (path: string) =>
  path
    .replaceAll('[]', '.0')
    .split('.')
    .map((key) => (key === '0' ? 0 : key))

describe('an option of version 0.1.0', () => {
  test('exists with all its words, or its error says what to write instead', () => {
    const gone = options.filter(([path]) => !reference.has(path)).map(([path]) => path)
    const replaced = gone.filter((path) => newKeyOf(keysOf(path)) !== undefined)
    expect(replaced).toEqual(['sources[].about', 'spool.dead_letters.keep', 'ledger.keep'])
    // As an expression: each field has its own.
    const commas = gone.filter((path) => path.endsWith('.decimal_comma'))
    expect(insteadOfWord('decimal_comma', { path: 'a', decimal_comma: true })).toContain('write expr: ')
    const others = gone.filter((path) => !replaced.includes(path) && !commas.includes(path))
    expect(others).toEqual(['sources[].jsonata', 'spool.deferred_max_bytes'])
    for (const path of others) expect(insteadOf(keysOf(path))).toMatch(/^[a-z].*\.$/)
    for (const path of replaced) {
      const newPath = path.replace(/\w+$/, newKeyOf(keysOf(path)) ?? '')
      expect([path, newPath, reference.has(newPath)]).toEqual([path, newPath, true])
    }
    const without = options.flatMap(([path, ...words]) =>
      words.filter((word) => reference.get(path)?.includes(`\`${word}\``) === false).map(() => path),
    )
    expect(without).toEqual([])
  })
})

type Parts = Partial<Record<'listen' | 'topic' | 'time' | 'place' | 'source' | 'delivery', string>>

/** Each is accepted by `check` of version 0.1.0. */
const configOf = ({ listen, topic, time = '', place = '', source = '', delivery = '' }: Parts) => `
ingest: { broker: { listeners: [{ url: "${listen ?? 'mqtt://127.0.0.1:1883'}" }], access: { anonymous: true } } }
sources:
  - name: trucks
    topic: "${topic ?? 'a/{device}'}"
    ${source}
    map: { time: { path: ts, format: datetime${time} }, latitude: { path: lat${place} }, longitude: { path: lon${place} } }
delivery:
  base_url: http://127.0.0.1:8081
  credentials: { source: environment }
  ${delivery}
`

async function problemOf(parts: Parts): Promise<string> {
  const path = join(await newFolder(), 'gateway.yaml')
  await writeFile(path, configOf(parts))
  const error: unknown = await loadConfig(path, { env: {} }).catch((thrown: unknown) => thrown)
  return error instanceof ConfigError ? error.lines.join('\n') : ''
}

describe('a config of version 0.1.0', () => {
  test.each<[what: string, Parts]>([
    ['the zone utc', { time: ', zone: utc' }],
    ['a provider of its own', { delivery: 'provider_key: DEPOT' }],
  ])('with %s is accepted', async (_, parts) => {
    expect(await problemOf(parts)).toBe('')
  })

  test.each<[what: string, Parts, act: string]>([
    [
      'anonymous clients from other machines',
      { listen: 'mqtt://0.0.0.0:1883' },
      'set anonymous_beyond_loopback: true',
    ],
    ['a capture {identity}', { topic: 'a/{identity}/{device}' }, 'choose another one'],
    ['a capture {content_type}', { topic: 'a/{content_type}/{device}' }, 'choose another one'],
    ['hundredths for degrees and minutes', { place: ', scale: 0.01' }, 'Use `unit: ddmm` without a scale'],
    ['an origin that nothing has', { source: 'origins: [trip]' }, 'no signal of the source has an `origin`'],
    ['too short answers', { delivery: 'max_response_bytes: 16KiB' }, 'must be at least 32000'],
    [
      'fewer places than providers',
      {
        source: 'provider: north',
        delivery: 'max_in_flight_total: 1\n  providers: [{ name: north, key: N }, { name: south, key: S }]',
      },
      'must be at least 2, the number of providers',
    ],
  ])('with %s is refused, and the sentence says what to change', async (_, parts, act) => {
    expect(await problemOf(parts)).toContain(act)
  })

  test('with the path of the operation in base_url is refused with the right URL', async () => {
    const path = join(await newFolder(), 'gateway.yaml')
    await writeFile(path, configOf({}).replace(':8081', ':8081/v2/telemetry'))
    await expect(loadConfig(path, { env: {} })).rejects.toMatchObject({
      lines: [expect.stringContaining('write "http://127.0.0.1:8081"')],
    })
  })
})
