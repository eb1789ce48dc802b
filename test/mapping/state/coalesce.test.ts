import { describe, expect, test } from 'vitest'
import * as fc from 'fast-check'
import {
  createCoalescer,
  type Coalescer,
  type CoalesceBounds,
  type CoalesceRules,
  type Step,
} from '../../../src/mapping/state/coalesce.ts'
import { decodeRecord, storedFormOf } from '../../../src/mapping/state/open-record.ts'

const bounds = { valuesMax: 64, bytesMax: 65_536, recordsMax: 1000, openBytesMax: 16_777_216 }
const rules = {
  require: ['lat', 'lon'],
  complete: [],
  latest: [],
  windowMs: 500,
  pairWithinMs: Number.POSITIVE_INFINITY,
  position: null,
}

type Came = { at: number; name: string; value: unknown; time?: number; owner?: string }

type World = {
  coalescer: Coalescer
  /** The entries that the spool would hold. */
  kept: Map<string, Buffer>
  came(value: Came): string
  tick(at: number): void
  /** A crash: state that is not in the spool is lost. */
  restart(): string[]
  /** `name=value` of each closed record, with its time or arrival. */
  closed: { owner: string; record: Record<string, unknown>; at: number; complete: boolean; why: string }[]
}

function open(some: Partial<CoalesceRules> = {}, bound: Partial<CoalesceBounds> = {}): World {
  const make = () => createCoalescer({ ...rules, ...some }, { ...bounds, ...bound })
  const kept = new Map<string, Buffer>()
  const world: World = {
    coalescer: make(),
    kept,
    closed: [],
    came({ at, name, value, time = Number.NaN, owner = 'van-1' }) {
      const plain = storedFormOf(name, value)
      if (plain === null) throw new Error('a value that cannot be kept')
      const step: Step = { closed: [], writes: new Map() }
      const fate = world.coalescer.add(owner, { name, ...plain, time, arrivedAt: at, messages: 1 }, step)
      commit(step)
      return fate
    },
    tick(at) {
      const step: Step = { closed: [], writes: new Map() }
      world.coalescer.tick(at, step)
      commit(step)
    },
    restart() {
      const damaged: string[] = []
      world.coalescer = make()
      world.coalescer.restore(kept, (owner, why) => damaged.push(`${owner}: ${why}`))
      return damaged
    },
  }
  return world

  function commit(step: Step): void {
    for (const [owner, bytes] of step.writes) {
      if (bytes === null) kept.delete(owner)
      else kept.set(owner, Buffer.from(bytes))
    }
    for (const { owner, record, arrivedAt, complete, why } of step.closed)
      world.closed.push({ owner, record: { ...record }, at: arrivedAt, complete, why })
  }
}

const position = (at: number, lat: number, lon: number): Came[] => [
  { at, name: 'lat', value: lat },
  { at: at + 1, name: 'lon', value: lon },
]

describe('values of one device', () => {
  test('become one record when the window is over, in any order', () => {
    for (const names of [
      ['speed', 'lon', 'lat'],
      ['lat', 'lon', 'speed'],
    ]) {
      const world = open()
      for (const [index, name] of names.entries()) world.came({ at: index, name, value: name.length })
      world.tick(499)
      expect(world.closed).toEqual([])
      world.tick(500)
      expect(world.closed).toEqual([
        { owner: 'van-1', record: { lat: 3, lon: 3, speed: 5 }, at: 2, complete: true, why: 'window' },
      ])
      expect(world.kept.size).toBe(0)
      expect(world.coalescer.nextTickAt()).toBeNull()
    }
  })

  test('are stored until then, with one write each', () => {
    const world = open()
    for (const [index, value] of position(1000, 48, 11).entries()) {
      world.came(value)
      expect(world.kept.size).toBe(1)
      expect(world.coalescer.counters()).toMatchObject({ records: 1, messages: index + 1 })
    }
    expect(world.coalescer.nextTickAt()).toBe(1500)
  })

  test('with a name that repeats close the record and open the next', () => {
    const world = open()
    for (const value of [...position(0, 48.1, 11.1), ...position(30, 48.2, 11.2)]) world.came(value)
    world.tick(600)
    expect(world.closed).toMatchObject([
      { record: { lat: 48.1, lon: 11.1 }, at: 1, why: 'repeat' },
      { record: { lat: 48.2, lon: 11.2 }, at: 31, why: 'window' },
    ])
  })

  test('of a name in `latest` replace the previous value, also over a restart', () => {
    const world = open({ latest: ['clock'] }, { valuesMax: 3 })
    for (const value of [...position(0, 48, 11), { at: 2, name: 'clock', value: 5 }]) world.came(value)
    expect(world.came({ at: 3, name: 'clock', value: 6 })).toBe('taken')
    expect(world.restart()).toEqual([])
    world.tick(500)
    expect(world.closed).toEqual([
      { owner: 'van-1', record: { lat: 48, lon: 11, clock: 6 }, at: 3, complete: true, why: 'window' },
    ])
  })

  test('close the record at once when all names of `complete` have arrived', () => {
    const world = open({ complete: ['lat', 'lon'] })
    for (const value of position(0, 48, 11)) world.came(value)
    expect(world.closed).toMatchObject([{ why: 'complete', complete: true }])
    expect(world.kept.size).toBe(0)
  })

  test('of two windows make two records even when the tick is late', () => {
    const world = open()
    world.came({ at: 0, name: 'lat', value: 48 })
    world.came({ at: 500, name: 'lon', value: 11 })
    world.tick(2000)
    expect(world.closed).toMatchObject([
      { record: { lat: 48 }, complete: false },
      { record: { lon: 11 }, complete: false },
    ])
  })

  test('are incomplete when a required one is missing or null', () => {
    const world = open()
    world.came({ at: 0, name: 'lat', value: 48 })
    world.came({ at: 1, name: 'lon', value: null })
    world.tick(500)
    expect(world.closed).toMatchObject([{ record: { lat: 48, lon: null }, complete: false }])
  })

  test('with times further apart than `pairWithin` close the older record', () => {
    const byArrival = open({ windowMs: 60_000, pairWithinMs: 5000 })
    byArrival.came({ at: 0, name: 'lat', value: 48 })
    byArrival.came({ at: 5001, name: 'lon', value: 11 })
    expect(byArrival.closed).toMatchObject([{ record: { lat: 48 }, why: 'apart' }])
    const byTime = open({ windowMs: 60_000, pairWithinMs: 5000 })
    byTime.came({ at: 0, name: 'lat', value: 48, time: 100_000 })
    byTime.came({ at: 1, name: 'lon', value: 11, time: 105_000 })
    byTime.came({ at: 2, name: 'speed', value: 5, time: 99_999 })
    expect(byTime.closed).toMatchObject([{ record: { lat: 48, lon: 11 }, why: 'apart' }])
  })

  test('give the record the newest time of the required values, else of all', () => {
    const world = open()
    world.came({ at: 0, name: 'odometer', value: 5, time: 700 })
    world.came({ at: 1, name: 'lat', value: 48, time: 1000 })
    world.came({ at: 2, name: 'lon', value: 11, time: 1002 })
    world.came({ at: 3, name: 'speed', value: 0, time: 1004 })
    world.tick(500)
    world.came({ at: 1000, name: 'speed', value: 0, time: 2004 })
    world.came({ at: 1001, name: 'odometer', value: 0, time: 1900 })
    world.tick(1500)
    expect(world.closed.map(({ record }) => record['$time'])).toEqual([1002, 2004])
  })

  test('with the same name, value and time are duplicates', () => {
    const world = open()
    const value = { at: 0, name: 'lat', value: { deg: 48 }, time: 1000 }
    expect(world.came(value)).toBe('taken')
    expect(world.came({ ...value, at: 3 })).toBe('duplicate')
    expect(world.came({ ...value, at: 4, value: { deg: 49 } })).toBe('taken')
    expect(world.closed).toHaveLength(1)
    expect(world.came({ ...value, at: 5, value: { deg: 49 }, time: 1001 })).toBe('taken')
    expect(world.closed).toHaveLength(2)
    expect(world.coalescer.counters()).toMatchObject({ values: 4, duplicates: 1, messages: 1 })
  })

  test('close when the clock is set back beyond the window', () => {
    const world = open()
    world.came({ at: 3_600_000, name: 'lat', value: 48 })
    world.tick(0)
    expect(world.closed).toHaveLength(1)
  })
})

describe('at a bound', () => {
  test('of values a record closes early', () => {
    const world = open({}, { valuesMax: 2 })
    for (const name of ['a', 'b', 'c']) world.came({ at: 0, name, value: 1 })
    expect(world.closed).toMatchObject([{ record: { a: 1, b: 1 }, why: 'full' }])
  })

  test('of bytes a record closes early, and a larger value is refused before', () => {
    const world = open({}, { bytesMax: 1000 })
    world.came({ at: 0, name: 'a', value: 'x'.repeat(200) })
    world.came({ at: 0, name: 'b', value: 'x'.repeat(300) })
    expect(world.closed).toMatchObject([{ why: 'full' }])
    expect(world.coalescer.fits('a', 'x'.repeat(1000))).toBe(false)
  })

  test('of records the oldest one closes early', () => {
    const world = open({}, { recordsMax: 2 })
    for (const owner of ['van-1', 'van-2', 'van-3']) world.came({ at: 0, name: 'a', value: 1, owner })
    expect(world.closed).toMatchObject([{ owner: 'van-1', why: 'crowded' }])
    expect([...world.kept.keys()]).toEqual(['van-2', 'van-3'])
    expect(world.coalescer.counters().closed).toMatchObject({ crowded: 1 })
  })
})

describe('a restart', () => {
  test('in a window loses no value and closes the records whose window is over', () => {
    const world = open()
    for (const value of position(0, 48, 11)) world.came(value)
    expect(world.restart()).toEqual([])
    expect(world.coalescer.counters()).toMatchObject({ records: 1, messages: 2 })
    world.tick(100_000)
    expect(world.closed).toEqual([
      { owner: 'van-1', record: { lat: 48, lon: 11 }, at: 1, complete: true, why: 'window' },
    ])
  })

  test('with damaged state reports the damage and restores the rest', () => {
    const world = open()
    for (const owner of ['van-1', 'van-2', 'van-3']) world.came({ at: 0, name: 'lat', value: 1, owner })
    world.kept.set('van-1', Buffer.from([9]))
    world.kept.set('van-2', (world.kept.get('van-2') ?? Buffer.alloc(0)).subarray(0, 20))
    expect(world.restart()).toEqual(['van-1: its version is 9', 'van-2: a frame is truncated at byte 1'])
    expect(world.coalescer.counters().records).toBe(1)
  })
})

test('decoding a record never throws, whatever the bytes', () => {
  const world = open()
  for (const value of position(0, 48, 11)) world.came(value)
  const good = world.kept.get('van-1') ?? Buffer.alloc(0)
  fc.assert(
    fc.property(
      fc.oneof(
        fc.uint8Array({ maxLength: 200 }),
        fc.tuple(fc.nat(good.length - 1), fc.nat(255)).map(([at, byte]) => {
          const bad = Buffer.from(good)
          bad[at] = byte
          return bad
        }),
        fc.nat(good.length).map((end) => good.subarray(0, end)),
      ),
      (bytes) => {
        expect(['record', 'damaged']).toContain(decodeRecord('van-1', Buffer.from(bytes)).kind)
      },
    ),
  )
})

test('the stored form of a record does not change when the record grows', () => {
  const coalescer = createCoalescer(rules, bounds)
  const seen: { bytes: Buffer; before: string }[] = []
  for (let n = 0; n < 50; n += 1) {
    const step: Step = { closed: [], writes: new Map() }
    const plain = storedFormOf(`n${n}`, n)
    if (plain !== null)
      coalescer.add('van-1', { name: `n${n}`, ...plain, time: n, arrivedAt: n, messages: 1 }, step)
    const bytes = step.writes.get('van-1')
    if (bytes) seen.push({ bytes, before: bytes.toString('hex') })
  }
  for (const { bytes, before } of seen) expect(bytes.toString('hex')).toBe(before)
  expect(seen).toHaveLength(50)
})
