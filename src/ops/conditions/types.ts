// types.ts: the form of the entries of the condition catalogue.

import type { Cause, Severity } from '../../domain/cause.ts'
import type { StateCode, StateFacts } from '../../domain/condition-state.ts'

/** No message is acknowledged or can come, or nothing is delivered. */
export type Stopped = 'receiving' | 'delivery'

export type ConditionSpec = {
  severity: Severity
  meaning: string
  act: string
  /** The verdict follows from it (gateway-verdict). Not where its severity is `info`. */
  stops?: Stopped
  /** Where payloads wait and none is accepted, the verdict names it as the likely cause. */
  delays?: true
  /** /status adds to `what` when delivery tries again. */
  showsNextTry?: true
  /** What was that condition before a restart is this one after it. */
  continues?: string
  /** It is about the last start: after the next one it is over. */
  isOfStart?: true
  /** It clears automatically when it was not raised again for this long. Without: the next start ends it. */
  quietMs?: number
}

/** `cause`: the texts of a state that a stage reports (domain/condition-state.ts). */
export type ConditionTable<Code extends string> = {
  [Each in Code]: ConditionSpec &
    (Each extends StateCode ? { cause(this: void, facts: StateFacts[Each]): Cause } : object)
}

/** Data is lost, which nothing finds again: it stays until a person says that it is over. */
export const untilSeen = { quietMs: Infinity }
