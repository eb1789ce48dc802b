// events.ts: the form of an entry of the event table (../event.ts), how its fields are described, and the
// fields that many events share. The other files are the entries, by area.

import type { Cause } from '../cause.ts'
import type { BatchId, LaneId, ProviderName } from '../ids.ts'

export type Level = 'debug' | 'info' | 'warn' | 'error'

/** A field of an event. `type` is never set; it carries the type of the value. */
export type Field<Value> = { meaning: string; type?: Value }

export type Fields = Readonly<Record<string, Field<unknown>>>

export type ValuesOf<Each extends Fields> = {
  -readonly [Name in keyof Each]: Each[Name] extends Field<infer Value> ? Value : never
}

/** By the code of the condition (ops/conditions). Null: not this time. */
type Raises<Values> = Readonly<Record<string, (this: void, event: Values) => Cause | null>>

/** For the documentation, and as a log sentence. An event that raises a condition may leave both to it. */
type Words<Values> =
  | { meaning: string; text(this: void, event: Values): string; raises?: Raises<Values> }
  | { meaning?: string; text?(this: void, event: Values): string; raises: Raises<Values> }

/** What is said of one event. A function runs only when what it gives is needed. */
export type EventSpec<Values> = Words<Values> & {
  level: Level | { oneOf: readonly Level[]; of(this: void, event: Values): Level }
  /** What to do, for the documentation, where that is neither nothing nor in the condition. */
  act?: string
  /** Lines with the same key are one thing that repeats. Without it, or at null, every line is written. */
  repeats?(this: void, event: Values): string | null
  /** Whose line it is, where keys of `repeats` come from outside: bounds their lines (repeated-lines.ts). */
  group?(this: void, event: Values): string
  /** The fields in the log, where they are not those of the event. */
  logged?(this: void, event: Values): Record<string, unknown>
  /** Characters that are kept of a `why`, in the log and in the condition. */
  whyLengthMax?: number
  /** What the line of the other event says is over (repeated-lines.ts). */
  isEndOf?(this: void, event: Values, other: { kind: string }): boolean
}

export function event<const Each extends Fields>(entry: { fields: Each } & EventSpec<ValuesOf<Each>>) {
  return entry
}

export function field<Value>(meaning: string): Field<Value> {
  return { meaning }
}

export function count(of: string): Field<number> {
  return field(`number of ${of}`)
}

export const source = field<string>('name of the source')
export const device = field<string>('key of the device')
export const provider = field<ProviderName>('name of the provider')
export const requestId = field<string | null>('requestId that the service sent; null without one')
export const why = field<string>('cause, as far as known')
export const lane = field<LaneId>('number of the lane')
export const batchId = field<BatchId>('id of the batch')
export const payloadId = field<string>('id of the payload')
export const payloads = count('payloads')
export const messages = count('messages')
export const devices = count('devices')
export const deadLetters = count('dead letters')
export const dead = count('those that became dead letters')
export const bytes = field<number>('size in bytes')
export const tookMs = field<number>('duration in ms')
export const retryInMs = field<number>('time until the next try, in ms')
export const reason = field<string>('stable code of the reason')
export const detail = field<string>('the reason in words')
export const topic = field<string>('topic of the message')
export const clientId = field<string | null>('MQTT client id; null before CONNECT, and where it is not known')
export const identity = field<string | null>('name that the client proved; null where it has proved none')
export const userName = field<string | null>('MQTT user name; null where it gave none')
export const address = field<string | null>('address of the client; null where it is not known')
