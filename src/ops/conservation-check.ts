// conservation-check.ts: compares the counters (invariant 6) each ten seconds, and whenever the status or the
// metrics are read.
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
import type { Present } from './conditions/conditions.ts'
import type { Cause } from '../domain/cause.ts'
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

/** What does not add up is the state CONSERVATION_BROKEN; of a lane it stays until the end of the process. */
export class ConservationCheck {
  readonly #clock: Pick<Clock, 'monotonic'>
  /** The differences of the sums, and since when they are that. */
  readonly #lasting = {
    messages: { difference: 0, sinceMs: 0 },
    payloads: { difference: 0, sinceMs: 0 },
  }
  /** By key; at most one for each lane and sum. */
  readonly #broken = new Map<string, Cause>()

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock
  }

  /** `isUncertain`: nothing is known of the payloads now. */
  check({ lanes, messages, payloads }: Conservation, isUncertain = false): void {
    for (const { id, appended, settled, open: held, difference } of lanes)
      if (difference !== 0)
        this.#set(`lane ${id}`, {
          what: `Lane ${id}: ${appended} appended, but ${settled} settled and ${held} open.`,
          why: eitherLost,
        })
    const { received, carried, split, accounted } = messages
    this.#checkSum('messages', messages.difference, {
      what: `Received ${received} messages, ${carried} open before, ${split} counted once more, but ${accounted} are accounted for.`,
      why: 'At least one message is in no counter. This is a fault of the gateway.',
    })
    if (isUncertain) return
    const { recovered, appended, gone, open } = payloads
    this.#checkSum('payloads', payloads.difference, {
      what: `${recovered} payloads recovered and ${appended} added, but ${gone} gone and ${open} in the spool.`,
      why: eitherLost,
    })
  }

  *causes(): Generator<Present> {
    for (const cause of this.#broken.values()) yield { code: 'CONSERVATION_BROKEN', cause }
  }

  #checkSum(sum: 'messages' | 'payloads', difference: number, cause: Cause): void {
    const nowMs = this.#clock.monotonic()
    const lasting = this.#lasting[sum]
    if (difference !== lasting.difference) this.#lasting[sum] = { difference, sinceMs: nowMs }
    if (difference === 0) this.#broken.delete(sum)
    else if (nowMs - this.#lasting[sum].sinceMs >= toleratedMs) this.#set(sum, cause)
  }

  #set(key: string, cause: Cause): void {
    this.#broken.set(key, { key, ...cause })
  }
}
