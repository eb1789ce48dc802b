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

type PartialConnection = { readonly address: string | null; close(detail: string): void }

/** As in packet-framing.ts. */
type PacketSizes = { sizeAt(bytes: Uint8Array, offset: number): number }

/** What a connection may keep without the shared budget: an ordinary CONNECT needs less. */
const reservedBytes = 4096
const bytesPerSecondMin = 256
const publishType = 3

export function createPartialPacket(
  memory: PartialMemory,
  connection: PartialConnection,
  framing: PacketSizes,
  options: PartialPacketOptions,
): PartialPacket {
  return new KeptPacket(memory, connection, framing, options)
}

class KeptPacket implements PartialPacket, PartialHolder {
  private readonly memory: PartialMemory
  private readonly connection: PartialConnection
  private readonly framing: PacketSizes
  private readonly options: PartialPacketOptions
  /** All but the last one are full. */
  private parts: Buffer[] = []
  private pages: Page[] = []
  /** The last of `parts`, and how much of it is used. */
  private open: Buffer | null = null
  private used = 0
  /** Memory of the parts that are no pages. */
  private reserved = 0
  private length = 0
  /** Of the whole packet; 0 while its head is not complete. */
  private size = 0
  counted = 0
  received = 0
  ageMs = 0

  constructor(
    memory: PartialMemory,
    connection: PartialConnection,
    framing: PacketSizes,
    options: PartialPacketOptions,
  ) {
    this.memory = memory
    this.connection = connection
    this.framing = framing
    this.options = options
  }

  get address(): string | null {
    return this.connection.address
  }

  close(detail: string): void {
    this.connection.close(detail)
  }

  get started(): boolean {
    return this.length > 0
  }

  get isWhole(): boolean {
    return this.size > 0 && this.length === this.size
  }

  get isPublish(): boolean {
    return this.length > 0 && this.parts[0]![0]! >> 4 === publishType
  }

  begin(first: Buffer): void {
    this.size = this.framing.sizeAt(first, 0)
    this.ageMs = 0
    this.add(first)
  }

  append(chunk: Buffer): number {
    let taken = 0
    while (this.size === 0 && taken < chunk.length) {
      this.add(chunk.subarray(taken, taken + 1))
      taken += 1
      this.size = this.framing.sizeAt(Buffer.concat(this.parts, this.length), 0)
    }
    // A head that breaks the rules is complete: the framing names the fault.
    if (this.size < 0) this.size = this.length
    if (this.size === 0 || this.length === this.size) return taken
    const end = Math.min(chunk.length, taken + this.size - this.length)
    this.add(chunk.subarray(taken, end))
    return end
  }

  private add(bytes: Buffer): void {
    this.length += bytes.length
    this.received = this.length
    const pagesBefore = this.pages.length
    for (let copied = 0; copied < bytes.length;) {
      if (this.open === null || this.used === this.open.length) this.openNext(bytes.length - copied)
      const count = bytes.copy(this.open!, this.used, copied)
      this.used += count
      copied += count
    }
    const counted = this.pages.length * pageBytes + this.reserved - reservedBytes
    if (this.pages.length > pagesBefore && counted > 0) this.memory.budget.count(this, counted)
  }

  private openNext(rest: number): void {
    this.used = 0
    // `length` counts the rest already. While the size is not known, the head comes byte by byte.
    const missing = this.size === 0 ? rest : this.size - this.length + rest
    if (missing < pageBytes / 2) {
      this.open = Buffer.allocUnsafeSlow(missing)
      this.reserved += this.open.length
    } else {
      const page = this.memory.pool.take()
      this.pages.push(page)
      this.open = page.bytes
    }
    this.parts.push(this.open)
  }

  take(): Buffer {
    const whole =
      this.parts.length === 1 && this.pages.length === 0
        ? this.parts[0]!.subarray(0, this.length)
        : Buffer.concat(this.parts, this.length)
    this.discard()
    return whole
  }

  discard(): void {
    for (const page of this.pages) this.memory.pool.giveBack(page)
    this.parts = []
    this.pages = []
    this.open = null
    this.used = 0
    this.reserved = 0
    this.length = 0
    this.size = 0
    if (this.counted > 0) this.memory.budget.count(this, 0)
  }

  isTooSlow(elapsedMs: number): boolean {
    if (this.length === 0) return false
    this.ageMs += elapsedMs
    if (this.ageMs <= this.options.partialTimeoutMs) return false
    return (this.received * 1000) / this.ageMs < bytesPerSecondMin
  }
}
