// docs/mapping.md names each option of a source, so that one page holds all words.

import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

const root = new URL('../../../', import.meta.url)
const read = (path: string) => readFileSync(new URL(path, root), 'utf8')

/** The names of all options in a JSON Schema. */
function namesIn(schema: unknown, names = new Set<string>()): Set<string> {
  if (typeof schema !== 'object' || schema === null) return names
  const { properties = {} } = schema as { properties?: object }
  for (const name of Object.keys(properties)) names.add(name)
  for (const part of Object.values(schema)) namesIn(part, names)
  return names
}

test('the page of the mapping has each word of a source', () => {
  const { properties } = JSON.parse(read('config/gateway.schema.json')) as { properties: { sources: object } }
  const names = [...namesIn(properties.sources)]
  const words = new Set([...read('docs/mapping.md').matchAll(/`([a-z_0-9]+)/g)].map(([, word]) => word))
  expect(names.length).toBeGreaterThan(100)
  expect(names.filter((name) => !words.has(name))).toEqual([])
})
