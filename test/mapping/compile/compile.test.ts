// What is wrong with sources. The rows are in compile.cases.yaml.

import { describe, expect, test } from 'vitest'
import { compileSources } from '../../../src/mapping/compile/compile.ts'
import { sourcesSchema } from '../../../src/mapping/config.ts'
import { rowsBeside } from '../../support/case-rows.ts'
import { configOf, truckSource } from '../../support/mapping-world.ts'

type Options = Record<string, unknown>
type Source = { map?: Options; source?: Options }
type Row = Source & { name: string; problems: Record<string, string> }
const { unknown_words, placeholders, ...tables } = rowsBeside(import.meta.filename) as {
  unknown_words: Source[]
  placeholders: object[]
} & Record<string, Row[]>

function problemsOf(sources: readonly unknown[], world = {}): [string, string][] {
  return compileSources(configOf(sources, world)).problems.map(({ path, message }) => [
    path.join('.'),
    message,
  ])
}

function sourceOf({ map = {}, source }: Source) {
  const { map: all, ...rest } = truckSource(map, source)
  return { ...rest, map: Object.fromEntries(Object.entries(all).filter(([, field]) => field !== null)) }
}

describe.each(Object.entries(tables))('%s of a source', (_table, rows) => {
  test.each(rows)('$name', ({ problems, ...row }) => {
    const expected = Object.entries(problems).map(([path, words]) => [
      `sources.0.${path}`,
      expect.stringContaining(words),
    ])
    expect(problemsOf([sourceOf(row)])).toEqual(expected)
  })
})

test.each(unknown_words)('an unknown word is refused by the schema: %j', (row) => {
  expect(sourcesSchema.safeParse([sourceOf(row)]).success).toBe(false)
})

test.each(placeholders)('a placeholder that would be sent as it is written is a problem: %j', (signal) => {
  const { success, error } = sourcesSchema.safeParse([truckSource({ signals: [signal] })])
  expect(success).toBe(false)
  expect(error?.issues[0]?.message).toMatch(/^is sent as it is written/)
})

test('sources have all their problems reported at once, each with its position', () => {
  const sources = [
    truckSource({ speed: { path: 'gps..speed' }, heading: { path: 'a b' } }, { when: 'lat = 1', each: '[' }),
    truckSource({}, { topic: 'telemetry/v1/{truck}', device: '{truk}', when: 'lat = 1', each: '[' }),
    truckSource({}, { name: 'third', topic: 'a/#/b' }),
  ]
  expect(problemsOf(sources, { devices: { unknown: 'quarantine' } })).toEqual([
    ['sources.0.each', expect.stringContaining('needs a number such as [0]')],
    ['sources.0.when', expect.stringContaining('values are compared with ==')],
    ['sources.0.map.speed', 'has an empty key at position 5 of "gps..speed".'],
    ['sources.0.map.heading', expect.stringContaining('belongs in a quoted key')],
    ['sources.1.name', 'must be unique: "trucks" is the name of another source too.'],
    [
      'sources.1.topic',
      'is never reached: the source "trucks" above takes the same messages, by the same `when`.',
    ],
    ['sources.1.each', expect.stringContaining('needs a number such as [0]')],
    ['sources.1.when', expect.stringContaining('values are compared with ==')],
    ['sources.1.device', expect.stringContaining('names {truk}, which is neither a capture')],
    ['sources.2.topic', 'may have "#" only as its last level.'],
  ])
})
