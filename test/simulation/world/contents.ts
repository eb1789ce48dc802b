// contents.ts: what devices send, the sources of the config that read it, and what the gateway must make of it. The
// expectation is written here by hand; nothing of the product decides it.
//
//   plain          a position and an odometer, with the time of the device
//   parked         the same values each time
//   untimed        without a time: that of the arrival counts, and the packet identifier tells a resend
//   parkedUntimed  without a time, and the same bytes each time
//   several        records of two vehicles in one message
//   differences    a distance since the record before: the gateway must remember that one
//   parts          each value in a message of its own, three make one payload: the gateway must collect them. Some records
//                  lack one

import { assertNever } from '../../../src/std/assert.ts'

export type ContentKind =
  'plain' | 'parked' | 'untimed' | 'parkedUntimed' | 'several' | 'differences' | 'parts'

/** What is wrong with a message. `endsConnection`: no packet of MQTT 3.1.1 refuses it, so the connection ends. */
export const poisons = {
  'not JSON': { endsConnection: false, isDead: true },
  'wrong types': { endsConnection: false, isDead: true },
  'a list': { endsConnection: false, isDead: true },
  'a bad vehicle': { endsConnection: false, isDead: true },
  'no bytes': { endsConnection: false, isDead: false },
  'an unknown topic': { endsConnection: false, isDead: true },
  'a topic with a wildcard': { endsConnection: true, isDead: false },
  'too large': { endsConnection: true, isDead: false },
} as const
export type Poison = keyof typeof poisons

/** One payload that the service must get. */
export type ExpectedRecord = {
  device: string
  /** Null: the arrival. */
  ts: number | null
  latitude: number | null
  /** By type of signal. */
  values: Readonly<Record<string, number>>
  /** Types that a late record has not. */
  optional: readonly string[]
}

export type Content = { topic: string; payload: Buffer; records: readonly ExpectedRecord[] }

/** Of the source whose position may be lost. */
export function mayLosePosition(kind: ContentKind): boolean {
  return kind === 'plain' || kind === 'parked'
}

/** Only the packet identifier tells whether such a message came before. */
export function isUntimed(kind: ContentKind): boolean {
  return kind === 'untimed' || kind === 'parkedUntimed'
}

type Place = { provider: string; id: string; index: number; partMs: number }
type Moment = {
  number: number
  /** The odometer says less than before, which no vehicle does: the gateway omits it. */
  isFallen: boolean
  ts: number
  /** Of the message before that the gateway could read; null for the first. */
  before: number | null
}

/** Of the records of values that come apart, one in so many lacks a value, and ends with the window. */
const incompleteEvery = 4

/** Values of one record are so far apart at most; those of two records are further, however late they come. */
const pairWithinMs = 2
export const recordsApartMs = 5

/** Above `max_packet_bytes` of the config. */
const largeBytes = 40_000
export const packetBytesMax = 32_768

/** In km, less from time to time: three that grow out of each other would be believed. */
const fallenFrom = 500

const odometer = 'OBD_LIFETIME_ODOMETER'
const hours = 'OBD_TOTAL_ENGINE_TIME'
const distance = 'DISTANCE_SINCE_LAST'
const fuel = 'FUEL_USED'

/** The messages of one moment: `parts` needs three. */
export function contentsOf(kind: ContentKind, place: Place, moment: Moment): Content[] {
  const { provider, id, index, partMs } = place
  const { ts, isFallen } = moment
  const number = kind === 'parked' || kind === 'parkedUntimed' ? 1 : moment.number
  const values = { lat: latitudeOf(number), lon: 13 + index / 100, odometer: odometerOf(number) }
  const record = (device: string, more: Partial<ExpectedRecord> = {}): ExpectedRecord => ({
    device,
    ts,
    latitude: values.lat,
    values: { [odometer]: values.odometer },
    optional: [],
    ...more,
  })
  const one = (topic: string, body: object, records: readonly ExpectedRecord[]): Content => ({
    topic,
    payload: Buffer.from(JSON.stringify(body)),
    records,
  })
  switch (kind) {
    case 'plain':
    case 'parked': {
      const fallen = { odometer: fallenFrom - number }
      return isFallen
        ? [one(`${provider}/${id}`, { ts, ...values, ...fallen }, [record(id, { values: {} })])]
        : [one(`${provider}/${id}`, { ts, ...values }, [record(id)])]
    }
    case 'untimed':
    case 'parkedUntimed':
      return [one(`untimed/${provider}/${id}`, values, [record(id, { ts: null })])]
    case 'several': {
      const names = [`${id}-a`, `${id}-b`]
      const vehicles = names.map((name) => ({ name, ts, ...values }))
      return [
        one(
          `several/${provider}/${id}`,
          { vehicles },
          names.map((name) => record(name)),
        ),
      ]
    }
    case 'differences': {
      const wheel = wheelOf(number)
      const { before } = moment
      const since = before === null ? {} : { [distance]: (wheel - wheelOf(before)) / 1000 }
      const expected = record(id, {
        values: { [odometer]: values.odometer, ...since },
        optional: [distance],
      })
      return [one(`differences/${provider}/${id}`, { ts, ...values, wheel }, [expected])]
    }
    case 'parts': {
      const isWhole = number % incompleteEvery > 0
      const read = {
        odometer: values.odometer,
        ...(isWhole ? { hours: hoursOf(number) } : {}),
        fuel: fuelOf(number),
      }
      const last = Object.keys(read).length - 1
      const expected = record(id, {
        ts: ts + last * partMs,
        latitude: null,
        values: {
          [odometer]: read.odometer,
          ...(isWhole ? { [hours]: hoursOf(number) } : {}),
          [fuel]: read.fuel,
        },
      })
      return Object.entries(read).map(([name, value], place) =>
        one(
          `parts/${provider}/${id}/${name}`,
          { ts: ts + place * partMs, value },
          place === last ? [expected] : [],
        ),
      )
    }
    default:
      return assertNever(kind)
  }
}

export function poisoned({ topic, payload, records }: Content, poison: Poison, name: string): Content {
  const text = payload.toString()
  switch (poison) {
    case 'not JSON':
      return { topic, payload: Buffer.from(`broken ${name}`), records: [] }
    case 'wrong types':
      return {
        topic,
        payload: Buffer.from(JSON.stringify({ ts: name, vehicles: name, value: {} })),
        records: [],
      }
    case 'a bad vehicle': {
      const body = JSON.parse(text) as { vehicles: object[] }
      const vehicles = [...body.vehicles.slice(0, -1), { ...body.vehicles.at(-1), ts: name }]
      return { topic, payload: Buffer.from(JSON.stringify({ vehicles })), records: records.slice(0, -1) }
    }
    case 'a list':
      return { topic, payload: Buffer.from(JSON.stringify([name])), records: [] }
    case 'no bytes':
      return { topic, payload: Buffer.alloc(0), records: [] }
    case 'an unknown topic':
      return { topic: `unknown/${name.replaceAll(' ', '/')}`, payload, records: [] }
    case 'a topic with a wildcard':
      return { topic: `${topic}/+`, payload, records: [] }
    case 'too large':
      return { topic, payload: Buffer.from(text + ' '.repeat(largeBytes)), records: [] }
    default:
      return assertNever(poison)
  }
}

export type SourceOptions = {
  /** How long the values of a record are collected. */
  windowS: number
  /** The path of the latitude of the source of `plain` and `parked` is wrong. */
  isPositionLost: boolean
}

export function sourcesOf(provider: string, { windowS, isPositionLost }: SourceOptions): string {
  const placeAt = (latitude: string) => `
      latitude: { path: ${latitude} }
      longitude: { path: lon }
      signals: [{ type: ${odometer}, path: odometer, unit: km }`
  const place = placeAt('lat')
  const time = `
      time: { path: ts, format: ms }`
  return `
  - name: ${provider}-trucks
    topic: ${provider}/{device}
    provider: ${provider}
    map:${time}${placeAt(isPositionLost ? 'latitude' : 'lat')}]
  - name: ${provider}-untimed
    topic: untimed/${provider}/{device}
    provider: ${provider}
    map:${place}]
  - name: ${provider}-several
    topic: several/${provider}/{client}
    provider: ${provider}
    each: vehicles
    device: { path: name }
    map:${time}${place}]
  - name: ${provider}-differences
    topic: differences/${provider}/{device}
    provider: ${provider}
    previous: { for: 7d }
    map:${time}${place}, { type: ${distance}, expr: wheel - previous.wheel, unit: m }]
  - name: ${provider}-parts
    topic: parts/${provider}/{device}/{metric}
    provider: ${provider}
    coalesce:
      name: "{metric}"
      time: { path: ts, format: ms }
      complete: [odometer, hours, fuel]
      window: ${windowS}s
      pair_within: ${pairWithinMs}ms
    map:
      signals:
        - { type: ${odometer}, path: odometer, unit: km }
        - { type: ${hours}, path: hours, unit: h }
        - { type: ${fuel}, path: fuel }`
}

/** In km: some metres from message to message, or the mapping would not believe it. */
function odometerOf(number: number): number {
  return Math.round(1_000_000 + number) / 1000
}

function latitudeOf(number: number): number {
  return Math.round((50 + (number % 1000) / 1000) * 1000) / 1000
}

/** Pulses; no two steps of a device are alike. */
function wheelOf(number: number): number {
  return number * 1000 + number * number
}

function hoursOf(number: number): number {
  return 100 + number / 100
}

function fuelOf(number: number): number {
  return 5000 + number
}
