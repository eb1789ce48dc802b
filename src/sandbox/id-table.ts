// id-table.ts: which UUIDs were seen, each with a number (of the batch that brought it). It holds millions: a
// Map of strings needs a hundred bytes and more for each, this table 27 to 53.
//
//   64 shards by the last byte of the UUID (the first bytes are a time in some versions), so that growing one
//   rehashes a 64th of the table. A shard is an open-addressing table of five 32-bit words a slot:
//
//     word 0..3 of the UUID | number + 1 (0: the slot is empty)
//
// At its bound it adds no more UUIDs and counts them; `size` is a lower bound from then on.

import { assert } from '../std/assert.ts'
import { parseUuid } from './uuid.ts'

const shardCount = 64
const wordsPerSlot = 5

export type IdTable = {
  /** Adds a new `uuid` with `number` and returns null; returns the stored number of a known one. */
  note(uuid: string, number: number): number | null
  readonly size: number
  /** New UUIDs that were not added because the table is full. */
  readonly overflow: number
}

type Shard = { slots: Uint32Array; used: number }

export function createIdTable(idsMax: number): IdTable {
  const shards = Array.from({ length: shardCount }, (): Shard => ({
    slots: new Uint32Array(64 * wordsPerSlot),
    used: 0,
  }))
  const words = new Uint32Array(4)
  let size = 0
  let overflow = 0

  return {
    note(uuid, number) {
      assert(parseUuid(uuid, words), 'only a UUID can be noted')
      const shard = shards[(words[3] ?? 0) % shardCount]
      assert(shard, 'each remainder has a shard')
      const at = find(shard.slots, words)
      const found = shard.slots[at + 4] ?? 0
      if (found > 0) return found - 1
      if (size >= idsMax) {
        overflow += 1
        return null
      }
      shard.slots.set(words, at)
      shard.slots[at + 4] = number + 1
      shard.used += 1
      size += 1
      // Grows at three quarters: probes get long beyond that.
      if (shard.used * wordsPerSlot * 4 > shard.slots.length * 3) grow(shard)
      return null
    },
    get size() {
      return size
    },
    get overflow() {
      return overflow
    },
  }
}

/** The slot of `words`, or the empty slot for them. */
function find(slots: Uint32Array, words: Uint32Array): number {
  const mask = slots.length / wordsPerSlot - 1
  let hash =
    Math.imul((words[0] ?? 0) ^ (words[2] ?? 0), 0x9e3779b1) ^
    Math.imul((words[1] ?? 0) ^ (words[3] ?? 0), 0x85ebca6b)
  hash ^= hash >>> 15
  for (let slot = hash & mask; ; slot = (slot + 1) & mask) {
    const at = slot * wordsPerSlot
    if (slots[at + 4] === 0) return at
    const same =
      slots[at] === words[0] &&
      slots[at + 1] === words[1] &&
      slots[at + 2] === words[2] &&
      slots[at + 3] === words[3]
    if (same) return at
  }
}

function grow(shard: Shard): void {
  const { slots } = shard
  shard.slots = new Uint32Array(slots.length * 2)
  for (let at = 0; at < slots.length; at += wordsPerSlot) {
    if (slots[at + 4] === 0) continue
    shard.slots.set(slots.subarray(at, at + wordsPerSlot), find(shard.slots, slots.subarray(at, at + 4)))
  }
}
