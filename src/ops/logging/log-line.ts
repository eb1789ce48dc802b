// log-line.ts: an event as a log line: level, sentence, fields, and the key under which it repeats.

import { GatewayError } from '../../std/gateway-error.ts'
import { bounded } from '../../std/quote.ts'
import { eventSpec, type EventName, type GatewayEvent } from '../../domain/event.ts'
import type { Level } from '../../domain/events/events.ts'
import { specOf, type ConditionCode } from '../conditions/condition-catalogue.ts'

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
  const { logged, whyLengthMax = textLengthMax } = eventSpec(event)
  return { text: eventText(event), fields: cleaned(logged?.(event) ?? event, whyLengthMax) }
}

/** The log sentence: its own one, or what it says of the condition that it raises. */
function eventText(event: GatewayEvent): string {
  const { text, raises = {} } = eventSpec(event)
  if (text) return text(event)
  for (const causeOf of Object.values(raises)) {
    const { what, times = 1 } = causeOf(event) ?? {}
    if (what !== undefined) return typeof what === 'string' ? what : what(times)
  }
  return eventMeaning(event.kind)
}

/** For the documentation; that of its condition where the event says nothing else. */
export function eventMeaning(kind: EventName): string {
  const { meaning, raises = {} } = eventSpec({ kind })
  const codes = Object.keys(raises) as ConditionCode[]
  return meaning ?? codes.map((code) => specOf(code).meaning).join(' ')
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
