import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { configSchema } from '../../src/config/config.ts'
import { referenceText, schemaText } from '../../src/config/config-reference.ts'
import { timeFormats } from '../../src/mapping/times/times.ts'
import { angleUnits, signalUnits, speedUnits } from '../../src/mapping/fields/units.ts'
import { nearest } from '../../src/std/nearest-word.ts'
import { plain, referenceEntries } from '../support/reference-entries.ts'

type Node = {
  $ref?: string
  anyOf?: Node[]
  oneOf?: Node[]
  allOf?: Node[]
  items?: Node
  properties?: Record<string, Node>
  additionalProperties?: Node | boolean
}

/** The paths of all options in a schema, found without the code that writes the reference. */
function optionPaths(schema: z.ZodType): Set<string> {
  const root = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }) as Node & {
    $defs?: Record<string, Node>
  }
  const paths = new Set<string>()
  walk(root, '')
  return paths

  function walk(node: Node, path: string): void {
    const { $ref, anyOf = [], oneOf = [], allOf = [], items, properties = {}, additionalProperties } = node
    const target = root.$defs?.[$ref?.replace('#/$defs/', '') ?? '']
    for (const inner of [...(target ? [target] : []), ...anyOf, ...oneOf, ...allOf]) walk(inner, path)
    if (items) walk(items, `${path}[]`)
    for (const [name, inner] of Object.entries(properties))
      option(inner, path === '' ? name : `${path}.${name}`)
    if (typeof additionalProperties === 'object') option(additionalProperties, `${path}.<name>`)
  }

  function option(node: Node, path: string): void {
    paths.add(path)
    walk(node, path)
  }
}

/** Options without an entry in the reference, or with an entry that has a type and no description. */
function undocumentedIn(schema: z.ZodType, text: string): string[] {
  const entries = referenceEntries(text)
  return [...optionPaths(schema)].filter((path) => {
    const found = entries.get(plain(path)) ?? []
    return found.length === 0 || found.some((lines) => lines.length < 2)
  })
}

describe('the reference', () => {
  const text = referenceText(configSchema)
  const entries = referenceEntries(text)
  const entry = (path: string) => (entries.get(plain(path)) ?? []).flat().join('\n')

  test('shows type, default and description of an option', () => {
    expect(entry('delivery.max_in_flight')).toMatch(/whole number, 1 to 64 · default `4`\nBatches .*\./)
    expect(entry('delivery.timeout')).toContain('duration · default `30s`')
    expect(entry('spool.max_bytes')).toContain('size · default `20GiB`')
    expect(entry('delivery.base_url')).toContain('**required**')
    expect(entry('ingest.broker.listeners[].url')).not.toBe('')
    expect(entry('delivery.errors.<name>')).not.toBe('')
    expect(entry('delivery.credentials.secret_access_key')).toContain('secret')
  })

  test('has an entry with a description for every option', () => {
    expect(optionPaths(configSchema).size).toBeGreaterThan(250)
    expect(undocumentedIn(configSchema, text)).toEqual([])
  })

  test('has a JSON Schema for editors', () => {
    const schema = JSON.parse(schemaText(configSchema)) as Record<string, unknown>
    expect(schema).toMatchObject({
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      type: 'object',
      additionalProperties: false,
      required: expect.arrayContaining(['sources', 'delivery']),
    })
  })
})

describe('the suggestion for a misspelt word', () => {
  const known = ['topic', 'max_bytes', 'min_free_bytes', 'max_in_flight', 'url', 'users']
  test.each([
    ['topics', 'topic'],
    ['tpoic', 'topic'],
    ['Topic', 'topic'],
    ['max_byte', 'max_bytes'],
    ['maxbytes', 'max_bytes'],
    ['max_inflight', 'max_in_flight'],
    ['free_bytes', 'min_free_bytes'],
    ['user', 'users'],
    ['colour', undefined],
    ['x'.repeat(10_000), undefined],
    ['', undefined],
  ])('%.20s: %s', (word, meant) => {
    expect(nearest(word, known)).toBe(meant)
  })

  test.each<[string, readonly string[], string | undefined]>([
    ['unix', timeFormats, 's'],
    ['epoch_ms', timeFormats, 'ms'],
    ['ISO-8601', timeFormats, 'iso'],
    ['DD.MM.YYYY', timeFormats, 'dmy'],
    ['yymmdd', timeFormats, 'ymd'],
    ['kph', Object.keys(speedUnits), 'km/h'],
    ['m/sec', Object.keys(speedUnits), 'm/s'],
    ['kn', Object.keys(speedUnits), 'knots'],
    ['metres', Object.keys(signalUnits), 'm'],
    ['hours', Object.keys(signalUnits), 'h'],
    ['seconds', Object.keys(signalUnits), 's'],
    ['degrees', Object.keys(angleUnits), 'deg'],
    ['xml', timeFormats, undefined],
  ])('%s is the usual name of another word', (word, words, meant) => {
    expect(nearest(word, words)).toBe(meant)
  })
})
