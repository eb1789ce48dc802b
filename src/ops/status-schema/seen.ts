// seen.ts: what the facts are read from: the stages, each asked once for its numbers. Any stage may be
// missing.

import type { EpochMs } from '../../std/clock.ts'
import type { DeliveryCounters, ProviderView } from '../../delivery/types.ts'
import type { IngestCounters } from '../../ingest/ingest.ts'
import type { LaneView, SpoolTotals } from '../../spool/spool.ts'
import type { KnownCondition } from '../conditions/condition-history.ts'
import type { Condition } from '../conditions/conditions.ts'
import type { VerdictSource } from '../gateway-verdict/gateway-verdict.ts'
import type { FillForecast } from '../history/history.ts'
import type { DeviceTotals, MappingView, StageViews } from '../types.ts'

export type StatusSource = {
  version: string
  pid: number
  startedAt: EpochMs
  /** The start, or the last loss of the spool. */
  countedSince: EpochMs
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

export type Seen = StatusSource & {
  ingest: IngestCounters | undefined
  totals: SpoolTotals | undefined
  lanes: readonly LaneView[]
  delivery: DeliveryCounters | undefined
  providers: readonly ProviderView[]
  mapping: MappingView | undefined
  devices: DeviceTotals | undefined
}

export function seenOf(source: StatusSource): Seen {
  const { ingest, spool, delivery, mapping } = source.stages
  return {
    ...source,
    ingest: ingest?.counters(),
    totals: spool?.totals(),
    lanes: spool?.lanes() ?? [],
    delivery: delivery?.counters(),
    providers: delivery?.providers() ?? [],
    mapping: mapping?.view(),
    devices: mapping?.deviceTotals(),
  }
}

/** Entries of a list. A config has far fewer sources and reasons. */
export const listMax = 200

/** As `/readyz` says it: also while all acknowledgements wait, and where no message can come. */
export function notReadyOf({ notReady, stages }: Pick<StatusSource, 'notReady' | 'stages'>): string | null {
  const hold = stages.spool?.holdReason() ?? null
  if (notReady === null && stages.spool?.writeState?.() === 'hanging') return 'a write to the spool hangs'
  if (notReady === null && stages.ingest?.isShut?.() === true) return 'no listener is open'
  return notReady ?? (hold === null ? null : `acknowledgements are held: ${hold}`)
}

export function verdictSource(source: Omit<StatusSource, 'version' | 'pid' | 'forecast'>): VerdictSource {
  const { stages, conditions, notReady, now, startedAt, countedSince } = source
  return {
    now,
    startedAt,
    countedSince,
    notReady,
    holdReason: stages.spool?.holdReason() ?? null,
    conditions,
    providers: stages.delivery?.providers() ?? [],
    lanes: stages.spool?.lanes() ?? [],
    lastMessageAt: stages.ingest?.counters().lastMessageAt ?? null,
  }
}

/** Messages that could not be mapped, at once or later. */
export function unmappableOf({ ingest, mapping }: Pick<Seen, 'ingest' | 'mapping'>): number {
  return (ingest?.dead ?? 0) + (mapping ? laterDeadOf(mapping) : 0)
}

/** Messages in quarantine, or deferred, that became dead letters. */
export function laterDeadOf({ release, decisions, corrected, deferred }: MappingView): number {
  return release.dead + decisions.dead + corrected.dead + deferred.dead
}

/** Dead letters made since the start: of messages, and of payloads. */
export function deadLettersOf({ ingest, mapping, delivery }: StageViews): number {
  const seen = { ingest: ingest?.counters(), mapping: mapping?.view() }
  return unmappableOf(seen) + (delivery?.counters().dead ?? 0)
}
