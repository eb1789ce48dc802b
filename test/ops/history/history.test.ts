// The history of the last hour, day and week, on real LevelDB, with a clock that is moved by hand.

import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
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
import { stepCases } from '../../support/step-cases.ts'

const sampleMs = 10_000

/** A wall clock that can be set, over a monotonic one. */
function settableClock(): Clock & { move(ms: number): void; set(ms: number): void } {
  const clock = handClock()
  let offsetMs = 0
  return { ...clock, now: () => clock.now() + offsetMs, set: (ms) => void (offsetMs += ms) }
}

type Span = (typeof historySpans)[number]
type World = Awaited<ReturnType<typeof start>>
type Growth = { samples: number; from?: number; used?: number; bytes: number; period?: number }

/** A daemon with its records; `again` opens those of one that was stopped. */
async function daemon(clock: ReturnType<typeof settableClock>, path: string) {
  const store = await openLevelStore(path)
  const view = {
    ingest: ingestCounters(),
    totals: spoolTotals(),
    delivery: deliveryCounters(),
    lanes: [lane(1)],
  }
  const writes = { fails: false }
  const records: RecordsStore = { use: async (work) => (writes.fails ? null : work(store)) }
  const views: StageViews = { ...stages(view), records }
  const history = createHistory({ clock, stages: views })
  history.start()
  let isStopped = false
  async function stop() {
    if (isStopped) return
    isStopped = true
    history.stop()
    await history.save()
    await store.close()
  }
  onTestFinished(stop)
  const receive = (messages: number) =>
    (view.ingest = ingestCounters({ received: view.ingest.received + messages }))
  return { store, view, views, all: { ...views }, history, writes, stop, receive }
}

/** A restart puts another daemon in its place. */
async function start() {
  const clock = settableClock()
  const path = join(await newFolder(), 'records')
  return { clock, path, of: await daemon(clock, path), forecast: forecastOf([], null) }
}

async function run({ clock, of }: World, ms: number, perSample: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += sampleMs) {
    of.receive(perSample)
    clock.move(sampleMs)
  }
  await of.history.save()
}

async function again(one: World): Promise<void> {
  one.of = await daemon(one.clock, one.path)
}

const sum = (values: readonly (number | null)[]) => values.reduce<number>((all, one) => all + (one ?? 0), 0)
const allKeys = { gte: Buffer.from([0x22]), lt: Buffer.from([0x23]) }
const limits = { bytesMax: 11_000_000, reserveBytes: 1_000_000, freeBytesMin: 1_000_000 }

function samplesOf(
  count: number,
  of: (index: number) => Partial<Record<'spoolBytes' | 'freeBytes', number>>,
) {
  return Array.from({ length: count }, (_, index): Sample => {
    const values: (number | null)[] = columnNames.map(() => null)
    for (const [name, value] of Object.entries(of(index))) values[columnOf(name as 'spoolBytes')] = value
    return { at: index * sampleMs, ms: sampleMs, values }
  })
}

const has =
  (span: Span) =>
  ({ of }: World, expected: object) =>
    expect(of.history.read(span)).toMatchObject(expected)

stepCases(import.meta.filename, start, {
  run: (one: World, [ms, perSample]: [number, number]) => run(one, ms, perSample),
  pass: ({ clock }: World, ms: number) => clock.move(ms),
  set: ({ clock }: World, ms: number) => clock.set(ms),
  stop: ({ of }: World) => of.stop(),
  start: again,
  restarts: async (one: World, [count, ms, perSample]: [number, number, number]) => {
    for (let n = 0; n < count; n += 1) {
      await run(one, ms, perSample)
      await one.of.stop()
      await again(one)
    }
  },
  outcomes: ({ of }: World, outcomes: Record<string, number>) =>
    void (of.view.delivery = deliveryCounters({ outcomes: new Map(Object.entries(outcomes)) })),
  lane: ({ of, clock }: World, { oldestAgo, ...more }: { oldestAgo: number }) =>
    void (of.view.lanes = [lane(1, { ...more, oldestAt: clock.now() - oldestAgo })]),
  received: ({ of }: World, received: number) => void (of.view.ingest = ingestCounters({ received })),
  detached: ({ of }: World) => of.history.detached(),
  without: ({ of }: World, names: (keyof StageViews)[]) => {
    for (const name of names) Object.assign(of.views, { [name]: null })
  },
  with: ({ of }: World, names: (keyof StageViews)[]) => {
    for (const name of names) Object.assign(of.views, { [name]: of.all[name] })
  },
  damage: async ({ of }: World, values: string[]) => {
    for (const value of values) {
      const key = Buffer.from([0x22, 0, 0, value.length])
      await of.store.write([{ type: 'put', key, value: Buffer.from(value) }], { sync: true })
    }
  },
  unwritable: async (one: World, [wellMs, ms]: [number, number]) => {
    await run(one, wellMs, 6)
    one.of.writes.fails = true
    await run(one, ms, 6)
  },
  writes: ({ of }: World) => void (of.writes.fails = false),
  hour: has('hour'),
  day: has('day'),
  week: has('week'),
  /** Of messages, and of seconds, in each span. */
  sums: ({ of }: World, [messages, seconds]: [number, number?]) => {
    for (const span of historySpans) {
      const view = historySchema.parse(of.history.read(span))
      expect([span, sum(view.messages)]).toEqual([span, messages])
      if (seconds !== undefined) expect([span, sum(view.seconds)]).toEqual([span, seconds])
      const columns = Object.entries(view).filter(([name, one]) => Array.isArray(one) && name !== 'answers')
      const lengths = columns.map(([, values]) => (values as unknown[]).length)
      expect([span, new Set(lengths)]).toEqual([span, new Set([view.atSeconds.length])])
    }
  },
  hourSum: ({ of }: World, messages: number) => expect(sum(of.history.read('hour').messages)).toBe(messages),
  daySum: ({ of }: World, messages: number) => expect(sum(of.history.read('day').messages)).toBe(messages),
  oldestFirst: ({ of }: World, age: number) => expect(of.history.read('hour').oldestAgeSeconds[0]).toBe(age),
  answers: ({ of }: World, expected: object) => {
    const answers = of.history.read('hour').answers.map(({ kind, submissions }) => [kind, sum(submissions)])
    expect(Object.fromEntries(answers)).toEqual(expected)
  },
  bounded: ({ of }: World, most: Record<Span, number>) => {
    for (const span of historySpans) {
      const view = of.history.read(span)
      expect(view.messages.length).toBeLessThanOrEqual(most[span])
      expect(new Set(view.seconds.slice(1, -1))).toEqual(new Set([view.stepSeconds]))
    }
  },
  dayIsFull: ({ of }: World, samples: number) =>
    expect(of.history.read('day').messages).toHaveLength(samples),
  keysBetween: async ({ of }: World, [least, most]: [number, number]) => {
    let keys = 0
    for await (const page of of.store.pages(allKeys)) keys += page.length
    expect(keys).toBeGreaterThan(least)
    expect(keys).toBeLessThanOrEqual(most)
  },
  /** Of the hour: how many samples of each. */
  runsOfMessages: ({ of }: World, runs: [number, number | null][]) =>
    expect(of.history.read('hour').messages).toEqual(
      runs.flatMap(([count, messages]) => Array<number | null>(count).fill(messages)),
    ),
  gapSeconds: ({ of }: World, seconds: number) => {
    const { messages, atSeconds } = of.history.read('hour')
    const gap = messages.indexOf(null)
    expect(atSeconds[gap]! - atSeconds[gap - 1]!).toBe(seconds)
  },
  steady: ({ of, clock }: World, seconds: number) => {
    const view = of.history.read('hour')
    expect(new Set(view.seconds)).toEqual(new Set([sampleMs / 1000]))
    expect(view.atSeconds.at(-1)! - view.atSeconds[0]!).toBe(seconds)
    expect(view.atSeconds.at(-1)).toBe(Math.round(clock.now() / 1000))
  },
  grows: (one: World, { samples, from = 0, used = 0, bytes, period = Infinity }: Growth) => {
    const at = (index: number) =>
      period === Infinity ? Math.max(0, index - from + (from && 1)) : index % period
    const spoolBytes = (index: number) => ({ spoolBytes: used + at(index) * bytes })
    one.forecast = forecastOf(samplesOf(samples, spoolBytes), limits)
  },
  drains: (one: World, { samples, free, bytes }: { samples: number; free: number; bytes: number }) => {
    const freeBytes = (index: number) => ({ spoolBytes: 0, freeBytes: free - index * bytes })
    one.forecast = forecastOf(samplesOf(samples, freeBytes), limits)
  },
  forecast: ({ forecast }: World, expected: object) => expect(forecast).toMatchObject(expected),
  secondsToFull: ({ forecast }: World, [least, most]: [number, number]) => {
    expect(forecast.fullFirst).toBe('spool')
    expect(forecast.secondsToFull).toBeGreaterThan(least)
    expect(forecast.secondsToFull).toBeLessThan(most)
  },
})

test('a kill loses less than a minute of each span', async () => {
  const one = await start()
  for (let passed = 0; passed < 590_000; passed += sampleMs) {
    one.of.receive(6)
    one.clock.move(sampleMs)
  }
  // What the daemon writes by itself, and nothing more: nobody calls `save`.
  await eventually(async () => Math.min(...(await storedMessages(one.of.store))) >= 324)
  const killed = await daemon(one.clock, await killedCopy(one.path))
  one.clock.move(sampleMs)
  await killed.history.save()
  for (const span of historySpans) expect(sum(killed.history.read(span).messages)).toBeGreaterThanOrEqual(324)
})

/** Of each span. */
async function storedMessages(store: Store): Promise<number[]> {
  const stored = [0, 0, 0]
  for await (const page of store.pages(allKeys))
    for (const [key, value] of page) {
      const [, , , rows] = JSON.parse(value.toString()) as [1, string[], number, [number, number, number[]][]]
      for (const [, , values] of rows) stored[key[1]!]! += values[0]!
    }
  return stored
}
