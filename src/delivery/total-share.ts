// total-share.ts: divides the places of `max_in_flight_total` among the providers. Each submission takes one.
//
// A submission cannot be interrupted, so a place that a provider needs must not be taken before by others:
//
//   always reserved        one place for each provider
//   reserved while needed  its equal share of the places: as many as it waits for now, or used at most in
//                          the last minute
//   free for all           the rest, and what others do not need
//
// So a provider whose service hangs keeps what it has until its time-outs, and the others keep theirs. Of the
// providers that wait, those below their share come first, then the one that waited longest.
//
// Bound: a provider waits with `max_in_flight` submissions at most (provider-pipeline.ts).

import { assert } from '../std/assert.ts'
import type { Clock } from '../std/clock.ts'

/** The places of one provider. */
export type ProviderShare = {
  /** True when a place is taken, false where `signal` aborts first. */
  enter(signal: AbortSignal): Promise<boolean>
  /** Gives the place back. */
  leave(): void
  /** How many wait now. */
  waiting(): number
  /** Since when the first of them waits, monotonic; null where none waits. */
  waitsSinceMs(): number | null
}

export type TotalShare = {
  /** For the next provider. */
  open(): ProviderShare
  /** Another number of places. With fewer, those in use end first. */
  resize(places: number): void
}

type Waiter = { ticket: number; sinceMs: number; enter: () => void }

type Share = { used: number; waiters: Waiter[]; peak: number; peakBefore: number; peakFromMs: number }

/** The most places that were used is remembered for one to two such periods. */
const peakMs = 30_000

export function createTotalShare(
  { clock }: { clock: Clock },
  { places, providers }: { places: number; providers: number },
): TotalShare {
  assert(places >= providers, 'each provider has a place')
  let all = places
  const equalShare = () => Math.floor(all / providers)
  const shares: Share[] = []
  let free = places
  let tickets = 0

  return { open, resize }

  function open(): ProviderShare {
    const share: Share = { used: 0, waiters: [], peak: 0, peakBefore: 0, peakFromMs: clock.monotonic() }
    shares.push(share)
    return {
      enter: (signal) => enter(share, signal),
      leave() {
        share.used -= 1
        free += 1
        admit()
      },
      waiting() {
        return share.waiters.length
      },
      waitsSinceMs: () => share.waiters[0]?.sinceMs ?? null,
    }
  }

  function resize(next: number): void {
    assert(next >= providers, 'each provider has a place')
    free += next - all
    all = next
    admit()
  }

  function enter(share: Share, signal: AbortSignal): Promise<boolean> {
    if (signal.aborted) return Promise.resolve(false)
    if (share.waiters.length === 0 && mayTake(share)) {
      take(share)
      return Promise.resolve(true)
    }
    return new Promise((resolve) => {
      const onAbort = () => {
        share.waiters.splice(share.waiters.indexOf(waiter), 1)
        resolve(false)
        // What it waited for is not reserved any more.
        admit()
      }
      const waiter: Waiter = {
        ticket: ++tickets,
        sinceMs: clock.monotonic(),
        enter() {
          signal.removeEventListener('abort', onAbort)
          resolve(true)
        },
      }
      share.waiters.push(waiter)
      signal.addEventListener('abort', onAbort, { once: true })
    })
  }

  function take(share: Share): void {
    free -= 1
    share.used += 1
    agePeak(share)
    share.peak = Math.max(share.peak, share.used)
  }

  /** Gives free places to those that wait. */
  function admit(): void {
    for (;;) {
      let next: Share | null = null
      for (const share of shares)
        if (share.waiters.length > 0 && mayTake(share) && (next === null || isBefore(share, next)))
          next = share
      const waiter = next?.waiters.shift()
      if (next === null || waiter === undefined) return
      take(next)
      waiter.enter()
    }
  }

  function isBefore(one: Share, other: Share): boolean {
    const isBelow = one.used < equalShare()
    if (isBelow !== other.used < equalShare()) return isBelow
    return (one.waiters[0]?.ticket ?? 0) < (other.waiters[0]?.ticket ?? 0)
  }

  function mayTake(share: Share): boolean {
    const isOwn = share.used < equalShare()
    let reserved = 0
    for (const other of shares)
      if (other !== share) reserved += Math.max(0, (isOwn ? 1 : neededBy(other)) - other.used)
    return free > reserved
  }

  function neededBy(share: Share): number {
    agePeak(share)
    const { used, waiters, peak, peakBefore } = share
    return Math.min(equalShare(), Math.max(1, used + waiters.length, peak, peakBefore))
  }

  function agePeak(share: Share): void {
    const nowMs = clock.monotonic()
    if (nowMs - share.peakFromMs < peakMs) return
    share.peakBefore = nowMs - share.peakFromMs < 2 * peakMs ? share.peak : share.used
    share.peak = share.used
    share.peakFromMs = nowMs
  }
}
