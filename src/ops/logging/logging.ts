// logging.ts: one event is one line of JSON. The main thread writes it at once: no worker and no buffer may
// hold the last lines before a crash. A line is built only when it is written.
//
//   log-line.ts         an event as a line: level, sentence, fields
//   repeated-lines.ts   lines that repeat are written once a minute, and their number is bounded

import { pino } from 'pino'
import type { Writable } from 'node:stream'
import type { Clock } from '../../std/clock.ts'
import { plural } from '../../std/quantity.ts'
import type { GatewayEvent } from '../../domain/event.ts'
import type { LogConfig } from '../config.ts'
import { levelOf, lineOf } from './log-line.ts'
import { createRepeatedLines } from './repeated-lines.ts'

/** If stdout is not read, lines accumulate in memory. Lines beyond this are counted and discarded. */
const unwrittenBytesMax = 4 * 1024 * 1024

export type Log = {
  write(this: void, event: GatewayEvent): void
  /** Lines discarded because stdout is not read. */
  readonly linesLost: number
  /** Lines that repeated and were counted in another one. */
  readonly linesSuppressed: number
  /** Writes what is still counted. */
  close(): void
}

export function createLog(deps: { clock: Clock; stdout: Writable }, { level }: LogConfig): Log {
  const { clock, stdout } = deps
  let linesLost = 0
  const repeated = createRepeatedLines(clock, put)
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
    get linesSuppressed() {
      return repeated.suppressed()
    },
    close: repeated.close,
  }

  function write(event: GatewayEvent): void {
    if (logger.isLevelEnabled(levelOf(event)) && repeated.isDue(event)) put(event, 0)
  }

  function put(event: GatewayEvent, suppressed: number): void {
    const { text, fields } = lineOf(event)
    const left = suppressed === 0 ? '' : ` ${plural(suppressed, 'further line')} like this not written.`
    const more = suppressed === 0 ? {} : { suppressed }
    logger[levelOf(event)]({ event: event.kind, ...fields, ...more }, text + left)
  }

  function writeLine(text: string): void {
    if (stdout.destroyed || stdout.writableLength > unwrittenBytesMax) {
      linesLost += 1
      return
    }
    stdout.write(text)
  }
}
