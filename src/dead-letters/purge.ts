// purge.ts: deletes dead letters: by somebody's hand, or by age where `spool.dead_letters.retention` says so. Either way data is
// lost, so it is told at `error`, with the reasons of what went, and counted.
//
// By age it acts only while the offset of our clock is known, which is what the service's answers tell. A letter counts
// as old when it is so both by our own clock, which stamped it, and by the true time; one that was stamped by a clock that was
// never set has no age and stays.

import { pause, type CancelTimer, type Clock } from '../std/clock.ts'
import { GatewayError } from '../std/gateway-error.ts'
import type {
  DeadLetterCounters,
  DeadLetterDeps,
  DeadLetterQuery,
  DeadLetterOperations,
} from './dead-letters.ts'
import { selectDeadLetters } from './select.ts'

export type PurgeReport = {
  dryRun: boolean
  deadLetters: number
  /** By stage and reason, such as `mapping NOT_JSON`. */
  reasons: Record<string, number>
}

export type Purge = (
  query: DeadLetterQuery,
  options: { dryRun: boolean; by: 'operator' | 'age' },
  signal: AbortSignal,
) => Promise<PurgeReport>

const groupMax = 1000
const reasonsMax = 50
const storeLookMs = 1000

export function createPurge({ spool, clock, emit }: DeadLetterDeps, counters: DeadLetterCounters): Purge {
  return async function purge(query, { dryRun, by }, signal) {
    const endsAt = by === 'age' ? (query.until ?? -Infinity) : Infinity
    const report: PurgeReport = { dryRun, deadLetters: 0, reasons: {} }
    let group: { id: string; reason: string }[] = []
    for await (const { id, deadLetter: letter } of selectDeadLetters(
      spool,
      by === 'age' ? { ...query, until: Infinity } : query,
    )) {
      // They lie in the order of their times: nobody reads a gigabyte to find that it is young.
      if (signal.aborted || letter.at >= endsAt) break
      group.push({ id, reason: `${letter.stage} ${letter.reason}` })
      if (group.length === groupMax) await end()
    }
    await end()
    return report

    async function end(): Promise<void> {
      const gone = group
      group = []
      if (gone.length === 0) return
      if (!dryRun) {
        while (spool.holdReason === 'store_lost' && (await pause(clock, storeLookMs, signal)));
        if (signal.aborted) return
        const take = gone.map(({ id }) => id)
        await spool.exchange({ take, payloads: [], deadLetters: [], stateChanges: [] })
        counters.purged[by] += gone.length
      }
      const reasons: Record<string, number> = {}
      for (const { reason } of gone) {
        count(reasons, reason)
        count(report.reasons, reason)
      }
      report.deadLetters += gone.length
      if (dryRun) return
      const text = Object.entries(reasons).map(([reason, letters]) => `${letters} ${reason}`)
      emit({ kind: 'dead_letters_purged', deadLetters: gone.length, by, reasons: text.join(', ') })
    }
  }
}

function count(reasons: Record<string, number>, reason: string): void {
  const key = Object.hasOwn(reasons, reason) || Object.keys(reasons).length < reasonsMax ? reason : 'other'
  reasons[key] = (reasons[key] ?? 0) + 1
}

/** Nothing was stamped before this gateway was written: its clock was not set. */
const plausibleFrom = Date.UTC(2025, 0, 1)
const lookEveryMs = 600_000

/** Deletes what is older than `retentionMs`, now and then; ends with `stop`. */
export function purgeByAge(
  {
    work,
    clock,
    clockOffsetMs,
  }: { work: DeadLetterOperations; clock: Clock; clockOffsetMs: () => number | null },
  { retentionMs }: { retentionMs: number },
): { stop(): Promise<void> } {
  const stopping = new AbortController()
  let running: Promise<unknown> = Promise.resolve()
  let cancel: CancelTimer = clock.after(lookEveryMs, look)
  return {
    async stop() {
      stopping.abort()
      cancel()
      await running
    },
  }

  function look(): void {
    running = purgeOld().finally(() => {
      if (!stopping.signal.aborted) cancel = clock.after(lookEveryMs, look)
    })
  }

  async function purgeOld(): Promise<void> {
    const offsetMs = clockOffsetMs()
    if (offsetMs === null) return
    const until = clock.now() + Math.min(0, offsetMs) - retentionMs
    try {
      await work.purgeOlder({ since: plausibleFrom, until }, stopping.signal)
    } catch (error) {
      // The store is lost, or somebody took a letter first: the next look goes on with what is left.
      if (!(error instanceof GatewayError)) throw error
    }
  }
}
