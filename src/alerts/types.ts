// types.ts: what an alert is, what a receiver does with it, and what is shown of both.

import type { EpochMs } from '../std/clock.ts'
import type { Severity } from '../domain/cause.ts'
import type { State } from '../domain/condition-state.ts'

/** A condition as it is open now; `VERDICT` for the verdict itself. */
export type OpenCondition = {
  code: string
  key: string | null
  severity: Severity
  since: EpochMs
  count: number
  what: string
  why: string
  act: string
  /** Each thing that has the problem, where one more is news. */
  causes: readonly string[]
  /** Not null: a person knows of it until then. */
  known?: { readonly untilAt: EpochMs } | null
}

/**
 * When a condition ended; `isSure` is false while it may go on after a restart. `continues`: it is open under
 * another code. Null: not known.
 */
export type ConditionEnd = { at: EpochMs; isSure: boolean } | 'continues' | null

/** How the gateway is, at one moment. */
export type Situation = {
  verdict: string
  sentence: string
  /** False while the gateway starts, stops or refuses its spool. */
  isReady: boolean
  /** False while it is not ready, and while there are more conditions than are kept. */
  isComplete: boolean
  conditions: readonly OpenCondition[]
  /** Of a condition that is not among them. */
  endOf(this: void, of: Pick<OpenCondition, 'code' | 'key'>): ConditionEnd
}

/** `changed`: another thing has the problem, too. */
export type ChangeKind = 'raised' | 'worsened' | 'changed' | 'repeated' | 'cleared'

/** One thing that an alert says. */
export type Change = OpenCondition & {
  kind: ChangeKind
  /** When it ended, or was first missing where that is not known; null while it is open. */
  clearedAt: EpochMs | null
}

export type Alert = {
  /** The same for all tries of one alert. */
  id: string
  isTest: boolean
  gateway: string
  version: string
  receiver: string
  createdAt: EpochMs
  headline: string
  verdict: string
  sentence: string
  /** Worst first; cleared ones last. */
  changes: readonly Change[]
  /** Changes since the last alert that were undone before they could be sent. */
  omitted: number
  /** Conditions of this receiver that are open now. */
  open: number
  /** Changes that wait because the limit of the hour is reached, and until when; null where none do. */
  heldBack: HeldBack | null
  /** The open conditions, where this is the summary of the day; else null. */
  digest: readonly OpenCondition[] | null
  /** Address of the page; null where the config has none. */
  page: string | null
}

/**
 * `what`: the worst of them, in words; `severity`: of the worst. `untilAt` moves where a critical condition
 * is sent before.
 */
export type HeldBack = { changes: number; untilAt: EpochMs; severity: Severity; what: string }

export type Sent =
  | {
      kind: 'sent'
      /** What the receiver answered. */
      detail: string
      /** What was not as it should be, such as a refused recipient. */
      warning: string | null
    }
  | {
      kind: 'failed'
      why: string
      act: string
      /** The time that the receiver asked for. */
      retryAfterMs: number | null
      /** It may have got the alert nevertheless: it did not answer in time, or the connection broke. */
      mayHaveArrived: boolean
    }

export type AlertReceiver = {
  type: 'webhook' | 'email' | 'command'
  /** Where it sends, without secrets. */
  target: string
  /** The longest time of a try. */
  timeoutMs: number
  /** Tries once. Never rejects, and ends soon after `signal` aborts. */
  send(alert: Alert, signal: AbortSignal): Promise<Sent>
  /** Looks whether it can be reached, and sends nothing. */
  check(signal: AbortSignal): Promise<Sent>
}

/** State and counters of one receiver or heartbeat. Counters are since the start. */
export type AlertReceiverView = {
  name: string
  type: AlertReceiver['type'] | 'heartbeat'
  target: string
  lastSentAt: EpochMs | null
  lastFailedAt: EpochMs | null
  /** Why the last failed try failed. */
  lastFailure: string | null
  /** Failed tries in a row. */
  failures: number
  nextTryAt: EpochMs | null
  /** Changes that wait. */
  waiting: number
  /** Of these, those that wait because of the limit of the hour. */
  heldBack: HeldBack | null
  sent: number
  failed: number
  /** Changes that were never sent one by one. */
  dropped: number
}

export type AlertTest = {
  name: string
  type: AlertReceiverView['type']
  target: string
  ok: boolean
  /** What the receiver answered, or why it failed. */
  detail: string
  act: string | null
  tookMs: number
}

/** What ops shows and starts. */
export type AlertsStage = {
  receivers(): readonly AlertReceiverView[]
  /** What is wrong now. */
  states(): readonly State[]
  /** Sends a test to each, or to one; null: there is no receiver of this name. */
  test(name: string | null, signal: AbortSignal): Promise<readonly AlertTest[] | null>
}
