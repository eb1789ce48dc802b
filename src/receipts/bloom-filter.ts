// bloom-filter.ts: a set of keys in a byte a key that says "certainly not" or "perhaps": five bits for each key, wrong for
// two of a hundred keys that are not in it. A key is a hash of 32 bits, so a set is good for some ten thousand of them.

const probes = 5

/** Bytes of a set for `keys` keys. */
export function bloomBytesFor(keys: number): number {
  return Math.max(8, keys)
}

/** `bits` may be part of something larger: the set is `length` bytes from `start`. */
export function addToBloom(bits: Uint8Array, start: number, length: number, hash: number): void {
  const share = (length * 8) / 2 ** 32
  const step = stepOf(hash)
  let at = hash >>> 0
  for (let probe = 0; probe < probes; probe += 1) {
    const bit = (at * share) | 0
    const place = start + (bit >>> 3)
    bits[place] = (bits[place] ?? 0) | (1 << (bit & 7))
    at = (at + step) >>> 0
  }
}

/** False: the key is certainly not in it. */
export function mayHold(bits: Uint8Array, start: number, length: number, hash: number): boolean {
  const share = (length * 8) / 2 ** 32
  const step = stepOf(hash)
  let at = hash >>> 0
  for (let probe = 0; probe < probes; probe += 1) {
    const bit = (at * share) | 0
    if (((bits[start + (bit >>> 3)] ?? 0) & (1 << (bit & 7))) === 0) return false
    at = (at + step) >>> 0
  }
  return true
}

/** The other half of the hash first: keys that begin at one place do not go on together. */
function stepOf(hash: number): number {
  return (hash >>> 17) | (hash << 15)
}

/** FNV-1a over the bytes, and a stir, because its upper bits are weak. */
export function hashOfBytes(bytes: Uint8Array, start: number, end: number): number {
  let hash = 0x811c9dc5
  for (let at = start; at < end; at += 1) hash = Math.imul(hash ^ (bytes[at] ?? 0), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return (hash ^ (hash >>> 16)) >>> 0
}

const encoder = new TextEncoder()

export function hashOfText(text: string): number {
  const bytes = encoder.encode(text)
  return hashOfBytes(bytes, 0, bytes.length)
}
