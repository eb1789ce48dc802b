// delivery-counters.ts: counts submissions and settled payloads, and measures the rate of the last minute.

import type { Clock } from '../std/clock.ts'
import type { Outcome } from '../domain/outcome.ts'
import type { DeliveryCounters } from './types.ts'

export type CounterSet = {
  submitted(outcome: Outcome, bytes: number): void
  settled(counts: { delivered: number; retried: number; dead: number }): void
  /** Payloads that count as dead, and are no dead letters. */
  discarded(payloads: number): void
  read(): Omit<DeliveryCounters, 'senderThreadsLost'>
}

/** The service chooses the status, but it has three digits: at most a thousand keys. */
function keyOf(outcome: Outcome): string {
  if ('status' in outcome && outcome.kind !== 'unreadable') return `${outcome.kind}_${outcome.status}`
  return 'reason' in outcome ? `${outcome.kind}_${outcome.reason}` : outcome.kind
}

export function createDeliveryCounters(): CounterSet {
  const outcomes = new Map<string, number>()
  const sums = { submissions: 0, delivered: 0, retried: 0, dead: 0, discarded: 0, bytesSent: 0 }
  return {
    submitted(outcome, bytes) {
      const key = keyOf(outcome)
      outcomes.set(key, (outcomes.get(key) ?? 0) + 1)
      sums.submissions += 1
      sums.bytesSent += bytes
    },
    settled({ delivered, retried, dead }) {
      sums.delivered += delivered
      sums.retried += retried
      sums.dead += dead
    },
    discarded(payloads) {
      sums.discarded += payloads
    },
    read: () => ({ ...sums, outcomes: new Map(outcomes) }),
  }
}

export type Rate = {
  add(count: number): void
  /** Per second, over the last minute or since the start where that is less. */
  perS(): number
}

const windowS = 60

/** One bucket per second; the bucket of the current second is the newest. */
export function createRate({ clock }: { clock: Clock }): Rate {
  const buckets = new Float64Array(windowS)
  const startS = clock.monotonic() / 1000
  let secondNow = Math.floor(startS)

  function advance(): void {
    const second = Math.floor(clock.monotonic() / 1000)
    for (let gone = 0; secondNow < second && gone < windowS; gone += 1) {
      secondNow += 1
      buckets[secondNow % windowS] = 0
    }
    secondNow = second
  }

  return {
    add(count) {
      advance()
      const bucket = secondNow % windowS
      buckets[bucket] = (buckets[bucket] ?? 0) + count
    },
    perS() {
      advance()
      let sum = 0
      for (const count of buckets) sum += count
      const coveredS = Math.min(clock.monotonic() / 1000 - startS, windowS)
      return sum / Math.max(coveredS, 1)
    },
  }
}
