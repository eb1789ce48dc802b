// bloom-filter.ts: a set of keys that answers "certainly not" or "perhaps". One byte and five bits a key;
// wrong for two of a hundred keys that were not added. A key is a hash of 32 bits, so a filter is good for
// some ten thousand keys.

const probes = 5

/** Bytes of a filter for `keys` keys. */
export function bloomBytesFor(keys: number): number {
  return Math.max(8, keys)
}

/** The filter is `length` bytes of `bits` from `start`. */
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

/** False: the key was certainly not added. */
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

/** Starts with the other half of the hash, so that keys with the same first bit differ in the next ones. */
function stepOf(hash: number): number {
  return (hash >>> 17) | (hash << 15)
}

/** FNV-1a over the bytes, and a final mix, because its upper bits are weak. */
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
