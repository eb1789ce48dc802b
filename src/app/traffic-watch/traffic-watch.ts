// traffic-watch.ts: faults that nothing else notices, because each part works: no device sends at all, or
// some do not (silent-devices.ts), devices send only what maps to nothing, and more comes in than is
// delivered (backlog-watch.ts). It reads counters every few seconds, never the messages.
//
//   DEVICES_SILENT   nothing came for longer than is usual (traffic-history.ts), or than `ops.silence`
//                    allows. Severity `info` in quiet hours. Over with the next message, or when the setting
//                    changes
//   NOTHING_MAPPED   at least 20 messages in 60 s or more, and each was ignored, quarantined, a dead letter
//                    or a duplicate. Over with the next new payload or part
//
// Before any message ever came, `firstMessageMs` is the limit; with fewer than five gaps, `fewMessagesMs`.
// While the gateway did not run, or took nothing in (the spool is full, custody is in an outage, or nothing
// can reach it: reachability.ts), devices could not send: a pause is judged from then on, and only pauses
// within such a time are learned.
//
// The history is in `<spool>/traffic.json`, written every few minutes and at the stop. It may be lost: then
// it is learned again. A failed write is tried again with the next one.

import { z } from 'zod'
import { join } from 'node:path'
import { every, type Clock, type EpochMs } from '../../std/clock.ts'
import type { SilenceBasis, State } from '../../domain/condition-state.ts'
import type { IngestCounters } from '../../ingest/ingest.ts'
import { isQuietAt, type SilenceConfig } from '../../ops/ops.ts'
import { createKeptWriter, readKept } from '../../std/file-system/kept-json.ts'
import { createBacklogCheck, type BacklogDeps } from './backlog-watch.ts'
import { createSilentDevices, type SilentDevices, type SilentDevicesDeps } from './silent-devices.ts'
import { createTrafficHistory, type TrafficHistory } from './traffic-history.ts'

export type TrafficWatch = {
  /** For the device monitor, which gives it each device. */
  silentDevices: SilentDevices
  states(): Iterable<State>
  /** Writes the history. Never rejects. */
  stop(): Promise<void>
}

type Counters = Pick<
  IngestCounters,
  | 'received'
  | 'lastMessageAt'
  | 'mapped'
  | 'duplicates'
  | 'openParts'
  | 'ignored'
  | 'dead'
  | 'quarantined'
  | 'ignoredByReason'
  | 'deadByReason'
  | 'quarantinedByReason'
>

type Deps = {
  clock: Clock
  counters: () => Counters
  /** Messages could come now: it is not the gateway itself that keeps them away. */
  takesIn: () => boolean
  /** Called while nothing could come. */
  notListening: () => void
} & Pick<BacklogDeps, 'lanes' | 'providers'> &
  Pick<SilentDevicesDeps, 'addressOf' | 'closed'>

/** `silence`: as a reload changes it. */
type Options = { spoolPath: string; silence: () => SilenceConfig }

const checkEveryMs = 5000
const writeEveryMs = 300_000
const firstMessageMs = 600_000
const fewMessagesMs = 3_600_000
const unmappedMin = 20
const unmappedMs = 60_000

export async function startTrafficWatch(deps: Deps, options: Options): Promise<TrafficWatch> {
  const path = join(options.spoolPath, 'traffic.json')
  const stored = await readKept(path, storedSchema, nothingStored)
  const history = createTrafficHistory(stored.history, deps.clock.now())
  const silence = createSilenceCheck(deps, options.silence, history, stored.lastAt)
  const silentDevices = createSilentDevices(
    { ...deps, now: deps.clock.now },
    { after: () => options.silence().device_after, stored },
  )
  const unmapped = createUnmappedCheck(deps)
  const backlog = createBacklogCheck(deps)
  let writtenMs = deps.clock.monotonic()
  const write = createKeptWriter(deps.clock, path, () => ({
    lastAt: silence.lastAt(),
    history: history.record(),
    ...silentDevices.record(),
  }))
  const end = every(deps.clock, checkEveryMs, check)
  return {
    silentDevices,
    *states() {
      yield* silence.states()
      yield* unmapped.states()
      yield* backlog.states()
      yield* silentDevices.states()
    },
    async stop() {
      end()
      silence.check(deps.counters())
      await write()
    },
  }

  function check(): void {
    const counters = deps.counters()
    if (!deps.takesIn()) deps.notListening()
    silence.check(counters)
    unmapped.check(counters)
    if (deps.clock.monotonic() - writtenMs < writeEveryMs) return
    writtenMs = deps.clock.monotonic()
    void write() // It never rejects.
  }
}

/** What the parts of it are is checked by who made them. */
const storedSchema = z.object({
  lastAt: z.number().nullable().catch(null),
  history: z.unknown().optional(),
  parts: z.unknown().optional(),
  pauses: z.unknown().optional(),
  newestAt: z.unknown().optional(),
})
const nothingStored = { lastAt: null, history: null }

type Limit = { ms: number; basis: SilenceBasis }

function createSilenceCheck(
  { clock, takesIn }: Pick<Deps, 'clock' | 'takesIn'>,
  config: () => SilenceConfig,
  history: TrafficHistory,
  lastBefore: EpochMs | null,
) {
  const startMs = clock.monotonic()
  let received = 0
  /** Of the last message in this run, and when it was seen. */
  let last: { at: EpochMs; ms: number } | null = null
  let checkedMs = startMs
  /** Until then nothing could come. */
  let closedMs = startMs
  let silent: { limit: Limit; after: SilenceConfig['after'] } | null = null
  return { check, states, lastAt: () => last?.at ?? lastBefore }

  function check(counters: Counters): void {
    const nowMs = clock.monotonic()
    const came = counters.received - received
    received = counters.received
    if (came > 0) arrived(came, Math.min(clock.now(), counters.lastMessageAt ?? clock.now()), nowMs)
    else if (takesIn()) judge(nowMs)
    else closedMs = nowMs
    checkedMs = nowMs
  }

  function arrived(came: number, at: EpochMs, nowMs: number): void {
    // When it came, as far as the last check allows.
    const ms = Math.max(checkedMs, Math.min(nowMs, nowMs - (clock.now() - at)))
    if (last !== null) {
      history.addGaps(came, (ms - last.ms) / came)
      const pauseMs = came === 1 ? ms - last.ms : checkedMs - last.ms
      if (pauseMs > 0 && closedMs <= last.ms) history.addPause(last.at, last.at + pauseMs)
    }
    last = { at, ms }
    silent = null
  }

  function judge(nowMs: number): void {
    const { after } = config()
    if (silent?.after === after) return
    const limit = limitNow()
    silent = limit !== null && silentMs(nowMs) > limit.ms ? { limit, after } : null
  }

  function silentMs(nowMs: number): number {
    return nowMs - Math.max(last?.ms ?? startMs, closedMs)
  }

  function states(): State[] {
    if (silent === null) return []
    const quiet = isQuietAt(config(), new Date(clock.now()))
    const { ms: limitMs, basis } = silent.limit
    const times = { sinceAt: last?.at ?? lastBefore, silentMs: silentMs(clock.monotonic()) }
    return [{ code: 'DEVICES_SILENT', ...times, limitMs, basis, quiet }]
  }

  function limitNow(): Limit | null {
    const { after } = config()
    if (after === 'off') return null
    if (after !== 'auto') return { ms: after, basis: 'setting' }
    const usual = history.usualPause(clock.now())
    if (usual !== null) return usual
    return { ms: last === null && lastBefore === null ? firstMessageMs : fewMessagesMs, basis: 'new' }
  }
}

function createUnmappedCheck({ clock, counters }: Deps) {
  let from = snapshot(counters(), clock.monotonic())
  let unmapped: State | null = null
  return { check, states: () => (unmapped === null ? [] : [unmapped]) }

  function check(now: Counters): void {
    if (usefulOf(now) !== from.useful) {
      unmapped = null
      from = snapshot(now, clock.monotonic())
      return
    }
    const messages = uselessOf(now) - from.useless
    const spanMs = clock.monotonic() - from.ms
    if (messages < unmappedMin || spanMs < unmappedMs) return
    const duplicates = now.duplicates - from.duplicates
    unmapped = { code: 'NOTHING_MAPPED', messages, duplicates, spanMs, reasons: reasonsSince(from, now) }
  }
}

type Snapshot = {
  ms: number
  useful: number
  useless: number
  duplicates: number
  reasons: ReadonlyMap<string, number>
}

function snapshot(counters: Counters, ms: number): Snapshot {
  return {
    ms,
    useful: usefulOf(counters),
    useless: uselessOf(counters),
    duplicates: counters.duplicates,
    reasons: reasonsOf(counters),
  }
}

function usefulOf({ mapped, openParts }: Counters): number {
  return mapped + openParts
}

function uselessOf({ ignored, dead, quarantined, duplicates }: Counters): number {
  return ignored + dead + quarantined + duplicates
}

function reasonsOf(counters: Counters): Map<string, number> {
  return new Map([
    ['duplicates of earlier messages', counters.duplicates] as const,
    ...named('ignored', counters.ignoredByReason),
    ...named('dead letters', counters.deadByReason),
    ...named('quarantined', counters.quarantinedByReason),
  ])
}

function* named(what: string, counts: Counters['ignoredByReason']): Iterable<[string, number]> {
  for (const { source, reason, count } of counts)
    yield [`${what}, ${source === null ? '' : `${source}: `}${reason}`, count]
}

/** The three most frequent ones, in words. */
function reasonsSince({ reasons: before }: Snapshot, now: Counters): string {
  const grown = [...reasonsOf(now)].map(([name, count]): [string, number] => [
    name,
    count - (before.get(name) ?? 0),
  ])
  return grown
    .filter(([, count]) => count > 0)
    .sort(([, a], [, b]) => b - a)
    .slice(0, 3)
    .map(([name, count]) => `${count} ${name}`)
    .join('; ')
}
