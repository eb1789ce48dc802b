// conservation-check.ts: compares the counters (invariant 6) whenever the status or the metrics are read.
//
//   lanes      appended = settled + open, at every moment. Any difference is a fault. The spool also counts
//              the entries of its lanes.
//   messages   received + carried = mapped + ignored + duplicates + dead + quarantined + deferred + open
//              + dropped + returned + held. `carried` are the open messages read from disk at a restore.
//              Uncommitted messages, a stop and a loss of the store cause a short difference; one that
//              lasts 10 s is a fault.
//   payloads   recovered + appended = delivered + dead + returned + damaged + open, shown in /status only

import type { Clock } from '../std/clock.ts'
import type { IngestCounters } from '../ingest/ingest.ts'
import type { Conditions } from './conditions/conditions.ts'
import type { StageViews } from './types.ts'

export type Conservation = {
  messages: { received: number; carried: number; accounted: number; difference: number }
  payloads: { recovered: number; appended: number; gone: number; open: number; difference: number }
  /** Each lane since it was opened; the open side is counted by its chunks, not derived. */
  lanes: readonly { id: number; appended: number; settled: number; open: number; difference: number }[]
}

const toleratedMs = 10_000

/** `recovered`: payloads that were in the spool when it was opened. */
export function conservationOf(stages: StageViews, recovered: number): Conservation {
  const ingest = stages.ingest?.counters()
  const totals = stages.spool?.totals()
  const lanes = stages.spool?.lanes() ?? []
  const received = ingest?.received ?? 0
  const carried = ingest?.carried ?? 0
  const accounted = ingest ? accountedFor(ingest) : 0
  const open = lanes.reduce((sum, lane) => sum + lane.pending + lane.sealed, 0)
  const appended = totals?.payloads ?? 0
  const dead = stages.delivery?.counters().dead ?? 0
  const gone = totals ? totals.delivered + dead + totals.returned + totals.damaged : 0
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

function accountedFor(counters: IngestCounters): number {
  const { mapped, ignored, duplicates, dead, quarantined, deferred, openParts, dropped, returned, held } =
    counters
  return mapped + ignored + duplicates + dead + quarantined + deferred + openParts + dropped + returned + held
}

type Deps = { clock: Clock; conditions: Conditions }

/** Raises and clears CONSERVATION_BROKEN. */
export function createConservationCheck({ clock, conditions }: Deps): (conservation: Conservation) => void {
  /** The difference of the messages, and since when it is that. */
  let lasting = { difference: 0, sinceMs: 0 }

  return ({ lanes, messages }) => {
    for (const lane of lanes) if (lane.difference !== 0) raiseForLane(lane)
    checkMessages(messages)
  }

  function raiseForLane({ id, appended, settled, open }: Conservation['lanes'][number]): void {
    conditions.raise('CONSERVATION_BROKEN', {
      key: `lane ${id}`,
      what: `Lane ${id}: ${appended} appended, but ${settled} settled and ${open} open.`,
      why: 'Either stored data was lost or this is a fault of the gateway.',
    })
  }

  function checkMessages({ received, carried, accounted, difference }: Conservation['messages']): void {
    const nowMs = clock.monotonic()
    if (difference !== lasting.difference) lasting = { difference, sinceMs: nowMs }
    if (difference === 0) conditions.clear('CONSERVATION_BROKEN', 'messages')
    else if (nowMs - lasting.sinceMs >= toleratedMs)
      conditions.raise('CONSERVATION_BROKEN', {
        key: 'messages',
        what: `Received ${received} messages, ${carried} open before, but ${accounted} are accounted for.`,
        why: 'At least one message is in no counter. This is a fault of the gateway.',
      })
  }
}
