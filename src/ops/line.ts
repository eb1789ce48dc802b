// line.ts: the shape of a log line before it is written.

import type { GatewayEvent } from '../domain/event.ts'

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
