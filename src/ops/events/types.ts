// types.ts: the form of the entries of the event table.

import type { EventName, EventOf } from '../../domain/event.ts'
import type { ConditionCode } from '../conditions/condition-catalogue.ts'
import type { Cause } from '../conditions/conditions.ts'

export type Level = 'debug' | 'info' | 'warn' | 'error'

/** What the table says of one event. A function runs only when what it gives is needed. */
export type EventSpec<Event> = {
  /**
   * For the documentation: what happened, and what to do where that is neither nothing nor in its condition.
   */
  meaning: string
  act?: string
  level: Level | { oneOf: readonly Level[]; of(this: void, event: Event): Level }
  /** The log sentence. */
  text(this: void, event: Event): string
  /**
   * Lines with the same key are one thing that repeats (logging.ts). Without it, or at null, every line is
   * written.
   */
  repeats?(this: void, event: Event): string | null
  /** The fields in the log, where they are not those of the event. */
  fields?(this: void, event: Event): Record<string, unknown>
  /** Characters that are kept of a `why`, in the log and in the condition. */
  whyLengthMax?: number
  /** Null: not this time. */
  raises?: { [Code in ConditionCode]?: (this: void, event: Event) => Cause | null }
  /** The key of the condition that is cleared; undefined: not this time. */
  clears?: { [Code in ConditionCode]?: (this: void, event: Event) => string | null | undefined }
}

export type EventTable<Name extends EventName> = { [Each in Name]: EventSpec<EventOf<Each>> }
