// alert-limit.ts: what a receiver gets next: changes, within the limit of the hour; that the limit is
// reached; or the summary of the day. Times are of the wall clock, so that they can be kept over a restart;
// where the clock was set, they count as now.
//
//   a third of the places   for conditions that no alert of the last hour has: one that is raised and cleared
//                           again and again does not keep the first alert about another one back
//   as many beyond them     for critical conditions and the verdict, which wait for nothing but `wait`; and
//                           as many again for those of them that no alert of the last hour has
//   one beyond them         says that the limit is reached, and until when the others wait
//
// Each sent alert counts for the kind of place that it took: what was sent before the limit was lowered takes
// no place of those that wait for nothing.

import type { EpochMs } from '../std/clock.ts'
import { worstOf } from './alert-changes.ts'
import { bounded } from '../std/quote.ts'
import { verdictCode } from './config.ts'
import type { Alert, Change, HeldBack, OpenCondition } from './types.ts'

/** The kinds of places, in the order in which an alert takes one. */
export const places = ['any', 'new', 'urgent', 'new_urgent'] as const
type Place = (typeof places)[number]

export type SentAlert = { at: EpochMs; codes: string[]; place: Place }

/** What of an alert is decided here. */
export type AlertContent = Pick<Alert, 'changes' | 'heldBack' | 'digest'>

export type AlertLimit = {
  /** Null: nothing now. `due`: those that have waited for others. `omitted`: changes that were undone. */
  next(
    parts: {
      changes: readonly Change[]
      due: readonly Change[]
      open: readonly OpenCondition[]
      omitted: number
    },
    rules: LimitRules,
  ): AlertContent | null
  sent(alert: Alert, now: EpochMs): void
  /** What the limit holds back; null where it holds nothing. */
  heldBack(): HeldBack | null
  state(): LimitState
}

/** `digestAt`: when the summary of the day is sent, in minutes of the local day; null: never. */
export type LimitRules = { now: EpochMs; perHour: number; digestAt: number | null }

export type LimitState = {
  recent: SentAlert[]
  /** An alert said that changes wait. */
  isLimitSaid: boolean
  /** The local date of the last summary. */
  digestDay: string | null
}

const hourMs = 3_600_000
const namesShown = 3
/** One that was due while the gateway did not run is not sent later. */
const digestLateMin = 120

export function createAlertLimit(stored: LimitState | null): AlertLimit {
  let recent = [...(stored?.recent ?? [])]
  let isLimitSaid = stored?.isLimitSaid ?? false
  let digestDay = stored?.digestDay ?? null
  let heldBack: HeldBack | null = null
  /** Of the alert that is being sent. */
  let taken: Place = 'any'
  return {
    next({ changes, due, open, omitted }, { now, perHour, digestAt }) {
      recent = recentAlerts(recent, now)
      const alone = { changes, heldBack: null, digest: null }
      if (isDigestDue(now, digestAt)) return { ...alone, changes: [], digest: open }
      const isSummary = changes.length === 0 && omitted > 0 && heldBack !== null
      if (!isSummary && due.length === 0) return null
      // By those that have waited: one that is over soon takes no place of a critical one.
      const place = placeFor(due, recent, perHour)
      if (place !== undefined) {
        taken = place
        return alone
      }
      heldBack = {
        changes: changes.length,
        untilAt: nextPlaceAt({ now, perHour }),
        severity: worstOf(changes),
        what: namesOf(changes),
      }
      return isLimitSaid || changes.length === 0 ? null : { ...alone, changes: [], heldBack }
    },
    sent,
    heldBack: () => heldBack,
    state: () => ({ recent: [...recent], isLimitSaid, digestDay }),
  }

  /** The summary of the day, and what says that the limit is reached, use no place. */
  function sent(alert: Alert, now: EpochMs): void {
    if (alert.digest !== null) digestDay = dayOf(alert.createdAt)
    else if (alert.heldBack !== null) isLimitSaid = true
    else {
      recent.push({ at: now, codes: [...new Set(alert.changes.map(({ code }) => code))], place: taken })
      heldBack = null
      isLimitSaid = false
    }
  }

  function isDigestDue(now: EpochMs, digestAt: number | null): boolean {
    if (digestAt === null || digestDay === dayOf(now)) return false
    const local = new Date(now)
    const lateMin = local.getHours() * 60 + local.getMinutes() - digestAt
    return lateMin >= 0 && lateMin < digestLateMin
  }

  /** When any change may be sent, if nothing else is sent before. */
  function nextPlaceAt({ now, perHour }: Omit<LimitRules, 'digestAt'>): EpochMs {
    const ends = recent.map(({ at }) => at + hourMs)
    return ends.find((at) => hasRoom('any', recentAlerts(recent, at), perHour)) ?? now + hourMs
  }
}

/** Of the last hour, the oldest first. A time in the future is from before a step of the clock. */
function recentAlerts(alerts: readonly SentAlert[], now: EpochMs): SentAlert[] {
  return alerts.filter(({ at }) => now - at < hourMs).map((one) => ({ ...one, at: Math.min(one.at, now) }))
}

/** `recent`: the alerts of the last hour. Undefined: no place is free that one of the changes may take. */
function placeFor(
  changes: readonly Change[],
  recent: readonly SentAlert[],
  perHour: number,
): Place | undefined {
  const known = new Set(recent.flatMap(({ codes }) => codes))
  const isNew = ({ code }: Change) => !known.has(code)
  const may: Record<Place, boolean> = {
    any: true,
    new: changes.some((change) => isUrgent(change) || (isNews(change) && isNew(change))),
    urgent: changes.some(isUrgent),
    new_urgent: changes.some((change) => isUrgent(change) && isNew(change)),
  }
  return places.find((place) => may[place] && hasRoom(place, recent, perHour))
}

function hasRoom(place: Place, recent: readonly SentAlert[], perHour: number): boolean {
  const kept = Math.max(1, Math.floor(perHour / 3))
  const taken = recent.filter((one) => one.place === place).length
  return taken < (place === 'any' ? perHour - kept : kept)
}

/** The worst of them. */
function namesOf(changes: readonly Change[]): string {
  const names = changes
    .slice(0, namesShown)
    .map(({ kind, severity, code, key }) => `${kind} ${severity} ${code}${key === null ? '' : ` ${key}`}`)
  const more = changes.length - names.length
  return bounded(`${names.join(', ')}${more > 0 ? `, and ${more} more` : ''}`, 300)
}

function isUrgent(change: Change): boolean {
  return isNews(change) && (change.severity === 'critical' || change.code === verdictCode)
}

function isNews({ kind }: Change): boolean {
  return kind !== 'cleared' && kind !== 'repeated'
}

/** The local date. */
export function dayOf(at: EpochMs): string {
  const local = new Date(at)
  return `${local.getFullYear()}-${local.getMonth() + 1}-${local.getDate()}`
}
