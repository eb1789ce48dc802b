import { describe, expect, test } from 'vitest'
import { messageOf, openMapperOf, sentIn, truckSource, verdictOf } from '../../support/mapping-world.ts'

const good = '{"ts":1769611000000,"lat":48.8566,"lon":2.3522}'
const signals = [{ type: 'OBD_LIFETIME_ODOMETER', path: 'odo', unit: 'm' }]
const full = {
  speed: { path: 'speed', unit: 'm/s' },
  heading: { path: 'heading' },
  in_motion: { path: 'moving' },
  signals,
  fields: { driver: { path: 'driver', type: 'text' } },
}
const map = (bytes: string | Buffer, rest = {}) =>
  openMapperOf([truckSource(full, rest)]).map(
    messageOf(typeof bytes === 'string' ? Buffer.from(bytes) : bytes),
  )

describe('bytes that are not clean JSON', () => {
  test.each([
    ['a byte order mark', `\uFEFF${good}`],
    ['NULs behind the end', `${good}\0\0\0`],
    ['a mark, NULs and line ends together', `\uFEFF${good}\r\n\0\0\n`],
    ['blanks around it', `  \n\t${good} \r\n`],
    [
      'bare nan and inf for other values',
      good.replace('}', ',"speed":nan,"heading":-nan,"odo":inf,"x":[-Infinity]}'),
    ],
  ])('are forgiven: %s', (_, text) => {
    expect(sentIn(map(text)).gps).toEqual({ latitude: 48.8566, longitude: 2.3522 })
  })

  test.each(['', ' ', '\0', '\uFEFF', '\n\0 \t', '\uFEFF\0'])('%j is empty: ignored, no fault', (text) => {
    expect(map(text)).toEqual({ kind: 'ignored', source: 'trucks', reason: 'empty' })
  })

  test.each([
    ['hello', `Unexpected token 'h', "hello" is not valid JSON`],
    ['{"ts":1,}', 'position 8 (line 1 column 9)'],
    ['{"ts":1', 'position 7 (line 1 column 8)'],
    [`${good},${good}`, 'after JSON at position 47'],
    ["{'ts':1}", 'at position 1'],
    ['{"a":"\u0001"}', 'at position 6'],
    ['\0{"ts":1}', String.raw`Unexpected token '\u{0}'`],
    ['{"a":01}', 'at position 6'],
    ['NaNa', `Unexpected token 'N'`],
  ])('%j is NOT_JSON, with the place', (text, detail) => {
    expect(map(text)).toMatchObject({
      reason: 'NOT_JSON',
      detail: expect.stringContaining(detail),
      device: 'truck-7',
    })
  })

  test.each([
    [`${good}\n{"ts":1,}`, 'at position 8'],
    [`${good}\n{"ts":1`, 'at position 7'],
  ])('%j is a payload and a record that is NOT_JSON, with the place', (text, detail) => {
    expect(map(text)).toMatchObject({
      kind: 'payloads',
      rest: [{ reason: 'NOT_JSON', detail: expect.stringContaining(detail) }],
    })
  })

  test.each([
    [[0x7b, 0x22, 0xc3, 0xa9, 0xff, 0x22, 0x7d], 5],
    [[0x22, 0xc3, 0x28, 0x01], 2],
    [[0x22, 0xed, 0xa0, 0x80, 0x01], 2],
    [[0x22, 0xef, 0xbf, 0xbd, 0xf0, 0x9f, 0x01], 5],
  ])('%j is NOT_UTF8, with the byte', (bytes, place) => {
    expect(map(Buffer.from(bytes))).toMatchObject({
      reason: 'NOT_UTF8',
      detail: `The message is not UTF-8 from byte ${place} on.`,
    })
  })

  test.each(['1', '"text"', 'null', 'true', '[1]', `[[${good}]]`])('%s is NOT_AN_OBJECT', (text) => {
    expect(verdictOf(map(text))).toBe('NOT_AN_OBJECT')
  })
})

describe('malicious values', () => {
  test('1e400 is not a valid coordinate, speed, odometer or text', () => {
    expect(verdictOf(map('{"ts":1,"lat":1e400,"lon":2}'))).toBe('BAD_VALUE')
    expect(verdictOf(map('{"ts":1e400,"lat":1,"lon":2}'))).toBe('BAD_TIME')
    const sent = sentIn(
      map('{"ts":1,"lat":1,"lon":2,"speed":1e400,"heading":-1e400,"odo":1e400,"driver":1e400}'),
    )
    expect(sent.gps).toEqual({ latitude: 1, longitude: 2 })
    expect(sent).not.toHaveProperty('signals')
    expect(sent).not.toHaveProperty('driver')
  })

  test('__proto__ and constructor in a message change no object', () => {
    const text =
      '{"__proto__":{"lat":1,"lon":2,"ts":3,"polluted":true},"constructor":{"prototype":{"polluted":true}}}'
    expect(verdictOf(map(text))).toBe('NO_TIME')
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined()
    const named = { device: { path: '__proto__.id' } }
    expect(verdictOf(map(good, named))).toBe('NO_DEVICE')
    expect(sentIn(map(good.replace('}', ',"__proto__":{"id":"own"}}'), named)).deviceIdentifier).toEqual({
      id: 'own',
    })
    expect(verdictOf(map(good, { device: { path: 'constructor.name' } }))).toBe('NO_DEVICE')
  })

  test.each(['__proto__', 'constructor', 'toString', 'hasOwnProperty'])(
    'a device named %s is an ordinary device',
    (id) => {
      expect(
        sentIn(map(good.replace('}', `,"id":"${id}"}`), { device: { path: 'id' } })).assetIdentifier,
      ).toEqual({ id })
    },
  )

  test.each([10_000, 300_000])('%d levels are TOO_DEEP, at once', (levels) => {
    for (const text of [
      '['.repeat(levels) + ']'.repeat(levels),
      '{"a":'.repeat(levels) + '1' + '}'.repeat(levels),
      '['.repeat(levels),
      good.replace('}', `,"deep":${'['.repeat(levels)}${']'.repeat(levels)}}`),
    ])
      expect(verdictOf(map(text))).toBe('TOO_DEEP')
  })

  test('a refusal has a short sentence, whatever the message holds', () => {
    const wide = Object.fromEntries(Array.from({ length: 5000 }, (_, at) => [`${at}`.repeat(60), at]))
    const result = map(JSON.stringify({ ts: 1, ...wide }))
    expect(result).toMatchObject({ reason: 'NOTHING_TO_SEND' })
    expect('detail' in result ? result.detail.length : Infinity).toBeLessThan(1000)
  })

  test('brackets inside strings do not count as nesting', () => {
    const text = JSON.stringify({ ...JSON.parse(good), note: '[{"\\'.repeat(2000) })
    expect(verdictOf(map(text))).toBe('payloads')
  })
})
