// message-pack.ts: the encoding `msgpack` (MessagePack). The first byte of a value says what it is:
//
//   00-7f, e0-ff  a small whole number      80-8f  an object      90-9f  a list      a0-bf  a text
//   c0 null   c2 false   c3 true   c4-c6 bytes   c7-c9, d4-d8 an extension   ca, cb floats
//   cc-cf unsigned   d0-d3 signed   d9-db texts   dc, dd lists   de, df objects
//
// The extension -1 is a time: seconds since 1970, as digits where it has nanoseconds. Others are hexadecimal.

import { usualLimits } from '../body/body-limits.ts'
import type { Decoded } from '../types.ts'
import { decodeBy, type ValueReader } from './binary-values.ts'

const timeExtension = -1

export function decodeMessagePack(bytes: Buffer, limits = usualLimits): Decoded {
  return decodeBy(takeValue, 'MessagePack', bytes, limits)
}

function takeValue(reader: ValueReader): unknown {
  const first = reader.begin()
  if (first < 0x80) return first
  if (first < 0x90) return reader.record(first & 0x0f, takeValue)
  if (first < 0xa0) return reader.list(first & 0x0f, takeValue)
  if (first < 0xc0) return reader.text(first & 0x1f)
  if (first >= 0xe0) return first - 0x100
  if (first === 0xc0) return null
  if (first === 0xc1) reader.fail('has the byte c1')
  if (first <= 0xc3) return first === 0xc3
  // Sizes and lengths double from one code to the next.
  if (first <= 0xc6) return reader.hex(reader.uint(1 << (first - 0xc4)))
  if (first <= 0xc9) return takeExtension(reader, reader.uint(1 << (first - 0xc7)))
  if (first === 0xca) return reader.float()
  if (first === 0xcb) return reader.double()
  if (first <= 0xcf) return first === 0xcf ? reader.uint64() : reader.uint(1 << (first - 0xcc))
  if (first <= 0xd3) return first === 0xd3 ? reader.int64() : reader.int(1 << (first - 0xd0))
  if (first <= 0xd8) return takeExtension(reader, 1 << (first - 0xd4))
  if (first <= 0xdb) return reader.text(reader.uint(1 << (first - 0xd9)))
  if (first <= 0xdd) return reader.list(reader.uint(first === 0xdc ? 2 : 4), takeValue)
  return reader.record(reader.uint(first === 0xde ? 2 : 4), takeValue)
}

function takeExtension(reader: ValueReader, length: number): number | string {
  if (reader.int(1) !== timeExtension) return reader.hex(length)
  switch (length) {
    case 4:
      return reader.uint(4)
    case 8: {
      // 30 bits of nanoseconds, 34 of seconds.
      const high = reader.uint(4)
      return timeOf((high & 3) * 2 ** 32 + reader.uint(4), high >>> 2)
    }
    case 12: {
      const nanoseconds = reader.uint(4)
      return timeOf(reader.int64(), nanoseconds)
    }
    default:
      return reader.hex(length)
  }
}

function timeOf(seconds: number | string, nanoseconds: number): number | string {
  if (nanoseconds === 0 || Number(seconds) < 0) return seconds
  return `${seconds}.${String(nanoseconds).padStart(9, '0')}`
}
