// outage.ts: what happens while the ingestion API accepts nothing from any provider.
//
//   delivering -> (every endpoint is down, nothing was accepted for park_after, something waits as long)
//              -> holding: nothing more is taken
//                 -> what was never submitted is removed here, durably, and given back to the engine, once.
//                    Millions wait in the engine, and not here
//              -> (an endpoint is available, something was accepted, or nothing is left here) -> delivering
//
// One provider that is down while others deliver is no outage: its payloads are parked. Nor are payloads that
// the service refuses: its endpoint is available.
//
// The units that go back are the last ones, behind which nothing is sealed, open in a record, kept, dead or
// came by an exchange: then the numbers of the lanes at the end of the unit before them are exactly where
// their payloads begin. The dedup window is forgotten in the same write, or the messages would be duplicates
// when the engine delivers them again, and lost. While the write runs, these units are not acknowledged,
// although their lanes are empty.
//
// What was sealed stays, unacknowledged, until it is resolved under its batchId.

import type { Clock } from '../../std/clock.ts'
import type { Emit } from '../../domain/event.ts'
import type { LaneId } from '../../domain/ids.ts'
import type { LaneView } from '../../spool/spool.ts'
import type { Ends, Unit } from './custody-units.ts'
import type { CustodyDelivery } from './types.ts'

export type Outage = {
  isHolding(): boolean
  /** Decides whether there is an outage. `oldestMs`: age of the oldest unit. */
  update(situation: { oldestMs: number; lanes: readonly LaneView[] }): void
  /** What was never submitted is not given back yet. */
  mayGiveBack(): boolean
  /** Removes the payloads of these units; resolves with their number. */
  withdraw(from: ReadonlyMap<LaneId, number>): Promise<number>
}

type Deps = {
  delivery: Pick<CustodyDelivery, 'providers' | 'delivered' | 'withdrawUnsubmitted'>
  clock: Clock
  emit: Emit
  changed: () => void
  signal: AbortSignal
}

export function createOutage(
  { delivery, clock, emit, changed, signal }: Deps,
  { parkAfterMs }: { parkAfterMs: number },
): Outage {
  let delivered = delivery.delivered()
  let acceptedAtMs = clock.monotonic()
  let heldSinceMs: number | null = null
  let givenBack = false

  function update({ oldestMs, lanes }: { oldestMs: number; lanes: readonly LaneView[] }): void {
    const now = clock.monotonic()
    const sum = delivery.delivered()
    const wasAccepted = sum !== delivered
    delivered = sum
    if (wasAccepted) acceptedAtMs = now
    const providers = delivery.providers()
    const isDown = providers.length > 0 && providers.every(({ endpoint }) => endpoint !== 'available')
    if (heldSinceMs === null) {
      if (!isDown || oldestMs < parkAfterMs || now - acceptedAtMs < parkAfterMs) return
      heldSinceMs = now
      givenBack = false
      emit({ kind: 'custody_outage_began', waitedMs: Math.round(oldestMs) })
      changed()
    } else if (wasAccepted || !isDown || lanes.every(({ open }) => open === 0)) {
      emit({ kind: 'custody_outage_ended', heldMs: Math.round(now - heldSinceMs) })
      heldSinceMs = null
      changed()
    }
  }

  async function withdraw(from: ReadonlyMap<LaneId, number>): Promise<number> {
    const payloads = await delivery.withdrawUnsubmitted(from, signal)
    givenBack = true
    return payloads
  }

  return {
    isHolding() {
      return heldSinceMs !== null
    },
    mayGiveBack() {
      return heldSinceMs !== null && !givenBack
    },
    update,
    withdraw,
  }
}

/**
 * The first unit that may go back, with all behind it, and the numbers from which their payloads begin; null
 * if there is none. `ends`: of the state before the first unit.
 */
export function returnable(
  units: readonly Unit[],
  { first, now, lanes }: { first: Ends; now: Ends; lanes: readonly LaneView[] },
): { from: number; numbers: Map<LaneId, number> } | null {
  for (let index = 0; index < units.length; index += 1) {
    const before = index === 0 ? first : units[index - 1]!.ends
    if (before.others === null || before.others !== now.others) continue
    const numbers = new Map<LaneId, number>()
    let isSealed = false
    for (const { id, role, sealSeq } of lanes) {
      if (role.kind === 'retry') continue
      const from = before.lanes.get(id) ?? 0
      if (from < sealSeq) isSealed = true
      numbers.set(id, from)
    }
    if (!isSealed) return { from: index, numbers }
  }
  return null
}
