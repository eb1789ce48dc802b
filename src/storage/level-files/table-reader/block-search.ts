// block-search.ts: finds the blocks of a table without its index, by their checksums alone.
//
// Behind a whole block the next one starts. Its end is where the type is valid and the four bytes behind it
// are the checksum. Where that gives nothing, the block is damaged and the start of the next one is unknown.
// Then every pair of start and end is tried in one pass: a CRC is linear, so the checksum of [p, e) follows
// from the state at p and the state at e. With R(q) = the CRC state at q of a pass that starts with zero,
//
//   C is the checksum of [p, e)   <=>   x^(-8e) (~C + R(e)) = x^(-8p) (R(p) + 1...1)
//
// The right side is kept for every p that can be the start of a block, the left side is looked up for each e.
// At the beginning of the pass, q = 0, the right side is 1...1.
// A match is a block only if it can be decoded and the caller accepts its keys: a value can contain a block.

import { crcByByte, crcStart, unmaskCrc } from '../crc32c.ts'
import type { FileBytes } from '../file-bytes.ts'
import type { BlockPlace } from '../types.ts'
import { hasChecksum, readStored, trailerBytes, type BlockEntry } from './block.ts'

/** `entries` is null for the filter, which is no block of entries. `bytes` is without the trailer. */
export type FoundBlock = BlockPlace & { entries: BlockEntry[] | null }

/** The end of a block with a known start is searched this far. The search of pairs finds longer blocks. */
const knownStartBytes = 256 * 1024
/**
 * Starts are forgotten between this far and twice as far behind them, except that of the pass. So blocks
 * behind damage are found up to this size.
 */
const startAgeBytes = 8 * 1024 * 1024
/** Starts in memory. Other bytes could look like a start everywhere; then starts are forgotten earlier. */
const startsMax = 500_000
const windowBytes = 256 * 1024
/** A start is recognized by its first bytes, a checksum has four. */
const lookAheadBytes = 16

/** The block that starts at `start`; null if there is no whole one. */
export async function blockAt(file: FileBytes, start: number): Promise<FoundBlock | null> {
  // Most blocks are small.
  for (const limit of [windowBytes / 8, knownStartBytes]) {
    const bytes = await file.read(start, limit)
    let state = crcStart
    for (let end = 1; end + 4 <= bytes.length; end += 1) {
      const byte = bytes[end - 1]!
      state = crcByByte[(state ^ byte) & 255]! ^ (state >>> 8)
      if (byte > 1 || ~state !== (unmaskCrc(bytes.readUInt32LE(end)) | 0)) continue
      const entries = readStored(bytes, 0, end - 1)
      if (entries !== null || isFilter(bytes.subarray(0, end)))
        return { offset: start, bytes: end - 1, entries }
    }
    if (bytes.length < limit) return null
  }
  return null
}

/**
 * A filter ends with the offset of its table of offsets, and the logarithm of 2048: each filter is that of
 * the data blocks that start in so many bytes.
 */
function isFilter(withType: Buffer): boolean {
  const bytes = withType.length - 1
  return bytes >= 5 && withType[bytes - 1] === 11 && withType.readUInt32LE(bytes - 5) <= bytes - 5
}

/** The first whole block behind damage that starts at `from`, or null. */
export async function searchBlock(
  file: FileBytes,
  from: number,
  accept: (entries: BlockEntry[], offset: number) => boolean,
): Promise<FoundBlock | null> {
  const pass = newPass(from)
  for (let at = from; at < file.size;) {
    const bytes = await file.read(at, windowBytes + lookAheadBytes)
    if (bytes.length === 0) return null
    const window = { bytes, from: 0, until: Math.min(windowBytes, bytes.length) }
    for (;;) {
      const match = nextMatch(pass, window)
      if (match === null) break
      const found = await decoded(file, match)
      if (found?.entries && accept(found.entries, found.offset)) return found
    }
    at += window.until
  }
  return null
}

async function decoded(
  file: FileBytes,
  { start, end }: { start: number; end: number },
): Promise<FoundBlock | null> {
  const bytes = end - 1 - start
  const stored = await file.read(start, bytes + trailerBytes)
  if (stored.length < bytes + trailerBytes || !hasChecksum(stored, 0, bytes)) return null
  const entries = readStored(stored, 0, bytes)
  return entries === null ? null : { offset: start, bytes, entries }
}

/** A pass over a file: its place, the CRC state there, and x^(-8q) for the q bytes since its beginning. */
type Pass = {
  readonly from: number
  at: number
  state: number
  inverse: number
  starts: Map<number, number>
  olderStarts: Map<number, number>
  youngestFrom: number
}

/** x^0, since the highest bit of a state is the lowest power. */
const one = 0x80000000 | 0

function newPass(from: number): Pass {
  return {
    from,
    at: from,
    state: 0,
    inverse: one,
    starts: new Map(),
    olderStarts: new Map(),
    youngestFrom: from,
  }
}

/** The next pair of start and end (behind the type) with a right checksum; null at the end of the window. */
function nextMatch(
  pass: Pass,
  window: { bytes: Buffer; from: number; until: number },
): { start: number; end: number } | null {
  const { bytes, until } = window
  let { state, inverse } = pass
  const base = pass.at - window.from
  for (let index = window.from; index < until; index += 1) {
    if (canStart(bytes, index)) addStart(pass, multiply(state ^ crcStart, inverse), base + index)
    const byte = bytes[index]!
    state = crcByByte[(state ^ byte) & 255]! ^ (state >>> 8)
    inverse = dividedByByte(inverse)
    if (byte > 1 || index + 5 > bytes.length) continue
    const wanted = multiply(state ^ ~unmaskCrc(bytes.readUInt32LE(index + 1)), inverse)
    const isFirst = wanted === crcStart
    const start = isFirst ? pass.from : (pass.starts.get(wanted) ?? pass.olderStarts.get(wanted))
    if (start === undefined) continue
    window.from = index + 1
    Object.assign(pass, { at: base + index + 1, state, inverse })
    return { start, end: base + index + 1 }
  }
  window.from = until
  Object.assign(pass, { at: base + until, state, inverse })
  return null
}

function addStart(pass: Pass, value: number, at: number): void {
  if (at - pass.youngestFrom > startAgeBytes || pass.starts.size >= startsMax) {
    pass.olderStarts = pass.starts
    pass.starts = new Map()
    pass.youngestFrom = at
  }
  pass.starts.set(value, at)
}

/**
 * False where no block can start. A plain block starts with an entry that shares nothing and whose key has a
 * tag of 8 bytes or more; a compressed one with its length and a literal that starts so.
 */
function canStart(bytes: Uint8Array, index: number): boolean {
  if (bytes[index] === 0 && bytes[index + 1]! >= 8) return true
  let at = index
  while (bytes[at]! > 127 && at < index + 4) at += 1
  const tag = bytes[at + 1]
  if (tag === undefined || (tag & 3) !== 0) return false
  at += 2 + Math.max(0, (tag >>> 2) - 59)
  return bytes[at] === 0 && bytes[at + 1]! >= 8
}

/** The product of two polynomials modulo that of the CRC. */
function multiply(left: number, right: number): number {
  let product = 0
  let rest = left
  let power = right
  while (rest !== 0) {
    if (rest < 0) product ^= power
    rest <<= 1
    power = power & 1 ? (power >>> 1) ^ polynomial : power >>> 1
  }
  return product
}

/** What one zero byte before made to `state`: a division by x^8. */
function dividedByByte(state: number): number {
  const byte = byteByHighest[state >>> 24]!
  return ((state ^ crcByByte[byte]!) << 8) | byte
}

/** The highest power leaves the state in the last of the eight steps of this entry. */
const polynomial = crcByByte[128]!

/** The highest byte of each entry of the table belongs to one entry only. */
const byteByHighest = highestBytes()

function highestBytes(): Uint8Array {
  const found = new Uint8Array(256)
  for (let byte = 0; byte < 256; byte += 1) found[crcByByte[byte]! >>> 24] = byte
  return found
}
