// backfill-policy.ts: decides when the payloads that wait in the live lane become backfill, so that fresh
// data is sent first even with a large backlog.
//
//   after an outage or a start   as soon as a request succeeds, where more waits than the next two batches
//                                take and it is older than fresh data ever is
//   while no request succeeds    every `rotateEveryMs`, so that `newest-first` has lanes to choose from
//   while requests succeed       when the oldest is older than `afterMs`: the service is slower than the
//                                devices
//
// Each rotation is one small write (spool.rotate); no payload moves.

import { GatewayError } from '../../std/gateway-error.ts'
import type { Clock } from '../../std/clock.ts'
import type { Emit } from '../../domain/event.ts'
import type { LaneView, Spool } from '../../spool/spool.ts'
import type { EndpointState } from '../types.ts'
import type { ProviderOptions } from '../delivery-options.ts'

export type BackfillPolicy = {
  /** A request succeeded after an outage, or for the first time. */
  serviceReached(): void
  /** Starts a rotation where one is due; call it whenever something may have changed. */
  consider(lanes: readonly LaneView[], state: EndpointState): void
}

type Deps = {
  spool: Pick<Spool, 'rotate'>
  clock: Clock
  emit: Emit
  /** The live lane is now another one. */
  rotated: () => void
  /** The spool rejected the write; it reports that itself as well. */
  rejected: (error: GatewayError) => void
}

/** A payload that waited this much longer than the linger is no longer fresh. */
const freshMs = 2000

const refusedPauseMs = 60_000

export function createBackfillPolicy(
  { spool, clock, emit, rotated, rejected }: Deps,
  options: ProviderOptions,
): BackfillPolicy {
  let justReached = false
  let rotating = false
  /** Where the spool has no room for another lane, the next try is later. */
  let pausedUntilMs = clock.monotonic()

  return {
    serviceReached() {
      justReached = true
    },
    consider,
  }

  function consider(lanes: readonly LaneView[], state: EndpointState): void {
    if (rotating || clock.monotonic() < pausedUntilMs) return
    for (const lane of lanes) {
      if (lane.provider !== options.name || lane.role.kind !== 'live') continue
      const why = reasonFor(lane, state)
      if (why !== null) void rotate(lane, why) // ends in rotated() or rejected()
    }
    if (state === 'available') justReached = false
  }

  function reasonFor(lane: LaneView, state: EndpointState): string | null {
    // Null: none is pending, or the head of the lane is on the disk only. The next seal reads it.
    if (lane.oldestAt === null) return null
    // A reload changes the options, so they are read at each decision.
    const { afterMs, rotateEveryMs } = options.backfill
    const { payloadsMax, lingerMs } = options.batch
    const ageMs = clock.now() - lane.oldestAt
    if (state !== 'available') return ageMs > rotateEveryMs ? 'the outage continues' : null
    if (justReached && lane.pending > 2 * payloadsMax && ageMs > lingerMs + freshMs)
      return 'the service accepts batches again'
    return ageMs > afterMs ? 'the service is slower than the devices' : null
  }

  async function rotate(lane: LaneView, why: string): Promise<void> {
    rotating = true
    try {
      const done = await spool.rotate(lane.provider)
      const { id, provider, pending } = lane
      if (done) emit({ kind: 'lane_rotated', provider, lane: id, payloads: pending, why })
      else pausedUntilMs = clock.monotonic() + refusedPauseMs
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error
      rejected(error)
    } finally {
      rotating = false
    }
    rotated()
  }
}
