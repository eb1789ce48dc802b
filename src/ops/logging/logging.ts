// logging.ts: one event, one line of JSON, written at once by the main thread: the last lines before a crash are
// the ones that somebody will look for, so no worker and no buffer stands between.
//
// What repeats is one line a minute with the number of those left out, not a line each:
//
//   first of its kind      written
//   within the minute      counted; the latest is kept
//   the minute is over     the latest is written with `suppressed: n`, or, after a quiet minute, forgotten
//
// The number of kinds that are remembered is bounded; beyond it the oldest is flushed and forgotten, so a flood
// of ever new kinds costs lines and never memory.

import { pino } from 'pino'
import type { Writable } from 'node:stream'
import type { CancelTimer, Clock } from '../../std/clock.ts'
import type { GatewayEvent } from '../../domain/event.ts'
import type { LogConfig } from '../config.ts'
import type { Line } from './log-line.ts'
import { lineOf } from './event-log-lines.ts'

const windowMs = 60_000
const kindsMax = 256
/** Where the reader of stdout stands still and writes pile up in memory: lines beyond this are counted instead. */
const unwrittenBytesMax = 4 * 1024 * 1024

export type Log = {
  write(this: void, event: GatewayEvent): void
  /** Lines left out because nobody reads stdout. */
  readonly linesLost: number
  /** Writes what is still counted. */
  close(): void
}

type Repeat = { event: GatewayEvent['kind']; latest: Line; suppressed: number; endsAt: number }

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
    const line = lineOf(event)
    if (line.repeats === null) {
      put(event.kind, line, 0)
      return
    }
    const repeat = repeats.get(line.repeats)
    if (repeat) {
      repeat.suppressed += 1
      repeat.latest = line
      return
    }
    put(event.kind, line, 0)
    remember(line.repeats, {
      event: event.kind,
      latest: line,
      suppressed: 0,
      endsAt: clock.monotonic() + windowMs,
    })
  }

  function remember(key: string, repeat: Repeat): void {
    for (const [oldestKey, oldest] of repeats) {
      if (repeats.size < kindsMax) break
      flush(oldest)
      repeats.delete(oldestKey)
    }
    repeats.set(key, repeat)
    cancelSweep ??= clock.after(windowMs, sweep)
  }

  /** Ends when nothing repeats any more; the next repeat starts it again. */
  function sweep(): void {
    cancelSweep = null
    const now = clock.monotonic()
    // Those put back stand at the end and are not due yet: there the loop ends.
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

  function flush({ event, latest, suppressed }: Repeat): void {
    // The latest is written itself, so it is not among those left out.
    if (suppressed > 0) put(event, latest, suppressed - 1)
  }

  function put(event: GatewayEvent['kind'], { level, text, fields }: Line, suppressed: number): void {
    logger[level]({ event, ...rounded(fields), ...(suppressed > 0 ? { suppressed } : {}) }, text)
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

/** Durations are measured in fractions of a millisecond; nobody reads those. */
function rounded(fields: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const result: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(fields))
    result[name] = typeof value === 'number' && name.endsWith('Ms') ? Math.round(value) : value
  return result
}
