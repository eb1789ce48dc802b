// partial-packet.ts: the first part of a packet whose rest has not arrived, in one buffer of its own.
//
// The chunks from the network are not kept: a chunk of one byte costs some hundred bytes of memory, and a
// view of a few bytes keeps 64 KiB. The buffer starts with at most 4 KiB and doubles up to the announced
// size. So an announcement costs nothing, and a packet at most twice the bytes that arrived.

import type { PartialBudget, PartialHolder } from './partial-budget.ts'

export type PartialPacket = {
  /** A first part is kept. */
  readonly started: boolean
  /** Nothing is missing: `take` it. */
  readonly isWhole: boolean
  readonly isPublish: boolean
  /** Keeps `first`, the start of a packet. */
  begin(first: Buffer): void
  /** Keeps what belongs to the packet. Returns the number of those bytes. */
  append(chunk: Buffer): number
  take(): Buffer
  /** Also for a closed connection. */
  discard(): void
  /** The socket was read for another `elapsedMs`. True where the packet is too slow. */
  isTooSlow(elapsedMs: number): boolean
}

export type PartialPacketOptions = {
  /** A packet must be faster than `bytesPerSecondMin` on average when it is older than this. */
  partialTimeoutMs: number
}

/** What a connection may keep without the shared budget: an ordinary CONNECT needs less. */
const reservedBytes = 4096
const bytesPerSecondMin = 256
const publishType = 3

export function createPartialPacket(
  budget: PartialBudget,
  connection: { readonly address: string | null; close(detail: string): void },
  /** As in packet-framing.ts. */
  sizeAt: (bytes: Uint8Array, offset: number) => number,
  options: PartialPacketOptions,
): PartialPacket {
  let buffer: Buffer | null = null
  let length = 0
  /** Of the whole packet; 0 while its head is not complete. */
  let size = 0
  const holder: PartialHolder = {
    get address() {
      return connection.address
    },
    counted: 0,
    received: 0,
    ageMs: 0,
    close: (detail) => connection.close(detail),
  }

  function begin(first: Buffer): void {
    size = sizeAt(first, 0)
    holder.ageMs = 0
    length = 0
    reserve(first.length)
    if (buffer === null) return
    length = first.copy(buffer)
    holder.received = length
  }

  function append(chunk: Buffer): number {
    let taken = 0
    while (size === 0 && taken < chunk.length) {
      reserve(length + 1)
      buffer![length] = chunk[taken]!
      length += 1
      taken += 1
      size = sizeAt(buffer!.subarray(0, length), 0)
    }
    // A head that breaks the rules is complete: the framing names the fault.
    if (size < 0) size = length
    if (size === 0) return taken
    const end = Math.min(chunk.length, taken + size - length)
    reserve(length + end - taken)
    if (buffer === null) return taken
    chunk.copy(buffer, length, taken, end)
    length += end - taken
    holder.received = length
    return end
  }

  function reserve(needed: number): void {
    const capacity = buffer?.length ?? 0
    if (needed <= capacity) return
    const doubled = Math.max(needed, capacity * 2, Math.min(size, reservedBytes))
    // A buffer of its own: one from the pool would keep 8 KiB.
    const larger = Buffer.allocUnsafeSlow(size > 0 ? Math.min(size, doubled) : needed)
    buffer?.copy(larger, 0, 0, length)
    buffer = larger
    if (larger.length > reservedBytes) budget.count(holder, larger.length - reservedBytes)
  }

  function take(): Buffer {
    const whole = buffer!.subarray(0, length)
    discard()
    return whole
  }

  function discard(): void {
    buffer = null
    length = 0
    size = 0
    if (holder.counted > 0) budget.count(holder, 0)
  }

  function isTooSlow(elapsedMs: number): boolean {
    if (buffer === null) return false
    holder.ageMs += elapsedMs
    if (holder.ageMs <= options.partialTimeoutMs) return false
    return (holder.received * 1000) / holder.ageMs < bytesPerSecondMin
  }

  return {
    get started() {
      return buffer !== null
    },
    get isWhole() {
      return buffer !== null && size > 0 && length === size
    },
    get isPublish() {
      return buffer !== null && buffer[0]! >> 4 === publishType
    },
    begin,
    append,
    take,
    discard,
    isTooSlow,
  }
}
