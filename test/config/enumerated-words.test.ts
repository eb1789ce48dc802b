// Every word that the config enumerates is looked up in its schema, so that a new option is covered as well.

import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { configSchema, schemaText } from '../../src/config/config.ts'
import { readText } from '../../src/config/config-reader.ts'
import { alternatives, type Shape } from '../../src/config/schema-shape.ts'

type Place = { path: string; words: readonly string[]; write: (word: string) => unknown }

const root = JSON.parse(schemaText(configSchema)) as Shape

/** All enumerated words, with a function that writes a config with another word in the place. */
function placesIn(shape: Shape, path: string, write: Place['write'], depth = 0): Place[] {
  if (depth > 12) return []
  return alternatives(root, shape).flatMap((one) => {
    const words = (one.enum ?? [one.const]).filter((word) => typeof word === 'string')
    if (words.length > 0) return [{ path, words, write }]
    // What tells the branches of a union apart.
    const fixed = Object.entries(one.properties ?? {}).filter(([key]) => one.required?.includes(key) === true)
    const constants = Object.fromEntries(
      fixed.map(([key, { const: word, enum: list = [word] }]): [string, unknown] => [key, list[0]]),
    )
    const below = Object.entries(one.properties ?? {}).flatMap(([key, child]) =>
      placesIn(child, `${path}.${key}`, (word) => write({ ...constants, [key]: word } as never), depth + 1),
    )
    const others =
      typeof one.additionalProperties === 'object'
        ? placesIn(one.additionalProperties, `${path}.x`, (word) => write({ x: word } as never), depth + 1)
        : []
    const items = one.items
      ? placesIn(one.items, `${path}[0]`, (word) => write([word] as never), depth + 1)
      : []
    return [...below, ...others, ...items]
  })
}

const places = placesIn(root, '', (word) => word).filter(({ words }) => words.length > 0)

async function problemsWith(config: unknown): Promise<string> {
  const deps = { env: {}, readText: (path: string) => readFile(path, 'utf8') }
  const result = await readText(JSON.stringify(config), configSchema, deps)
  return result.kind === 'problems' ? result.problems.map(({ message }) => message).join('\n') : ''
}

test('all places are found', () => {
  const paths = places.map(({ path }) => path)
  expect(paths.length).toBeGreaterThan(80)
  for (const path of ['.log.level', '.sources[0].map.time.format', '.sources[0].map.signals[0].unit'])
    expect(paths).toContain(path)
})

test.each(places.map((place) => [place.path, place.words.join(' '), place] as const))(
  '%s: a misspelt one of %s is refused with the word that is meant',
  async (_, __, { words, write }) => {
    // The first and the last ones: each needs the whole config to be read.
    const long = words.filter(({ length }) => length > 3)
    for (const word of new Set([...long.slice(0, 2), ...long.slice(-1)])) {
      const misspelt = `${word.slice(0, -2)}${word.at(-1) ?? ''}${word.at(-2) ?? ''}x`
      for (const wrong of [word.slice(0, -1), word.toUpperCase(), misspelt.slice(0, -1)]) {
        if (words.includes(wrong)) continue
        const problems = await problemsWith(write(wrong))
        const meant = [...problems.matchAll(/found "([^"]*)"\. Did you mean "([^"]*)"/g)]
        const own = meant.find(([, found]) => found === wrong)
        expect(words, `${wrong}: ${problems}`).toContain(own?.[2])
      }
    }
  },
)
