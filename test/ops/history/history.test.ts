// The history of the last hour, day and week, on real LevelDB, with a clock that is moved by hand.

import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { Clock } from '../../../src/std/clock.ts'
import type { RecordsStore } from '../../../src/device-records/device-records.ts'
import { forecastOf } from '../../../src/ops/history/fill-forecast.ts'
import { columnNames, columnOf, type Sample } from '../../../src/ops/history/history-samples.ts'
import { createHistory, historySchema, historySpans } from '../../../src/ops/history/history.ts'
import type { StageViews } from '../../../src/ops/types.ts'
import { openLevelStore, type Store } from '../../../src/storage/storage.ts'
import { eventually } from '../../support/eventually.ts'
import { newFolder } from '../../support/folders.ts'
import { killedCopy } from '../../support/killed-copy.ts'
import {
  deliveryCounters,
  handClock,
  ingestCounters,
  lane,
  spoolTotals,
  stages,
} from '../../support/ops-world.ts'

const seconds = 1000
const minutes = 60 * seconds
const hours = 60 * minutes

/** A wall clock that can be set, over a monotonic one. */
function settableClock(): Clock & { move(ms: number): void; set(ms: number): void } {
  const clock = handClock()
  let offsetMs = 0
  return { ...clock, now: () => clock.now() + offsetMs, set: (ms) => void (offsetMs += ms) }
}

type World = Awaited<ReturnType<typeof world>>

async function world({ clock = settableClock(), folder = '' } = {}) {
  const path = folder === '' ? join(await newFolder(), 'records') : folder
  const store = await openLevelStore(path)
  const view = {
    ingest: ingestCounters(),
    totals: spoolTotals(),
    delivery: deliveryCounters(),
    lanes: [lane(1)],
  }
  const writes = { count: 0, fails: false }
  const views: StageViews = { ...stages(view), records: recordsOf(store, writes) }
  const history = createHistory({ clock, stages: views })
  history.start()
  return {
    clock,
    path,
    store,
    view,
    views,
    history,
    writes,
    receive: (messages: number) =>
      (view.ingest = ingestCounters({ received: view.ingest.received + messages })),
    async [Symbol.asyncDispose]() {
      history.stop()
      await history.save()
      if (views.records) await store.close()
    },
  }
}

function recordsOf(store: Store, writes: { count: number; fails: boolean }): RecordsStore {
  return {
    async use(work) {
      if (writes.fails) return null
      writes.count += 1
      return work(store)
    },
  }
}

/** Moves in steps, with messages in each. */
async function run({ clock, receive, history }: World, ms: number, perSample = 0): Promise<void> {
  for (let passed = 0; passed < ms; passed += 10 * seconds) {
    receive(perSample)
    clock.move(10 * seconds)
  }
  await history.save()
}

/** Of each span. */
async function storedMessages(store: Store): Promise<number[]> {
  const stored = [0, 0, 0]
  for await (const page of store.pages({ gte: Buffer.from([0x22]), lt: Buffer.from([0x23]) }))
    for (const [key, value] of page) {
      const [, , , rows] = JSON.parse(value.toString()) as [1, string[], number, [number, number, number[]][]]
      for (const [, , values] of rows) stored[key[1]!]! += values[0]!
    }
  return stored
}

const sum = (values: readonly (number | null)[]) => values.reduce<number>((all, one) => all + (one ?? 0), 0)

describe('the history', () => {
  test('has the counts of each sample, in columns of the same length, as its schema says', async () => {
    await using one = await world()
    one.view.delivery = deliveryCounters({
      outcomes: new Map([
        ['answered', 5],
        ['unavailable_500', 2],
        ['unauthorized_403', 1],
        ['unreadable', 1],
      ]),
    })
    one.view.lanes = [lane(1, { pending: 3, sealed: 4, oldestAt: one.clock.now() - 90_000 })]
    await run(one, minutes, 20)
    for (const span of historySpans) {
      const view = historySchema.parse(one.history.read(span))
      expect([span, sum(view.messages), sum(view.seconds)]).toEqual([span, 120, 60])
      const columns = Object.entries(view).filter(([name, of]) => Array.isArray(of) && name !== 'answers')
      const lengths = columns.map(([, values]) => (values as unknown[]).length)
      expect([span, new Set(lengths)]).toEqual([span, new Set([view.atSeconds.length])])
    }
    const hour = one.history.read('hour')
    expect(hour.messages).toEqual([20, 20, 20, 20, 20, 20])
    expect(hour.waiting).toEqual([7, 7, 7, 7, 7, 7])
    expect(hour.oldestAgeSeconds[0]).toBe(100)
    expect(hour.answers.map(({ kind, submissions }) => [kind, sum(submissions)])).toEqual([
      ['answered', 5],
      ['unauthorized', 1],
      ['unavailable', 2],
      ['other', 1],
    ])
    expect(one.history.read('day')).toMatchObject({ messages: [120], waiting: [7], stepSeconds: 120 })
  })

  test('is bounded: the samples of an hour, a day and a week', async () => {
    await using one = await world()
    await run(one, 26 * hours, 1)
    for (const [span, most] of [
      ['hour', 360],
      ['day', 720],
      ['week', 672],
    ] as const) {
      const view = one.history.read(span)
      expect(view.messages.length).toBeLessThanOrEqual(most)
      expect(new Set(view.seconds.slice(1, -1))).toEqual(new Set([view.stepSeconds]))
    }
    expect(one.history.read('day').messages).toHaveLength(720)
    let keys = 0
    for await (const page of one.store.pages({ gte: Buffer.from([0x22]), lt: Buffer.from([0x23]) }))
      keys += page.length
    expect(keys).toBeLessThanOrEqual(62 + 146 + 170)
    expect(keys).toBeGreaterThan(200)
  })

  test('counts a stage that began again from zero, and knows nothing of one that is missing', async () => {
    await using one = await world()
    await run(one, 20 * seconds, 10)
    one.history.detached()
    const { ingest } = one.views
    Object.assign(one.views, { ingest: null })
    one.clock.move(10 * seconds)
    Object.assign(one.views, { ingest })
    one.view.ingest = ingestCounters({ received: 4 })
    one.clock.move(10 * seconds)
    expect(one.history.read('hour').messages).toEqual([10, 10, null, 4])
    // Without any stage there is no sample, and one row shows the gap.
    Object.assign(one.views, { ingest: null, spool: null })
    one.clock.move(20 * seconds)
    Object.assign(one.views, { ingest, spool: stages(one.view).spool })
    one.clock.move(10 * seconds)
    expect(one.history.read('hour').messages).toEqual([10, 10, null, 4, null, 0])
  })
})

describe('over a restart', () => {
  test('the samples are there, with a gap for the time without the daemon', async () => {
    const clock = settableClock()
    const first = await world({ clock })
    await run(first, 10 * minutes, 6)
    await first[Symbol.asyncDispose]()
    clock.move(5 * minutes)
    await using second = await world({ clock, folder: first.path })
    await run(second, 5 * minutes, 3)
    const view = second.history.read('hour')
    expect(view.messages).toEqual([...Array(60).fill(6), null, ...Array(30).fill(3)])
    const gap = view.messages.indexOf(null)
    expect(view.atSeconds[gap]! - view.atSeconds[gap - 1]!).toBe(150)
    for (const span of historySpans) expect(sum(second.history.read(span).messages)).toBe(450)
  })

  test('a kill loses less than a minute of each span', async () => {
    const clock = settableClock()
    await using first = await world({ clock })
    for (let passed = 0; passed < 590; passed += 10) {
      first.receive(6)
      clock.move(10 * seconds)
    }
    // What the daemon writes by itself, and nothing more: nobody calls `save`.
    await eventually(async () => Math.min(...(await storedMessages(first.store))) >= 324)
    const path = await killedCopy(first.path)
    await using second = await world({ clock, folder: path })
    clock.move(10 * seconds)
    await second.history.save()
    for (const span of historySpans)
      expect(sum(second.history.read(span).messages)).toBeGreaterThanOrEqual(324)
  })

  test('many restarts take no room from the samples', async () => {
    const clock = settableClock()
    let path = ''
    for (let start = 0; start < 30; start += 1) {
      const one = await world({ clock, folder: path })
      await run(one, 20 * seconds, 1)
      path = one.path
      await one[Symbol.asyncDispose]()
    }
    await using last = await world({ clock, folder: path })
    await run(last, 10 * seconds, 1)
    for (const span of historySpans) expect(sum(last.history.read(span).messages)).toBe(61)
    expect(last.history.read('week').messages).toHaveLength(1)
  })

  test('damaged samples are ignored', async () => {
    const clock = settableClock()
    const first = await world({ clock })
    await run(first, 2 * minutes, 6)
    for (const value of ['', '{', '[1]', '[1,["messages"],1e300,[]]', '[2,[],0,[]]', 'null', '[1,[],-1,[]]'])
      await first.store.write(
        [{ type: 'put', key: Buffer.from([0x22, 0, 0, value.length]), value: Buffer.from(value) }],
        { sync: true },
      )
    await first[Symbol.asyncDispose]()
    await using second = await world({ clock, folder: first.path })
    await run(second, minutes, 6)
    expect(sum(second.history.read('day').messages)).toBe(108)
  })
})

describe('where the records cannot be used', () => {
  test.each([
    ['from the start on', 0],
    ['after the first minute', minutes],
  ])('%s, nothing is lost in memory, and it is written later', async (_, wellMs) => {
    const clock = settableClock()
    const first = await world({ clock })
    await run(first, wellMs, 6)
    first.writes.fails = true
    await run(first, 3 * minutes - wellMs, 6)
    expect(sum(first.history.read('hour').messages)).toBe(108)
    first.writes.fails = false
    await first[Symbol.asyncDispose]()
    await using second = await world({ clock, folder: first.path })
    await run(second, 10 * seconds)
    expect(sum(second.history.read('hour').messages)).toBe(108)
  })
})

describe('when the clock is set', () => {
  test.each([
    ['forward', 55 * 365 * 24 * hours],
    ['back', -3 * hours],
  ])('%s, the samples of this process stay as long ago as they are, on the disk too', async (_, ms) => {
    const clock = settableClock()
    const first = await world({ clock })
    await run(first, 2 * minutes, 6)
    clock.set(ms)
    await run(first, 2 * minutes, 6)
    const view = first.history.read('hour')
    expect(view.messages).toEqual(Array(24).fill(6))
    expect(new Set(view.seconds)).toEqual(new Set([10]))
    expect(view.atSeconds.at(-1)! - view.atSeconds[0]!).toBe(230)
    expect(view.atSeconds.at(-1)).toBe(Math.round(clock.now() / 1000))
    await first[Symbol.asyncDispose]()
    await using second = await world({ clock, folder: first.path })
    await run(second, 10 * seconds)
    expect(sum(second.history.read('hour').messages)).toBe(144)
  })

  test('samples in the future are hidden until the clock reaches them', async () => {
    const clock = settableClock()
    const first = await world({ clock })
    await run(first, 2 * minutes, 6)
    await first[Symbol.asyncDispose]()
    clock.set(-30 * minutes)
    await using second = await world({ clock, folder: first.path })
    await run(second, minutes, 1)
    expect(sum(second.history.read('hour').messages)).toBe(6)
    clock.set(30 * minutes)
    await run(second, minutes, 1)
    expect(sum(second.history.read('hour').messages)).toBe(84)
  })
})

describe('the time until the spool is full', () => {
  const limits = { bytesMax: 11_000_000, reserveBytes: 1_000_000, freeBytesMin: 1_000_000 }
  const samples = (
    count: number,
    of: (index: number) => Partial<Record<'spoolBytes' | 'freeBytes', number>>,
  ) =>
    Array.from({ length: count }, (_, index): Sample => {
      const values: (number | null)[] = columnNames.map(() => null)
      for (const [name, value] of Object.entries(of(index))) values[columnOf(name as 'spoolBytes')] = value
      return { at: index * 10_000, ms: 10_000, values }
    })

  test('follows the growth of the last minutes', () => {
    const grows = samples(360, (index) => ({ spoolBytes: index < 330 ? 0 : (index - 329) * 10_000 }))
    const { secondsToFull, fullFirst } = forecastOf(grows, limits)
    // 300 kB are used, and it grows by 1000 bytes a second at last.
    expect(secondsToFull).toBeGreaterThan(9000)
    expect(secondsToFull).toBeLessThan(30_000)
    expect(fullFirst).toBe('spool')
    const steady = samples(360, (index) => ({ spoolBytes: index * 10_000 }))
    expect(forecastOf(steady, limits)).toEqual({
      secondsToFull: Math.round((10_000_000 - 3_590_000) / 1000),
      fullFirst: 'spool',
      secondsToFullWhy: null,
    })
  })

  test('says of the disk when it is full first', () => {
    const fills = samples(360, (index) => ({ spoolBytes: 0, freeBytes: 5_000_000 - index * 1000 }))
    expect(forecastOf(fills, limits)).toMatchObject({ fullFirst: 'disk', secondsToFull: 36_410 })
    // The same for a few minutes after a start: files of a new database.
    expect(forecastOf(fills.slice(0, 30), limits)).toMatchObject({ fullFirst: null, secondsToFull: null })
  })

  test.each([
    ['too few samples', 10, (index: number) => index * 100_000],
    ['no growth', 360, () => 5],
    ['what fills and drains', 360, (index: number) => (index % 30) * 100_000],
    ['what becomes less', 360, (index: number) => 5_000_000 - index * 10_000],
  ])('is not known with %s', (_, count, of) => {
    const forecast = forecastOf(
      samples(count, (index) => ({ spoolBytes: of(index) })),
      limits,
    )
    expect(forecast).toMatchObject({ secondsToFull: null, fullFirst: null })
    expect(forecast.secondsToFullWhy).toMatch(/\.$/)
    expect(forecastOf([], null).secondsToFull).toBeNull()
  })

  test('is zero where it is full', () => {
    const full = samples(360, (index) => ({ spoolBytes: 10_000_000 + index }))
    expect(forecastOf(full, limits).secondsToFull).toBe(0)
  })
})
