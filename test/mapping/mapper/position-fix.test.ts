import { describe, expect, test } from 'vitest'
import {
  messageOf,
  openMapperOf,
  payloadsIn,
  sentIn,
  truckSource,
  verdictOf,
} from '../../support/mapping-world.ts'

const ts = 1_750_000_000_000
const reading = { ts, lat: 48.8566, lon: 2.3522, sat: 9, fixed: ts, course: 90, odo: 5000 }
const odometer = { type: 'OBD_LIFETIME_ODOMETER', path: 'odo', unit: 'm' }
const fix = { valid: 'sat > 0', time: { path: 'fixed', format: 'ms' } }
const withSignal = { heading: { path: 'course' }, signals: [odometer] }

function mapped(payload: object, rest = {}, map: Record<string, unknown> = withSignal, world = {}) {
  return openMapperOf([truckSource(map, rest)], world).map(messageOf({ ...reading, ...payload }))
}
const sent = (...of: Parameters<typeof mapped>) => sentIn(mapped(...of))

describe('a receiver without a fix', () => {
  test('has no position in its payload, but its signals are sent', () => {
    expect(sent({ sat: 0 }, { fix }).gps).toBeUndefined()
    expect(sent({ sat: 0 }, { fix }).signals).toHaveLength(1)
    expect(sent({}, { fix }).gps).toMatchObject({ latitude: 48.8566, heading: 90 })
  })

  test('is ignored as `no fix`, not a dead letter, if the message has nothing else to send', () => {
    expect(verdictOf(mapped({ sat: 0 }, { fix }, {}))).toBe('no fix')
    expect(verdictOf(mapped({ lat: 0, lon: 0 }, {}, {}))).toBe('no fix')
  })

  test('at 0, 0 has no position, whatever the source options are', () => {
    expect(sent({ lat: 0, lon: 0 }, { fix, no_fix: 'keep' }).gps).toBeUndefined()
    expect(sent({ lat: -0.00005, lon: 0.00009 }).gps).toBeUndefined()
    expect(sent({ lat: 0, lon: 0.0001 }).gps).toMatchObject({ latitude: 0, longitude: 0.0001 })
    expect(sent({ lat: -0.0001, lon: 0 }).gps).toMatchObject({ latitude: -0.0001, longitude: 0 })
  })

  test('can report it by empty lists, which count as missing values', () => {
    expect(sent({ lat: [], lon: [] }).gps).toBeUndefined()
    expect(verdictOf(mapped({ lat: [1], lon: [] }, {}, {}))).toBe('HALF_POSITION')
    expect(verdictOf(mapped({ lat: [1], lon: 2 }, {}, {}))).toBe('BAD_VALUE')
  })

  test('never makes a dead letter by an invalid position', () => {
    expect(sent({ sat: 0, lat: 91, lon: 181 }, { fix }).gps).toBeUndefined()
    expect(verdictOf(mapped({ lat: 91, lon: 181 }, { fix }, {}))).toBe('OUT_OF_RANGE')
  })

  test.each([
    [{ lat: -210, lon: -210 }, 'OUT_OF_RANGE'],
    [{ lat: null }, 'HALF_POSITION'],
    [{ lat: 'north' }, 'BAD_VALUE'],
  ])('loses only its position by %j, which is counted', (position, reason) => {
    for (const rest of [{}, { fix }, { fix, no_fix: 'keep' }]) {
      const mapper = openMapperOf([truckSource(withSignal, rest)])
      const payload = sentIn(mapper.map(messageOf({ ...reading, ...position })))
      expect(payload.gps).toBeUndefined()
      expect(payload.signals).toMatchObject([{ value: '5' }])
      expect(Object.fromEntries(mapper.counters().omitted)).toEqual({ [`trucks|gps|${reason}`]: 1 })
    }
  })

  test('is sent with its last position and without heading, if the source keeps it', () => {
    const { gps, signalTimestamp } = sent({ sat: 0 }, { fix, no_fix: 'keep' })
    expect(gps).toEqual({ latitude: 48.8566, longitude: 2.3522 })
    expect(signalTimestamp).toBe(ts)
  })
})

describe('a position that is older than its message', () => {
  const minute = 60_000

  test('is omitted if it is older than fix.max_age, and not before', () => {
    expect(sent({ fixed: ts - minute }, { fix }).gps).toBeDefined()
    expect(sent({ fixed: ts - minute - 1 }, { fix }).gps).toBeUndefined()
    expect(sent({ fixed: ts - 5001 }, { fix: { ...fix, max_age: '5s' } }).gps).toBeUndefined()
    expect(sent({ fixed: undefined }, { fix }).gps).toBeDefined()
  })

  test('is sent with its own time if the source keeps it', () => {
    const gps = { latitude: 48.8566, longitude: 2.3522, heading: 90 }
    const fixed = ts - 2 * minute
    const kept = { fix, no_fix: 'keep' }
    const position = { heading: { path: 'course' } }
    expect(sent({ fixed }, { fix: { ...fix, old: 'keep' } })).toMatchObject({ gps, signalTimestamp: fixed })
    expect(sent({ fixed }, kept, position)).toMatchObject({ gps, signalTimestamp: fixed })
  })

  test('is sent with the time of its message by `no_fix: keep` if other values of the message have that time', () => {
    const payload = sent({ fixed: ts - 2 * minute }, { fix, no_fix: 'keep' })
    expect(payload).toMatchObject({ gps: { latitude: 48.8566 }, signalTimestamp: ts })
    const fields = { fields: { fuel: { path: 'fuel', type: 'number' } } }
    expect(sent({ fixed: ts - 2 * minute, fuel: 40 }, { fix, no_fix: 'keep' }, fields)).toMatchObject({
      fuel: 40,
      signalTimestamp: ts,
    })
  })

  test('is not kept if its time comes from a clock that was never set', () => {
    const payload = sent({ fixed: 0 }, { fix, no_fix: 'keep' })
    expect(payload.gps).toBeUndefined()
    expect(payload.signalTimestamp).toBe(ts)
  })

  test('does not become current when the message time is corrected', () => {
    const future = Date.UTC(2050, 0, 1)
    const world = { clocks: { on_future: 'restamp' }, clockOffsetMs: 0 }
    const payload = sent({ ts: future, fixed: ts }, { fix }, withSignal, world)
    expect(payload.signalTimestamp).toBe(messageOf('').arrivedAt)
    expect(payload.gps).toBeUndefined()
  })
})

describe('records that repeat the last fix', () => {
  const old = { ...reading, fixed: ts - 3_600_000 }
  const records = (list: readonly object[], rest: object, map = {}) => {
    const source = truckSource(map, { each: 'list', fix, ...rest })
    const mapper = openMapperOf([source])
    const result = mapper.map(messageOf({ list }))
    return { result, omitted: Object.fromEntries(mapper.counters().omitted) }
  }
  const ownTime = { fix: { ...fix, old: 'keep' } }
  const five = [0, 1, 2, 3, 4].map((index) => ({ ...old, ts: ts + index * 1000 }))

  test('are each sent with their own time by `old_time: message`', () => {
    const ofMessage = { fix: { ...fix, old_time: 'message' }, no_fix: 'keep' }
    expect(payloadsIn(records([five[0] ?? {}, five[0] ?? {}], ofMessage).result)).toHaveLength(2)
    const { result, omitted } = records(five, ofMessage)
    expect(payloadsIn(result).map(({ deviceTime }) => deviceTime)).toEqual(five.map((each) => each.ts))
    expect(omitted).toEqual({})
  })

  test('become one payload with the time of the fix, and the others are counted', () => {
    const { result, omitted } = records(five, { no_fix: 'keep' })
    const payloads = payloadsIn(result)
    expect(payloads).toHaveLength(1)
    expect(payloads[0]?.deviceTime).toBe(ts - 3_600_000)
    expect(omitted).toEqual({ 'trucks|gps|repeated fix': 4 })
  })

  test('are all sent where they say something new, and where they are readings of their own', () => {
    const odometers = five.map((each, index) => ({ ...each, odo: 5000 + index }))
    const times = payloadsIn(records(odometers, { no_fix: 'keep' }, withSignal).result)
    expect(times.map(({ deviceTime }) => deviceTime)).toEqual(five.map((each) => each.ts))
    expect(payloadsIn(records(odometers, ownTime, withSignal).result)).toHaveLength(5)
    const equal = [1, 2, 3].map(() => reading)
    const { result, omitted } = records(equal, ownTime)
    expect(new Set(payloadsIn(result).map(({ payloadId }) => payloadId)).size).toBe(3)
    expect(omitted).toEqual({})
  })

  test('are omitted without `keep`', () => {
    expect(verdictOf(records(five, {}).result)).toBe('no fix')
  })
})

describe('a position whose message gives its age', () => {
  const aged = { time: { age: 'age', unit: 's' } }
  const arrivedAt = messageOf('').arrivedAt

  test('is omitted if it is older than fix.max_age, and not before', () => {
    expect(sent({ age: 60 }, { fix: aged }).gps).toBeDefined()
    expect(sent({ age: 61 }, { fix: aged }).gps).toBeUndefined()
    expect(sent({ age: 2 }, { fix: { time: { age: 'age', unit: 'min' } } }).gps).toBeUndefined()
    expect(sent({ age: -1 }, { fix: aged }).gps).toBeDefined()
    expect(sent({ age: 'old' }, { fix: aged }).gps).toBeDefined()
  })

  test('is sent with its own time if the source keeps old positions, and invalid ones are still omitted', () => {
    const kept = { valid: 'sat > 0', ...aged, old: 'keep', max_age: '0s' }
    expect(sent({ age: 19_800 }, { fix: kept })).toMatchObject({ signalTimestamp: ts - 19_800_000 })
    expect(sent({ age: 19_800 }, { fix: kept }).gps).toBeDefined()
    expect(sent({ age: 19_800, sat: 0 }, { fix: kept }).gps).toBeUndefined()
    expect(sent({ age: 61 }, { fix: { ...aged, old: 'drop' }, no_fix: 'keep' }).gps).toBeUndefined()
  })

  test('counts the age from the arrival if the message has no time, and has no device time then', () => {
    const map = { ...withSignal, time: { format: 'arrival' } }
    const result = mapped({ age: 90 }, { fix: { ...aged, old: 'keep' } }, map)
    expect(sentIn(result)).toMatchObject({ signalTimestamp: arrivedAt - 90_000 })
    expect(result).toMatchObject({ payloads: [{ deviceTime: null, duplicateRule: 'resend' }] })
  })

  test('uses the earliest of several times and ages', () => {
    const both = { ...fix, time: [{ path: 'fixed', format: 'ms' }, aged.time], old: 'keep' }
    expect(sent({ fixed: ts - 1000, age: 90 }, { fix: both }).signalTimestamp).toBe(ts - 90_000)
    expect(sent({ fixed: ts - 90_000, age: 1 }, { fix: both }).signalTimestamp).toBe(ts - 90_000)
  })
})
