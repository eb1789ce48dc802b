// backfill-policy.ts: when what waits in the live lane becomes backfill, so that what is fresh goes first whatever the backlog.
//
//   after an outage or a start   as soon as a request got through, where more waits than the next two batches take
//                                and it is older than fresh data ever is
//   while nothing gets through   every `rotateEveryMs`, so that `newest-first` has something to choose from
//   while it does                when the oldest is older than `afterMs`: the service is slower than the devices
//
// One small write each time (spool.rotate); nothing moves.

import { GatewayError } from '../../std/gateway-error.ts'
import type { Clock } from '../../std/clock.ts'
import type { Emit } from '../../domain/event.ts'
import type { LaneView, Spool } from '../../spool/spool.ts'
import type { EndpointState } from './endpoint.ts'
import type { ProviderOptions } from '../delivery-options.ts'

export type BackfillPolicy = {
  /** Something got through after a time in which nothing did, or for the first time. */
  opened(): void
  /** Called whenever something may have changed; starts a rotation where one is due. */
  consider(lanes: readonly LaneView[], state: EndpointState): void
}

type Deps = {
  spool: Pick<Spool, 'rotate'>
  clock: Clock
  emit: Emit
  /** The live lane is another one now. */
  rotated: () => void
  /** The spool refused; it says so itself as well. */
  refused: (error: GatewayError) => void
}

/** What waited so much longer than the linger is no longer fresh. */
const freshMs = 2000

const refusedRestMs = 60_000

export function createBackfillPolicy(
  { spool, clock, emit, rotated, refused }: Deps,
  options: ProviderOptions,
): BackfillPolicy {
  const { afterMs, rotateEveryMs } = options.backfill
  const { payloadsMax, lingerMs } = options.batch
  let justOpened = false
  let rotating = false
  /** Where the spool has no room for another lane, it is asked again later. */
  let restUntilMs = clock.monotonic()

  return {
    opened() {
      justOpened = true
    },
    consider,
  }

  function consider(lanes: readonly LaneView[], state: EndpointState): void {
    if (rotating || clock.monotonic() < restUntilMs) return
    for (const lane of lanes) {
      if (lane.provider !== options.name || lane.role.kind !== 'live') continue
      const why = reasonFor(lane, state)
      if (why !== null) void rotate(lane, why) // ends in rotated() or refused()
    }
    if (state === 'available') justOpened = false
  }

  function reasonFor(lane: LaneView, state: EndpointState): string | null {
    if (lane.pending === 0) return null
    // Not known: it stands behind so much that only the disk has it.
    const ageMs = lane.oldestAt === null ? Number.POSITIVE_INFINITY : clock.now() - lane.oldestAt
    if (state !== 'available')
      return ageMs > rotateEveryMs && lane.oldestAt !== null ? 'the outage goes on' : null
    if (justOpened && lane.pending > 2 * payloadsMax && ageMs > lingerMs + freshMs)
      return 'the service takes batches again'
    return ageMs > afterMs ? 'the service is slower than the devices' : null
  }

  async function rotate(lane: LaneView, why: string): Promise<void> {
    rotating = true
    try {
      const done = await spool.rotate(lane.provider)
      const { id, provider, pending } = lane
      if (done) emit({ kind: 'lane_rotated', provider, lane: id, payloads: pending, why })
      else restUntilMs = clock.monotonic() + refusedRestMs
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error
      refused(error)
    } finally {
      rotating = false
    }
    rotated()
  }
}
