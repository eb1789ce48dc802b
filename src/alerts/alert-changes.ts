// alert-changes.ts: what a receiver does not know yet: the difference between the conditions that are open
// and those that it was sent. Pure.
//
// Because it is a difference, nothing queues while a receiver cannot be reached: whatever happened meanwhile,
// the next alert has what is different in the end. Its size is bounded by the number of open conditions.

import type { EpochMs } from '../std/clock.ts'
import { rankOf, type Severity } from '../domain/cause.ts'
import type { Change, OpenCondition } from './types.ts'

/** A condition as the receiver knows it. */
export type Reported = OpenCondition & {
  /** When it was last sent as raised. */
  sentAt: EpochMs
}

/** Of conditions of which a receiver may know. */
const maybeMax = 64

export type ConditionFilter = {
  from: Severity
  only: readonly string[] | null
  except: readonly string[]
}

export function nameOf({ code, key }: Pick<OpenCondition, 'code' | 'key'>): string {
  return key === null ? code : `${code}|${key}`
}

export function isWanted(
  { code, severity }: Pick<OpenCondition, 'code' | 'severity'>,
  filter: ConditionFilter,
): boolean {
  if (rankOf({ severity }) < rankOf({ severity: filter.from })) return false
  return (filter.only?.includes(code) ?? true) && !filter.except.includes(code)
}

export type ChangeRules = {
  now: EpochMs
  repeatMs: number
  /** What the receiver may know: a try that was not answered had it. */
  maybe: ReadonlyMap<string, Reported>
  /** When a condition that is missing ended; null where it may be open. */
  endedAt(known: Reported): EpochMs | null
}

/** Worst first, then oldest; cleared ones last. */
export function changesOf(
  open: readonly OpenCondition[],
  reported: ReadonlyMap<string, Reported>,
  rules: ChangeRules,
): Change[] {
  const { now, repeatMs, maybe, endedAt } = rules
  const names = new Set<string>()
  const changes: Change[] = []
  for (const condition of open) {
    const name = nameOf(condition)
    names.add(name)
    const known = reported.get(name)
    const { code, key, severity, since, count, what, why, act, causes } = condition
    const present = { code, key, severity, since, count, what, why, act, causes }
    const add = (kind: Change['kind']) => changes.push({ ...present, kind, clearedAt: null })
    if (known === undefined) add('raised')
    else if (rankOf(condition) > rankOf(known)) add('worsened')
    else if (causes.some((cause) => !known.causes.includes(cause))) add('changed')
    else if (now - known.sentAt >= repeatMs && (condition.known ?? null) === null) add('repeated')
  }
  for (const [name, known] of [...maybe, ...reported]) {
    const clearedAt = names.has(name) ? null : endedAt(known)
    if (clearedAt === null) continue
    names.add(name)
    const { sentAt: _, ...condition } = known
    changes.push({ ...condition, kind: 'cleared', clearedAt })
  }
  return changes.sort(
    (a, b) =>
      Number(a.kind === 'cleared') - Number(b.kind === 'cleared') ||
      rankOf(b) - rankOf(a) ||
      a.since - b.since,
  )
}

/** What the receiver knows once the changes are sent. */
export function applyChanges(
  reported: Map<string, Reported>,
  changes: readonly Change[],
  sentAt: EpochMs,
): void {
  for (const { kind, clearedAt: _, ...condition } of changes)
    if (kind === 'cleared') reported.delete(nameOf(condition))
    else reported.set(nameOf(condition), { ...condition, sentAt })
}

/** With what a try has. Beyond the bound, the oldest are forgotten. */
export function withTried(
  maybe: ReadonlyMap<string, Reported>,
  changes: readonly Change[],
): Map<string, Reported> {
  const next = new Map(maybe)
  for (const { kind, clearedAt: _, ...condition } of changes) {
    if (kind !== 'raised') continue
    next.delete(nameOf(condition))
    next.set(nameOf(condition), { ...condition, sentAt: condition.since })
  }
  for (const name of next.keys()) {
    if (next.size <= maybeMax) break
    next.delete(name)
  }
  return next
}

/** Two alerts with the same changes are one alert, and have one id. */
export function changesKey(changes: readonly Change[]): string {
  return changes
    .map((change) => `${change.kind} ${change.severity} ${nameOf(change)} ${change.causes.join()}`)
    .toSorted()
    .join('\n')
}

/** `info` where all are cleared. They are sorted by it. */
export function worstOf(changes: readonly Change[]): Severity {
  return changes.find(({ kind }) => kind !== 'cleared')?.severity ?? 'info'
}
