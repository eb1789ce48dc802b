// log-line.ts: an event as a log line: level, sentence, fields, and the key under which it repeats.

import { GatewayError } from '../../std/gateway-error.ts'
import { bounded } from '../../std/quote.ts'
import type { GatewayEvent } from '../../domain/event.ts'
import { eventSpec, eventText } from '../events/events.ts'
import type { Level } from '../events/types.ts'

/** Characters of a text and elements of a list that are logged: both may come from outside. */
const textLengthMax = 500
const listLengthMax = 20

export function levelOf(event: GatewayEvent): Level {
  const { level } = eventSpec(event)
  return typeof level === 'string' ? level : level.of(event)
}

/** Lines with the same key are one thing that repeats; null where each is written. */
export function repeatKeyOf(event: GatewayEvent): string | null {
  const key = eventSpec(event).repeats?.(event) ?? null
  return key === null ? null : `${event.kind}|${key}`
}

/** Lines of one group have a bound of their own; null where the event has none. */
export function groupOf(event: GatewayEvent): string | null {
  return eventSpec(event).group?.(event) ?? null
}

/** It may end what another event has reported. */
export function endsSomething(event: GatewayEvent): boolean {
  return eventSpec(event).isEndOf !== undefined
}

/** What the other one says is over. */
export function ends(event: GatewayEvent, other: GatewayEvent): boolean {
  return eventSpec(event).isEndOf?.(event, other) === true
}

export function lineOf(event: GatewayEvent): { text: string; fields: Record<string, unknown> } {
  const { fields, whyLengthMax = textLengthMax } = eventSpec(event)
  return { text: eventText(event), fields: cleaned(fields?.(event) ?? event, whyLengthMax) }
}

function cleaned(fields: object, whyLengthMax: number): Record<string, unknown> {
  const result: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(fields) as [string, unknown][]) {
    if (name === 'kind') continue
    if (value instanceof GatewayError) {
      // Its cause may hold anything and stays out.
      const { code, what, why, act } = value
      Object.assign(result, { code, what: bounded(what), why: bounded(why, whyLengthMax), act: bounded(act) })
    } else result[name] = clean(name, value)
  }
  return result
}

function clean(name: string, value: unknown): unknown {
  if (typeof value === 'string') return bounded(value, textLengthMax)
  if (Array.isArray(value)) return value.slice(0, listLengthMax).map((one) => clean(name, one))
  // Durations are measured in fractions of a millisecond; the log omits the fractions.
  if (typeof value === 'number' && name.endsWith('Ms')) return Math.round(value)
  return value
}
