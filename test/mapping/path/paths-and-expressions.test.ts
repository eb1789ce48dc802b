// The table of docs/mapping.md: each path and the expression beside it read the same value.

import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { messageOf, openMapperOf, payloadIn, truckSource } from '../../support/mapping-world.ts'

const record = {
  first: { lat: 'the first' },
  ts: 1_763_690_000_000,
  lat: 48,
  lon: 9,
  gps: { lat: 'a' },
  list: ['b', 'c'],
  'position.latitude': 'd',
  'gps-fix': 'e',
  analogues: [
    { id: 4, value: 'no' },
    { id: 5, value: 'f' },
  ],
  latlng: 'g,h',
}
const message = { imei: 'i', key: 'j', outer: [{ key: 'k', inner: [record] }] }

async function rowsOfTable(): Promise<[path: string, expr: string][]> {
  const docs = await readFile(new URL('../../../docs/mapping.md', import.meta.url), 'utf8')
  const [, table = ''] = docs.split('| in a path | in an expression |\n|---|---|\n')
  const rows = table.slice(0, table.indexOf('\n\n')).split('\n')
  return rows.flatMap((row) => {
    const [paths = [], exprs = []] = row
      .split('|')
      .slice(1, 3)
      .map((cell) => [...cell.matchAll(/`([^`]+)`/g)].map(([, code = '']) => code))
    expect(paths.length === exprs.length || paths.length === 0).toBe(true)
    return paths.map((path, index): [string, string] => [path, exprs[index] ?? ''])
  })
}

test('each path and the expression beside it find the same', async () => {
  // A list or an object is no value of a field.
  const rows = (await rowsOfTable()).map(([path, expr]): [string, string] =>
    path.endsWith('$entries()') ? [`${path}[0].key`, `${expr}[0].key`] : [path, expr],
  )
  const fields = rows.flatMap(([path, expr], index) => [
    // Of the message, where `each` has chosen a part of it.
    [`p${index}`, { path: path.replace(/^\$p/, '$.$p'), type: 'text' }],
    [`e${index}`, { expr, type: 'text' }],
  ])
  const source = truckSource({ fields: Object.fromEntries(fields) }, { each: ['outer', 'inner'] })
  const packet = { userProperties: { vin: 'l' }, properties: { contentType: 'm' } }
  const sent = JSON.parse(payloadIn(openMapperOf([source]).map(messageOf(message, packet))).json) as Record<
    string,
    unknown
  >
  const found = rows.map(([path, expr], index) => [path, sent[`p${index}`], expr, sent[`e${index}`]])
  expect(found).toEqual(
    rows.map(([path, expr], index) => [path, expect.any(String), expr, sent[`p${index}`]]),
  )
  expect(rows.length).toBeGreaterThan(10)
})
