// conditions.ts: the problems that exist now, as a short list for the operator. Entry file of this folder.
//
// `key` tells conditions of one code apart (a provider, a lane, a batch). There are two kinds:
//
//   a state     (the service does not answer, the spool is full) is open exactly while it holds: look() is
//               given all states that hold, and what is no longer among them is over
//   something   (dropped messages, inconsistent answers, damage) is raised by its event. Repeats raise its
//   that        count. It is over when it did not happen again for `quietMs`, also after a restart, or when
//   happened    a person says so. Of data that is lost only a person does: it is not found again
//
// What happened is no state: a message that was dropped is lost, whether or not the next one is dropped, and
// what drops it (the spool is full) is a state of its own. As a state it would end between two messages, and
// be news with each.
//
// A stop of the daemon, or a loss of the spool, ends nothing: what was open is interrupted. What holds again
// soon after has its first `since` (condition-history.ts).
//
// The list has at most 64: of more, the worst ones. The others are counted as `hidden`. At most 1000 are
// known, and further ones are left out; a state that lasts is known when there is room again.
//
//   condition-catalogue.ts    the codes with severity, meaning, what to do, and the texts of states
//   causes.ts                 what holds now: the states of all stages, and what their numbers say
//   condition-history.ts      those that were open, and those that a person knows of

import type { Clock, EpochMs } from '../../std/clock.ts'
import { bounded } from '../../std/quote.ts'
import type { Emit, GatewayEvent } from '../../domain/event.ts'
import { eventSpec } from '../../domain/event.ts'
import { rankOf, type Cause, type Severity } from '../../domain/cause.ts'
import { conditionCatalogue, specOf, type ConditionCode } from './condition-catalogue.ts'
import type { ConditionHistory, StoredCondition } from './condition-history.ts'
import type { Stopped } from './types.ts'

export type Condition = {
  code: ConditionCode
  key: string | null
  severity: Severity
  /** Null also where that is expected now, such as silence at night. */
  stops: Stopped | null
  since: EpochMs
  lastAt: EpochMs
  count: number
  what: string
  why: string
  act: string
  /** Each thing that has the problem, where one more is news; of more than 200 the first ones. */
  causes: readonly string[]
}

/** A state that holds. */
export type Present = { code: ConditionCode; cause: Cause }

export type Conditions = {
  /** Raises what the entry of the event says (domain/events). */
  apply(event: GatewayEvent): void
  /** All states that hold now: the others are over. */
  look(present: Iterable<Present>): void
  /** The same, where the stages are gone: the others are interrupted. */
  interrupt(present: Iterable<Present>): void
  /** Those that are open, the worst first, to be stored. */
  stored(): StoredCondition[]
  /** Opens one that was stored again; false where it does not hold now, as far as is known. */
  resume(stored: StoredCondition): boolean
  /** A person has seen what happened; false where it is not open, or is a state. */
  end(of: { code: string; key: string | null }): boolean
  /** Changes with each one that is opened or ended. */
  readonly version: number
  /**
   * What stops receiving or delivery first, then the worst, then what may stop them, then the oldest; at
   * most 64.
   */
  open(): readonly Condition[]
  /** Those that are open, and not in the list. */
  readonly hidden: number
}

const shownMax = 64
const knownMax = 1000
const causesMax = 200

type Entry = {
  condition: Condition
  /** As it was when most had it: the history has its text. */
  worst: Condition
  isState: boolean
  quietMs: number
  quietFrom: number
}

type Deps = {
  clock: Clock
  history?: Pick<ConditionHistory, 'cleared' | 'interrupted' | 'resumed'>
  /** Gets the changes of states: raised, worse, or over. */
  emit?: Emit
}

const ignore = () => undefined
const noHistory = { cleared: ignore, interrupted: ignore, resumed: () => null }

export function createConditions({ clock, history = noHistory, emit = ignore }: Deps): Conditions {
  const entries = new Map<string, Entry>()
  let version = 0

  return {
    apply(event) {
      for (const [code, causeOf] of Object.entries(eventSpec(event).raises ?? {})) {
        const cause = causeOf(event)
        if (cause) put(code as ConditionCode, cause, false)
      }
    },
    look: (present) => look(present, false),
    interrupt: (present) => look(present, true),
    stored: () => sorted().map(storedOf),
    resume,
    end({ code, key }) {
      const name = entryName(code, key)
      const happened = entries.get(name)?.isState === false
      if (happened) remove(name)
      return happened
    },
    open: () =>
      sorted()
        .slice(0, shownMax)
        .map(({ condition }) => condition),
    get hidden() {
      return Math.max(0, entries.size - shownMax)
    },
    get version() {
      return version
    },
  }

  function sorted(): Entry[] {
    removeQuiet()
    return [...entries.values()].sort(
      ({ condition: a }, { condition: b }) =>
        Number(b.stops !== null) - Number(a.stops !== null) ||
        rankOf(b) - rankOf(a) ||
        Number(mayStop(b)) - Number(mayStop(a)) ||
        a.since - b.since,
    )
  }

  function resume(stored: StoredCondition): boolean {
    const { code, key, since, happened } = stored
    if (!(code in conditionCatalogue)) return false
    for (const { condition } of entries.values()) {
      if (specOf(condition.code).continues !== code || condition.key !== key) continue
      condition.since = Math.min(condition.since, since)
    }
    const name = entryName(code, key)
    const known = entries.get(name)
    if (known !== undefined) {
      const { condition } = known
      known.condition = {
        ...condition,
        since: Math.min(condition.since, since),
        count: condition.count + (known.isState ? 0 : (happened?.count ?? 0)),
      }
      version += 1
      return true
    }
    const { quietMs, isOfStart = false } = specOf(code as ConditionCode)
    if (happened === null || quietMs === undefined || isOfStart || entries.size >= knownMax) return false
    const quietFrom = clock.monotonic() - Math.max(0, clock.now() - happened.lastAt)
    const condition = { ...stored, ...happened, code: code as ConditionCode, stops: null }
    entries.set(name, { condition, worst: condition, isState: false, quietMs, quietFrom })
    version += 1
    return true
  }

  function look(present: Iterable<Present>, isInterrupted: boolean): void {
    const names = new Set<string>()
    for (const { code, cause } of present) {
      const name = entryName(code, cause.key ?? null)
      // Two of one name are one condition: the first says it.
      if (names.has(name)) continue
      names.add(name)
      const before = entries.get(name)?.condition
      const condition = put(code, cause, true)
      if (condition === null || (before !== undefined && !isWorse(condition, before))) continue
      const { key, severity, what, why, act } = condition
      emit({ kind: 'condition_raised', code, key, severity, what, why, act })
    }
    for (const [name, entry] of entries) {
      const { isState, condition } = entry
      if (!isState || names.has(name)) continue
      if (isInterrupted) {
        entries.delete(name)
        history.interrupted(storedOf(entry))
        version += 1
        continue
      }
      remove(name)
      const { code, key, severity, what, since } = condition
      emit({ kind: 'condition_cleared', code, key, severity, what, lastedMs: clock.now() - since })
    }
  }

  function removeQuiet(): void {
    const now = clock.monotonic()
    for (const [name, { quietMs, quietFrom }] of entries) if (now - quietFrom >= quietMs) remove(name)
  }

  function remove(name: string): void {
    const entry = entries.get(name)
    if (entry === undefined) return
    entries.delete(name)
    version += 1
    history.cleared({ ...entry.condition, what: entry.worst.what })
  }

  /** Null where there are too many. */
  function put(code: ConditionCode, cause: Cause, isState: boolean): Condition | null {
    const { meaning, act, quietMs = Infinity, ...spec } = specOf(code)
    const { key = null, what = meaning, times = isState ? 0 : 1 } = cause
    const name = entryName(code, key)
    const known = entries.get(name)?.condition
    if (known === undefined && entries.size >= knownMax) return null
    const now = clock.now()
    const severity = cause.severity ?? spec.severity
    const stops = cause.stops === null || severity === 'info' ? null : (spec.stops ?? null)
    const count = cause.present ?? Math.max(1, (known?.count ?? 0) + times)
    const condition: Condition = {
      code,
      key: key === null ? null : bounded(key, 100),
      severity,
      stops,
      since: known?.since ?? history.resumed({ code, key, continues: spec.continues ?? null }) ?? now,
      lastAt: now,
      count,
      what: bounded(typeof what === 'string' ? what : what(count), 300),
      why: bounded(cause.why, cause.whyLengthMax ?? 500),
      act: bounded(cause.act ?? act, 500),
      causes: causesOf(cause, known?.causes ?? []),
    }
    // A state that is as it was has not happened again.
    if (isState && known !== undefined && isSame(condition, known)) return known
    if (known === undefined) version += 1
    const worst = worseOf(condition, entries.get(name)?.worst)
    entries.set(name, { condition, worst, isState, quietMs, quietFrom: clock.monotonic() })
    return condition
  }
}

function storedOf({ condition, worst, isState }: Entry): StoredCondition {
  const { code, key, severity, since, why, act, lastAt, count, causes } = condition
  const happened = isState ? null : { why, act, lastAt, count, causes: [...causes] }
  return { code, key, severity, since, what: isState ? worst.what : condition.what, happened }
}

function worseOf(now: Condition, worst: Condition = now): Condition {
  return rankOf(now) > rankOf(worst) || (rankOf(now) === rankOf(worst) && now.count > worst.count)
    ? now
    : worst
}

function isSame(one: Condition, other: Condition): boolean {
  return (
    one.what === other.what &&
    one.why === other.why &&
    one.act === other.act &&
    one.count === other.count &&
    one.severity === other.severity &&
    one.stops === other.stops &&
    one.causes.join('\n') === other.causes.join('\n')
  )
}

/** Its severity rose, or one more thing has the problem. */
function isWorse(now: Condition, before: Condition): boolean {
  return rankOf(now) > rankOf(before) || now.causes.some((cause) => !before.causes.includes(cause))
}

function causesOf({ causes, cause }: Cause, known: readonly string[]): readonly string[] {
  if (causes !== undefined) return causes.slice(0, causesMax).map((one) => bounded(one, 100))
  const one = cause === undefined ? null : bounded(cause, 100)
  return one === null || known.includes(one) || known.length >= causesMax ? known : [...known, one]
}

/** A part of receiving or delivery stands still: a port of devices is before the one of the page. */
function mayStop({ code }: Condition): boolean {
  return specOf(code).stops !== undefined
}

function entryName(code: string, key: string | null): string {
  return key === null ? code : `${code}|${key}`
}
