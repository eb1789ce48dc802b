// snappy.ts: decodes Snappy, which compresses the blocks of LevelDB's tables. Strict: bytes that are not
// exactly one compressed block give null. The length of the result is bounded by that of the source.
//
//   length of the result (varint), then elements. The lowest two bits of the first byte are the kind:
//   0 literal   the upper 6 bits are its length - 1, or 60 to 63: the length - 1 follows in 1 to 4 bytes
//   1 copy      3 bits length - 4, 3 bits of the distance, 1 byte distance
//   2 copy      6 bits length - 1, 2 bytes distance
//   3 copy      6 bits length - 1, 4 bytes distance

/** No element makes more bytes out of one: a copy of 64 bytes takes three. */
const growthMax = 22

/** The decoded bytes of `source` from `start` up to `end`; null if they are malformed. */
export function unsnappy(source: Uint8Array, start: number, end: number): Buffer | null {
  let at = start
  let length = 0
  for (let shift = 0; ; shift += 7) {
    if (at >= end || shift > 28) return null
    const byte = source[at++]!
    length += (byte & 127) * 2 ** shift
    if (byte < 128) break
  }
  if (length > (end - at) * growthMax) return null
  const result = Buffer.allocUnsafe(length)
  return fill(result, source, at, end) ? result : null
}

function fill(result: Buffer, source: Uint8Array, start: number, end: number): boolean {
  let at = start
  let used = 0
  while (at < end) {
    const tag = source[at++]!
    if ((tag & 3) === 0) {
      let length = (tag >>> 2) + 1
      if (length > 60) {
        const lengthBytes = length - 60
        if (at + lengthBytes > end) return false
        length = littleEndian(source, at, lengthBytes) + 1
        at += lengthBytes
      }
      if (at + length > end || used + length > result.length) return false
      result.set(source.subarray(at, at + length), used)
      at += length
      used += length
      continue
    }
    const distanceBytes = distanceBytesOf[tag & 3]!
    if (at + distanceBytes > end) return false
    const isShort = (tag & 3) === 1
    const length = isShort ? ((tag >>> 2) & 7) + 4 : (tag >>> 2) + 1
    const distance = littleEndian(source, at, distanceBytes) + (isShort ? (tag >>> 5) << 8 : 0)
    at += distanceBytes
    if (distance === 0 || distance > used || used + length > result.length) return false
    copyBack(result, used, distance, length)
    used += length
  }
  return used === result.length
}

const distanceBytesOf = [0, 1, 2, 4]

/** A copy may overlap its own source: then it repeats what it has just written. */
function copyBack(result: Buffer, used: number, distance: number, length: number): void {
  if (distance >= length) {
    result.copyWithin(used, used - distance, used - distance + length)
    return
  }
  for (let index = 0; index < length; index += 1) result[used + index] = result[used + index - distance]!
}

function littleEndian(source: Uint8Array, at: number, bytes: number): number {
  let value = 0
  for (let index = bytes - 1; index >= 0; index -= 1) value = value * 256 + source[at + index]!
  return value
}
