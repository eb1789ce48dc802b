// partial-budget.ts: one bound for the partial packets of all connections, with a share for each address.
//
// While there is room, any connection may use it. When it is spent, the slowest connection of the address
// with the largest share is closed: the one that holds the most pays, and not the one that comes last.

import { shareKeyOf } from '../../connection-limits/connection-limits.ts'

export type PartialHolder = {
  readonly address: string | null
  /** What the budget counts for it. */
  counted: number
  /** Bytes of its packet that arrived, and for how long its socket was read. */
  received: number
  ageMs: number
  /** Must not keep anything any more. */
  close(detail: string): void
}

export type PartialBudget = {
  /** The holder keeps `bytes` now. May close others, or the holder itself. */
  count(holder: PartialHolder, bytes: number): void
  counters(): PartialCounters
}

export type PartialCounters = {
  /** Counted now. */
  partialBytes: number
}

type Share = { bytes: number; holders: Set<PartialHolder> }

export function createPartialBudget({ partialBytesMax }: { partialBytesMax: number }): PartialBudget {
  const shares = new Map<string, Share>()
  let total = 0

  function count(holder: PartialHolder, bytes: number): void {
    const address = shareKeyOf(holder.address)
    const share = shares.get(address) ?? { bytes: 0, holders: new Set() }
    shares.set(address, share)
    share.bytes += bytes - holder.counted
    total += bytes - holder.counted
    holder.counted = bytes
    if (bytes > 0) share.holders.add(holder)
    else share.holders.delete(holder)
    if (share.holders.size === 0) shares.delete(address)
    // It counts again, until there is room.
    if (total > partialBytesMax) closeOne()
  }

  function closeOne(): void {
    let address = ''
    let largest: Share | null = null
    for (const [name, share] of shares)
      if (largest === null || share.bytes > largest.bytes) {
        address = name
        largest = share
      }
    if (largest === null) return
    let slowest: PartialHolder | null = null
    for (const holder of largest.holders)
      if (slowest === null || speedOf(holder) < speedOf(slowest)) slowest = holder
    if (slowest === null) return
    const detail =
      `Partial packets use all of max_partial_bytes (${partialBytesMax} bytes). Address ${address} has the ` +
      `largest share, ${largest.bytes} bytes in ${largest.holders.size} connections, and this one is its slowest.`
    count(slowest, 0)
    slowest.close(detail)
  }

  return { count, counters: () => ({ partialBytes: total }) }
}

/** Those of the same age differ by what they received. */
function speedOf({ received, ageMs }: PartialHolder): number {
  return received / Math.max(ageMs, 1)
}
