// repeated-lines.ts: which log lines repeat, and are written once a minute with the number of those left out.
//
//   first of its key       written
//   within the minute      counted; the latest is kept
//   the minute is over     the latest is written with `suppressed: n`, or, after a quiet minute, removed
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

import type { CancelTimer, Clock } from '../../std/clock.ts'
import type { GatewayEvent } from '../../domain/event.ts'
import { groupOf, repeatKeyOf } from './log-line.ts'

const windowMs = 60_000
const repeatsMax = 256
const keysPerGroupMax = 10
const keysPerEventMax = 60
/** In the place of a key. No client id has it. */
const others = '\0'

export type RepeatedLines = {
  /** True where the line is to be written now. */
  isDue(event: GatewayEvent): boolean
  /** Lines that were counted in another one instead of written; counted when that one is written. */
  suppressed(): number
  /** Writes what is still counted. */
  close(): void
}

/** `within`: where its key is counted, too. */
type Repeat = { latest: GatewayEvent; suppressed: number; endsAt: number; within: readonly string[] }
type Keyed = { key: string; within: readonly string[] }

export function createRepeatedLines(
  clock: Clock,
  put: (event: GatewayEvent, suppressed: number) => void,
): RepeatedLines {
  /** In the order in which their minutes end: every entry is added, and put back, at the end. */
  const repeats = new Map<string, Repeat>()
  /** Keys in `repeats` by event, and by event and group. */
  const keysIn = new Map<string, number>()
  let suppressedInAll = 0
  let cancelSweep: CancelTimer | null = null
  return { isDue, suppressed: () => suppressedInAll, close }

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
      flush(oldest)
      remove(oldestKey, oldest)
    }
    repeats.set(key, { latest, suppressed: 0, endsAt: clock.monotonic() + windowMs, within })
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
      flush(repeat)
      repeats.delete(key)
      repeats.set(key, { ...repeat, suppressed: 0, endsAt: now + windowMs })
    }
    const [next] = repeats.values()
    if (next) cancelSweep = clock.after(Math.max(1, next.endsAt - now), sweep)
  }

  function flush({ latest, suppressed }: Repeat): void {
    if (suppressed === 0) return
    // The latest is written itself, so it is not among those left out.
    suppressedInAll += suppressed - 1
    put(latest, suppressed - 1)
  }

  function close(): void {
    cancelSweep?.()
    cancelSweep = null
    for (const repeat of repeats.values()) flush(repeat)
    repeats.clear()
    keysIn.clear()
  }
}
