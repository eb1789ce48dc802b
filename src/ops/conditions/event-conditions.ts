// event-conditions.ts: raises conditions, by the event table and by the counters.

import type { GatewayEvent } from '../../domain/event.ts'
import type { ConditionCode } from './condition-catalogue.ts'
import type { Conditions } from './conditions.ts'
import type { Cause } from './types.ts'
import {
  countedConditions,
  keptDeadLetters,
  waitingDeadLetters,
  type CountedCode,
} from './counted-conditions.ts'
import { eventSpec } from '../events/events.ts'

/** Totals since the start, and the dead letters that are there now. */
export type Counted = Record<CountedCode, number> & {
  /** Null where that is not known: the store is lost. */
  deadLettersKept: number | null
}

export type EventConditions = {
  apply(this: void, event: GatewayEvent): void
  /** Raises what the counters have and no event reported. */
  reconcile(counted: Counted): void
  /** The counters begin at zero again, because their stages were closed. */
  countersBegin(): void
}

/** After these events it is known that dead letters were on disk, even if reconcile() never saw any. */
const removals: ReadonlySet<GatewayEvent['kind']> = new Set([
  'dead_letters_purged',
  'dead_letters_requeued',
  'dead_letters_remapped',
] as const)

export function createEventConditions(conditions: Conditions): EventConditions {
  /** How often these were raised since the start, to compare with the counters. */
  const raised: Record<string, number> = { DEAD_LETTERS: 0, MESSAGES_DROPPED: 0 }
  let deadLettersKept = 0
  /** Some of those that the open condition counts were requeued, mapped or deleted. */
  let areSomeGone = false
  /** Of the last event: it says more than a counter does. */
  const lastWhy: Record<string, string> = {}

  return { apply, reconcile, countersBegin }

  function apply(event: GatewayEvent): void {
    if (removals.has(event.kind)) {
      deadLettersKept = Math.max(1, deadLettersKept)
      areSomeGone = true
    }
    const { raises } = eventSpec(event)
    for (const code in raises) {
      const cause = raises[code as ConditionCode]?.(event)
      if (!cause) continue
      if (code in countedConditions) lastWhy[code] = cause.why
      raise(code as ConditionCode, cause)
    }
  }

  function reconcile(counted: Counted): void {
    for (const code of Object.keys(countedConditions) as CountedCode[]) {
      const times = counted[code] - (raised[code] ?? 0)
      if (times > 0) raise(code, { ...countedConditions[code], why: whyOf(code), times })
    }
    if (counted.deadLettersKept === null) return
    const waiting = Math.max(0, counted.deadLettersKept - (raised['DEAD_LETTERS'] ?? 0))
    if (waiting === 0) conditions.clear('DEAD_LETTERS_WAITING')
    else conditions.raise('DEAD_LETTERS_WAITING', waitingDeadLetters(waiting))
    // All were requeued, mapped or deleted. The first ones may be raised before they are on disk.
    const isOver = counted.deadLettersKept === 0 && deadLettersKept > 0
    const isOther = counted.deadLettersKept !== deadLettersKept
    deadLettersKept = counted.deadLettersKept
    if (isOver) conditions.clear('DEAD_LETTERS')
    if (isOver) areSomeGone = false
    else if (areSomeGone && isOther && (raised['DEAD_LETTERS'] ?? 0) > 0)
      raise('DEAD_LETTERS', { why: whyOf('DEAD_LETTERS'), times: 0 })
  }

  function countersBegin(): void {
    for (const code of Object.keys(raised)) raised[code] = 0
    deadLettersKept = 0
    areSomeGone = false
  }

  function whyOf(code: CountedCode): string {
    return lastWhy[code] ?? countedConditions[code].why
  }

  function raise(code: ConditionCode, cause: Cause): void {
    if (code in raised) raised[code] = (raised[code] ?? 0) + (cause.times ?? 1)
    const left = code === 'DEAD_LETTERS' && areSomeGone ? keptDeadLetters(deadLettersKept) : null
    conditions.raise(code, { ...cause, ...left })
  }
}
