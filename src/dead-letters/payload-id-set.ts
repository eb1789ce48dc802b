// payload-id-set.ts: a set of payloadIds that takes 28 to 56 bytes for each, so that a file with a million
// lines can be compared with the spool and the ledger. A Set of texts takes four times as much.
//
//   words  16 bytes of each id, in order of addition        slots  hash table: 0, or the number of an id + 1

export type PayloadIdSet = {
  readonly size: number
  /** The number of the id, from 0 in order of addition. Adds the id if it is new. */
  add(id: string): number
  /** -1 if the id was not added. */
  numberOf(id: string): number
}

const firstSlots = 1024

export function createPayloadIdSet(): PayloadIdSet {
  let words = new Uint32Array(firstSlots * 2)
  let slots = new Uint32Array(firstSlots)
  let size = 0
  const key = new Uint32Array(4)

  return {
    get size() {
      return size
    },
    add(id) {
      readKey(id)
      const slot = slotOfKey()
      const known = slots[slot] ?? 0
      if (known !== 0) return known - 1
      words.set(key, size * 4)
      size += 1
      slots[slot] = size
      if (size * 2 >= slots.length) grow()
      return size - 1
    },
    numberOf(id) {
      readKey(id)
      return (slots[slotOfKey()] ?? 0) - 1
    },
  }

  function readKey(id: string): void {
    key[0] = Number.parseInt(id.slice(0, 8), 16)
    key[1] = Number.parseInt(id.slice(9, 13) + id.slice(14, 18), 16)
    key[2] = Number.parseInt(id.slice(19, 23) + id.slice(24, 28), 16)
    key[3] = Number.parseInt(id.slice(28, 36), 16)
  }

  /** The slot of the key, or the free one where it belongs. At most half of the slots are taken. */
  function slotOfKey(): number {
    const mask = slots.length - 1
    for (let slot = hashOf(key, 0) & mask; ; slot = (slot + 1) & mask) {
      const number = slots[slot] ?? 0
      if (number === 0 || isKey((number - 1) * 4)) return slot
    }
  }

  function isKey(at: number): boolean {
    return (
      words[at] === key[0] && words[at + 1] === key[1] && words[at + 2] === key[2] && words[at + 3] === key[3]
    )
  }

  function grow(): void {
    const more = new Uint32Array(words.length * 2)
    more.set(words)
    words = more
    slots = new Uint32Array(slots.length * 2)
    const mask = slots.length - 1
    for (let number = 0; number < size; number += 1) {
      let slot = hashOf(words, number * 4) & mask
      while (slots[slot] !== 0) slot = (slot + 1) & mask
      slots[slot] = number + 1
    }
  }
}

/** Ids of another program may count upwards, so every word takes part. */
function hashOf(words: Uint32Array, at: number): number {
  let hash = 0
  for (let index = 0; index < 4; index += 1) {
    hash = Math.imul(hash ^ (words[at + index] ?? 0), 0x85ebca6b)
    hash ^= hash >>> 15
  }
  return Math.imul(hash, 0xc2b2ae35) >>> 0
}
