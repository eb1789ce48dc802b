// logging.ts: one event is one line of JSON. The main thread writes it at once: no worker and no buffer may
// hold the last lines before a crash.
//
// Events that repeat are written once a minute, with the number of lines not written:
//
//   first of its key       written
//   within the minute      counted; the latest is kept
//   the minute is over     the latest is written with `suppressed: n`, or, after a quiet minute, removed
//
// The number of keys is bounded. Beyond it the oldest is written and removed, so a flood of new keys writes
// lines and uses no more memory. A line is built only when it is written.

import { pino } from 'pino'
import type { Writable } from 'node:stream'
import type { CancelTimer, Clock } from '../../std/clock.ts'
import type { GatewayEvent } from '../../domain/event.ts'
import type { LogConfig } from '../config.ts'
import { levelOf, lineOf, repeatKeyOf } from './log-line.ts'

const windowMs = 60_000
const repeatsMax = 256
/** If stdout is not read, lines accumulate in memory. Lines beyond this are counted and discarded. */
const unwrittenBytesMax = 4 * 1024 * 1024

export type Log = {
  write(this: void, event: GatewayEvent): void
  /** Lines discarded because stdout is not read. */
  readonly linesLost: number
  /** Writes what is still counted. */
  close(): void
}

type Repeat = { latest: GatewayEvent; suppressed: number; endsAt: number }

export function createLog(deps: { clock: Clock; stdout: Writable }, { level }: LogConfig): Log {
  const { clock, stdout } = deps
  let linesLost = 0
  let cancelSweep: CancelTimer | null = null
  /** In the order in which their minutes end: every entry is added, and put back, at the end. */
  const repeats = new Map<string, Repeat>()
  const logger = pino(
    {
      level,
      base: null,
      timestamp: () => `,"time":"${new Date(clock.now()).toISOString()}"`,
      formatters: { level: (label) => ({ level: label }) },
    },
    { write: writeLine },
  )

  return {
    write,
    get linesLost() {
      return linesLost
    },
    close,
  }

  function write(event: GatewayEvent): void {
    if (!logger.isLevelEnabled(levelOf(event))) return
    const key = repeatKeyOf(event)
    const repeat = key === null ? undefined : repeats.get(key)
    if (repeat) {
      repeat.suppressed += 1
      repeat.latest = event
      return
    }
    put(event, 0)
    if (key !== null) remember(key, { latest: event, suppressed: 0, endsAt: clock.monotonic() + windowMs })
  }

  function remember(key: string, repeat: Repeat): void {
    for (const [oldestKey, oldest] of repeats) {
      if (repeats.size < repeatsMax) break
      flush(oldest)
      repeats.delete(oldestKey)
    }
    repeats.set(key, repeat)
    cancelSweep ??= clock.after(windowMs, sweep)
  }

  /** Ends when nothing repeats; the next repeat starts it again. */
  function sweep(): void {
    cancelSweep = null
    const now = clock.monotonic()
    // Entries that were put back are at the end and not due yet: there the loop ends.
    for (const [key, repeat] of repeats) {
      if (repeat.endsAt > now) break
      repeats.delete(key)
      if (repeat.suppressed === 0) continue
      flush(repeat)
      repeats.set(key, { ...repeat, suppressed: 0, endsAt: now + windowMs })
    }
    const [next] = repeats.values()
    if (next) cancelSweep = clock.after(Math.max(1, next.endsAt - now), sweep)
  }

  function flush({ latest, suppressed }: Repeat): void {
    // The latest is written itself, so it is not among those left out.
    if (suppressed > 0) put(latest, suppressed - 1)
  }

  function put(event: GatewayEvent, suppressed: number): void {
    const { text, fields } = lineOf(event)
    logger[levelOf(event)]({ event: event.kind, ...fields, ...(suppressed > 0 ? { suppressed } : {}) }, text)
  }

  function writeLine(text: string): void {
    if (stdout.destroyed || stdout.writableLength > unwrittenBytesMax) {
      linesLost += 1
      return
    }
    stdout.write(text)
  }

  function close(): void {
    cancelSweep?.()
    cancelSweep = null
    for (const repeat of repeats.values()) flush(repeat)
    repeats.clear()
  }
}
