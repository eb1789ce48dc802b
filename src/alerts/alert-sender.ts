// alert-sender.ts: decides when one receiver gets an alert, sends it, and remembers what the receiver knows.
//
//   look()   every second: what is open -> what the receiver does not know yet (alert-changes.ts)
//     changes wait for others (`wait`)    -> a change that is undone meanwhile is only counted (`omitted`)
//     the limit of the hour is reached    -> they wait (alert-limit.ts), and one alert says so
//     the last try failed                 -> they wait: 5 s, doubled to 15 min, with jitter, or Retry-After
//     else one try, alone                 -> sent: the receiver knows them. Failed: the next try has what is
//                                            different then. Not answered: the receiver may know them, so it
//                                            is sent their end, too
//
// Once a day, at `digest`, the receiver gets all open conditions.
//
// Nothing queues, so no queue can overflow. The id of an alert is on the disk before its first byte leaves,
// and stays the same as long as its changes do: a receiver recognises a try that is repeated after a timeout
// or a kill. What the receiver knows is kept over restarts. What is missing after one counts as cleared at
// once where its end was seen, else only when the gateway has been ready for two minutes, because conditions
// are raised again by then.

import type { Clock } from '../std/clock.ts'
import type { State } from '../domain/condition-state.ts'
import type { Emit } from '../domain/event.ts'
import {
  applyChanges,
  changesKey,
  changesOf,
  isWanted,
  nameOf,
  withTried,
  type ConditionFilter,
  type Reported,
} from './alert-changes.ts'
import { createAlertLimit, dayOf, type AlertContent } from './alert-limit.ts'
import { headlineOf } from './alert-text.ts'
import type { SenderState } from './alert-state.ts'
import { failingState, tryOnce } from './receiver-try.ts'
import type {
  Alert,
  AlertReceiver,
  AlertReceiverView,
  Change,
  OpenCondition,
  Sent,
  Situation,
} from './types.ts'

export type SenderSettings = {
  name: string
  receiver: AlertReceiver
  /** Digest of all that identifies the target. */
  targetId: string
  filter: ConditionFilter
  waitMs: number
  repeatMs: number
  perHour: number
  /** When it gets the summary of the day, in minutes of the local day; null: never. */
  digestAt: number | null
}

export type AlertSender = {
  look(situation: Situation): void
  view(): AlertReceiverView
  state(): SenderState
  /**
   * Puts other settings in force. With another target the receiver knows nothing; where nothing changed, a
   * back-off goes on.
   */
  use(settings: SenderSettings, changed: 'nothing' | 'settings' | 'target'): void
  /** The next try begins at once. */
  retryNow(): void
  states(): readonly State[]
  /** Ends a running try. */
  stop(): Promise<void>
}

export type SenderDeps = {
  clock: Clock
  random: () => number
  newId: () => string
  emit: Emit
  alertBase: () => Pick<Alert, 'gateway' | 'version' | 'page'>
  /** Writes the states of all receivers; resolves after a bounded time, whatever the disk does. */
  save: () => Promise<void>
}

const backoffMs = { min: 5000, max: 900_000 }
const retryAfterMaxMs = 3_600_000
const restoredGraceMs = 120_000

export function createAlertSender(
  deps: SenderDeps,
  first: SenderSettings,
  stored: SenderState | null,
): AlertSender {
  const { clock, random, newId, emit, alertBase, save } = deps
  let settings = first
  let reported = new Map<string, Reported>(stored?.reported.map((one) => [nameOf(one), one]))
  /** What it may know: a try had it, and was not answered. */
  let maybe = new Map<string, Reported>(stored?.maybe.map((one) => [nameOf(one), one]))
  /** Known from before a restart, and not seen open since. */
  let restored = new Set([...reported.keys(), ...maybe.keys()])
  /** The same, until it is known whether they were over before they were open anew. */
  const ofLastRun = new Set(restored)
  let limit = createAlertLimit(stored)
  let pending = stored?.pending ?? null
  let omitted = stored?.omitted ?? 0
  let lastSentAt = stored?.lastSentAt ?? null
  /** What it knows and is not open, by name: when it was first missing. */
  let missing = new Map<string, number>()
  /** Changes that wait, by kind and name, since when on the monotonic clock. */
  let waiting = new Map<string, number>()
  let completeSince: number | null = null
  let failures = 0
  /** Why some recipients get nothing. */
  let incomplete: string | null = null
  let retryAt = 0
  let lastFailedAt: number | null = null
  let [lastFailure, lastAct]: [string | null, string] = [null, '']
  const counts = { sent: 0, failed: 0, dropped: 0 }
  let stopping = new AbortController()
  let running: Promise<void> | null = null

  return { look, view, state, states, use, retryNow: () => void (retryAt = 0), stop }

  function look(situation: Situation): void {
    const [now, nowMs] = [clock.now(), clock.monotonic()]
    keepTimesPast(now)
    noteCompleteness(situation.isComplete, nowMs)
    const { name, filter, waitMs, repeatMs } = settings
    const open = situation.conditions.filter(
      // That it fails itself it cannot be sent, and need not know afterwards.
      (one) => isWanted(one, filter) && !(one.code === 'ALERTS_FAILING' && one.key === name),
    )
    for (const one of open) {
      restored.delete(nameOf(one))
      forgetEnded(one, situation)
    }
    noteMissing(open, now)
    const endedAt = (known: Reported) => endOf(known, situation, nowMs)
    const changes = changesOf(open, reported, { now, repeatMs, maybe, endedAt })
    noteWaiting(changes, nowMs)
    if (running !== null || nowMs < retryAt) return
    const due = changes.filter((change) => nowMs - (waiting.get(waitingKey(change)) ?? nowMs) >= waitMs)
    const content = limit.next({ changes, due, open, omitted }, { now, ...settings })
    if (content === null) return
    running = attempt(situation, { omitted, open: open.length, ...content }).finally(() => {
      running = null
    })
  }

  /** The clock may have been set back: nothing was sent in the future. */
  function keepTimesPast(now: number): void {
    for (const one of reported.values()) one.sentAt = Math.min(one.sentAt, now)
  }

  /** What is missing from an incomplete list may be open nevertheless. */
  function noteCompleteness(isComplete: boolean, nowMs: number): void {
    if (isComplete) {
      completeSince ??= nowMs
      if (nowMs - completeSince >= restoredGraceMs) ofLastRun.clear()
      return
    }
    completeSince = null
    restored = new Set([...reported.keys(), ...maybe.keys()])
  }

  /** It was over while nothing could be sent, and is open anew: that is news. */
  function forgetEnded(one: OpenCondition, { endOf: ended }: Situation): void {
    if (!ofLastRun.has(nameOf(one))) return
    const end = ended(one)
    if (end === null || end === 'continues' || !end.isSure || end.at > one.since) return
    ofLastRun.delete(nameOf(one))
    for (const known of [reported, maybe])
      if ((known.get(nameOf(one))?.since ?? Infinity) <= end.at) known.delete(nameOf(one))
  }

  function noteMissing(open: readonly OpenCondition[], now: number): void {
    const names = new Set(open.map(nameOf))
    const gone = [...reported.keys(), ...maybe.keys()].filter((name) => !names.has(name))
    missing = new Map(gone.map((name) => [name, missing.get(name) ?? now]))
  }

  /** Null where it may be open. */
  function endOf(known: Reported, { conditions, endOf: ended }: Situation, nowMs: number): number | null {
    const name = nameOf(known)
    const isOpen = conditions.some((one) => nameOf(one) === name)
    const end = isOpen ? null : ended(known)
    if (end === 'continues') return null
    // An earlier end is of another time that it was open.
    const at = end !== null && end.at >= known.since ? end.at : null
    if (at !== null && end?.isSure === true) return at
    const isSettled = completeSince !== null && nowMs - completeSince >= restoredGraceMs
    if (completeSince === null || (restored.has(name) && !isSettled)) return null
    return at ?? missing.get(name) ?? clock.now()
  }

  function noteWaiting(changes: readonly Change[], nowMs: number): void {
    const before = waiting
    waiting = new Map()
    for (const change of changes) {
      const key = waitingKey(change)
      waiting.set(key, before.get(key) ?? nowMs)
    }
    // While a try runs, its changes are neither sent nor undone yet.
    if (running !== null) {
      for (const [key, since] of before) if (!waiting.has(key)) waiting.set(key, since)
      return
    }
    for (const key of before.keys()) {
      const isUndone = !waiting.has(key) && !waiting.has(key.replace(/^\w+/, 'cleared'))
      if (!isUndone || key.startsWith('repeated ')) continue
      omitted += 1
      counts.dropped += 1
    }
  }

  async function attempt(situation: Situation, parts: AlertParts): Promise<void> {
    const { receiver, name } = settings
    const { signal } = stopping
    const { changes } = parts
    const key = parts.digest === null ? changesKey(changes) : `digest ${dayOf(clock.now())}`
    if (pending?.key !== key) pending = { id: newId(), key }
    const alert: Alert = {
      id: pending.id,
      isTest: false,
      ...alertBase(),
      receiver: name,
      createdAt: clock.now(),
      headline: headlineOf(parts),
      verdict: situation.verdict,
      sentence: situation.sentence,
      ...parts,
    }
    const maybeBefore = maybe
    maybe = withTried(maybe, changes)
    await save()
    const sent = await tryOnce(clock, receiver, (ends) => receiver.send(alert, ends), signal)
    // The receiver was removed, or has another target: what this one knows is of no use.
    if (signal.aborted) return
    if (sent.kind === 'sent') succeeded(alert, sent)
    else {
      if (!sent.mayHaveArrived) maybe = maybeBefore
      failed(sent)
    }
    void save() // It never rejects.
  }

  function succeeded(alert: Alert, { warning }: Sent & { kind: 'sent' }): void {
    const { name } = settings
    const now = clock.now()
    applyChanges(reported, alert.changes, now)
    for (const change of alert.changes) {
      waiting.delete(waitingKey(change))
      maybe.delete(nameOf(change))
    }
    limit.sent(alert, now)
    omitted = Math.max(0, omitted - alert.omitted)
    pending = null
    lastSentAt = now
    counts.sent += 1
    emit({ kind: 'alert_sent', receiver: name, headline: alert.headline, changes: alert.changes.length })
    if (warning !== null) emit({ kind: 'alert_incomplete', receiver: name, why: warning })
    incomplete = warning
    failures = 0
    retryAt = 0
  }

  function failed({ why, act, retryAfterMs }: Sent & { kind: 'failed' }): void {
    failures += 1
    counts.failed += 1
    lastFailedAt = clock.now()
    ;[lastFailure, lastAct] = [why, act]
    const delayMs = Math.min(backoffMs.max, backoffMs.min * 2 ** Math.min(failures - 1, 20))
    const retryInMs = Math.max(delayMs * (0.5 + random() / 2), Math.min(retryAfterMs ?? 0, retryAfterMaxMs))
    retryAt = clock.monotonic() + retryInMs
    emit({
      kind: 'alert_failed',
      receiver: settings.name,
      why,
      act,
      failures,
      retryInMs: Math.round(retryInMs),
    })
  }

  function use(next: SenderSettings, changed: 'nothing' | 'settings' | 'target'): void {
    settings = next
    if (changed !== 'nothing') retryAt = 0
    if (changed !== 'target') {
      // What it does not get any more is neither open nor cleared for it.
      for (const known of [reported, maybe])
        for (const [name, one] of known) if (!isWanted(one, next.filter)) known.delete(name)
      return
    }
    stopping.abort()
    stopping = new AbortController()
    reported = new Map()
    maybe = new Map()
    waiting = new Map()
    restored = new Set()
    limit = createAlertLimit(null)
    pending = null
    omitted = 0
    failures = 0
    incomplete = null
  }

  function view(): AlertReceiverView {
    const { name, receiver } = settings
    const waitsMs = retryAt - clock.monotonic()
    return {
      name,
      type: receiver.type,
      target: receiver.target,
      lastSentAt,
      lastFailedAt,
      lastFailure,
      failures,
      nextTryAt: failures > 0 && waitsMs > 0 ? Math.round(clock.now() + waitsMs) : null,
      waiting: waiting.size,
      heldBack: limit.heldBack(),
      ...counts,
    }
  }

  function state(): SenderState {
    return {
      target: settings.targetId,
      reported: [...reported.values()].map(storedOf),
      maybe: [...maybe.values()].map(storedOf),
      ...limit.state(),
      pending,
      omitted,
      lastSentAt,
    }
  }

  async function stop(): Promise<void> {
    stopping.abort()
    await running
  }

  function states(): State[] {
    if (incomplete === null) return failingState(settings.name, { failures, why: lastFailure, act: lastAct })
    const act = 'Correct `recipients` of the receiver, or ask who runs the relay.'
    return [{ code: 'ALERTS_FAILING', receiver: settings.name, failures: 0, why: incomplete, act }]
  }
}

type AlertParts = Pick<Alert, 'omitted' | 'open'> & AlertContent

function storedOf({ causes, ...rest }: Reported) {
  return { ...rest, causes: [...causes] }
}

function waitingKey(change: Change): string {
  return `${change.kind} ${nameOf(change)}`
}
