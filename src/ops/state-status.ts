// state-status.ts: the parts of /status that say how things are now. A stage that is missing has zeros.

import { isoTime, isoTimeOrNull } from '../std/clock.ts'
import type { TimeView } from '../domain/arrival.ts'
import { deviceStateNames, stateKey, type StateNumbers } from '../domain/device-state.ts'
import { keptStoreNames } from '../domain/kept-store.ts'
import { conservationOf } from './conservation-check.ts'
import type { FillForecast } from './history/history.ts'
import type { Status } from './status-schema/status-schema.ts'
import { listMax } from './totals-status.ts'
import type { StageViews } from './types.ts'

export function waitingOf({ ingest }: StageViews): Status['waiting'] {
  const counters = ingest?.counters()
  return { heldMessages: counters?.held ?? 0, openMessages: counters?.openParts ?? 0 }
}

export function spoolOf({ spool }: StageViews): Omit<Status['spool'], keyof FillForecast> {
  const totals = spool?.totals()
  return {
    hold: spool?.holdReason() ?? null,
    bytes: totals?.openBytes ?? 0,
    bytesMax: totals?.bytesMax ?? null,
    diskBytes: totals?.diskBytes ?? 0,
    freeBytes: totals?.freeBytes ?? null,
    freeBytesMin: totals?.freeBytesMin ?? 0,
    deadLetters: totals?.deadLetters ?? 0,
    quarantined: totals?.quarantined ?? 0,
    deferred: totals?.deferred ?? 0,
    deadLettersFull: spool?.deadLettersFull() ?? false,
    stores: totals ? keptStoreNames.map((store) => ({ store, ...totals.stores[store] })) : [],
  }
}

export function devicesOf({ mapping }: StageViews): Status['devices'] {
  const view = mapping?.view()
  const totals = mapping?.deviceTotals()
  return {
    known: totals?.devices ?? 0,
    listed: totals?.listed ?? 0,
    seen: totals?.seen ?? 0,
    ...(Object.fromEntries(
      deviceStateNames.map((state) => [stateKey(state), totals?.states[state] ?? 0]),
    ) as StateNumbers),
    total: totals?.total ?? 0,
    checkedAt: isoTimeOrNull(totals?.checkedAt),
    skewed: (view?.skewed ?? []).map(({ device, assetId, listed, messages, lastSeen, skewMs }) => ({
      device,
      assetId,
      listed,
      messages,
      lastSeen,
      skewMs,
    })),
  }
}

export function mappingOf({ mapping }: StageViews): Status['mapping'] {
  const view = mapping?.view()
  const { future = 0, unset = 0, old = 0, restamped = 0 } = view?.clocks ?? {}
  return {
    since: isoTimeOrNull(view?.since),
    sources: view?.sources ?? 0,
    omitted: view?.omitted.slice(0, listMax) ?? [],
    flagged: view?.flagged.slice(0, listMax) ?? [],
    clocks: { future, unset, old, restamped },
  }
}

export function clientsOf({ ingest }: StageViews): Status['clients'] {
  const counters = ingest?.counters()
  return {
    connections: counters?.connections ?? 0,
    storedSessions: counters?.sessions ?? 0,
    authentication: {
      failures: counters?.authFailures.failures ?? 0,
      addresses: [...(counters?.authFailures.addresses ?? [])],
      users: [...(counters?.authFailures.users ?? [])],
    },
    refusedMessages: (counters?.refusedByIdentity ?? [])
      .slice(0, listMax)
      .map(({ source, reason, count }) => ({ identity: source, reason, messages: count })),
  }
}

export function messageSourcesOf({ ingest }: StageViews): Status['messageSources'] {
  return (ingest?.messageSources?.() ?? []).map(({ links, partitions, ...one }) => ({
    name: one.name,
    kind: one.kind,
    url: one.url,
    connectedAt: connectedAt(links),
    silent: one.isSilent,
    messages: one.received,
    acked: one.acked,
    outstanding: one.outstanding,
    window: one.traits.windowMax,
    redelivered: one.redelivered,
    propertiesSkipped: one.propertiesSkipped,
    retainedIgnored: one.retainedIgnored,
    lag: one.lag,
    lastMessageAt: isoTimeOrNull(one.lastMessageAt),
    connections: links.map(({ clientId, state, since, sessionPresent, messages, losses, lastFault }) => ({
      clientId,
      state,
      since: isoTime(since),
      sessionPresent,
      messages,
      losses,
      lastFault,
    })),
    partitions: partitions.map((partition) => ({ ...partition })),
  }))
}

export function custodyOf({ ingest }: StageViews): Status['custody'] {
  const view = ingest?.custody?.() ?? null
  if (view === null) return null
  const { oldestMs, ...rest } = view
  return { ...rest, oldestSeconds: oldestMs === null ? null : Math.round(oldestMs / 1000) }
}

function connectedAt(links: readonly { state: string; since: number }[]): string | null {
  if (links.length === 0 || links.some(({ state }) => state !== 'connected')) return null
  return isoTime(Math.max(...links.map(({ since }) => since)))
}

export function clockOf({ ourTime }: StageViews): Status['clock'] {
  const view: TimeView = ourTime?.view() ?? { by: null, offsetMs: null, isDisputed: false }
  return { known: view.by !== null, ...view }
}

export function ledgerOf({ ledger }: StageViews): Status['ledger'] {
  const view = ledger?.view()
  return view === undefined ? null : { ...view, oldestAt: isoTimeOrNull(view.oldestAt) }
}

export function internalsOf(stages: StageViews, recovered: number): Status['internals'] {
  const { ingest, spool, mapping } = stages
  const counters = ingest?.counters()
  const { messages, payloads, lanes } = conservationOf(stages, recovered)
  return {
    conservation: { messages, payloads, lanes: [...lanes] },
    congested: spool?.congested() ?? false,
    partialPacketBytes: counters?.partialBytes ?? 0,
    passwordsWaiting: counters?.passwordsWaiting ?? 0,
    refusalsDelayed: counters?.refusalsDelayed ?? 0,
    sessionsEvicted: counters?.sessionsEvicted ?? 0,
    sessionsExpired: counters?.sessionsExpired ?? 0,
    plausibility: mapping?.view().watched ?? { devices: 0, swapped: 0, fleet: 0, beyond: 0 },
  }
}
