// Numbers, names, times and positions as devices write them: the service gets the value that was written, or none.
// What is omitted is counted, and a record that is not sent is kept with its reason.

import { expect, test } from 'vitest'
import { messageText, resultsOf, rowTime, type Row, type RowResult } from '../support/row-pipeline.ts'

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

/** The text in the message, and the number that is sent; null where it is omitted and counted. */
const numbers: [text: string, sent: string | null | undefined][] = [
  [' 12.5', '12.5'],
  ['12.5 ', '12.5'],
  ['12.5\r\n', '12.5'],
  ['\t12.5', '12.5'],
  ['\u00A012.5\u202F', '12.5'],
  ['\uFEFF12.5', '12.5'],
  ['+12.5', '12.5'],
  [' +7', '7'],
  ['.5', '0.5'],
  ['-.5', '-0.5'],
  ['12.', '12'],
  ['-12.', '-12'],
  ['00012.5', '12.5'],
  ['1.5e3', '1500'],
  ['1E5', '100000'],
  ['+.5E+1', '5'],
  ['\u221212.5', '-12.5'],
  ['\u2212.5', '-0.5'],
  // Grouped digits may be two numbers, and a comma a point or a group.
  ['1 234', null],
  ['1\u00A0234', null],
  ['1\u202F234.5', null],
  ['1,234.5', null],
  ['1.234,5', null],
  ['1,5', null],
  ["1'234", null],
  ['1_000', null],
  ['\u201312', null],
  ['++1', null],
  ['+-1', null],
  ['.', null],
  ['e5', null],
  ['1e', null],
  ['.e1', null],
  ['0x10', null],
  ['12.5 km', null],
  ['12.5\0', null],
  ['\u0661\u0662', null],
  ['\uFF11\uFF12', null],
  ['1e400', null],
  ['Infinity', null],
  ['NaN', null],
  ['n/a', null],
  // No value, and no fault.
  ['', undefined],
  [' ', undefined],
  ['\u00A0\t', undefined],
  ['\0\0', undefined],
  ['\u200B', undefined],
]

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

/** A value of a field of text, as JSON, and what is sent; null where it is omitted and counted. */
const digits: [json: string, card: string | null][] = [
  ['9007199254740991', '9007199254740991'],
  ['9007199254740993', '9007199254740993'],
  ['1234567890123456789', '1234567890123456789'],
  ['-9007199254740993', '-9007199254740993'],
  ['18446744073709551616', '18446744073709551616'],
  [' 1234567890123456789 ', '1234567890123456789'],
  ['\n1234567890123456789', '1234567890123456789'],
  ['"1234567890123456789"', '1234567890123456789'],
  ['"a 1234567890123456789,"', 'a 1234567890123456789,'],
  ['"\\\\\\"1234567890123456789"', '\\"1234567890123456789'],
  ['"0042"', '0042'],
  ['12.5', '12.5'],
  ['1e3', '1000'],
  ['12345678901234567e2', null],
  ['12345678901234567.0', null],
  ['1e21', null],
]

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

/** The id as JSON, and the device or the reason of the dead letter. */
const ids: [json: string, device: string][] = [
  ['"truck-7"', 'truck-7'],
  ['" truck-8"', 'truck-8'],
  ['"truck-9\\t\\r\\n"', 'truck-9'],
  ['"\\u00a0truck 10\\u0000\\u0000"', 'truck 10'],
  ['"\\ufefftruck-11\\u200b"', 'truck-11'],
  ['" 864636060000002 "', '864636060000002'],
  ['" 8.67459E+14 "', 'BAD_DEVICE'],
  ['864636060000001', '864636060000001'],
  ['8901234567890123456', '8901234567890123456'],
  ['9007199254740992', '9007199254740992'],
  ['7.0', '7'],
  ['0', '0'],
  ['"0"', '0'],
  ['"000123"', '000123'],
  ['"8E14"', '8E14'],
  ['8.64636060000001e14', '864636060000001'],
  ['1.5', 'BAD_DEVICE'],
  ['1e21', 'BAD_DEVICE'],
  ['1e400', 'BAD_DEVICE'],
  ['true', 'BAD_DEVICE'],
  ['{}', 'BAD_DEVICE'],
  ['["a"]', 'BAD_DEVICE'],
  ['[9007199254740993]', 'BAD_DEVICE'],
  // Six digits of fifteen: each vehicle of a fleet would have this name.
  ['8.67459E+14', 'BAD_DEVICE'],
  ['867459000000000', 'BAD_DEVICE'],
  ['"8.67459E+14"', 'BAD_DEVICE'],
  ['"8,67459E+14"', 'BAD_DEVICE'],
  ['"000000000000000"', 'NO_DEVICE'],
  ['null', 'NO_DEVICE'],
  ['NaN', 'NO_DEVICE'],
  ['""', 'NO_DEVICE'],
  ['" "', 'NO_DEVICE'],
  ['"\\t"', 'NO_DEVICE'],
  ['"\\u0000\\u0000"', 'NO_DEVICE'],
  ['"\\u200b"', 'NO_DEVICE'],
  ['"null"', 'NO_DEVICE'],
  ['"NULL"', 'NO_DEVICE'],
  ['"(null)"', 'NO_DEVICE'],
  ['"<null>"', 'NO_DEVICE'],
  ['"nil"', 'NO_DEVICE'],
  ['"None"', 'NO_DEVICE'],
  ['"undefined"', 'NO_DEVICE'],
  ['"NaN"', 'NO_DEVICE'],
  ['"N/A"', 'NO_DEVICE'],
  ['"unknown"', 'NO_DEVICE'],
  ['"[object Object]"', 'NO_DEVICE'],
  ['" null "', 'NO_DEVICE'],
  ['"NONE\\t"', 'NO_DEVICE'],
  ['"null\\u0000"', 'NO_DEVICE'],
  ['"-"', 'NO_DEVICE'],
  ['"????"', 'NO_DEVICE'],
  ['"#N/A"', 'NO_DEVICE'],
  ['"-1"', 'NO_DEVICE'],
  ['"FFFFFFFFFFFFFFF"', 'NO_DEVICE'],
  ['"00:00:00:00:00:00"', 'NO_DEVICE'],
  ['"8.6746E14"', 'BAD_DEVICE'],
  ['"8.67459E+0014"', 'BAD_DEVICE'],
]

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
const wholeSecond = second * 1000
const [day = '', clock = ''] = iso.slice(0, 23).split('T')
const [year = '', month = '', date = ''] = day.split('-')
const word = new Date(moment).toLocaleDateString('en-US', { month: 'short', timeZone: 'UTC' })
const midnight = Date.parse(`${day}T00:07:53Z`)

/** The format, the time as JSON, and what is sent, or the reason of what is kept. */
const times: [format: string, json: string, sent: number | string][] = [
  ['iso', `"${iso} "`, moment],
  ['iso', `" ${iso}\\r\\n"`, moment],
  ['iso', `"\\u00a0${iso}"`, moment],
  ['iso', `"${day}\\u202f${clock}Z"`, moment],
  ['iso', `"${day} ${clock} UTC"`, moment],
  ['iso', `"${day} ${clock}GMT"`, moment],
  ['iso', `"${day} ${clock} Z"`, moment],
  ['iso', `"${day} ${clock} +0000"`, moment],
  ['iso', `"${day}T${clock} +02:00"`, moment - 7_200_000],
  ['iso', `"${day}T${clock}  +02:00"`, 'BAD_TIME'],
  ['iso', `"${day}T${clock} UTC+2"`, 'BAD_TIME'],
  ['iso', `"${day}T${clock}"`, 'BAD_TIME'],
  ['iso', `"${iso}\\u0000"`, 'BAD_TIME'],
  ['iso', `"${day}"`, 'BAD_TIME'],
  ['iso', `${moment}`, 'BAD_TIME'],
  ['s', `" ${second}\\r\\n"`, wholeSecond],
  ['s', `"${second}.250"`, moment],
  ['s', `"+${second}."`, wholeSecond],
  ['s', `"${second},250"`, 'BAD_TIME'],
  ['s', `"${second}s"`, 'BAD_TIME'],
  ['s', `-${second}`, 'BAD_TIME'],
  ['s', `${moment}`, 'BAD_TIME'],
  ['s', `[${second}]`, 'BAD_TIME'],
  ['s', '" "', 'NO_TIME'],
  ['s', 'null', 'NO_TIME'],
  ['ms', `"${moment}"`, moment],
  ['ms', `"${moment}.0"`, moment],
  ['ms', `"${moment / 1e12}e12"`, moment],
  ['ms', `"${(moment / 1e12).toFixed(5)}E+12"`, 'BAD_TIME'],
  ['ms', `"${second}"`, 'BAD_TIME'],
  ['us', `${moment}999`, moment],
  ['us', `"${moment}999 "`, moment],
  ['ns', `${moment}999999`, moment],
  ['ns', `"${moment}000000"`, moment],
  ['ns', `" +${moment}123456"`, moment],
  ['ns', `"${moment}123456.0"`, moment],
  ['ns', `${moment / 1e12}e18`, moment],
  ['auto', `${moment}999999`, moment],
  ['auto', `${moment}999`, moment],
  ['auto', `"${moment} "`, moment],
  ['auto', `"+${moment / 1000}"`, moment],
  ['auto', '1000000000000000000000', 'BAD_TIME'],
  ['auto', '0', 'UNSET_CLOCK'],
  ['words', `"${word.toLowerCase()}/${date}/${year} ${clock}"`, moment],
  ['words', `"${date}/${word}/${year} 02:07:53.250 PM"`, moment],
  ['words', `"${word} ${date}, ${year}, 2:07:53.250\\u202fPM"`, moment],
  ['words', `"${word} ${date}, ${year}, 2:07:53.250 pm GMT+0100"`, moment - 3_600_000],
  ['words', `"${word} ${date} ${year} 12:07:53 AM"`, midnight],
  ['words', `"${word} ${date} ${year} 12:07:53 PM"`, midnight + 43_200_000],
  ['words', `"${word} ${date} ${year} 14:00:00 PM"`, 'BAD_TIME'],
  ['words', `"${word} ${date} ${year} 0:07:53 AM"`, 'BAD_TIME'],
  ['words', `"${word} ${date} ${year} PM 2:00:00"`, 'BAD_TIME'],
  ['words', `"${word} ${date} ${year} 2:00:00 PM PM"`, 'BAD_TIME'],
  ['mdy', `" ${month}/${date}/${year} 2:07:53.250 PM "`, moment],
  ['mdy', `"${month}/${date}/${year}\\u00a02:07:53.250\\u202fPM"`, moment],
  ['mdy', `"${month}/${date}/${year}, 12:07:53 am"`, midnight],
  ['ymd', `"${day} 02:07:53.250 PM"`, moment],
  ['dmy', `"${date}.${month}.${year} ${clock}"`, moment],
  ['compact', `"${year}${month}${date}140753\\n"`, wholeSecond],
]

test('the time of a message', async () => {
  const zoned = new Set(['words', 'dmy', 'mdy', 'ymd'])
  const row = ([format, json]: (typeof times)[number]): Row => ({
    map: { time: { path: 't', format, zone: zoned.has(format) ? 'utc' : undefined } },
    messages: [`{"t":${json},"lat":48,"lon":9}`],
  })
  const found = await foundIn(times, row, ({ sent, refused }) => [...sent.map(({ at }) => at), ...refused])
  expect(found).toEqual(expectedOf(times, ([, , sent]) => [sent]))
})

/** Options of both coordinates, then the position; it is sent, is none, or the reason of the dead letter. */
const positions: [unit: string, lat: unknown, lon: unknown, sent: string][] = [
  ['deg', 0, 0, 'none'],
  ['deg', 0.000_05, -0.000_05, 'none'],
  ['deg', 90, 180, 'none'],
  ['deg', -90, -180, 'none'],
  ['deg', 90, 12.5, 'none'],
  ['deg', '90', '180', 'none'],
  ['deg', -1, -1, 'none'],
  ['deg', ' -1 ', '-1.0', 'none'],
  ['deg', -1, 36.8, '-1, 36.8'],
  ['deg', -1.0001, -1, '-1.0001, -1'],
  ['deg', 1, 1, '1, 1'],
  ['deg', 0, 12.5, '0, 12.5'],
  ['deg', 48, 0, '48, 0'],
  ['deg', 89.9999, 12.5, '89.9999, 12.5'],
  ['deg', -89.99, 179, '-89.99, 179'],
  ['deg', 0, 180, '0, 180'],
  ['deg', 0, -180, '0, -180'],
  ['deg', 48, 180, '48, 180'],
  ['deg', 48, -180, '48, -180'],
  ['deg', 48, 180.000_01, 'OUT_OF_RANGE'],
  ['deg', 48, -180.000_01, 'OUT_OF_RANGE'],
  ['deg', 48, 190, 'OUT_OF_RANGE'],
  ['deg', 48, 359.9, 'OUT_OF_RANGE'],
  ['deg', 90.000_000_1, 5, 'OUT_OF_RANGE'],
  ['deg', 91, 181, 'OUT_OF_RANGE'],
  ['deg', 'NaN', 'NaN', 'BAD_VALUE'],
  ['1e-7deg', 900_000_000, 1_800_000_000, 'none'],
  ['1e-7deg', -1, -1, 'none'],
  ['1e-7deg', 2_147_483_647, 2_147_483_647, 'OUT_OF_RANGE'],
  ['0.01deg', -1, -1, 'none'],
  ['rad', -1, -1, 'none'],
  ['rad', 0.5, -1, '28.647889757, -57.295779513'],
  ['ddmm', -1, -1, 'none'],
  ['ddmm', 9000, 18_000, 'none'],
  ['ddmm', '9000.0000N', '18000.0000E', 'none'],
  ['ddmm', '0000.0000N', '00000.0000E', 'none'],
  ['ddmm', '8959.99', '17959.99', '89.999833333, 179.999833333'],
  ['dms', '90 00 00 N', '180 0 0 W', 'none'],
]

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
