// purge.ts: deletes dead letters: by an operator, or by age (`spool.dead_letters.retention`). Data is lost,
// so each deletion is an event at `error` with the reasons of what was deleted, and is counted.
//
// By age it deletes only while the offset of our clock is known, which the answers of the service show. A
// dead letter has the time of the gateway, or that of the machine where the time was not known: it is old
// when it is old by both. One that was stamped by a clock that was never set has no age and stays.

import { pause, type CancelTimer, type Clock } from '../std/clock.ts'
import { GatewayError } from '../std/gateway-error.ts'
import { selectDeadLetters } from './select.ts'
import type {
  DeadLetterCounters,
  DeadLetterDeps,
  DeadLetterOperations,
  DeadLetterQuery,
  PurgeReport,
} from './types.ts'

type Purge = (
  query: DeadLetterQuery,
  options: { dryRun: boolean; by: 'operator' | 'age' },
  signal: AbortSignal,
) => Promise<PurgeReport>

const groupMax = 1000
const reasonsMax = 50
const storeCheckMs = 1000

export function createPurge({ spool, clock, emit }: DeadLetterDeps, counters: DeadLetterCounters): Purge {
  return async function purge(query, { dryRun, by }, signal) {
    const endsAt = by === 'age' ? (query.until ?? -Infinity) : Infinity
    const selected = by === 'age' ? { ...query, until: Infinity } : query
    const report: PurgeReport = { dryRun, deadLetters: 0, shared: 0, reasons: {} }
    let group: { id: string; reason: string }[] = []
    for await (const { id, deadLetter } of selectDeadLetters(spool, selected)) {
      // They are stored in order of time, so the first young one ends a purge by age without reading the
      // rest.
      if (signal.aborted || deadLetter.at >= endsAt) break
      if (query.device !== undefined && deadLetter.device !== query.device) {
        report.shared += 1
        continue
      }
      group.push({ id, reason: `${deadLetter.stage} ${deadLetter.reason}` })
      if (group.length === groupMax) await flush()
    }
    await flush()
    return report

    async function flush(): Promise<void> {
      const deleted = group
      group = []
      if (deleted.length === 0) return
      if (!dryRun) {
        while (spool.holdReason() === 'store_lost' && (await pause(clock, storeCheckMs, signal)));
        if (signal.aborted) return
        const take = deleted.map(({ id }) => id)
        await spool.exchange({ take, payloads: [], deadLetters: [], stateChanges: [] })
        counters.purged[by] += deleted.length
      }
      const reasons: Record<string, number> = {}
      for (const { reason } of deleted) {
        count(reasons, reason)
        count(report.reasons, reason)
      }
      report.deadLetters += deleted.length
      if (dryRun) return
      const text = Object.entries(reasons).map(([reason, number]) => `${number} ${reason}`)
      emit({ kind: 'dead_letters_purged', deadLetters: deleted.length, by, reasons: text.join(', ') })
    }
  }
}

function count(reasons: Record<string, number>, reason: string): void {
  const key = Object.hasOwn(reasons, reason) || Object.keys(reasons).length < reasonsMax ? reason : 'other'
  reasons[key] = (reasons[key] ?? 0) + 1
}

/** This gateway did not exist before, so an earlier time comes from a clock that was not set. */
const plausibleFrom = Date.UTC(2025, 0, 1)
const checkEveryMs = 600_000

/** Deletes what is older than `retentionMs`, every ten minutes. Ends with `stop`. */
export function purgeByAge(
  deps: {
    operations: Pick<DeadLetterOperations, 'purgeOlder'>
    clock: Clock
    clockOffsetMs: () => number | null
  },
  { retentionMs }: { retentionMs: number },
): { stop(): Promise<void> } {
  const { operations, clock, clockOffsetMs } = deps
  const stopping = new AbortController()
  let running: Promise<unknown> = Promise.resolve()
  let cancel: CancelTimer = clock.after(checkEveryMs, check)
  return {
    async stop() {
      stopping.abort()
      cancel()
      await running
    },
  }

  function check(): void {
    running = purgeOld().finally(() => {
      if (!stopping.signal.aborted) cancel = clock.after(checkEveryMs, check)
    })
  }

  async function purgeOld(): Promise<void> {
    const offsetMs = clockOffsetMs()
    if (offsetMs === null) return
    const until = clock.now() + Math.min(0, offsetMs) - retentionMs
    try {
      await operations.purgeOlder({ since: plausibleFrom, until }, stopping.signal)
    } catch (error) {
      // The store failed, or a command took a dead letter first. The next check deletes the rest.
      if (!(error instanceof GatewayError)) throw error
    }
  }
}
