// repeated-lines.ts: which log lines repeat, and are written once a minute with the number of those left out.
//
//   first of its key       written
//   within the minute      counted; the latest is kept
//   the minute is over     a summary with the latest is written, or, after a quiet minute, the key is removed
//
// A summary is no news: it says how often, when the last one was, and whether another event has meanwhile
// ended what the last one says.
//
// The number of keys is bounded. Beyond it the oldest is written and removed, so a flood of new keys writes
// lines and uses no more memory. Where the keys come from outside, such as client ids, an event also has a
// group, such as the address of the client, and its lines are bounded:
//
//   10 keys of a group in a minute      further ones of the group share one line
//   60 keys of an event in a minute     further ones of the event share one line
//
// So each client of a depot is named, a scanner with invented client ids gets eleven lines a minute, and many
// scanners get sixty-one.

import type { CancelTimer, Clock, EpochMs } from '../../std/clock.ts'
import type { GatewayEvent } from '../../domain/event.ts'
import { ends, endsSomething, groupOf, repeatKeyOf } from './log-line.ts'

const windowMs = 60_000
const repeatsMax = 256
const keysPerGroupMax = 10
const keysPerEventMax = 60
/** In the place of a key. No client id has it. */
const others = '\0'

/** What a line stands for that was not written when it was due. */
export type Summary = {
  /** Lines in all, with the latest. */
  times: number
  lastAt: EpochMs
  lastAgoMs: number
  /** They have several keys. */
  isShared: boolean
  /** What the latest says has ended since. */
  isOver: boolean
}

export type RepeatedLines = {
  /** To be called for each event, also for one without a line. */
  note(event: GatewayEvent): void
  /** True where the line is to be written now. */
  isDue(event: GatewayEvent): boolean
  /** Lines that were counted in another one instead of written; counted when that one is written. */
  suppressed(): number
  /** Writes what is still counted. */
  close(): void
}

/** `within`: where its key is counted, too. */
type Repeat = {
  latest: GatewayEvent
  suppressed: number
  lastAt: EpochMs
  lastMs: number
  isOver: boolean
  endsAt: number
  within: readonly string[]
}
type Keyed = { key: string; within: readonly string[] }

export function createRepeatedLines(
  clock: Clock,
  put: (event: GatewayEvent, summary: Summary) => void,
): RepeatedLines {
  /** In the order in which their minutes end: every entry is added, and put back, at the end. */
  const repeats = new Map<string, Repeat>()
  /** Keys in `repeats` by event, and by event and group. */
  const keysIn = new Map<string, number>()
  let suppressedInAll = 0
  let cancelSweep: CancelTimer | null = null
  return { note, isDue, suppressed: () => suppressedInAll, close }

  function note(event: GatewayEvent): void {
    if (repeats.size === 0 || !endsSomething(event)) return
    for (const repeat of repeats.values())
      if (repeat.suppressed > 0 && !repeat.isOver) repeat.isOver = ends(event, repeat.latest)
  }

  function isDue(event: GatewayEvent): boolean {
    const key = repeatKeyOf(event)
    if (key === null) return true
    const keyed = repeats.has(key) ? { key, within: [] } : sharedKey(event, key)
    const repeat = repeats.get(keyed.key)
    if (repeat === undefined) {
      remember(keyed, event)
      return true
    }
    repeat.suppressed += 1
    repeat.latest = event
    repeat.lastAt = clock.now()
    repeat.lastMs = clock.monotonic()
    repeat.isOver = false
    return false
  }

  /** Its own key, or the one that it shares with the others of its group or of its event. */
  function sharedKey(event: GatewayEvent, key: string): Keyed {
    const { kind } = event
    const group = groupOf(event)
    if (group === null) return { key, within: [] }
    if ((keysIn.get(kind) ?? 0) >= keysPerEventMax) return { key: `${kind}|${others}`, within: [] }
    const name = `${kind}|${group}`
    if ((keysIn.get(name) ?? 0) >= keysPerGroupMax) return { key: `${name}|${others}`, within: [kind] }
    return { key, within: [kind, name] }
  }

  function remember({ key, within }: Keyed, latest: GatewayEvent): void {
    for (const [oldestKey, oldest] of repeats) {
      if (repeats.size < repeatsMax) break
      flush(oldestKey, oldest)
      remove(oldestKey, oldest)
    }
    const now = clock.monotonic()
    repeats.set(key, {
      latest,
      suppressed: 0,
      lastAt: clock.now(),
      lastMs: now,
      isOver: false,
      endsAt: now + windowMs,
      within,
    })
    for (const name of within) keysIn.set(name, (keysIn.get(name) ?? 0) + 1)
    cancelSweep ??= clock.after(windowMs, sweep)
  }

  function remove(key: string, { within }: Repeat): void {
    repeats.delete(key)
    for (const name of within) {
      const left = (keysIn.get(name) ?? 0) - 1
      if (left > 0) keysIn.set(name, left)
      else keysIn.delete(name)
    }
  }

  /** Ends when nothing repeats; the next repeat starts it again. */
  function sweep(): void {
    cancelSweep = null
    const now = clock.monotonic()
    // Entries that were put back are at the end and not due yet: there the loop ends.
    for (const [key, repeat] of repeats) {
      if (repeat.endsAt > now) break
      if (repeat.suppressed === 0) {
        remove(key, repeat)
        continue
      }
      flush(key, repeat)
      repeats.delete(key)
      repeats.set(key, { ...repeat, suppressed: 0, endsAt: now + windowMs })
    }
    const [next] = repeats.values()
    if (next) cancelSweep = clock.after(Math.max(1, next.endsAt - now), sweep)
  }

  function flush(key: string, { latest, suppressed: times, lastAt, lastMs, isOver }: Repeat): void {
    if (times === 0) return
    // The latest is written itself, so it is not among those left out.
    suppressedInAll += times - 1
    const lastAgoMs = clock.monotonic() - lastMs
    put(latest, { times, lastAt, lastAgoMs, isShared: key.endsWith(`|${others}`), isOver })
  }

  function close(): void {
    cancelSweep?.()
    cancelSweep = null
    for (const [key, repeat] of repeats) flush(key, repeat)
    repeats.clear()
    keysIn.clear()
  }
}
