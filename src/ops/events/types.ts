// types.ts: the form of the entries of the event table.

import type { EventName, EventOf, GatewayEvent } from '../../domain/event.ts'
import type { ConditionCode } from '../conditions/condition-catalogue.ts'
import type { Cause } from '../conditions/types.ts'

export type Level = 'debug' | 'info' | 'warn' | 'error'

/** Null: not this time. */
type Raises<Event> = { [Code in ConditionCode]?: (this: void, event: Event) => Cause | null }

/** For the documentation, and as a log sentence. An event that raises a condition may leave both to it. */
type Words<Event> =
  | { meaning: string; text(this: void, event: Event): string; raises?: Raises<Event> }
  | { meaning?: string; text?(this: void, event: Event): string; raises: Raises<Event> }

/** What the table says of one event. A function runs only when what it gives is needed. */
export type EventSpec<Event> = Words<Event> & {
  level: Level | { oneOf: readonly Level[]; of(this: void, event: Event): Level }
  /** What to do, for the documentation, where that is neither nothing nor in the condition. */
  act?: string
  /** Lines with the same key are one thing that repeats. Without it, or at null, every line is written. */
  repeats?(this: void, event: Event): string | null
  /** Whose line it is, where keys of `repeats` come from outside: bounds their lines (repeated-lines.ts). */
  group?(this: void, event: Event): string
  /** The fields in the log, where they are not those of the event. */
  fields?(this: void, event: Event): Record<string, unknown>
  /** Characters that are kept of a `why`, in the log and in the condition. */
  whyLengthMax?: number
  /** What the line of the other event says is over (repeated-lines.ts). */
  isEndOf?(this: void, event: Event, other: GatewayEvent): boolean
}

export type EventTable<Name extends EventName> = { [Each in Name]: EventSpec<EventOf<Each>> }
