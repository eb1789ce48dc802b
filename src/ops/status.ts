// status.ts: the state of the daemon as one JSON document: `/status`, the command `status`, other programs.
// status-schema/ says what is in it.
//
// Each number is read from its owner at the moment of the request. Any stage may be missing: then its part is
// empty and `ready` is false.

import { isoTime, isoTimeOrNull, type EpochMs } from '../std/clock.ts'
import { formatDuration } from '../std/quantity.ts'
import type { ProviderView } from '../delivery/types.ts'
import { specOf } from './conditions/condition-catalogue.ts'
import type { KnownCondition } from './conditions/condition-history.ts'
import type { Condition } from './conditions/conditions.ts'
import { lastAcceptedOf, verdictOf, type VerdictSource } from './gateway-verdict/gateway-verdict.ts'
import type { FillForecast } from './history/history.ts'
import { statusLanes } from './lane-status.ts'
import {
  clientsOf,
  clockOf,
  custodyOf,
  devicesOf,
  internalsOf,
  ledgerOf,
  mappingOf,
  messageSourcesOf,
  spoolOf,
  waitingOf,
} from './state-status.ts'
import type { Status } from './status-schema/status-schema.ts'
import { outcomesOf, reasonsOf, totalsOf } from './totals-status.ts'
import type { StageViews } from './types.ts'

export type StatusSource = {
  version: string
  pid: number
  startedAt: EpochMs
  now: EpochMs
  /** What the start or the stop does, or why the spool is refused; null where none of these. */
  notReady: string | null
  stages: StageViews
  /** Payloads that were in the spool when it was opened. */
  recovered: number
  conditions: readonly (Condition & { known?: KnownCondition | null })[]
  conditionsHidden: number
  /** When the spool is full. */
  forecast: FillForecast
}

export function buildStatus(source: StatusSource): Status {
  const { stages, now } = source
  const providers = stages.delivery?.providers() ?? []
  const notReady = notReadyOf(source)
  const lastMessageAt = stages.ingest?.counters().lastMessageAt ?? null
  const lastAcceptedAt = lastAcceptedOf(providers)
  return {
    version: source.version,
    ...verdictOf(verdictSource(source)),
    ready: notReady === null,
    notReady,
    pid: source.pid,
    startedAt: isoTime(source.startedAt),
    now: isoTime(now),
    addresses: [...(stages.ingest?.addresses() ?? [])],
    lastMessageAt: isoTimeOrNull(lastMessageAt),
    lastMessageAgeSeconds: ageOf(lastMessageAt, now),
    lastAcceptedAt: isoTimeOrNull(lastAcceptedAt),
    lastAcceptedAgeSeconds: ageOf(lastAcceptedAt, now),
    providers: providers.map(providerOf),
    lanes: statusLanes(stages.spool?.lanes() ?? [], ratesOf(providers)),
    waiting: waitingOf(stages),
    totals: totalsOf(stages),
    reasons: reasonsOf(stages),
    outcomes: outcomesOf(stages),
    mapping: mappingOf(stages),
    devices: devicesOf(stages),
    clients: clientsOf(stages),
    messageSources: messageSourcesOf(stages),
    custody: custodyOf(stages),
    spool: { ...spoolOf(stages), ...source.forecast },
    clock: clockOf(stages),
    ledger: ledgerOf(stages),
    conditions: source.conditions.map((condition) => ({
      ...condition,
      causes: [...condition.causes],
      known: knownOf(condition.known ?? null),
      what: condition.what + nextTryOf(condition, providers, now),
      since: isoTime(condition.since),
      lastAt: isoTime(condition.lastAt),
    })),
    conditionsHidden: source.conditionsHidden,
    internals: internalsOf(stages, source.recovered),
  }
}

/** As `/readyz` says it: also while every acknowledgement is held, or waits for the disk. */
export function notReadyOf({ notReady, stages }: Pick<StatusSource, 'notReady' | 'stages'>): string | null {
  const hold = stages.spool?.holdReason() ?? null
  if (notReady === null && stages.spool?.writeState?.() === 'hanging') return 'a write to the spool hangs'
  return notReady ?? (hold === null ? null : `acknowledgements are held: ${hold}`)
}

export function verdictSource(source: Omit<StatusSource, 'version' | 'pid' | 'forecast'>): VerdictSource {
  const { stages, conditions, notReady, now, startedAt } = source
  return {
    now,
    startedAt,
    notReady,
    holdReason: stages.spool?.holdReason() ?? null,
    conditions,
    providers: stages.delivery?.providers() ?? [],
    lanes: stages.spool?.lanes() ?? [],
    lastMessageAt: stages.ingest?.counters().lastMessageAt ?? null,
  }
}

function knownOf(known: KnownCondition | null): Status['conditions'][number]['known'] {
  return known && { untilAt: isoTime(known.untilAt), by: known.by, saidAt: isoTime(known.saidAt) }
}

/** The clock may have been set back since. */
function ageOf(at: EpochMs | null, now: EpochMs): number | null {
  return at === null ? null : Math.max(0, Math.round((now - at) / 100) / 10)
}

function providerOf(provider: ProviderView): Status['providers'][number] {
  const { name, endpoint, since, lastRequestId, lastAcceptedAt, clockOffsetMs, nextAttemptAt } = provider
  return {
    name,
    endpoint,
    since: isoTime(since),
    lastRequestId,
    lastAcceptedAt: isoTimeOrNull(lastAcceptedAt),
    clockOffsetMs,
    nextAttemptAt: isoTimeOrNull(nextAttemptAt),
    inFlight: provider.inFlight,
    payloadsPerSecond: provider.ratePerS,
  }
}

/** Of providers that deliver now. */
function ratesOf(providers: readonly ProviderView[]): ReadonlyMap<string, number> {
  return new Map(
    providers.map(({ name, endpoint, ratePerS }) => [name, endpoint === 'available' ? ratePerS : 0]),
  )
}

/** When delivery tries again, as it is now: the condition itself is as old as its last cause. */
function nextTryOf({ code, key }: Condition, providers: readonly ProviderView[], now: EpochMs): string {
  const provider = specOf(code).showsNextTry ? providers.find(({ name }) => name === key) : undefined
  if (provider === undefined) return ''
  if (provider.inFlight > 0) return ' A try is running.'
  const waitMs = (provider.nextAttemptAt ?? now) - now
  return waitMs > 0 ? ` Next try in ${formatDuration(waitMs)}.` : ' Next try with the next payload.'
}
