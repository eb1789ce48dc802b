// partial-packet.ts: the first part of a packet whose rest has not arrived.
//
// It is copied from the chunks of the network: a chunk of one byte costs some hundred bytes of memory, and a
// view of a few bytes keeps 64 KiB. A small packet has a buffer of its own; others go to pages of a pool.
// What is more than 4 KiB is counted. So an announced size costs one page, and nothing is copied twice until
// the packet is whole.

import { pageBytes, type Page, type PagePool } from './page-pool.ts'
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

/** Shared by all connections. */
export type PartialMemory = { budget: PartialBudget; pool: PagePool }

export type PartialPacketOptions = {
  /** A packet must be faster than `bytesPerSecondMin` on average when it is older than this. */
  partialTimeoutMs: number
}

/** What a connection may keep without the shared budget: an ordinary CONNECT needs less. */
const reservedBytes = 4096
const bytesPerSecondMin = 256
const publishType = 3

export function createPartialPacket(
  { budget, pool }: PartialMemory,
  connection: { readonly address: string | null; close(detail: string): void },
  /** As in packet-framing.ts. */
  sizeAt: (bytes: Uint8Array, offset: number) => number,
  options: PartialPacketOptions,
): PartialPacket {
  /** All but the last one are full. */
  let parts: Buffer[] = []
  let pages: Page[] = []
  /** The last of `parts`, and how much of it is used. */
  let open: Buffer | null = null
  let used = 0
  /** Memory of the parts that are no pages. */
  let reserved = 0
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
    add(first)
  }

  function append(chunk: Buffer): number {
    let taken = 0
    while (size === 0 && taken < chunk.length) {
      add(chunk.subarray(taken, taken + 1))
      taken += 1
      size = sizeAt(Buffer.concat(parts, length), 0)
    }
    // A head that breaks the rules is complete: the framing names the fault.
    if (size < 0) size = length
    if (size === 0 || length === size) return taken
    const end = Math.min(chunk.length, taken + size - length)
    add(chunk.subarray(taken, end))
    return end
  }

  function add(bytes: Buffer): void {
    length += bytes.length
    holder.received = length
    const pagesBefore = pages.length
    for (let copied = 0; copied < bytes.length;) {
      if (open === null || used === open.length) openNext(bytes.length - copied)
      const count = bytes.copy(open!, used, copied)
      used += count
      copied += count
    }
    const counted = pages.length * pageBytes + reserved - reservedBytes
    if (pages.length > pagesBefore && counted > 0) budget.count(holder, counted)
  }

  function openNext(rest: number): void {
    used = 0
    // `length` counts the rest already. While the size is not known, the head comes byte by byte.
    const missing = size === 0 ? rest : size - length + rest
    if (missing < pageBytes / 2) {
      open = Buffer.allocUnsafeSlow(missing)
      reserved += open.length
    } else {
      const page = pool.take()
      pages.push(page)
      open = page.bytes
    }
    parts.push(open)
  }

  function take(): Buffer {
    const whole =
      parts.length === 1 && pages.length === 0 ? parts[0]!.subarray(0, length) : Buffer.concat(parts, length)
    discard()
    return whole
  }

  function discard(): void {
    for (const page of pages) pool.giveBack(page)
    parts = []
    pages = []
    open = null
    used = 0
    reserved = 0
    length = 0
    size = 0
    if (holder.counted > 0) budget.count(holder, 0)
  }

  function isTooSlow(elapsedMs: number): boolean {
    if (length === 0) return false
    holder.ageMs += elapsedMs
    if (holder.ageMs <= options.partialTimeoutMs) return false
    return (holder.received * 1000) / holder.ageMs < bytesPerSecondMin
  }

  return {
    get started() {
      return length > 0
    },
    get isWhole() {
      return size > 0 && length === size
    },
    get isPublish() {
      return length > 0 && parts[0]![0]! >> 4 === publishType
    },
    begin,
    append,
    take,
    discard,
    isTooSlow,
  }
}
