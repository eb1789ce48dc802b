import { describe, expect, test } from 'vitest'
import { messageOf, openMapperOf, sentIn, truckSource, verdictOf } from '../../support/mapping-world.ts'

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
    expect(verdictOf(mapped({ lat: [1], lon: [] }))).toBe('HALF_POSITION')
    expect(verdictOf(mapped({ lat: [1], lon: 2 }))).toBe('BAD_VALUE')
  })

  test('never makes a dead letter by an invalid position', () => {
    expect(sent({ sat: 0, lat: 91, lon: 181 }, { fix }).gps).toBeUndefined()
    expect(verdictOf(mapped({ lat: 91, lon: 181 }, { fix }))).toBe('OUT_OF_RANGE')
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
    const { gps, signalTimestamp } = sent({ fixed: ts - 2 * minute }, { fix, no_fix: 'keep' })
    expect(gps).toEqual({ latitude: 48.8566, longitude: 2.3522, heading: 90 })
    expect(signalTimestamp).toBe(ts - 2 * minute)
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
