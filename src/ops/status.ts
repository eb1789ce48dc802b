// status.ts: the state of the daemon as one JSON document: `/status`, the command `status`, other programs.
//
// Keys are a contract: they are added to and never renamed. Times are ISO 8601 strings, null for never. Each
// number is read from its owner at the moment of the request. Any stage may be missing: then its part is
// empty and `ready` is false.

import { isoTime, isoTimeOrNull, type EpochMs } from '../std/clock.ts'
import type { TimeView } from '../domain/arrival.ts'
import { keptStoreNames } from '../domain/kept-store.ts'
import { formatDuration } from '../std/quantity.ts'
import type { ProviderView } from '../delivery/types.ts'
import { specOf } from './conditions/condition-catalogue.ts'
import type { Condition } from './conditions/conditions.ts'
import { conservationOf } from './conservation-check.ts'
import { statusLanes } from './lane-status.ts'
import type { MappingView, StageViews } from './types.ts'
import { lastAcceptedOf, verdictOf, type VerdictSource } from './gateway-verdict/gateway-verdict.ts'

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
  conditions: readonly Condition[]
  conditionsHidden: number
}

/** Sources and reasons shown; a config has far fewer. */
const reasonsMax = 200

export type Status = ReturnType<typeof buildStatus>

export function buildStatus(source: StatusSource) {
  const { stages } = source
  const ingest = stages.ingest?.counters()
  const providers = stages.delivery?.providers() ?? []
  const mapping = stages.mapping?.view()
  const ledger = stages.ledger?.view()
  const notReady = notReadyOf(source)
  return {
    version: source.version,
    /** `ok`, `degraded`, `not_delivering` or `not_receiving`, and why in one sentence. */
    ...verdictOf(verdictSource(source)),
    ready: notReady === null,
    /** Why it is not ready; null where it is. */
    notReady,
    pid: source.pid,
    startedAt: isoTime(source.startedAt),
    now: isoTime(source.now),
    addresses: stages.ingest?.addresses() ?? [],
    /** When the last message came, and when the service last accepted a payload. */
    lastMessageAt: isoTimeOrNull(ingest?.lastMessageAt),
    lastAcceptedAt: isoTimeOrNull(lastAcceptedOf(providers)),
    providers: providers.map(({ name, endpoint, since, lastAcceptedAt, nextAttemptAt, ...provider }) => ({
      name,
      endpoint,
      since: isoTime(since),
      lastRequestId: provider.lastRequestId,
      lastAcceptedAt: isoTimeOrNull(lastAcceptedAt),
      clockOffsetMs: provider.clockOffsetMs,
      nextAttemptAt: isoTimeOrNull(nextAttemptAt),
      inFlight: provider.inFlight,
      ratePerS: provider.ratePerS,
    })),
    lanes: statusLanes(
      stages.spool?.lanes() ?? [],
      new Map(
        providers.map(({ name, endpoint, ratePerS }) => [
          name as string,
          endpoint === 'available' ? ratePerS : 0,
        ]),
      ),
    ),
    totals: totalsOf(stages),
    mapping: {
      since: isoTimeOrNull(mapping?.since),
      sources: mapping?.sources ?? 0,
      clocks: {
        future: mapping?.clocks.future ?? 0,
        unset: mapping?.clocks.unset ?? 0,
        old: mapping?.clocks.old ?? 0,
        restamped: mapping?.clocks.restamped ?? 0,
      },
      /** Fields left out, and fields sent although they are not plausible: `source|field|reason`. */
      omitted: recordOf(mapping?.omitted),
      flagged: recordOf(mapping?.flagged),
      /** As in MappingView. */
      watched: mapping?.watched ?? { devices: 0, swapped: 0, fleet: 0, beyond: 0 },
    },
    devices: {
      seen: mapping?.clocks.devices ?? 0,
      /** Records that are kept, rows of the device table, and devices that are silent. */
      known: stages.mapping?.deviceTotals().devices ?? 0,
      listed: stages.mapping?.deviceTotals().listed ?? 0,
      silent: stages.mapping?.deviceTotals().silent ?? 0,
      skewed: (mapping?.skewed ?? []).map(({ device, assetId, listed, messages, lastSeen, skewMs }) => ({
        device,
        assetId,
        listed,
        messages,
        lastSeen,
        skewMs,
      })),
    },
    reasons: {
      ignored: recordOf(ingest?.ignoredByReason),
      dead: recordOf(ingest?.deadByReason),
      quarantined: recordOf(ingest?.quarantinedByReason),
      outcomes: recordOf(stages.delivery?.counters().outcomes),
    },
    spool: spoolOf(stages),
    /** Whether the time of the gateway is known, and by what. */
    clock: clockOf(stages),
    /** Null where no ledger is kept. */
    ledger: ledger === undefined ? null : { ...ledger, oldestAt: isoTimeOrNull(ledger.oldestAt) },
    connections: ingest?.connections ?? 0,
    /** Memory of packets whose end has not arrived. */
    partialPacketBytes: ingest?.partialBytes ?? 0,
    /** Passwords of clients: refused ones, and those that wait to be checked. */
    authentication: {
      failures: ingest?.authFailures.failures ?? 0,
      addresses: ingest?.authFailures.addresses ?? [],
      users: ingest?.authFailures.users ?? [],
      waiting: ingest?.passwordsWaiting ?? 0,
      delayed: ingest?.refusalsDelayed ?? 0,
    },
    /** Messages that a rule did not allow, keyed `identity|reason`. */
    refusedMessages: recordOf(ingest?.refusedByIdentity),
    /** Sessions of clients that connect without Clean Session. */
    sessions: {
      stored: ingest?.sessions ?? 0,
      evicted: ingest?.sessionsEvicted ?? 0,
      expired: ingest?.sessionsExpired ?? 0,
    },
    conservation: conservationOf(stages, source.recovered),
    conditions: source.conditions.map((condition) => ({
      ...condition,
      what: condition.what + nextTryOf(condition, providers, source.now),
      since: isoTime(condition.since),
      lastAt: isoTime(condition.lastAt),
    })),
    conditionsHidden: source.conditionsHidden,
  }
}

/** As `/readyz` says it: also while every acknowledgement is held. */
export function notReadyOf({ notReady, stages }: Pick<StatusSource, 'notReady' | 'stages'>): string | null {
  const hold = stages.spool?.holdReason ?? null
  return notReady ?? (hold === null ? null : `acknowledgements are held: ${hold}`)
}

export function verdictSource(source: Omit<StatusSource, 'version' | 'pid'>): VerdictSource {
  const { stages, conditions, notReady, now, startedAt } = source
  return {
    now,
    startedAt,
    notReady,
    holdReason: stages.spool?.holdReason ?? null,
    conditions,
    providers: stages.delivery?.providers() ?? [],
    lanes: stages.spool?.lanes() ?? [],
    lastMessageAt: stages.ingest?.counters().lastMessageAt ?? null,
  }
}

function clockOf({ ourTime }: StageViews) {
  const view: TimeView = ourTime?.view() ?? { by: null, offsetMs: null, isDisputed: false }
  return { known: view.by !== null, ...view }
}

function totalsOf(stages: StageViews) {
  const ingest = stages.ingest?.counters()
  const spool = stages.spool?.totals()
  const mapping = stages.mapping?.view()
  return {
    since: 'start' as const,
    messages: ingest?.received ?? 0,
    acked: ingest?.acked ?? 0,
    payloads: spool?.payloads ?? 0,
    delivered: spool?.delivered ?? 0,
    retried: spool?.retried ?? 0,
    dead: deadOf(stages),
    duplicates: (spool?.duplicates ?? 0) + (ingest?.resent ?? 0),
    /** Messages without a device time that came with DUP and were stored: some may be second copies. */
    resendsStored: ingest?.resendsStored ?? 0,
    ignored: ingest?.ignored ?? 0,
    quarantined: ingest?.quarantined ?? 0,
    dropped: ingest?.dropped ?? 0,
    /** Messages that had to wait and got no ack: their devices still have them. */
    returned: ingest?.returned ?? 0,
    damaged: spool?.damaged ?? 0,
    /** Kept messages, dead letters and entries of mapping state that were counted and are missing. */
    recordsMissing: spool?.recordsMissing ?? 0,
    held: ingest?.held ?? 0,
    submissions: stages.delivery?.counters().submissions ?? 0,
    /** Messages kept for their expression since the start, and those of them that were mapped. */
    deferred: ingest?.deferred ?? 0,
    evaluated: mapping?.deferred.evaluated ?? 0,
    /** Messages that left the quarantine. */
    released: mapping ? releasedOf(mapping) : 0,
    /** Messages that wait now to become one payload with others. */
    openParts: ingest?.openParts ?? 0,
  }
}

/** Messages that left the quarantine. */
export function releasedOf({ release, decisions, corrected }: MappingView): number {
  return release.released + decisions.released + decisions.dropped + corrected.released
}

/** Messages that could not be mapped, at once or later, and payloads that were refused for good. */
export function deadOf({ ingest, delivery, mapping }: StageViews): number {
  const later = mapping?.view()
  return (
    (ingest?.counters().dead ?? 0) +
    (delivery?.counters().dead ?? 0) +
    (later ? later.release.dead + later.decisions.dead + later.corrected.dead + later.deferred.dead : 0)
  )
}

function spoolOf({ spool }: StageViews) {
  const totals = spool?.totals()
  return {
    bytes: totals?.openBytes ?? 0,
    bytesMax: totals?.bytesMax ?? null,
    diskBytes: totals?.diskBytes ?? 0,
    hold: spool?.holdReason ?? null,
    /** Messages that would become dead letters wait without an ack. */
    deadLettersFull: spool?.deadLettersFull ?? false,
    congested: spool?.congested ?? false,
    deadLetters: totals?.deadLetters ?? 0,
    deadLetterBytes: totals?.deadLetterBytes ?? 0,
    quarantined: totals?.quarantined ?? 0,
    quarantineBytes: totals?.quarantineBytes ?? 0,
    deferred: totals?.deferred ?? 0,
    deferredBytes: totals?.deferredBytes ?? 0,
    /** Kept messages and dead letters by store: size, limit, and messages dropped to make room. */
    stores: storesOf(totals),
  }
}

function storesOf(totals: ReturnType<NonNullable<StageViews['spool']>['totals']> | undefined) {
  if (totals === undefined) return {}
  return Object.fromEntries(
    keptStoreNames.map((name) => [name, { ...totals.stores[name], evicted: totals.evicted[name] }]),
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

function recordOf(counts: ReadonlyMap<string, number> | undefined): Record<string, number> {
  return Object.fromEntries([...(counts ?? [])].slice(0, reasonsMax))
}
