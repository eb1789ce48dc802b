// cbor.ts: the encoding `cbor` (RFC 8949). A value begins with a byte: three bits of kind, five of size:
//
//   0 unsigned   1 negative (-1 - n)   2 bytes   3 text   4 list   5 object   6 tag of what follows   7 other
//
// Of tags, whole numbers of any length (2, 3) become digits; all others are skipped, as that of a time.
// Texts and lists may come without a length and end with a mark. SenML has numbers as keys: "-2".

import { usualLimits } from '../body/body-limits.ts'
import type { Decoded } from '../types.ts'
import { finite, wholeOf } from '../encodings/byte-reader.ts'
import { hexOf } from '../encodings/text-bytes.ts'
import { decodeBy, type ValueReader } from './binary-values.ts'

/** Longer ones, which nothing sends, stay hexadecimal. */
const bigBytesMax = 32

export function decodeCbor(bytes: Buffer, limits = usualLimits): Decoded {
  return decodeBy(takeValue, 'CBOR', bytes, limits)
}

function takeValue(reader: ValueReader): unknown {
  const first = reader.begin()
  const kind = first >> 5
  const size = first & 0x1f
  if (kind === 7) return takeOther(reader, size)
  const count = takeCount(reader, kind, size)
  switch (kind) {
    case 0:
      return count
    case 1:
      return negative(count)
    case 2:
    case 3:
      return takePieces(reader, kind, count)
    case 4:
      return reader.list(Number(count), takeValue)
    case 5:
      return reader.record(Number(count), takeValue)
    default:
      return tagged(count, reader.list(1, takeValue)[0])
  }
}

/** A value, a length or a tag; digits beyond 2^53; infinite where there is no length. */
function takeCount(reader: ValueReader, kind: number, size: number): number | string {
  if (size < 24) return size
  if (size === 27) return reader.uint64()
  if (size < 27) return reader.uint(1 << (size - 24))
  if (size === 31 && kind >= 2 && kind <= 5) return Number.POSITIVE_INFINITY
  return reader.fail('has a size that does not exist')
}

/** Bytes or a text, which may come in pieces. */
function takePieces(reader: ValueReader, kind: number, length: number | string): string {
  if (length !== Number.POSITIVE_INFINITY)
    return kind === 2 ? reader.hex(Number(length)) : reader.text(Number(length))
  const pieces = reader.list(length, () => {
    const first = reader.begin()
    if (first >> 5 !== kind) reader.fail('has a text of different pieces')
    return reader.part(Number(takeCount(reader, 0, first & 0x1f))).bytes
  })
  const all = Buffer.concat(pieces as Buffer[])
  return kind === 2 ? hexOf(all) : all.toString()
}

function negative(count: number | string): number | string {
  return wholeOf(-1n - BigInt(count))
}

function tagged(tag: number | string, value: unknown): unknown {
  if ((tag !== 2 && tag !== 3) || typeof value !== 'string') return value
  if (value.length > 2 + 2 * bigBytesMax || !/^0x[0-9a-f]+$/.test(value)) return value
  const number = BigInt(value)
  return wholeOf(tag === 2 ? number : -1n - number)
}

function takeOther(reader: ValueReader, size: number): unknown {
  switch (size) {
    case 20:
      return false
    case 21:
      return true
    case 24:
      reader.uint(1)
      return null
    case 25:
      return finite(halfOf(reader.uint(2)))
    case 26:
      return reader.float()
    case 27:
      return reader.double()
    default:
      return size < 24 ? null : reader.fail('has a value that does not exist')
  }
}

/** A float of 16 bits: 1 sign, 5 exponent, 10 fraction. */
function halfOf(bits: number): number {
  const exponent = (bits >> 10) & 0x1f
  const fraction = bits & 0x3ff
  const size =
    exponent === 0
      ? fraction * 2 ** -24
      : exponent === 31
        ? fraction === 0
          ? Number.POSITIVE_INFINITY
          : Number.NaN
        : (fraction + 1024) * 2 ** (exponent - 25)
  return bits & 0x8000 ? -size : size
}
