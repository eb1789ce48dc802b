// dedup-window.ts: the keys of recently accepted payloads and messages. The table of window keys
// is its durable side.
//
// Every key has 16 bytes. The keys are in a ring in order of arrival. An open-addressing table of ring
// positions, at most half full, finds them. 24 bytes a key and no object per key, so a million keys cost the
// garbage collector nothing.
//
//   ring   | k0 k0 k0 k0 | 0 0 k1 k1 | ...    four 32-bit words a key; two are zero if it was recovered
//   slots  | 0 | 2 | 0 | 1 | ...              ring position + 1, 0 if free
//
// The disk has only the last 8 bytes of a key: keys take the most room once a backlog has drained. So a
// recovered key is compared by 8 bytes, of which 62 bits are hash. Until such keys expire, ten minutes after
// the restart, a new message among a million recovered keys is taken for a duplicate with a probability of 2
// in 10^13.
//
// Keys come and go by record (the keys of one commit), oldest first: a record leaves when it is older than
// `windowMs` and not held, or when there are more than `keysMax` keys. Ages come from the monotonic clock, so
// that a step of the wall clock expires nothing. Only over a restart the wall clock of the records counts.
//
// A key that is renewed goes to the last record. Its place before is empty, four zeros, and counts until its
// record leaves.

import { assert } from '../../std/assert.ts'
import { storedKeyBytes, windowKeyBytes } from './record-codec.ts'

export type WindowOptions = { windowMs: number; keysMax: number }

/** Records from this number on are kept whatever their age, within `keysMax`; Infinity: none. */
export type HeldKeys = { from: number }

type KeyGroup = { n: number; addedAtMs: number; keys: number }

export type DedupWindow = {
  /** Whether the window holds the key in `scratch` (16 bytes, see `load`). */
  has(): boolean
  /** Adds the key in `scratch`; false if it is known already. Groups add their keys one after the other. */
  add(): boolean
  /** Adds the key in `scratch`; a key that is known leaves its place and is the last one. */
  renew(): void
  /** Puts 32 hexadecimal digits into `scratch`. */
  load(hexKey: string): void
  /** Puts a key from the disk into `scratch`: its last `storedKeyBytes`. */
  loadBytes(source: Buffer, offset: number): void
  /** The loaded key. */
  readonly scratch: Buffer
  /** The record number `n` holds the next `keys` added keys; `nowMs` is monotonic. */
  endGroup(n: number, keys: number, nowMs: number): void
  /** Removes the keys of at most `limit` records that are too old or too many; returns their numbers. */
  expire(nowMs: number, limit: number): number[]
  size(): number
}

const wordsPerKey = 4
const firstCapacity = 1024

export function createWindow(options: WindowOptions, held: HeldKeys = { from: Infinity }): DedupWindow {
  assert(options.keysMax >= 1, 'the window holds at least one key')
  let capacity = firstCapacity
  let ring = new Uint32Array(capacity * wordsPerKey)
  let slots = new Uint32Array(capacity * 2)
  let head = 0
  let size = 0
  const groups: KeyGroup[] = []
  let firstGroup = 0

  const scratch = Buffer.alloc(windowKeyBytes)
  const words = new Uint32Array(scratch.buffer, scratch.byteOffset, wordsPerKey)

  function has(): boolean {
    return slots[findSlot(words[0]!, words[1]!, words[2]!, words[3]!)] !== 0
  }

  /** The slot of the key, or the free slot for it. The key is a hash, so its last word is a good start. */
  function findSlot(a: number, b: number, c: number, d: number): number {
    const mask = slots.length - 1
    let slot = d & mask
    for (;;) {
      const place = slots[slot]!
      if (place === 0) return slot
      const word = (place - 1) * wordsPerKey
      if (ring[word + 3] === d && ring[word + 2] === c && matches(ring[word]!, ring[word + 1]!, a, b))
        return slot
      slot = (slot + 1) & mask
    }
  }

  /** Compares the other two words; they are zero in a recovered key, which matches every key. */
  function matches(knownA: number, knownB: number, a: number, b: number): boolean {
    return (knownA === a && knownB === b) || (knownA | knownB) === 0 || (a | b) === 0
  }

  function add(): boolean {
    // A known key keeps its first position: keys expire by the age of their first arrival.
    if (has()) return false
    renew()
    return true
  }

  function renew(): void {
    if (size === capacity) grow()
    const slot = findSlot(words[0]!, words[1]!, words[2]!, words[3]!)
    const known = slots[slot]!
    const place = (head + size) % capacity
    ring.set(words, place * wordsPerKey)
    slots[slot] = place + 1
    size += 1
    if (known !== 0) ring.fill(0, (known - 1) * wordsPerKey, known * wordsPerKey)
  }

  function isEmpty(place: number): boolean {
    const word = place * wordsPerKey
    return (ring[word]! | ring[word + 1]! | ring[word + 2]! | ring[word + 3]!) === 0
  }

  function grow(): void {
    const larger = new Uint32Array(capacity * 2 * wordsPerKey)
    for (let index = 0; index < size; index += 1) {
      const from = ((head + index) % capacity) * wordsPerKey
      larger.set(ring.subarray(from, from + wordsPerKey), index * wordsPerKey)
    }
    capacity *= 2
    ring = larger
    head = 0
    slots = new Uint32Array(capacity * 2)
    for (let place = 0; place < size; place += 1) {
      if (isEmpty(place)) continue
      const word = place * wordsPerKey
      slots[findSlot(ring[word]!, ring[word + 1]!, ring[word + 2]!, ring[word + 3]!)] = place + 1
    }
  }

  function endGroup(n: number, keys: number, nowMs: number): void {
    groups.push({ n, addedAtMs: nowMs, keys })
  }

  function expire(nowMs: number, limit: number): number[] {
    const expired: number[] = []
    while (firstGroup < groups.length && expired.length < limit) {
      const group = groups[firstGroup]!
      const isKept = group.n >= held.from || nowMs - group.addedAtMs <= options.windowMs
      if (size <= options.keysMax && isKept) break
      for (let index = 0; index < group.keys; index += 1) removeOldest()
      expired.push(group.n)
      firstGroup += 1
    }
    if (firstGroup > 1024 && firstGroup * 2 > groups.length) {
      groups.splice(0, firstGroup)
      firstGroup = 0
    }
    return expired
  }

  function removeOldest(): void {
    if (isEmpty(head)) {
      head = (head + 1) % capacity
      size -= 1
      return
    }
    const mask = slots.length - 1
    let free = ring[head * wordsPerKey + 3]! & mask
    while (slots[free] !== head + 1) free = (free + 1) & mask
    head = (head + 1) % capacity
    size -= 1
    // Close the gap: a key behind it that could no longer be found moves into it.
    slots[free] = 0
    for (let slot = (free + 1) & mask; slots[slot] !== 0; slot = (slot + 1) & mask) {
      const home = ring[(slots[slot]! - 1) * wordsPerKey + 3]! & mask
      if (((slot - home) & mask) >= ((slot - free) & mask)) {
        slots[free] = slots[slot]!
        slots[slot] = 0
        free = slot
      }
    }
  }

  return {
    has,
    add,
    renew,
    load: (hexKey) => void scratch.write(hexKey, 0, 16, 'hex'),
    loadBytes(source, offset) {
      const start = scratch.length - storedKeyBytes
      scratch.fill(0, 0, start)
      source.copy(scratch, start, offset, offset + storedKeyBytes)
    },
    scratch,
    endGroup,
    expire,
    size: () => size,
  }
}
