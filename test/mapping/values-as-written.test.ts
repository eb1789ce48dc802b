// Numbers, times and names as devices write them, from the bytes of a message to the payload.

import { describe, expect, test } from 'vitest'
import {
  messageOf,
  openMapperOf,
  payloadIn,
  sentIn,
  truckSource,
  verdictOf,
} from '../support/mapping-world.ts'

const at = 1_763_690_000_000
const map = {
  signals: [{ type: 'X', path: 'x' }],
  fields: { n: { path: 'n', type: 'number' }, card: { path: 'card', type: 'text' } },
}
const source = truckSource(map)

const message = (text: string) => messageOf(`{"ts":${at},"lat":48,"lon":9,${text}}`)

/** The fields of the payload, and the signal. */
function sent(text: string) {
  const { n, card, signals } = sentIn(openMapperOf([source]).map(message(text))) as {
    n?: number
    card?: string
    signals?: { value: string }[]
  }
  return { n, card, x: signals?.[0]?.value }
}

describe('a number that a device writes as a text', () => {
  test.each([
    [' 12.5', '12.5'],
    ['12.5 ', '12.5'],
    ['12.5\\r\\n', '12.5'],
    ['+12.5', '12.5'],
    [' +7', '7'],
    ['.5', '0.5'],
    ['-.5', '-0.5'],
    ['12.', '12'],
    ['1.5e3', '1500'],
    ['+.5E+1', '5'],
  ])('"%s" is %s', (text, value) => {
    expect(sent(`"x":"${text}","n":"${text}"`)).toEqual({ x: value, n: Number(value), card: undefined })
  })

  test.each(['1 2', '1,5', '++1', '+-1', '.', '+', '-', 'e5', '0x10', '1_000', '12.5 km', '.e1'])(
    '"%s" is none',
    (text) => {
      const mapper = openMapperOf([source])
      expect(sentIn(mapper.map(message(`"x":"${text}","n":1`))).signals).toBeUndefined()
      expect([...mapper.counters().omitted.keys()]).toEqual(['trucks|X|not a number'])
    },
  )

  test.each(['', ' ', '\\t'])('"%s" is absent, and no fault', (text) => {
    const mapper = openMapperOf([source])
    expect(sentIn(mapper.map(message(`"x":"${text}","n":1`))).signals).toBeUndefined()
    expect(mapper.counters().omitted.size).toBe(0)
  })

  test('is compared as a number by `absent` and by conditions', () => {
    const signals = [{ type: 'X', path: 'x', absent: [-1], when: 'limit > 5' }]
    const mapper = openMapperOf([truckSource({ ...map, signals })])
    const values = ['" -1 "', '"-1.0"', '" 3 "'].map((x) => {
      const result = mapper.map(message(`"x":${x},"limit":" +9 ","n":1`))
      return sentIn(result).signals?.[0]?.value
    })
    expect(values).toEqual([undefined, undefined, '3'])
  })
})

describe('a whole number beyond 2^53', () => {
  test.each(['9007199254740993', '1234567890123456789', '-9007199254740993', '18446744073709551616'])(
    '%s keeps its digits as a text, and is no number',
    (digits) => {
      for (const card of [digits, ` ${digits} `, `\n${digits}`]) {
        const mapper = openMapperOf([source])
        const result = mapper.map(message(`"card":${card},"n":${card},"x":${card}`))
        expect(JSON.parse(payloadIn(result).json)).toMatchObject({ card: digits })
        expect(payloadIn(result).json).not.toContain('"n"')
        expect([...mapper.counters().omitted.keys()].toSorted()).toEqual([
          'trucks|X|not exact',
          'trucks|n|not exact',
        ])
      }
    },
  )

  test('is the name of a device by its digits', () => {
    const mapper = openMapperOf([truckSource(map, { device: { path: 'id' } })])
    const names = ['8901234567890123456', '9007199254740992', '[9007199254740993]'].map((id) =>
      verdictOf(mapper.map(message(`"id":${id},"n":1`))),
    )
    expect(names).toEqual(['payloads', 'payloads', 'BAD_DEVICE'])
    const { device } = payloadIn(mapper.map(message('"id":8901234567890123456,"n":1')))
    expect(device).toBe('8901234567890123456')
  })

  test.each([
    '{1234567890123456789:1}',
    '[01234567890123456789]',
    '[+1234567890123456789]',
    '[--1234567890123456789]',
    '["a"1234567890123456789]',
    '["1234567890123456789',
  ])('does not make JSON of %s', (text) => {
    expect(verdictOf(openMapperOf([source]).map(messageOf(text)))).toBe('NOT_JSON')
  })

  test.each([
    ['"card":"1234567890123456789"', '1234567890123456789'],
    ['"card":"a 1234567890123456789,"', 'a 1234567890123456789,'],
    ['"card":"\\\\\\"1234567890123456789"', '\\"1234567890123456789'],
    ['"card":12345678901234567e2', '1234567890123456800'],
    ['"card":9007199254740991', '9007199254740991'],
    ['"card":0.12345678901234567', '0.12345678901234566'],
  ])('is not seen in %s', (text, card) => {
    expect(sent(`${text},"other":1234567890123456789`).card).toBe(card)
    expect(sent(text).card).toBe(card)
  })
})

describe('a time', () => {
  const timed = (format: string, text: string, zone?: string) => {
    const time = { path: 't', format, zone }
    const mapper = openMapperOf([truckSource({ ...map, time })])
    const result = mapper.map(messageOf(`{"t":${text},"lat":48,"lon":9}`))
    return result.kind === 'payloads' ? sentIn(result).signalTimestamp : verdictOf(result)
  }
  const iso = '2026-11-28T14:07:53.250Z'
  const ms = Date.parse(iso)

  test.each([
    ['iso', `"${iso} "`, undefined, ms],
    ['iso', `" ${iso}\\r\\n"`, undefined, ms],
    ['ns', `${ms}999999`, undefined, ms],
    ['ns', `"${ms}000000"`, undefined, ms],
    ['us', `${ms}999`, undefined, ms],
    ['auto', `${ms}999999`, undefined, ms],
    ['auto', `${ms}999`, undefined, ms],
    ['auto', `"${ms} "`, undefined, ms],
    ['auto', `"+${ms / 1000}"`, undefined, ms],
    ['auto', '1000000000000000000000', undefined, 'BAD_TIME'],
    ['words', '"nov/28/2026 14:07:53.250"', 'utc', ms],
    ['words', '"28/Nov/2026 02:07:53.250 PM"', 'utc', ms],
    ['words', '"Nov 28, 2026, 2:07:53.250 pm GMT+0100"', undefined, ms - 3_600_000],
    ['words', '"Nov 28 2026 12:00:00 AM"', 'utc', Date.parse('2026-11-28T00:00:00Z')],
    ['words', '"Nov 28 2026 14:00:00 PM"', 'utc', 'BAD_TIME'],
    ['words', '"Nov 28 2026 PM 2:00:00"', 'utc', 'BAD_TIME'],
    ['words', '"Nov 28 2026 2:00:00 PM PM"', 'utc', 'BAD_TIME'],
    ['mdy', '" 11/28/2026 2:07:53.250 PM "', 'utc', ms],
    ['ms', '" "', undefined, 'NO_TIME'],
  ])('in the format %s, %s in the zone %s is %j', (format, text, zone, time) => {
    expect(timed(format, text, zone)).toBe(time)
  })
})

describe('a position that receivers without a fix report', () => {
  test.each([
    [0, 0],
    [0.00001, -0.00001],
    [90, 180],
    [-90, -180],
    [90, 12.5],
    [-1, -1],
  ])('%d, %d is none', (lat, lon) => {
    const mapper = openMapperOf([source])
    expect(verdictOf(mapper.map(messageOf({ ts: at, lat, lon })))).toBe('no fix')
    const both = mapper.map(messageOf({ ts: at + 1, lat, lon, x: 5 }))
    expect(sentIn(both)).toMatchObject({ signals: [{ value: '5' }] })
    expect(payloadIn(both).json).not.toContain('latitude')
  })

  test.each([
    [0, 12.5],
    [48, 0],
    [89.9999, 12.5],
    [-1, 36.8],
    [-1.0001, -1],
    [0, 180],
  ])('%d, %d is one', (lat, lon) => {
    expect(verdictOf(openMapperOf([source]).map(messageOf({ ts: at, lat, lon })))).toBe('payloads')
  })
})

describe('a name that is none', () => {
  test.each(['" "', '"\\t"', '"null"', '"NULL"', '"undefined"', '"(null)"', '"NaN"', '""', 'null'])(
    '%s names no device',
    (id) => {
      const mapper = openMapperOf([truckSource(map, { device: { path: 'id' } })])
      expect(verdictOf(mapper.map(message(`"id":${id},"n":1`)))).toBe('NO_DEVICE')
    },
  )

  test.each(['null', 'undefined', ' '])('the level "%s" of a topic names no device', (level) => {
    const mapper = openMapperOf([source])
    const result = mapper.map({ ...message('"n":1'), topic: `telemetry/v1/${level}` })
    expect(verdictOf(result)).toBe('NO_DEVICE')
  })

  test('leaves the next rule of a list to name the device', () => {
    const device = [{ path: 'id' }, { path: 'imei' }]
    const mapper = openMapperOf([truckSource(map, { device })])
    expect(payloadIn(mapper.map(message('"id":"null","imei":"867459","n":1'))).device).toBe('867459')
  })
})
