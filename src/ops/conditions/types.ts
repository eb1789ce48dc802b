// types.ts: the form of the entries of the condition catalogue, and of what opens a condition.

import type { StateCode, StateFacts } from '../../domain/condition-state.ts'

export const severities = ['info', 'warning', 'error', 'critical'] as const
export type Severity = (typeof severities)[number]

/** No message is acknowledged or can come, or nothing is delivered. */
export type Stopped = 'receiving' | 'delivery'

/** The texts of a condition. Those that a cause omits come from the catalogue. */
export type Cause = {
  key?: string | null
  /** A function gets how often it happened since the condition is open. */
  what?: string | ((count: number) => string)
  why: string
  act?: string
  /** How many more times it happened; 1 without it. */
  times?: number
  /** All things that have the problem now. `cause`: one more of them. */
  causes?: readonly string[]
  cause?: string
  /** How many there are now, for a condition about things that are still there. It replaces `times`. */
  present?: number
  /** In place of those of the catalogue. */
  severity?: Severity
  stops?: null
  /** Characters of `why` that are kept. */
  whyLengthMax?: number
}

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
  /** The condition clears automatically when it was not raised again for this long. */
  quietMs?: number
}

/** `cause`: the texts of a state that a stage reports (domain/condition-state.ts). */
export type ConditionTable<Code extends string> = {
  [Each in Code]: ConditionSpec &
    (Each extends StateCode ? { cause(this: void, facts: StateFacts[Each]): Cause } : object)
}
