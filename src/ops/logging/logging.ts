// logging.ts: one event is one line of JSON. The main thread writes it at once: no worker and no buffer may
// hold the last lines before a crash. A line is built only when it is written. Where stdout is the journal, a
// line begins with its priority.
//
//   log-line.ts         an event as a line: level, sentence, fields
//   repeated-lines.ts   lines that repeat are written once a minute, and their number is bounded

import { pino, type DestinationStream } from 'pino'
import type { Writable } from 'node:stream'
import type { Clock } from '../../std/clock.ts'
import { journalMarks, type LineLevel } from '../../std/journal.ts'
import { formatAgo, plural } from '../../std/quantity.ts'
import { visibleJson } from '../../std/quote.ts'
import type { GatewayEvent } from '../../domain/event.ts'
import type { LogConfig } from '../config.ts'
import { levelOf, lineOf } from './log-line.ts'
import { createRepeatedLines, type Summary } from './repeated-lines.ts'

/** If stdout is not read, lines accumulate in memory. Lines beyond this are counted and discarded. */
const unwrittenBytesMax = 4 * 1024 * 1024

export type Log = {
  write(this: void, event: GatewayEvent): void
  setLevel(this: void, config: LogConfig): void
  /** Lines discarded because stdout is not read. */
  readonly linesLost: number
  /** Lines that repeated and were counted in another one. */
  readonly linesSuppressed: number
  /** Writes what is still counted. */
  close(): void
}

type LogDeps = { clock: Clock; stdout: Writable; env: NodeJS.ProcessEnv }

export function createLog({ clock, stdout, env }: LogDeps, { level }: LogConfig): Log {
  let linesLost = 0
  const repeated = createRepeatedLines(clock, put)
  const logger = pino(
    {
      level,
      base: null,
      timestamp: () => `,"time":"${new Date(clock.now()).toISOString()}"`,
      formatters: { level: (label) => ({ level: label }) },
    },
    destination(),
  )

  return {
    write,
    get linesLost() {
      return linesLost
    },
    get linesSuppressed() {
      return repeated.suppressed()
    },
    setLevel(next) {
      logger.level = next.level
    },
    close: repeated.close,
  }

  function write(event: GatewayEvent): void {
    repeated.note(event)
    if (logger.isLevelEnabled(levelOf(event)) && repeated.isDue(event)) put(event, null)
  }

  function put(event: GatewayEvent, summary: Summary | null): void {
    const { text, fields } = lineOf(event)
    const facts = { event: event.kind, ...fields }
    if (summary === null) logger[levelOf(event)](facts, text)
    else logger[levelOf(event)]({ ...facts, ...summaryFields(summary) }, `${summaryText(summary)}: ${text}`)
  }

  /** pino notes the level of the line on a destination that asks for it. */
  function destination(): DestinationStream {
    const marks = journalMarks(stdout, env)
    if (marks === null) return { write: writeLine }
    const marked = {
      [Symbol.for('pino.metadata')]: true,
      lastLevel: pino.levels.values['info'] ?? 0,
      write: (text: string) => writeLine(marks(pino.levels.labels[marked.lastLevel] as LineLevel, text)),
    }
    return marked
  }

  function writeLine(text: string): void {
    if (stdout.destroyed || stdout.writableLength > unwrittenBytesMax) {
      linesLost += 1
      return
    }
    stdout.write(visibleJson(text))
  }
}

/** `suppressed`: lines that are left out, without the one that the summary has. */
function summaryFields({ times, lastAt, isOver }: Summary) {
  return { summary: true, suppressed: times - 1, lastAt: new Date(lastAt).toISOString(), isOver }
}

function summaryText({ times, lastAgoMs, isShared, isOver }: Summary): string {
  const more = `${times} more ${times === 1 ? 'time' : 'times'}`
  const lines = isShared ? `${plural(times, 'more line')} of this kind` : more
  const last = times === 1 ? '' : ', the last one'
  const ago = formatAgo(lastAgoMs)
  return `Summary: ${lines} in the last minute${last}${times === 1 ? ', ' : ' '}${ago}${isOver ? ', over since' : ''}`
}
