// log-line.ts: the shape of a log line before it is written.

import type { GatewayError } from '../../std/gateway-error.ts'
import { bounded } from '../../std/quote.ts'
import type { GatewayEvent } from '../../domain/event.ts'

export type Level = 'debug' | 'info' | 'warn' | 'error'

export type Line = {
  level: Level
  text: string
  fields: Record<string, unknown>
  /** Lines with the same key are one thing that repeats; null where each is news. */
  repeats: string | null
}

/** A line whose fields are the event itself. Events carry no nested objects but those cleaned by `faultFields`. */
export function line(level: Level, event: GatewayEvent, text: string, repeats: string | null = null): Line {
  const { kind: _kind, ...fields } = event
  return { level, text, fields, repeats }
}

/** A fault becomes flat fields: its cause may hold anything and stays out. */
export function faultLine(
  level: Level,
  fault: GatewayError,
  text: string,
  more: Record<string, unknown> = {},
  whyLengthMax = 500,
): Line {
  const { code, what, why, act } = fault
  return {
    level,
    text,
    fields: { code, what: bounded(what), why: bounded(why, whyLengthMax), act: bounded(act), ...more },
    repeats: `fault|${code}`,
  }
}
