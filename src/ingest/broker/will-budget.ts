// will-budget.ts: bounds the memory of the wills of all open connections. A will may have nearly the size of
// a CONNECT, and is kept as long as its connection is open.
//
// Bound: `willBytesMax` for all together. Wills of at most `smallBytes` do not count and are never refused.
// At the bound, a CONNECT with a larger will is refused (`wills_full`) and counted; its client tries again.

import { willBytesMax } from './limits-config.ts'
import type { ConnectPacket } from './packets/connect-packet.ts'

export type WillBudget = {
  /** Bytes that the will of this CONNECT takes of the budget; null where there is no room. */
  take(packet: Pick<ConnectPacket, 'will'>): number | null
  give(bytes: number): void
}

const smallBytes = 1024

export function createWillBudget(bytesMax = willBytesMax): WillBudget {
  let used = 0
  return {
    take({ will }) {
      const bytes = will === null ? 0 : Buffer.byteLength(will.topic) + will.payload.length
      if (bytes <= smallBytes) return 0
      if (used + bytes > bytesMax) return null
      used += bytes
      return bytes
    },
    give(bytes) {
      used -= bytes
    },
  }
}
