// conditions.ts: the problems that exist now, as a short list for the operator.
//
// A condition is open from its first cause until it is cleared; repeats raise its count. `key` tells
// conditions of one code apart (a provider, a lane, a batch). Conditions about a state (unavailable, full,
// lost) are cleared by the event that ends it. Conditions about something that happened (drops, inconsistent
// answers) clear automatically when it did not happen again for `quietMs`. Conditions about data that needs a
// decision stay until the data is gone or the daemon restarts.
//
// At most 64 are kept. Beyond that, the oldest one of the lowest severity, which may be the new one, is left
// out and counted as `hidden`. A cause that lasts raises it again.
//
//   condition-catalogue.ts    the codes with severity, meaning and what to do
//   event-conditions.ts       applies the table of the events
//   condition-history.ts      those that were open, and those that a person knows of
//   ../events/                which event raises and clears which, and the texts

import type { Clock, EpochMs } from '../../std/clock.ts'
import { bounded } from '../../std/quote.ts'
import { severities, specOf, type ConditionCode, type Severity } from './condition-catalogue.ts'

export type Condition = {
  code: ConditionCode
  key: string | null
  severity: Severity
  since: EpochMs
  lastAt: EpochMs
  count: number
  what: string
  why: string
  act: string
  /** Each thing that has the problem, where one more is news; of more than 200 the first ones. */
  causes: readonly string[]
}

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
  /** In place of that of the catalogue. */
  severity?: Severity
  /** Characters of `why` that are kept. */
  whyLengthMax?: number
}

export type Conditions = {
  raise(code: ConditionCode, cause: Cause): void
  clear(code: ConditionCode, key?: string | null): void
  /** Clears all for which `stays` is false. */
  clearOthers(stays: (code: ConditionCode) => boolean): void
  /** What stops receiving or delivery first, then the worst, then the oldest. */
  open(): readonly Condition[]
  /** Conditions that were removed because there were too many, since the start. */
  readonly hidden: number
  /** One more would remove another one. */
  readonly isFull: boolean
}

const conditionsMax = 64
const causesMax = 200

type Entry = { condition: Condition; quietMs: number; quietFrom: number }

type Deps = {
  clock: Clock
  /** It is open no more. */
  cleared?: (condition: Condition) => void
}

export function createConditions({ clock, cleared = () => undefined }: Deps): Conditions {
  const entries = new Map<string, Entry>()
  let hidden = 0

  return {
    raise,
    clear: (code, key = null) => remove(entryName(code, key)),
    clearOthers(stays) {
      for (const [name, { condition }] of entries) if (!stays(condition.code)) entries.delete(name)
    },
    open,
    get hidden() {
      return hidden
    },
    get isFull() {
      return entries.size >= conditionsMax
    },
  }

  function remove(name: string): void {
    const entry = entries.get(name)
    if (entry === undefined) return
    entries.delete(name)
    cleared(entry.condition)
  }

  function raise(code: ConditionCode, cause: Cause): void {
    const { meaning, act, quietMs = Infinity, ...spec } = specOf(code)
    const { severity = spec.severity } = cause
    const { key = null, what = meaning, times = 1 } = cause
    const name = entryName(code, key)
    const known = entries.get(name)?.condition
    if (!known && !makeRoom(severity)) return
    const now = clock.now()
    const count = cause.present ?? (known?.count ?? 0) + times
    entries.set(name, {
      condition: {
        code,
        key: key === null ? null : bounded(key, 100),
        severity,
        since: known?.since ?? now,
        lastAt: now,
        count,
        what: bounded(typeof what === 'string' ? what : what(count), 300),
        why: bounded(cause.why, cause.whyLengthMax ?? 500),
        act: bounded(cause.act ?? act, 500),
        causes: causesOf(cause, known?.causes ?? []),
      },
      quietMs,
      quietFrom: clock.monotonic(),
    })
  }

  /** False where all are more severe. */
  function makeRoom(severity: Severity): boolean {
    if (entries.size < conditionsMax) return true
    let mildest: string | undefined
    let rankMin = Infinity
    for (const [name, { condition }] of entries) {
      if (rankOf(condition) < rankMin) {
        rankMin = rankOf(condition)
        mildest = name
      }
    }
    hidden += 1
    if (mildest === undefined || rankMin > rankOf({ severity })) return false
    entries.delete(mildest)
    return true
  }

  function open(): readonly Condition[] {
    const now = clock.monotonic()
    for (const [name, { quietMs, quietFrom }] of entries) {
      if (now - quietFrom >= quietMs) remove(name)
    }
    return [...entries.values()]
      .map(({ condition }) => condition)
      .sort((a, b) => stopsOf(b) - stopsOf(a) || rankOf(b) - rankOf(a) || a.since - b.since)
  }
}

function causesOf({ causes, cause }: Cause, known: readonly string[]): readonly string[] {
  if (causes !== undefined) return causes.slice(0, causesMax).map((one) => bounded(one, 100))
  const one = cause === undefined ? null : bounded(cause, 100)
  return one === null || known.includes(one) || known.length >= causesMax ? known : [...known, one]
}

function entryName(code: ConditionCode, key: string | null): string {
  return key === null ? code : `${code}|${key}`
}

/** Not one that is expected now, such as silence at night. */
function stopsOf({ code, severity }: Condition): number {
  return specOf(code).stops !== undefined && severity !== 'info' ? 1 : 0
}

function rankOf({ severity }: Pick<Condition, 'severity'>): number {
  return severities.indexOf(severity)
}
