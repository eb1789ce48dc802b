import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { decodeNmea, nmeaIn } from '../../../src/mapping/encodings/nmea.ts'
import type { Decoded } from '../../../src/mapping/types.ts'
import { messageOf, openMapperOf } from '../../support/mapping-world.ts'

function sealed(body: string): string {
  let sum = 0
  for (const character of body) sum ^= character.charCodeAt(0)
  return `$${body}*${sum.toString(16).toUpperCase().padStart(2, '0')}`
}

const decoded = (text: string): Decoded => decodeNmea(Buffer.from(text, 'latin1'))

function recordsIn(...sentences: string[]): unknown {
  const result = decoded(sentences.map(sealed).join('\r\n'))
  return result.kind === 'value' ? (result.value as { records: unknown }).records : result
}

const rmc = 'GNRMC,090001.25,A,4656.8856,N,00726.8466,E,30.70,112.0,301225,2.1,E,A'
const gga = 'GNGGA,090001.25,4656.8856,N,00726.8466,E,2,11,0.80,542.3,M,47.0,M,,'
const fix = {
  time: Date.UTC(2025, 11, 30, 9, 0, 1, 250),
  timeOfDay: '090001.25',
  date: '301225',
  status: 'A',
  mode: 'A',
  latitude: '4656.8856',
  ns: 'N',
  longitude: '00726.8466',
  ew: 'E',
  speed: '30.70',
  course: '112.0',
}
const more = { quality: '2', satellites: '11', hdop: '0.80', altitude: '542.3' }

describe('sentences', () => {
  test('keep their values as they are written, and empty fields are absent', () => {
    expect(recordsIn(rmc)).toEqual([fix])
    expect(recordsIn('GPRMC,090001.25,A,4656.8856,N,00726.8466,E,,,301225,,')).toEqual([
      { ...fix, mode: undefined, speed: undefined, course: undefined },
    ])
  })

  test.each(['GP', 'GN', 'GL', 'GA', 'GB', 'BD', 'GQ', 'II'])('of the talker %s are read', (talker) => {
    expect(recordsIn(rmc.replace('GN', talker))).toEqual([fix])
  })

  test('of one fix are one record, in any order', () => {
    expect(recordsIn(rmc, gga)).toEqual([{ ...fix, ...more }])
    expect(recordsIn(gga.replace('.25', '.250'), rmc)).toEqual([{ ...fix, ...more, timeOfDay: '090001.250' }])
    const others = ['GNGLL,4656.8856,N,00726.8466,E,090001.25,A,A', 'GNZDA,090001.25,30,12,2025,00,00']
    const { course, speed, ...rest } = fix
    const vtg = `GNVTG,${course},T,,M,${speed},N,56.9,K,A`
    for (const sentences of [
      [...others, vtg],
      [vtg, ...others],
      [others[1]!, vtg, others[0]!],
    ])
      expect(recordsIn(...sentences)).toEqual([{ ...rest, course, speed }])
  })

  test('of several fixes are several records', () => {
    const later = (text: string) => text.replace('090001.25', '090002')
    const second = { ...fix, time: fix.time + 750, timeOfDay: '090002' }
    expect(recordsIn(rmc, gga, later(rmc), later(gga))).toEqual([
      { ...fix, ...more },
      { ...second, ...more },
    ])
    // The same time of day, a day later.
    const tomorrow = rmc.replace('301225', '311225')
    expect(recordsIn(rmc, tomorrow)).toEqual([fix, { ...fix, date: '311225', time: fix.time + 86_400_000 }])
  })

  test('of two receivers: the valid position counts, and the values of one are not mixed with the other', () => {
    const lost = 'GPRMC,090001.25,V,4700.0000,S,00800.0000,W,,,301225,,,N'
    expect(recordsIn(lost, rmc)).toEqual([fix])
    expect(recordsIn(rmc, lost)).toEqual([fix])
    const half = 'GPRMC,090001.25,V,,,00800.0000,W,,,301225,,,N'
    expect(recordsIn(half, gga)).toEqual([
      { ...fix, ...more, status: 'V', mode: 'N', speed: undefined, course: undefined },
    ])
  })

  test.each([
    ['130394', '123519', Date.UTC(1994, 2, 13, 12, 35, 19)],
    ['290224', '235959.9999', Date.UTC(2024, 1, 29, 23, 59, 59, 999)],
    ['311216', '235960', Date.UTC(2017, 0, 1)],
    ['290225', '123519', undefined],
    ['301225', '243519', undefined],
    ['301225', '12:35:19', undefined],
    ['30122025', '123519', undefined],
  ])('the date %s and the time %s are %s', (date, time, ms) => {
    const [record] = recordsIn(rmc.replace('301225', date).replace('090001.25', time)) as { time?: number }[]
    expect(record?.time).toBe(ms)
  })

  test('a GGA alone has no time', () => {
    expect(recordsIn(gga)).toEqual([
      {
        timeOfDay: fix.timeOfDay,
        latitude: fix.latitude,
        ns: 'N',
        longitude: fix.longitude,
        ew: 'E',
        ...more,
      },
    ])
  })

  test.each<[string, readonly string[], readonly (string | undefined)[]]>([
    ['before it', ['R 090001 301225', 'G 090002'], ['2025-12-30T09:00:01', '2025-12-30T09:00:02']],
    ['behind it', ['G 090000', 'R 090001 301225'], ['2025-12-30T09:00:00', '2025-12-30T09:00:01']],
    [
      'before midnight',
      ['R 235959.9 311225', 'G 000000.1'],
      ['2025-12-31T23:59:59.900', '2026-01-01T00:00:00.100'],
    ],
    ['after midnight', ['G 235959', 'R 000001 010126'], ['2025-12-31T23:59:59', '2026-01-01T00:00:01']],
    [
      'nearest to it',
      ['R 080000 301225', 'G 235959', 'R 000001 311225'],
      ['2025-12-30T08:00:00', '2025-12-30T23:59:59', '2025-12-31T00:00:01'],
    ],
    [
      'one after the other',
      ['R 090000 301225', 'G 094500', 'G 103000'],
      ['2025-12-30T09:00:00', '2025-12-30T09:45:00', '2025-12-30T10:30:00'],
    ],
    ['too far from it', ['R 090000 301225', 'G 100001'], ['2025-12-30T09:00:00', undefined]],
    ['that does not exist', ['R 090000 310225', 'G 090001'], [undefined, undefined]],
  ])('a GGA has the date of the fix %s', (_name, written, times) => {
    const sentences = written.map((text) => {
      const [kind, clock = '', date = ''] = text.split(' ')
      return kind === 'G'
        ? gga.replace('090001.25', clock)
        : rmc.replace('090001.25', clock).replace('301225', date)
    })
    const found = recordsIn(...sentences) as { time?: number }[]
    const expected = times.map((time) => (time === undefined ? undefined : Date.parse(`${time}Z`)))
    expect(found.map(({ time }) => time)).toEqual(expected)
  })

  test.each([
    ['blanks', (text: string) => `  ${text}   `],
    ['a line end', (text: string) => `${text}\r\n`],
    ['another sentence behind it', (text: string) => `${text}${sealed('GPGSA,A,3,04,05')}`],
    ['noise', (text: string) => `\xff\x00${text}\x00\xfe`],
    ['a tag block', (text: string) => `\\s:r1,c:1767085201*4B\\${text}`],
    ['sentences of a maker', (text: string) => `${sealed('PUBX,00,1')}\n$PGRMC,A\n${text}`],
    ['AIS', (text: string) => `!AIVDM,1,1,,A,15M67FC000G?ufbE,0*5C\n${text}`],
    ['a lower case checksum', (text: string) => text.slice(0, -2) + text.slice(-2).toLowerCase()],
  ])('are read with %s', (_what, around) => {
    const result = decoded(around(sealed(rmc)))
    expect(result).toEqual({
      kind: 'value',
      value: { records: [fix], damaged: 0, unchecked: 0 },
      omitted: [],
    })
  })
})

describe('what is not used', () => {
  const sound = sealed(rmc)

  test('any changed character makes a checksum wrong', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 7, max: sound.length - 4 }),
        fc.integer({ min: 1, max: 127 }),
        (at, bits) => {
          const unit = sound.charCodeAt(at) ^ bits
          // These end or begin a sentence.
          fc.pre(!['\r', '\n', '$', '!', '*'].includes(String.fromCharCode(unit)))
          const damaged = sound.slice(0, at) + String.fromCharCode(unit) + sound.slice(at + 1)
          expect(decoded(damaged)).toMatchObject({ kind: 'refused', reason: 'BAD_CHECKSUM' })
        },
      ),
    )
    for (const end of ['*', '*7', '*zz', '* 74'])
      expect(decoded(sound.replace(/\*.*/, end))).toMatchObject({ reason: 'BAD_CHECKSUM' })
  })

  test('a damaged sentence is left out and counted', () => {
    const damaged = sealed(gga).replace('542', '642')
    expect(decoded(`${sound}\n${damaged}`)).toEqual({
      kind: 'value',
      value: { records: [fix], damaged: 1, unchecked: 0 },
      omitted: ['sentence|checksum'],
    })
    const map = {
      time: { path: 'time', format: 'ms' },
      latitude: { path: 'latitude', unit: 'ddmm' },
      longitude: { path: 'longitude', unit: 'ddmm' },
    }
    const mapper = openMapperOf([
      { name: 'gnss', topic: 't/{device}', encoding: 'nmea', each: 'records', map },
    ])
    mapper.map(messageOf(Buffer.from(`${sound}\n${damaged}\n${damaged}`), { topic: 't/truck-7' }))
    expect([...mapper.counters().omitted]).toEqual([['gnss|sentence|checksum', 2]])
    expect(mapper.withheldOf('truck-7')).not.toEqual([])
  })

  test('a missing checksum is said, of the message and of its record', () => {
    expect(
      decoded(`${sound}\n${sealed(rmc.replace('090001.25', '090002.25'))}\n$${gga}  \r\n`),
    ).toMatchObject({
      value: { records: [{ unchecked: 1 }, { timeOfDay: '090002.25' }], unchecked: 1 },
    })
  })

  test.each([
    ['$GPRMC,,V,,,,,,,,,,N*53', 'ignored', 'no fix'],
    [sealed('GPGSV,1,1,00'), 'ignored', 'other sentences'],
    ['', 'empty', undefined],
    ['hello $5 *00', 'refused', 'BAD_FRAME'],
    ['$', 'refused', 'BAD_FRAME'],
    ['!AIVDM,1,1,,A,15M67FC000G?ufbE,0*5C', 'refused', 'BAD_FRAME'],
    [JSON.stringify({ raw: sealed(rmc) }), 'refused', 'BAD_FRAME'],
    [`$GPRMC,${'1'.repeat(300)}*00`, 'refused', 'BAD_CHECKSUM'],
  ])('%j is %s: %s', (text, kind, reason) => {
    expect(decoded(text)).toMatchObject(reason === undefined ? { kind } : { kind, reason })
  })

  test('more fixes or sentences than a message may have are refused', () => {
    const many = (count: number) =>
      Array.from({ length: count }, (_, index) =>
        sealed(
          rmc.replace(
            '090001.25',
            `09${String(Math.floor(index / 60)).padStart(2, '0')}${String(index % 60).padStart(2, '0')}`,
          ),
        ),
      ).join('\n')
    expect(decoded(many(1000))).toMatchObject({ kind: 'value' })
    expect(decoded(many(1001))).toMatchObject({
      reason: 'TOO_MANY',
      detail: expect.stringContaining('1000 fixes'),
    })
    expect(nmeaIn(many(1001))).toBeUndefined()
    expect(decoded(`${sealed('GPGSV,1')}\n`.repeat(20_001))).toMatchObject({ reason: 'TOO_MANY' })
  })

  // Looked at again for each $, it would take minutes: the time limit of the test ends that.
  test('no bytes make it slow', () => {
    for (const text of ['$'.repeat(2_000_000), '$GPRMC,'.repeat(300_000), `$GPRMC,${',A'.repeat(1_000_000)}`])
      expect(['refused', 'value', 'ignored']).toContain(decoded(text).kind)
  })
})

test('sentences in a text or a list of texts are unpacked', () => {
  const value = { records: [{ ...fix, ...more }], damaged: 0, unchecked: 0 }
  expect(nmeaIn(`${sealed(rmc)}\r\n${sealed(gga)}`)).toEqual(value)
  expect(nmeaIn([sealed(rmc), 7, sealed(gga)])).toEqual(value)
  for (const other of ['hello', 12, null, {}, [], sealed('GPGSV,1')]) expect(nmeaIn(other)).toBeUndefined()
  expect(nmeaIn(sealed(rmc).replace('30.70', '31.70'))).toEqual({ records: [], damaged: 1, unchecked: 0 })
})
