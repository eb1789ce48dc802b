// packet-bytes.ts: numbers and texts in the bytes of a packet of MQTT 5 (1.5). Pure; reads nothing at or
// behind `end`.

import { isUtf8 } from 'node:buffer'

/** In place of an offset: the field does not end before `end`; is not UTF-8; has U+0000. */
export const cutField = -1
export const notUtf8 = -2
export const withNull = -3

export function twoBytesAt(bytes: Buffer, at: number): number {
  return (bytes[at]! << 8) | bytes[at + 1]!
}

/** The end of binary data that begins at `at` with its length (1.5.6). */
export function binaryEnd(bytes: Buffer, at: number, end: number): number {
  if (at + 2 > end) return cutField
  const last = at + 2 + twoBytesAt(bytes, at)
  return last > end ? cutField : last
}

/** The end of a text that begins at `at` with its length (1.5.4). */
export function textEnd(bytes: Buffer, at: number, end: number): number {
  const last = binaryEnd(bytes, at, end)
  for (let index = at + 2; index < last; index += 1) {
    const byte = bytes[index]!
    if (byte === 0) return withNull
    if (byte < 0x80) continue
    if (!isUtf8(bytes.subarray(index, last))) return notUtf8
    return bytes.subarray(index, last).includes(0) ? withNull : last
  }
  return last
}

const integerBytesMax = 4

/** Bytes of the variable byte integer at `at` (1.5.5); 0 where it is cut, too long, or longer than needed. */
export function integerSize(bytes: Buffer, at: number, end: number): number {
  for (let size = 1; size <= integerBytesMax && at + size <= end; size += 1) {
    const byte = bytes[at + size - 1]!
    if (byte < 0x80) return byte === 0 && size > 1 ? 0 : size
  }
  return 0
}

/** Where a variable byte integer ends that is whole. */
export function integerEnd(bytes: Buffer, at: number): number {
  let last = at
  while (bytes[last]! >= 0x80) last += 1
  return last + 1
}

/** The value of a variable byte integer that is valid, or longer than needed. */
export function integerAt(bytes: Buffer, at: number): number {
  let value = bytes[at]! & 0x7f
  for (let index = at, shift = 7; bytes[index]! >= 0x80; shift += 7) {
    index += 1
    value |= (bytes[index]! & 0x7f) << shift
  }
  return value
}
