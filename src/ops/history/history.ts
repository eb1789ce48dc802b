// history.ts: how the gateway did over the last hour, day and week, for plots. Entry file of this folder.
//
// Guarantees
//   Samples are kept over restarts. After kill -9 the last minute is missing. Time without a sample is a gap,
//   not zero. Size in memory and on the disk is bounded, whatever happens. Nothing depends on them.
//
// How
//   history-samples.ts  what a sample has: the columns; and how several become one
//   history-ring.ts     the samples of a span, in chunks; how long and how fine
//   history-store.ts    the chunks in the records database, beside the device records
//   fill-forecast.ts    when the spool or its disk is full
//
//   every 10 s the counters of the stages are read; once a minute what changed is written, not synced
//
// Clocks
//   A sample has its end by the wall clock, and its duration by the monotonic clock. When the wall clock is
//   set, the samples of this process move with it: they were that long ago. A machine that slept looks the
//   same, and its samples move, too. Samples of an earlier process stay where they are, and those in the
//   future are not shown until the clock reaches them.
//
// What can go wrong, and what then happens
//   the records cannot be used   samples are in memory only, and written when the database is open again
//   the disk is low              nothing is written
//   a stage is missing           its values are null: a gap
//   a stage began again          its counters begin at zero, and what came since counts

import { every, isoTime, type CancelTimer, type Clock } from '../../std/clock.ts'
import { z } from 'zod'
import type { RecordsStore } from '../../device-records/device-records.ts'
import { count, record, seconds, time } from '../status-schema/value-types.ts'
import type { StageViews } from '../types.ts'
import { forecastOf, type FillForecast } from './fill-forecast.ts'
import {
  answerKinds,
  columnNames,
  columnOf,
  plainColumns,
  readingsOf,
  valuesOf,
  type Readings,
  type Sample,
} from './history-samples.ts'
import { createHistoryRing, historySpans, samplesOf, spanPlans, type HistorySpan } from './history-ring.ts'
import { restoreHistory, writeHistory } from './history-store.ts'

export { historySpans, type HistorySpan } from './history-ring.ts'
export type { FillForecast } from './fill-forecast.ts'

const counts = () => z.array(count().nullable())

const plainNames = Object.keys(plainColumns) as (keyof typeof plainColumns)[]

/** One row for each sample, the oldest first; a row of nulls where there is a gap. */
export const historySchema = record({
  now: time().describe('When the answer was made, by the clock of the machine.'),
  span: z.enum(historySpans).describe('The span that was asked for.'),
  from: time().describe('Where it begins.'),
  stepSeconds: seconds().describe('What a sample covers; the one that grows now covers less.'),
  atSeconds: z
    .array(z.number())
    .describe(
      'The end of each sample, the oldest first, in seconds since 1970. Each other array has as many values; null: not known. Where the gateway did not run, one sample is null in each of them.',
    ),
  seconds: z
    .array(seconds().nullable())
    .describe('Duration of each sample, by the monotonic clock. Divide a count by it to get a rate.'),
  ...byPlainName((name) => counts().describe(plainColumns[name].means)),
  answers: z
    .array(
      record({
        kind: z
          .enum(answerKinds)
          .describe(
            '`answered`: with a result for each payload. `refused`: 400, 413. `repeated`: 409. `unauthorized`: 401, 403. `unavailable`: 408, 425, 429, 5xx. `unreachable`: no answer. `other`: no readable answer.',
          ),
        submissions: counts().describe('Submissions that ended so.'),
      }),
    )
    .describe('How submissions ended; kinds that occurred.'),
})

export type HistoryView = z.output<typeof historySchema>

function byPlainName<Value>(of: (name: keyof typeof plainColumns) => Value) {
  return Object.fromEntries(plainNames.map((name) => [name, of(name)])) as Record<
    keyof typeof plainColumns,
    Value
  >
}

export type History = {
  start(): void
  read(span: HistorySpan): HistoryView
  forecast(): FillForecast
  /** Called after each sample. Call the returned function to end that. */
  follow(sampled: () => void): () => void
  /** The stages are closed: others begin at zero. */
  detached(): void
  /** Writes what is not written; the records are closed then. Never rejects. */
  save(): Promise<void>
  stop(): void
}

const sampleEveryMs = spanPlans.hour.stepMs
const samplesPerWrite = 6
/** A smaller difference is the inaccuracy of timers, and of a clock that is being adjusted. */
const clockStepMs = 2000

type Deps = { clock: Clock; stages: StageViews }

export function createHistory({ clock, stages }: Deps): History {
  const rings = {
    hour: createHistoryRing(spanPlans.hour),
    day: createHistoryRing(spanPlans.day),
    week: createHistoryRing(spanPlans.week),
  }
  const followers = new Set<() => void>()
  let before: Readings = []
  let beforeMs = clock.monotonic()
  let wallOffsetMs = clock.now() - beforeMs
  let restored = false
  let samples = 0
  let writing: Promise<void> = Promise.resolve()
  let cancel: CancelTimer = () => {}
  return {
    start() {
      cancel = every(clock, sampleEveryMs, take)
    },
    read,
    forecast: () =>
      forecastOf(samplesOf(rings.hour, spanPlans.hour, clock.now()), stages.spool?.totals() ?? null),
    follow(sampled) {
      followers.add(sampled)
      return () => void followers.delete(sampled)
    },
    detached() {
      before = []
    },
    async save() {
      await writing
      await write()
    },
    stop() {
      cancel()
      followers.clear()
    },
  }

  function take(): void {
    const nowMs = clock.monotonic()
    const now = clock.now()
    const steppedMs = now - nowMs - wallOffsetMs
    wallOffsetMs = now - nowMs
    if (Math.abs(steppedMs) >= clockStepMs) for (const span of historySpans) rings[span].shift(steppedMs)
    const ms = nowMs - beforeMs
    beforeMs = nowMs
    // Without any stage there is nothing to know: a gap.
    if (stages.ingest === null && stages.spool === null) return
    const readings = readingsOf(stages, now)
    const values = valuesOf(before, readings)
    before = readings
    for (const span of historySpans) rings[span].add({ at: now, ms, values })
    samples += 1
    if (samples % samplesPerWrite === 0 || !restored) writing = writing.then(write)
    for (const sampled of followers) sampled()
  }

  /** Never rejects: `use` does not. */
  async function write(): Promise<void> {
    const store: RecordsStore | null = stages.records ?? null
    if (store === null) return
    if (!restored) restored = await restoreHistory(store, rings)
    if (restored && stages.spool?.holdReason() !== 'disk_low') await writeHistory(store, rings)
  }

  function read(span: HistorySpan): HistoryView {
    const plan = spanPlans[span]
    const now = clock.now()
    const rows = withGaps(samplesOf(rings[span], plan, now), plan.stepMs)
    const column = (index: number) => rows.map(({ values }) => values[index] ?? null)
    const answers = answerKinds.map((kind) => ({ kind, submissions: column(columnOf(kind)) }))
    return {
      now: isoTime(now),
      span,
      from: isoTime(now - plan.spanMs),
      stepSeconds: plan.stepMs / 1000,
      atSeconds: rows.map(({ at }) => Math.round(at / 1000)),
      seconds: rows.map(({ ms }) => (ms === 0 ? null : Math.round(ms / 100) / 10)),
      ...byPlainName((name) => column(columnOf(name))),
      answers: answers.filter(({ submissions }) => submissions.some((count) => count !== null && count > 0)),
    }
  }
}

/** A row of nulls where nothing is known, so that no plot draws a line over it. */
function withGaps(samples: readonly Sample[], stepMs: number): readonly Sample[] {
  const empty = columnNames.map(() => null)
  return samples.flatMap((sample, index) => {
    const earlier = samples[index - 1]
    const begin = sample.at - sample.ms
    if (earlier === undefined || begin - earlier.at < stepMs / 2) return [sample]
    return [{ at: (earlier.at + begin) / 2, ms: 0, values: empty }, sample]
  })
}
