// totals-status.ts: the parts of /status that only grow: totals, reasons and outcomes since the start.

import { keptStoreNames } from '../domain/kept-store.ts'
import type { Status } from './status-schema/status-schema.ts'
import type { MappingView, ReasonCount, StageViews } from './types.ts'

/** Entries of a list. A config has far fewer sources and reasons. */
export const listMax = 200

export function totalsOf(stages: StageViews): Status['totals'] {
  const ingest = stages.ingest?.counters()
  const spool = stages.spool?.totals()
  const mapping = stages.mapping?.view()
  const delivery = stages.delivery?.counters()
  return {
    since: 'start',
    messages: ingest?.received ?? 0,
    acked: ingest?.acked ?? 0,
    ignored: ingest?.ignored ?? 0,
    unmappable: unmappableOf(stages),
    quarantined: ingest?.quarantined ?? 0,
    released: mapping ? releasedOf(mapping) : 0,
    dropped: ingest?.dropped ?? 0,
    returned: ingest?.returned ?? 0,
    resent: ingest?.resent ?? 0,
    resendsStored: ingest?.resendsStored ?? 0,
    payloads: spool?.payloads ?? 0,
    duplicates: spool?.duplicates ?? 0,
    delivered: spool?.delivered ?? 0,
    retried: spool?.retried ?? 0,
    dead: delivery?.dead ?? 0,
    payloadsReturned: spool?.returned ?? 0,
    damaged: spool?.damaged ?? 0,
    recordsMissing: spool?.recordsMissing ?? 0,
    submissions: delivery?.submissions ?? 0,
    evicted: keptStoreNames.map((store) => ({ store, messages: spool?.evicted[store] ?? 0 })),
  }
}

/** Messages that left the quarantine. */
export function releasedOf({ release, decisions, corrected }: MappingView): number {
  return release.released + decisions.released + decisions.dropped + corrected.released
}

/** Messages that could not be mapped, at once or later. */
function unmappableOf({ ingest, mapping }: StageViews): number {
  const later = mapping?.view()
  return (
    (ingest?.counters().dead ?? 0) +
    (later ? later.release.dead + later.decisions.dead + later.corrected.dead + later.deferred.dead : 0)
  )
}

/** Dead letters made since the start: of messages, and of payloads. */
export function deadLettersOf(stages: StageViews): number {
  return unmappableOf(stages) + (stages.delivery?.counters().dead ?? 0)
}

export function reasonsOf({ ingest }: StageViews): Status['reasons'] {
  const counters = ingest?.counters()
  return [
    ...listed('ignored', counters?.ignoredByReason),
    ...listed('unmappable', counters?.deadByReason),
    ...listed('quarantined', counters?.quarantinedByReason),
  ]
}

function listed(
  kind: Status['reasons'][number]['kind'],
  counts: readonly ReasonCount[] = [],
): Status['reasons'] {
  return counts.slice(0, listMax).map(({ source, reason, count }) => ({
    kind,
    source: source === '' ? null : source,
    reason,
    messages: count,
  }))
}

export function outcomesOf({ delivery }: StageViews): Status['outcomes'] {
  return [...(delivery?.counters().outcomes ?? [])]
    .slice(0, listMax)
    .map(([outcome, submissions]) => ({ outcome, submissions }))
}
