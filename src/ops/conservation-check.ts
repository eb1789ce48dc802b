// conservation-check.ts: compares the counters (invariant 6) whenever the status or the metrics are read.
//
//   lanes      appended = settled + open, at every moment. Any difference is a fault. The spool also counts
//              the entries of its lanes.
//   messages   received + carried + split = mapped + ignored + duplicates + dead + quarantined
//              + open + dropped + returned + held. `carried` are the open messages read from disk at a
//              restore. `split`: a message of several vehicles is in a counter for each thing that its
//              records became.
//              Uncommitted messages, a stop and a loss of the store cause a short difference; one that
//              lasts 10 s is a fault.
//   payloads   recovered + appended = delivered + dead + returned + damaged + open, over a loss of the store,
//              too. A difference that lasts 10 s means that stored payloads are missing, or back. While a
//              write runs it says nothing: what is settled has left its lane and is not counted yet. Nor
//              while the store is lost: no lane can be seen

import type { Clock } from '../std/clock.ts'
import type { IngestCounters } from '../ingest/ingest.ts'
import type { SpoolTotals } from '../spool/spool.ts'
import type { Conditions } from './conditions/conditions.ts'
import type { StageViews } from './types.ts'

export type Conservation = {
  messages: { received: number; carried: number; split: number; accounted: number; difference: number }
  payloads: { recovered: number; appended: number; gone: number; open: number; difference: number }
  /** Each lane since it was opened; the open side is counted by its chunks, not derived. */
  lanes: readonly { id: number; appended: number; settled: number; open: number; difference: number }[]
}

const toleratedMs = 10_000
const eitherLost = 'Either stored data was lost or this is a fault of the gateway.'

/** `recovered`: payloads that were in the spool when it was opened. */
export function conservationOf(stages: StageViews, recovered: number): Conservation {
  const ingest = stages.ingest?.counters()
  const totals = stages.spool?.totals()
  const lanes = stages.spool?.lanes() ?? []
  const received = ingest?.received ?? 0
  const carried = ingest?.carried ?? 0
  const split = ingest?.split ?? 0
  const accounted = ingest ? accountedFor(ingest) : 0
  const open = lanes.reduce((sum, lane) => sum + lane.pending + lane.sealed, 0)
  const appended = totals?.payloads ?? 0
  const gone = totals ? gonePayloads(totals) : 0
  return {
    messages: { received, carried, split, accounted, difference: received + carried + split - accounted },
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

/** Of the payloads of this process, those that are not in a lane any more. */
export function gonePayloads({ delivered, dead, returned, damaged }: SpoolTotals): number {
  return delivered + dead + returned + damaged
}

function accountedFor(counters: IngestCounters): number {
  const { mapped, ignored, duplicates, dead, quarantined, openParts, dropped, returned, held } = counters
  return mapped + ignored + duplicates + dead + quarantined + openParts + dropped + returned + held
}

type Deps = { clock: Clock; conditions: Conditions }

/** Raises and clears CONSERVATION_BROKEN. */
export function createConservationCheck({
  clock,
  conditions,
}: Deps): (conservation: Conservation, isUncertain?: boolean) => void {
  /** The differences of the sums, and since when they are that. */
  const lasting = { messages: { difference: 0, sinceMs: 0 }, payloads: { difference: 0, sinceMs: 0 } }

  return ({ lanes, messages, payloads }, isUncertain = false) => {
    for (const lane of lanes) if (lane.difference !== 0) raiseForLane(lane)
    const { received, carried, split, accounted } = messages
    checkSum('messages', messages.difference, {
      what: `Received ${received} messages, ${carried} open before, ${split} counted once more, but ${accounted} are accounted for.`,
      why: 'At least one message is in no counter. This is a fault of the gateway.',
    })
    if (isUncertain) return
    const { recovered, appended, gone, open } = payloads
    checkSum('payloads', payloads.difference, {
      what: `${recovered} payloads recovered and ${appended} added, but ${gone} gone and ${open} in the spool.`,
      why: eitherLost,
    })
  }

  function raiseForLane({ id, appended, settled, open }: Conservation['lanes'][number]): void {
    conditions.raise('CONSERVATION_BROKEN', {
      key: `lane ${id}`,
      what: `Lane ${id}: ${appended} appended, but ${settled} settled and ${open} open.`,
      why: eitherLost,
    })
  }

  function checkSum(
    sum: keyof typeof lasting,
    difference: number,
    cause: { what: string; why: string },
  ): void {
    const nowMs = clock.monotonic()
    if (difference !== lasting[sum].difference) lasting[sum] = { difference, sinceMs: nowMs }
    if (difference === 0) conditions.clear('CONSERVATION_BROKEN', sum)
    else if (nowMs - lasting[sum].sinceMs >= toleratedMs)
      conditions.raise('CONSERVATION_BROKEN', { key: sum, ...cause })
  }
}
