// An option that would do nothing, or not what it says, is a problem of the config: the gateway does not start with it,
// and names the option. The same option where it has its effect is none.

import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { resultsOf, type Row } from '../support/row-pipeline.ts'

type Given = Pick<Row, 'map' | 'source'> & { sections?: Record<string, unknown> }
type Refused = Given & { what: string; problem: string }

const { refused, taken } = parse(
  await readFile(join(import.meta.dirname, 'options-without-effect.cases.yaml'), 'utf8'),
) as { refused: Refused[]; taken: Given[] }

describe('the gateway refuses', () => {
  test.each(refused)('$what', async ({ map = {}, source = {}, sections, problem }) => {
    const start = resultsOf({ row: { map, source, messages: [] } }, sections)
    await expect(start).rejects.toThrow(new RegExp(problem))
  })

  test('a field that is an object in another source of its group', async () => {
    const merge = { group: 'assets' }
    const map = (name: string) => ({ fields: { [name]: { path: 'x', type: 'text' } } })
    await expect(
      resultsOf({
        phone: { source: { merge }, map: map('trip'), messages: [] },
        box: { source: { merge }, map: map('trip.load'), messages: [] },
      }),
    ).rejects.toThrow(/fields\.trip is a value, and an object in the source "row-1" of the same group/)
  })
})

test('the same options where they have an effect are taken', async () => {
  const rows = Object.fromEntries(
    taken.map(({ map = {}, source = {} }, index) => [`row ${index}`, { map, source, messages: [] }]),
  )
  const profiles = {
    one: { hide: ['speed'] },
    two: { round: 2 },
    three: { hours: '06:00-18:00', zone: 'Europe/Paris', outside: 'coarse' },
  }
  expect(Object.keys(await resultsOf(rows, { privacy: { profiles } }))).toHaveLength(taken.length)
})

test('`when` beside `coalesce` is checked with the collected values', async () => {
  const values = (sat: number) =>
    Object.entries({ lat: 48, lon: 9, sat }).map(([name, value]) => ({
      name,
      value,
      lat: undefined,
      lon: undefined,
    }))
  const row = (sat: number): Row => ({
    source: {
      coalesce: {
        name: { path: 'name' },
        time: { path: 'ts', format: 'ms' },
        complete: ['lat', 'lon', 'sat'],
      },
      when: 'sat >= 3',
    },
    map: { time: undefined },
    messages: values(sat),
  })
  const { good, bad } = await resultsOf({ good: row(7), bad: row(2) })
  expect(good?.sent.map(({ gps }) => gps)).toEqual([{ latitude: 48, longitude: 9 }])
  expect(bad?.sent).toEqual([])
  expect(bad?.refused).toEqual(['when: sat >= 3'])
})
