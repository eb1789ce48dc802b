// status.ts: the daemon's state as one JSON document, the same for `/status`, the command `status` and programs.
//
// Keys are a contract: added to, never renamed. Every number is read from its owner at the moment of the
// question, and any stage may be missing: then its part is empty and `ready` says false.
//
// Conservation (invariant 6). Nothing disappears between two counters, so these are 0 while nothing is under way:
//   messages  received + carried - (mapped + ignored + copies + dead + quarantined + deferred + parts + dropped
//             + returned + held)
//             where `carried` were open parts when the state was read, and `parts` are those of now
//   payloads  recovered + appended - (delivered + dead + damaged + open)
// A few are always under way under load (read but not committed); a number that stays is a fault. Each lane is
// checked by the spool as well: appended = settled + open, or it reports CONSERVATION_BROKEN.

import type { EpochMs } from '../std/clock.ts'
import type { HoldReason } from '../domain/event.ts'
import type { EndpointState } from '../delivery/delivery.ts'
import type { LedgerView } from '../ledger/ledger.ts'
import type { IngestCounters } from '../ingest/ingest.ts'
import type { LaneView, LaneRole } from '../spool/spool.ts'
import type { Condition } from './conditions/conditions.ts'
import type { DeviceView, Parts } from './stage-views.ts'

type StatusLane = {
  id: number
  provider: string
  urgency: LaneRole['kind']
  role: LaneRole
  pending: number
  sealed: number
  bytes: number
  openedAt: EpochMs
  oldestAt: EpochMs | null
  /** Until this lane is empty at the present rate, urgent lanes first; null where the rate is not known. */
  secondsToDrain: number | null
}

type StatusProvider = {
  name: string
  endpoint: EndpointState
  since: EpochMs
  lastRequestId: string | null
  lastSuccessAt: EpochMs | null
  clockOffsetMs: number | null
  nextAttemptAt: EpochMs | null
  inFlight: number
  ratePerS: number
}

export type Status = {
  version: string
  ready: boolean
  /** Why it is not ready; null where it is. */
  notReady: string | null
  pid: number
  startedAt: EpochMs
  now: EpochMs
  addresses: readonly string[]
  providers: readonly StatusProvider[]
  lanes: readonly StatusLane[]
  totals: {
    since: 'start'
    messages: number
    acked: number
    payloads: number
    delivered: number
    retried: number
    dead: number
    copies: number
    ignored: number
    quarantined: number
    dropped: number
    /** Had to wait and never got an ack: their devices have them still. */
    returned: number
    damaged: number
    held: number
    submissions: number
    /** Kept for their expression since the start, and those of them that were mapped. */
    deferred: number
    evaluated: number
    /** Messages that left the quarantine. */
    released: number
    /** Messages that wait now to become one payload with others. */
    parts: number
  }
  mapping: {
    since: EpochMs | null
    sources: number
    clocks: { future: number; unset: number; old: number; restamped: number }
  }
  devices: { seen: number; skewed: readonly DeviceView[] }
  reasons: {
    ignored: Record<string, number>
    dead: Record<string, number>
    quarantined: Record<string, number>
    outcomes: Record<string, number>
  }
  spool: {
    bytes: number
    bytesMax: number | null
    diskBytes: number
    hold: HoldReason | null
    /** What would become a dead letter waits. */
    lettersFull: boolean
    congested: boolean
    deadLetters: number
    deadLetterBytes: number
    quarantined: number
    quarantineBytes: number
    deferred: number
    deferredBytes: number
  }
  /** Null where none is kept. */
  ledger: LedgerView | null
  connections: number
  conservation: {
    messages: { received: number; carried: number; accounted: number; difference: number }
    payloads: { recovered: number; appended: number; gone: number; open: number; difference: number }
    /** Each lane since it was opened; the open side is counted by its chunks, not derived. */
    lanes: readonly { id: number; appended: number; settled: number; open: number; difference: number }[]
  }
  conditions: readonly Condition[]
  conditionsHidden: number
}

export type StatusSource = {
  version: string
  pid: number
  startedAt: EpochMs
  now: EpochMs
  notReady: string | null
  parts: Parts
  /** Payloads that were in the spool when it was opened. */
  recovered: number
  conditions: readonly Condition[]
  conditionsHidden: number
}

/** Sources and reasons shown; there are far fewer in any sane config. */
const reasonsMax = 200

export function buildStatus(source: StatusSource): Status {
  const { parts } = source
  const ingest = parts.ingest?.counters()
  const totals = parts.spool?.totals()
  const delivery = parts.delivery?.counters()
  const providers = parts.delivery?.providers() ?? []
  const lanes = parts.spool?.lanes() ?? []
  const mapping = parts.mapping?.view()
  return {
    version: source.version,
    ready: source.notReady === null,
    notReady: source.notReady,
    pid: source.pid,
    startedAt: source.startedAt,
    now: source.now,
    addresses: parts.ingest?.addresses() ?? [],
    providers: providers.map((provider) => ({
      name: provider.name,
      endpoint: provider.endpoint,
      since: provider.since,
      lastRequestId: provider.lastRequestId,
      lastSuccessAt: provider.lastSuccessAt,
      clockOffsetMs: provider.clockOffsetMs,
      nextAttemptAt: provider.nextAttemptAt,
      inFlight: provider.inFlight,
      ratePerS: provider.ratePerS,
    })),
    lanes: statusLanes(lanes, new Map(providers.map(({ name, ratePerS }) => [name as string, ratePerS]))),
    totals: {
      since: 'start',
      messages: ingest?.received ?? 0,
      acked: ingest?.acked ?? 0,
      payloads: totals?.payloads ?? 0,
      delivered: totals?.delivered ?? 0,
      retried: totals?.retried ?? 0,
      dead: deadOf(parts),
      copies: totals?.duplicates ?? 0,
      ignored: ingest?.ignored ?? 0,
      quarantined: ingest?.quarantined ?? 0,
      dropped: ingest?.dropped ?? 0,
      returned: ingest?.returned ?? 0,
      damaged: totals?.damaged ?? 0,
      held: ingest?.held ?? 0,
      submissions: delivery?.submissions ?? 0,
      deferred: ingest?.deferred ?? 0,
      evaluated: mapping?.deferral.evaluated ?? 0,
      released:
        (mapping?.release.released ?? 0) +
        (mapping?.verdicts.released ?? 0) +
        (mapping?.verdicts.dropped ?? 0),
      parts: ingest?.openParts ?? 0,
    },
    mapping: {
      since: mapping?.since ?? null,
      sources: mapping?.sources ?? 0,
      clocks: {
        future: mapping?.clocks.future ?? 0,
        unset: mapping?.clocks.unset ?? 0,
        old: mapping?.clocks.old ?? 0,
        restamped: mapping?.clocks.restamped ?? 0,
      },
    },
    devices: { seen: mapping?.clocks.devices ?? 0, skewed: mapping?.skewed ?? [] },
    reasons: {
      ignored: recordOf(ingest?.ignoredByReason),
      dead: recordOf(ingest?.deadByReason),
      quarantined: recordOf(ingest?.quarantinedByReason),
      outcomes: recordOf(delivery?.outcomes),
    },
    spool: {
      bytes: totals?.openBytes ?? 0,
      bytesMax: totals?.bytesMax ?? null,
      diskBytes: totals?.diskBytes ?? 0,
      hold: parts.spool?.holdReason ?? null,
      lettersFull: parts.spool?.deadLettersFull ?? false,
      congested: parts.spool?.congested ?? false,
      deadLetters: totals?.deadLetters ?? 0,
      deadLetterBytes: totals?.deadLetterBytes ?? 0,
      quarantined: totals?.quarantined ?? 0,
      quarantineBytes: totals?.quarantineBytes ?? 0,
      deferred: totals?.deferred ?? 0,
      deferredBytes: totals?.deferredBytes ?? 0,
    },
    ledger: parts.ledger?.view() ?? null,
    connections: ingest?.connections ?? 0,
    conservation: conservationOf(source),
    conditions: source.conditions,
    conditionsHidden: source.conditionsHidden,
  }
}

const urgencies: readonly LaneRole['kind'][] = ['live', 'retry', 'backfill']

/** In the order in which they drain: what is behind another lane of its provider waits for that one too. */
function statusLanes(lanes: readonly LaneView[], rates: ReadonlyMap<string, number>): StatusLane[] {
  const before = new Map<string, number>()
  return [...lanes]
    .sort((a, b) => urgencies.indexOf(a.role.kind) - urgencies.indexOf(b.role.kind) || a.id - b.id)
    .map((lane) => {
      const open = lane.pending + lane.sealed
      const ahead = (before.get(lane.provider) ?? 0) + open
      before.set(lane.provider, ahead)
      const ratePerS = rates.get(lane.provider) ?? 0
      const toDrain = ratePerS > 0 ? Math.ceil(ahead / ratePerS) : null
      return {
        id: lane.id,
        provider: lane.provider,
        urgency: lane.role.kind,
        role: lane.role,
        pending: lane.pending,
        sealed: lane.sealed,
        bytes: lane.pendingBytes + lane.sealedBytes,
        openedAt: lane.openedAt,
        oldestAt: lane.oldestAt,
        secondsToDrain: open === 0 ? 0 : toDrain,
      }
    })
}

export function conservationOf(source: Pick<StatusSource, 'parts' | 'recovered'>): Status['conservation'] {
  const lanes = source.parts.spool?.lanes() ?? []
  const ingest = source.parts.ingest?.counters()
  const totals = source.parts.spool?.totals()
  const received = ingest?.received ?? 0
  const carried = ingest?.carried ?? 0
  const accounted = ingest ? accountedFor(ingest) : 0
  const open = lanes.reduce((sum, lane) => sum + lane.pending + lane.sealed, 0)
  const recovered = source.recovered
  const appended = totals?.payloads ?? 0
  const gone = totals ? totals.delivered + (source.parts.delivery?.counters().dead ?? 0) + totals.damaged : 0
  return {
    messages: { received, carried, accounted, difference: received + carried - accounted },
    payloads: { recovered, appended, gone, open, difference: recovered + appended - gone - open },
    lanes: lanes.map(({ id, appended, settled, open }) => ({
      id,
      appended,
      settled,
      open,
      difference: appended - settled - open,
    })),
  }
}

function accountedFor(counted: IngestCounters): number {
  const { mapped, ignored, duplicates, dead, quarantined, deferred, openParts, dropped, returned, held } =
    counted
  return mapped + ignored + duplicates + dead + quarantined + deferred + openParts + dropped + returned + held
}

/** Messages that could not be mapped, at once or later, and payloads that were refused for good. */
export function deadOf({ ingest, delivery, mapping }: Parts): number {
  const later = mapping?.view()
  return (
    (ingest?.counters().dead ?? 0) +
    (delivery?.counters().dead ?? 0) +
    (later?.release.dead ?? 0) +
    (later?.verdicts.dead ?? 0) +
    (later?.deferral.dead ?? 0)
  )
}

function recordOf(counts: ReadonlyMap<string, number> | undefined): Record<string, number> {
  return Object.fromEntries([...(counts ?? [])].slice(0, reasonsMax))
}
