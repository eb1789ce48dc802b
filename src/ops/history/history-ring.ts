// history-ring.ts: the samples of one span, in chunks of a few, as they are on the disk.
//
//   span   sample   chunk     kept
//   hour     10 s   6         360 samples
//   day     2 min   5         720
//   week   15 min   4         672
//
// The last chunk grows; its last sample grows, too, until it covers `stepMs`. A full ring deletes the oldest
// chunk. Numbers of chunks only ascend, so a chunk has its place on the disk: the remainder by the number of
// places.

import type { EpochMs } from '../../std/clock.ts'
import { joined, type Sample } from './history-samples.ts'

export const historySpans = ['hour', 'day', 'week'] as const
export type HistorySpan = (typeof historySpans)[number]

export type SpanPlan = { spanMs: number; stepMs: number; perChunk: number }

const minuteMs = 60_000
/** Timers are not exact: half a sample of the hour. */
const earlyMs = 5000

export const spanPlans: Readonly<Record<HistorySpan, SpanPlan>> = {
  hour: { spanMs: 60 * minuteMs, stepMs: 10_000, perChunk: 6 },
  day: { spanMs: 24 * 60 * minuteMs, stepMs: 2 * minuteMs, perChunk: 5 },
  week: { spanMs: 7 * 24 * 60 * minuteMs, stepMs: 15 * minuteMs, perChunk: 4 },
}

export type Chunk = {
  number: number
  samples: Sample[]
  isDirty: boolean
  /** The samples from here on were taken by this process. */
  ownFrom: number
}

export type HistoryRing = {
  add(sample: Sample): void
  /** Chunks of an earlier process. */
  restore(chunks: readonly Pick<Chunk, 'number' | 'samples'>[]): void
  /** The wall clock was set, so the samples of this process were at another time. */
  shift(ms: number): void
  /** From the one that was taken first. */
  samples(): readonly Sample[]
  /** Those that changed since the last call, at most `most`, the oldest first. None before `restore`. */
  takeDirty(most: number): readonly Chunk[]
  /** Chunk numbers have this many places on the disk. */
  readonly places: number
}

export function createHistoryRing({ spanMs, stepMs, perChunk }: SpanPlan): HistoryRing {
  const chunksMax = Math.ceil(spanMs / stepMs / perChunk) + 1
  const fullMs = stepMs - earlyMs
  let chunks: Chunk[] = []
  let isRestored = false
  return {
    add,
    restore,
    shift(ms) {
      for (const chunk of chunks) {
        const own = chunk.samples.slice(chunk.ownFrom)
        for (const sample of own) sample.at += ms
        if (own.length > 0) chunk.isDirty = true
      }
    },
    samples: () => chunks.flatMap(({ samples }) => samples),
    takeDirty(most) {
      if (!isRestored) return []
      const dirty = chunks.filter(({ isDirty }) => isDirty).slice(0, most)
      for (const chunk of dirty) chunk.isDirty = false
      return dirty
    },
    places: chunksMax + 1,
  }

  function add(sample: Sample): void {
    const chunk = chunks.at(-1)
    const last = chunk?.samples.at(-1)
    if (chunk !== undefined && last !== undefined) {
      const index = chunk.samples.length - 1
      if (last.ms < fullMs && isNext(last, sample)) {
        chunk.samples[index] = joined(last, sample)
        chunk.ownFrom = Math.min(chunk.ownFrom, index)
        chunk.isDirty = true
        return
      }
      if (chunk.samples.length < perChunk) {
        chunk.samples.push({ ...sample })
        chunk.isDirty = true
        return
      }
    }
    const number = (chunk?.number ?? -1) + 1
    chunks.push({ number, samples: [{ ...sample }], isDirty: true, ownFrom: 0 })
    if (chunks.length > chunksMax) chunks.shift()
  }

  /** What lies between them is a gap, which a joined sample would hide. */
  function isNext(last: Sample, next: Sample): boolean {
    return Math.abs(next.at - next.ms - last.at) < stepMs / 2
  }

  /** A daemon that restarts all the time fills its last chunk, and does not begin one each time. */
  function restore(stored: readonly Pick<Chunk, 'number' | 'samples'>[]): void {
    isRestored = true
    const own = chunks.flatMap(({ samples }) => samples)
    chunks = [...stored]
      .sort((a, b) => a.number - b.number)
      .slice(-chunksMax)
      .map((chunk) => ({ ...chunk, isDirty: false, ownFrom: chunk.samples.length }))
    for (const sample of own) add(sample)
  }
}

/** Those of the span that ends now, by time. */
export function samplesOf(ring: HistoryRing, { spanMs }: SpanPlan, now: EpochMs): readonly Sample[] {
  return ring
    .samples()
    .filter(({ at }) => at > now - spanMs && at <= now)
    .sort((a, b) => a.at - b.at)
}
