// parking.ts: moves what is not delivered within `park_after`, while others are, to the queue `parked` of the
// engine: payloads that wait for another try, payloads of a provider that is down, and messages on shelves.
// So they pin no partition, and are not lost with the disk.
//
//   stored in the engine, confirmed -> removed here in one durable write -> acknowledged by and by
//
// A crash in between leaves both: a second effect, with the same payloadId. A message that is released while
// it is being parked has both, too; that is counted (`parkedAndReleased`).
//
// A batch that the service may have processed is never parked: it is resolved under its batchId. Where it is
// held, it is copied (held-copies.ts).
//
// What is parked comes back after `park_for` (take-back.ts). Nothing is parked in an outage: it would only
// fill the queue.

import { GatewayError } from '../../std/gateway-error.ts'
import type { Clock } from '../../std/clock.ts'
import type { ProviderName } from '../../domain/ids.ts'
import type { KeptEntry, ShelfView } from '../../spool/spool.ts'
import type { EngineQueues } from './engine-queues.ts'
import type { HeldCopies } from './held-copies.ts'
import { parkedMessage, parkedPayload } from './parked-entry.ts'
import type { CustodyDelivery, CustodyDeps, CustodyOptions, CustodySpool } from './types.ts'

export type Parking = {
  /** Begins a round if none runs. `pressed`: the window is nearly used, so nothing waits for its time. */
  round(situation: { pressed: boolean }): void
  counters(): { parked: number; parkedAndReleased: number }
  idle(): Promise<void>
}

type Deps = {
  spool: Pick<CustodySpool, 'shelves' | 'keptMessages' | 'exchange'>
  delivery: Pick<CustodyDelivery, 'providers' | 'returnWaiting'>
  queues: Pick<EngineQueues, 'store' | 'mayStore'>
  heldCopies: Pick<HeldCopies, 'copy'>
  releaseOrder: CustodyDeps['releaseOrder']
  clock: Clock
  signal: AbortSignal
}

const payloadsAtOnce = 500
const messagesAtOnce = 100
/** Less than this is no time: what fails at once gets its next try here. */
const pressedMs = 1000

export function createParking(
  { spool, delivery, queues, heldCopies, releaseOrder, clock, signal }: Deps,
  { parkAfterMs, member }: CustodyOptions,
): Parking {
  const counters = { parked: 0, parkedAndReleased: 0 }
  let running: Promise<void> | null = null

  function round({ pressed }: { pressed: boolean }): void {
    if (running !== null || !queues.mayStore() || signal.aborted) return
    const olderThanMs = pressed ? Math.min(pressedMs, parkAfterMs) : parkAfterMs
    running = park(olderThanMs)
      // The queues have reported it, or the store of the spool was lost. The next round tries again.
      .catch(() => undefined)
      .finally(() => {
        running = null
      })
  }

  async function park(olderThanMs: number): Promise<void> {
    for (const { shelf, messages } of spool.shelves()) {
      let mayHaveMore = messages > 0
      while (mayHaveMore && !signal.aborted) mayHaveMore = await parkMessages(shelf, olderThanMs)
    }
    while (!signal.aborted && (await parkPayloads(olderThanMs)) > 0);
    // What is still held could not be parked.
    await heldCopies.copy(olderThanMs)
  }

  async function parkPayloads(olderThanMs: number): Promise<number> {
    const request = { olderThanMs, payloadsMax: payloadsAtOnce, providersDown: providersDown() }
    const returned = await delivery.returnWaiting(
      request,
      (payloads) => {
        const parking = { parkedAt: clock.now(), member }
        return queues.store(
          'parked',
          payloads.map((one) => parkedPayload(one, parking)),
          signal,
        )
      },
      signal,
    )
    counters.parked += returned
    return returned
  }

  /** Providers that accept nothing, while another one does. */
  function providersDown(): ProviderName[] {
    const down = delivery.providers().filter(({ endpoint }) => endpoint !== 'available')
    return down.length === delivery.providers().length ? [] : down.map(({ name }) => name)
  }

  /** Whether more may be there. */
  async function parkMessages(shelf: ShelfView['shelf'], olderThanMs: number): Promise<boolean> {
    const entries: KeptEntry[] = []
    let read = 0
    for await (const entry of spool.keptMessages(shelf, null, { limit: messagesAtOnce })) {
      read += 1
      // Also where the clock was set back since.
      if (Math.abs(clock.now() - entry.keptAt) < olderThanMs) break
      const { device } = entry.message
      if (device === null || releaseOrder?.isReleasing(device) !== true) entries.push(entry)
    }
    if (entries.length === 0) return false
    const parking = { parkedAt: clock.now(), member }
    await queues.store(
      'parked',
      entries.map((entry) => parkedMessage(entry, parking)),
      signal,
    )
    counters.parked += entries.length
    if (!(await remove(entries)))
      for (const one of entries) if (!(await remove([one]))) counters.parkedAndReleased += 1
    return read === messagesAtOnce
  }

  /** False where one of them was taken by other work. */
  async function remove(entries: readonly KeptEntry[]): Promise<boolean> {
    const take = entries.map(({ id }) => id)
    try {
      await spool.exchange({ take, payloads: [], deadLetters: [], stateChanges: [] })
      return true
    } catch (error) {
      if (error instanceof GatewayError && error.code === 'SPOOL_ENTRY_GONE') return false
      throw error
    }
  }

  return {
    round,
    counters: () => counters,
    idle: async () => {
      await running
    },
  }
}
