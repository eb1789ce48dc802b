import { deflateRawSync, deflateSync, gzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { messageOf, openMapperOf, truckSource } from '../../support/mapping-world.ts'

const reading = { ts: 1_764_451_575_000, lat: 48.8566, lon: 2.3522, name: 'Zürich' }
const json = JSON.stringify(reading)
const latin1 = Buffer.from(json, 'latin1')
const utf16 = (text: string) => Buffer.from(text, 'utf16le')
const swapped = (bytes: Buffer) => Buffer.from(bytes).swap16()
/** The reading in both binary forms: 4 keys, doubles. */
const double = (mark: number, value: number) => {
  const bytes = Buffer.alloc(9, mark)
  bytes.writeDoubleBE(value, 1)
  return bytes
}
const packedBy = (head: number, key: (text: string) => Buffer, mark: number) =>
  Buffer.concat([
    Buffer.from([head]),
    ...(['ts', 'lat', 'lon'] as const).flatMap((name) => [key(name), double(mark, reading[name])]),
  ])
const msgpack = packedBy(0x83, (text) => Buffer.from([0xa0 + text.length, ...Buffer.from(text)]), 0xcb)
const cbor = packedBy(0xa3, (text) => Buffer.from([0x60 + text.length, ...Buffer.from(text)]), 0xfb)

const csv = {
  encoding: 'csv',
  map: {
    time: { path: 'fields[0]', format: 'ms' },
    latitude: { path: 'fields[1]' },
    longitude: { path: 'fields[2]' },
  },
}
const csvText = `${reading.ts},${reading.lat},${reading.lon}\n`

function mapped(bytes: Buffer | string, options: Record<string, unknown> = {}) {
  const result = openMapperOf([{ ...truckSource(), ...options }]).map(messageOf(bytes))
  return result.kind === 'payloads'
    ? result.payloads.map(({ json: text }) => JSON.parse(text) as { gps: unknown })
    : result
}

const place = { latitude: 48.8566, longitude: 2.3522 }

describe('bodies that the field sends', () => {
  test.each<[what: string, bytes: Buffer | string, options: Record<string, unknown>]>([
    ['gzip', gzipSync(json), { compression: 'gzip' }],
    ['JSON beside gzip', json, { compression: 'gzip' }],
    ['zlib', deflateSync(json), { compression: 'zlib' }],
    ['deflate without a header', deflateRawSync(json), { compression: 'deflate' }],
    ['CSV in gzip', gzipSync(csvText), { compression: 'gzip', ...csv }],
    ['MessagePack', msgpack, { encoding: 'msgpack' }],
    ['CBOR', cbor, { encoding: 'cbor' }],
    ['CBOR in zlib', deflateSync(cbor), { encoding: 'cbor', compression: 'zlib' }],
    ['UTF-16 with a mark', Buffer.concat([Buffer.from([0xff, 0xfe]), utf16(json)]), {}],
    ['UTF-16, big-endian, with a mark', Buffer.concat([Buffer.from([0xfe, 0xff]), swapped(utf16(json))]), {}],
    ['UTF-16 with a mark, against `charset`', utf16(`\uFEFF${json}`), { charset: 'latin1' }],
    ['UTF-16 without a mark', utf16(json), { charset: 'utf-16le' }],
    ['CSV in UTF-16', swapped(utf16(csvText)), { charset: 'utf-16be', ...csv }],
    ['Latin-1 in a field that nothing reads', latin1, {}],
    ['Latin-1 in gzip', gzipSync(latin1), { compression: 'gzip', charset: 'latin1' }],
  ])('%s', (_what, bytes, options) => {
    expect(mapped(bytes, options)).toMatchObject([{ gps: place }])
  })

  test.each([
    ['JSON lines', `${json}\n${json.replace('8566', '8567')}\n`],
    ['objects behind each other', `${json}${json.replace('8566', '8567')}`],
    ['objects with NaN', `${json.replace('"Zürich"', 'NaN')} ${json.replace('8566', '8567')}`],
    ['a list', `[${json},${json.replace('8566', '8567')}]`],
  ])('%s is a list of records', (_what, text) => {
    expect(mapped(text)).toMatchObject([{ gps: place }, { gps: { ...place, latitude: 48.8567 } }])
  })

  test('in a list with `each`, each object is found by `$`', () => {
    const lines = `{"data":[${json}]}\n{"data":[${json.replace('8566', '8567')}]}`
    expect(mapped(lines, { each: ['$', 'data'] })).toHaveLength(2)
  })
})

describe('what a body looks like is said in the dead letter', () => {
  test.each<[option: string, bytes: Buffer | string, options?: Record<string, unknown>]>([
    ['gzip, which `compression: gzip`', gzipSync(json)],
    ['zlib, which `compression: zlib`', deflateSync(json)],
    ['Zstandard, which no option reads', Buffer.from('28b52ffd0400', 'hex')],
    ['UTF-16, which `charset: utf-16le`', utf16(json)],
    ['UTF-16, which `charset: utf-16be`', swapped(utf16(json))],
    ['MessagePack, which `encoding: msgpack`', msgpack],
    ['CBOR, which `encoding: cbor`', cbor],
    ['CBOR, which `encoding: cbor`', deflateSync(cbor), { compression: 'zlib' }],
    ['text in Latin-1, which `charset: latin1`', Buffer.from('{"name":"Z\u00FCrich"', 'latin1')],
    ['XML, which no option reads', '<position lat="48.8"/>'],
    [
      'NMEA 0183, which `encoding: nmea`',
      '$GPRMC,123519,A,4807.038,N,01131.000,E,022.4,084.4,230394,003.1,W*6A',
    ],
    ['JSON, which `encoding: json`', json, { encoding: 'teltonika' }],
    ['JSON, which `encoding: json`', json, { encoding: 'cbor' }],
  ])('%s', (option, bytes, options) => {
    const result = mapped(bytes, options)
    expect(result).toMatchObject({
      kind: 'unmappable',
      detail: expect.stringContaining(`It looks like ${option}`),
    })
  })

  test.each([json.slice(0, -1), 'hello', Buffer.from([0xc3, 0x28, 0x01]), Buffer.from([0x93, 1, 2, 3])])(
    'and of others nothing: %s',
    (bytes) => {
      const result = mapped(bytes)
      expect(result).toMatchObject({ kind: 'unmappable', detail: expect.not.stringContaining('looks like') })
    },
  )

  test('a message that unpacks to too much names the option', () => {
    expect(mapped(gzipSync(Buffer.alloc(300 * 1024, 0x20)), { compression: 'gzip' })).toMatchObject({
      reason: 'TOO_LARGE',
      detail: expect.stringContaining('more than 262144 bytes when it is unpacked (max_unpacked_bytes'),
    })
    const large = gzipSync(`${json}${' '.repeat(300 * 1024)}`)
    expect(mapped(large, { compression: 'gzip', max_unpacked_bytes: '1MiB' })).toMatchObject([{ gps: place }])
  })
})

describe('a byte that is not UTF-8', () => {
  const reads = (more: Record<string, unknown>) => ({
    ...truckSource({ fields: { CITY: { path: 'name', type: 'text' } } }),
    ...more,
  })

  test.each<[where: string, options: Record<string, unknown>, name: string]>([
    ['in an extra field', reads({}), 'name'],
    ['in the name of the device', { device: { path: 'name' } }, 'name'],
    ['in a condition', { when: 'name != "x"' }, 'name'],
  ])('%s makes a dead letter that names it', (_where, options, name) => {
    expect(mapped(latin1, options)).toMatchObject({
      reason: 'NOT_UTF8',
      detail: expect.stringContaining(
        `The value at ${name} has bytes that are not UTF-8 (the first one is byte`,
      ),
    })
  })

  test('in a value that is collected makes a dead letter', () => {
    const collecting = {
      topic: 'telemetry/v1/{device}',
      encoding: 'scalar',
      coalesce: { name: '{device}', names: ['truck-7', 'ts', 'lat', 'lon'] },
    }
    expect(mapped(Buffer.from('21.5 \u00B0C', 'latin1'), collecting)).toMatchObject({ reason: 'NOT_UTF8' })
  })

  test('in a key that the source reads makes a dead letter', () => {
    const keyed = Buffer.from(JSON.stringify({ ...reading, Länge: 3 }), 'latin1')
    expect(
      mapped(keyed, truckSource({ fields: { LEN: { path: '["Länge"]', type: 'number' } } })),
    ).toMatchObject({
      reason: 'NOT_UTF8',
    })
  })

  test('is read with `charset`, and is counted where nothing reads it', () => {
    expect(mapped(latin1, reads({ charset: 'latin1' }))).toMatchObject([{ CITY: 'Zürich' }])
    const mapper = openMapperOf([truckSource()])
    expect(mapper.map(messageOf(latin1)).kind).toBe('payloads')
    expect(mapper.map(messageOf(json)).kind).toBe('payloads')
    expect([...mapper.counters().omitted]).toEqual([['trucks|text|not UTF-8', 1]])
  })

  test('leaves a message of the same source that is UTF-8 as it is, also with U+FFFD in it', () => {
    const mapper = openMapperOf([reads({})])
    expect(mapper.map(messageOf(latin1))).toMatchObject({ reason: 'NOT_UTF8' })
    expect(mapper.map(messageOf({ ...reading, name: 'Z\uFFFDrich' })).kind).toBe('payloads')
  })
})

test('of 1,001 lines of CSV `max_records` decides', () => {
  const lines = Array.from(
    { length: 1001 },
    (_, n) => `${reading.ts + n * 1000},${reading.lat},${reading.lon}`,
  )
  expect(mapped(lines.join('\n'), csv)).toMatchObject({
    reason: 'TOO_MANY',
    detail: 'The list has more than 1000 records (max_records of the source).',
  })
  expect(mapped(lines.join('\n'), { ...csv, max_records: 1001 })).toHaveLength(1001)
})

test.each([
  [{ encoding: 'cbor', charset: 'latin1' }, 'the encoding cbor is no text'],
  [
    { encoding: 'sparkplug', compression: 'gzip', topic: 'spBv1.0/{group}/{type}/{device}/#' },
    'say themselves how',
  ],
])('an option that would do nothing is refused: %j', (options, words) => {
  expect(() => mapped('', options)).toThrow(words)
})
