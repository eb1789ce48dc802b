// Numbers, names, times and positions as devices write them: the service gets the value that was written, or none.
// What is omitted is counted, and a record that is not sent is kept with its reason.

import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { messageText, resultsOf, rowTime, type Row, type RowResult } from '../support/row-pipeline.ts'

type Cases = {
  numbers: [text: string, sent?: string | null][]
  digits: [json: string, card: string | null][]
  ids: [json: string, device: string][]
  times: [format: string, json: string, sent: string][]
  positions: [unit: string, lat: unknown, lon: unknown, sent: string][]
}
const cases = parse(
  await readFile(join(import.meta.dirname, 'values-as-written.cases.yaml'), 'utf8'),
) as Cases
const { numbers, digits, ids, positions } = cases

/** Each entry of a table with what `of` finds in the result of its row. */
async function foundIn<Given extends readonly unknown[]>(
  table: readonly Given[],
  row: (given: Given, index: number) => Row,
  of: (result: RowResult) => unknown,
): Promise<(readonly [given: Given, found: unknown])[]> {
  const results = await resultsOf(Object.fromEntries(table.map((given, index) => [index, row(given, index)])))
  return table.map((given, index) => [given, of(results[index]!)])
}

/** The same with what is expected. */
const expectedOf = <Given>(table: readonly Given[], of: (given: Given) => unknown) =>
  table.map((given) => [given, of(given)])

test('a number that a device writes as a text', async () => {
  const map = {
    signals: [{ type: 'X', path: 'x' }],
    fields: { n: { path: 'x', type: 'number' }, e: { expr: 'number(x)', type: 'number' } },
  }
  const found = await foundIn(
    numbers,
    ([x]) => ({ map, messages: [{ x }] }),
    ({ sent: [payload], omitted }) => [payload?.signals?.[0]?.value, payload?.['n'], payload?.['e'], omitted],
  )
  expect(found).toEqual(
    expectedOf(numbers, ([, sent]) => {
      if (typeof sent === 'string') return [sent, Number(sent), Number(sent), []]
      const counted = ['X: not a number', 'e: not a number', 'n: not a number']
      return [undefined, undefined, undefined, sent === null ? counted : []]
    }),
  )
})

test('a number with grouped digits is read by an expression', async () => {
  const signals = [{ type: 'X', expr: 'number(x.replace("\u00A0", "").replace(",", "."))', unit: 'km' }]
  const { x } = await resultsOf({ x: { map: { signals }, messages: [{ x: '48\u00A0212,5' }] } })
  expect(x?.sent[0]?.signals?.[0]?.value).toBe('48212.5')
})

test('the digits of a text, also of a whole number beyond 2^53', async () => {
  const map = { fields: { card: { path: 'card', type: 'text' }, again: { expr: 'card', type: 'text' } } }
  const found = await foundIn(
    digits,
    ([json]) => ({ map, messages: [messageText(`"card":${json}`)] }),
    ({ sent: [payload], omitted }) => [payload?.['card'], payload?.['again'], omitted],
  )
  expect(found).toEqual(
    expectedOf(digits, ([, card]) =>
      card === null ? [undefined, undefined, ['again: not exact', 'card: not exact']] : [card, card, []],
    ),
  )
})

test('a number in a text is compared as a number by `absent` and by conditions', async () => {
  const signals = [{ type: 'X', path: 'x', absent: [-1], when: 'limit > 5' }]
  const row = (x: string, limit: string): Row => ({ map: { signals }, messages: [{ x, limit }] })
  const results = await resultsOf({
    a: row(' -1 ', ' +9 '),
    b: row('-1.0', '9'),
    c: row('\u22121', '9'),
    d: row(' 3 ', ' +9 '),
    e: row('3', ' .5'),
  })
  const values = Object.values(results).map(({ sent }) => sent[0]?.signals?.[0]?.value)
  expect(values).toEqual([undefined, undefined, undefined, '3', undefined])
})

test('digits make no JSON of what is none', async () => {
  const texts = [
    '{1234567890123456789:1}',
    '[01234567890123456789]',
    '[+1234567890123456789]',
    '[--1234567890123456789]',
    '["a"1234567890123456789]',
    '["1234567890123456789',
  ]
  const rows = Object.fromEntries(texts.map((text) => [text, { messages: [text] }]))
  const results = await resultsOf(rows)
  expect(texts.map((text) => results[text]?.refused)).toEqual(texts.map(() => ['NOT_JSON']))
})

test('a number beyond 2^53 is not sent rounded, and the digits of collected values stay', async () => {
  const message = messageText('"x":1234567890123456789')
  const { number, collected } = await resultsOf({
    number: {
      map: { signals: [{ type: 'X', path: 'x' }], fields: { n: { path: 'x', type: 'number' } } },
      messages: [message],
    },
    collected: {
      source: {
        coalesce: {
          name: { path: 'name' },
          time: { path: 'ts', format: 'ms' },
          complete: ['lat', 'lon', 'card'],
        },
      },
      map: { time: undefined, fields: { card: { path: 'card', type: 'text' } } },
      messages: ['"lat","value":48', '"lon","value":9', '"card","value":1234567890123456789'].map(
        (rest) => `{"ts":${rowTime},"name":${rest}}`,
      ),
    },
  })
  expect(number?.sent.map(({ signals, n }) => [signals, n])).toEqual([[undefined, undefined]])
  expect(number?.omitted).toEqual(['X: not exact', 'n: not exact'])
  expect(collected?.sent.map(({ card }) => card)).toEqual(['1234567890123456789'])
})

test('a number of more than 17 digits is sent as the nearest double, whatever reads it', async () => {
  const longs = [
    '0.10000000000000000555',
    '1.56789012345678901234',
    '2.2250738585072011e-1',
    '9.00719925474099251',
  ]
  const map = {
    signals: [{ type: 'X', path: 'x' }],
    fields: { n: { path: 'x', type: 'number' }, e: { expr: 'x', type: 'number' } },
  }
  const found = await foundIn(
    longs.map((json) => [json] as const),
    ([json]) => ({ map: { ...map, latitude: { path: 'x' } }, messages: [messageText(`"x":${json}`)] }),
    ({ sent: [payload] }) => [
      payload?.gps?.['latitude'],
      payload?.['n'],
      payload?.['e'],
      Number(payload?.signals?.[0]?.value),
    ],
  )
  expect(found).toEqual(longs.map((json) => [[json], Array<number>(4).fill(Number(json))]))
})

test('the name of a device', async () => {
  const source = { device: { path: 'id' } }
  // At times of their own: two names of one device at one time are one payload.
  const row = ([json]: (typeof ids)[number], index: number): Row => ({
    source,
    messages: [messageText(`"id":${json}`, rowTime + index)],
  })
  const found = await foundIn(ids, row, ({ sent, refused }) => [
    ...sent.map(({ device }) => device),
    ...refused,
  ])
  expect(found).toEqual(expectedOf(ids, ([, device]) => [device]))
})

test('the name of a device from the topic, and from the next rule of a list', async () => {
  const level = (name: string): Row => ({ source: { device: '{level}' }, level: name, messages: [{}] })
  const source = { device: [{ path: 'id' }, { path: 'imei' }, { expr: 'string(number)' }] }
  const results = await resultsOf({
    null: level('null'),
    undefined: level('undefined'),
    blank: level(' '),
    zeros: level('000000000000000'),
    named: level('van 7'),
    padded: level(' van 8\u00a0'),
    second: { source, messages: [{ id: 'null', imei: '867459' }] },
    // An expression says that the number is meant with its zeros.
    third: { source, messages: [{ id: ' ', imei: '', number: 867_459_000_000_000 }] },
  })
  const names = Object.values(results).map(({ sent, refused }) => sent[0]?.device ?? refused[0])
  expect(names).toEqual([
    ...Array<string>(4).fill('NO_DEVICE'),
    'van 7',
    'van 8',
    '867459',
    '867459000000000',
  ])
})

/** Yesterday, 14:07:53.250 UTC. */
const moment = Math.floor(rowTime / 86_400_000 - 1) * 86_400_000 + ((14 * 60 + 7) * 60 + 53) * 1000 + 250
const iso = new Date(moment).toISOString()
const second = Math.floor(moment / 1000)
const [day = '', clock = ''] = iso.slice(0, 23).split('T')
const [year = '', month = '', date = ''] = day.split('-')
const word = new Date(moment).toLocaleDateString('en-US', { month: 'short', timeZone: 'UTC' })
const midnight = Date.parse(`${day}T00:07:53Z`)

const placeholders: Readonly<Record<string, unknown>> = {
  moment,
  second,
  iso,
  day,
  clock,
  year,
  month,
  date,
  word,
  lowerWord: word.toLowerCase(),
  seconds: moment / 1000,
  trillions: moment / 1e12,
  roundedTrillions: (moment / 1e12).toFixed(5),
}
const instants: Readonly<Record<string, number>> = {
  moment,
  second: second * 1000,
  midnight,
  noon: midnight + 43_200_000,
  'an hour before': moment - 3_600_000,
  'two hours before': moment - 7_200_000,
}
const times = cases.times.map(
  ([format, json, sent]) =>
    [format, json.replaceAll(/\{(\w+)\}/g, (_, name: string) => String(placeholders[name])), sent] as const,
)

test('the time of a message', async () => {
  const zoned = new Set(['words', 'dmy', 'mdy', 'ymd'])
  const row = ([format, json]: (typeof times)[number]): Row => ({
    map: { time: { path: 't', format, zone: zoned.has(format) ? 'utc' : undefined } },
    messages: [`{"t":${json},"lat":48,"lon":9}`],
  })
  const found = await foundIn(times, row, ({ sent, refused }) => [...sent.map(({ at }) => at), ...refused])
  expect(found).toEqual(expectedOf(times, ([, , sent]) => [instants[sent] ?? sent]))
})

test('a position, and what receivers without a fix send for one', async () => {
  const row = ([unit, lat, lon]: (typeof positions)[number]): Row => ({
    map: {
      latitude: { path: 'lat', unit },
      longitude: { path: 'lon', unit },
      signals: [{ type: 'X', path: 'x' }],
    },
    // The second message has something else to send.
    messages: [
      { lat, lon },
      { lat, lon, x: 5 },
    ],
  })
  const found = await foundIn(positions, row, ({ sent, refused }) => [
    ...refused,
    ...sent.map(({ gps, signals }) => [
      gps && `${String(gps['latitude'])}, ${String(gps['longitude'])}`,
      signals?.length,
    ]),
  ])
  expect(found).toEqual(
    expectedOf(positions, ([, , , sent]) => {
      if (sent.includes(','))
        return [
          [sent, undefined],
          [sent, 1],
        ]
      return [sent === 'none' ? 'no fix' : sent, [undefined, 1]]
    }),
  )
})

test('a longitude of 0 to 360 is turned only where the mapping says so', async () => {
  const map = { longitude: { expr: 'lon > 180 ? lon - 360 : lon' } }
  const { turned } = await resultsOf({
    turned: { map, messages: [{ lon: 190 }, { lon: 180 }, { lon: 12.5 }] },
  })
  expect(turned?.sent.map(({ gps }) => gps?.['longitude'])).toEqual([-170, 180, 12.5])
})
