// Options of version 0.1.0: they exist, or the error says what to write instead. cases/parts.cases.yaml has such errors.
// options-of-0.1.0.txt has a line for each of its options: the path, and its words if it takes only those.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { configSchema } from '../../src/config/config.ts'
import { referenceText } from '../../src/config/config-reference.ts'
import { insteadOfWord } from '../../src/mapping/mapping.ts'
import { insteadOf, newKeyOf } from '../../src/config/renamed-keys.ts'
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
    // Words of fields: each has its own expression.
    const field = { path: 'a', decimal_comma: true, default: 1 }
    const words = gone.filter((path) => insteadOfWord(keysOf(path), field) !== undefined)
    const names = new Set(words.map((path) => keysOf(path).at(-1)))
    expect([...names].map(String).toSorted((a, b) => a.localeCompare(b))).toEqual([
      'decimal_comma',
      'default',
      'speed_units',
    ])
    const others = gone.filter((path) => !replaced.includes(path) && !words.includes(path))
    expect(others).toEqual([
      'sources[].jsonata',
      'spool.deferred_max_bytes',
      'delivery.providers[].max_response_bytes',
      'delivery.max_response_bytes',
    ])
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
