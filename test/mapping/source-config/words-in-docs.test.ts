// docs/mapping.md names each option of a source, and each word that one takes: one page holds all words.

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

/** The words of all options that take one of some. */
function valuesIn(schema: unknown): string[] {
  if (typeof schema !== 'object' || schema === null) return []
  const { enum: own = [] } = schema as { enum?: unknown }
  const words = [own].flat().filter((word) => typeof word === 'string')
  return [...words, ...Object.values(schema).flatMap(valuesIn)]
}

const page = read('docs/mapping.md').replace(/^```.*?^```/gms, '')
const { properties } = JSON.parse(read('config/gateway.schema.json')) as { properties: { sources: object } }

test('the page of the mapping has each word of a source', () => {
  const names = [...namesIn(properties.sources)]
  const words = new Set([...page.matchAll(/`([a-z_0-9]+)/g)].map(([, word]) => word))
  expect(names.length).toBeGreaterThan(100)
  expect(names.filter((name) => !words.has(name))).toEqual([])
})

test('the page of the mapping has each word that an option takes', () => {
  const values = new Set(valuesIn(properties.sources))
  const words = new Set(
    [...page.matchAll(/`([^`]+)`/g)].flatMap(([, text = '']) => text.split(/[\s,:()[\]{}"]+/)),
  )
  expect(values.size).toBeGreaterThan(80)
  expect([...values].filter((value) => !words.has(value))).toEqual([])
})
