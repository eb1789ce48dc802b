// iotm.ts: messages of IOTM trackers: one binary message with the records of a moment or of an hour.
//
//   message   | version | part ... | checksum |        the checksum is the sum of all bytes before it
//   part      | type | length (2) | value |            all numbers little-endian
//     2       IMEI (8)                                 the device of the records that follow
//     1       s (4) | element ...                      a record
//     3       s (4) | function | event | more          an event
//   element   | kind | id (2) | value |                the kind defines the length of the value (`readers`)
//     14      latitude f32 | longitude f32 | km/h (2) | 10 HDOP | satellites | course (2) | m (2)
//
// The value is { version, imei, records: [{ ts, latitude, longitude, speed, hdop, satellites, course,
// altitude, io: { "4003": 12 } }], events: [{ ts, function, event }] }. Ids of elements are four hexadecimal
// digits, as in the lists of the maker; values of bytes are hexadecimal text, whole numbers beyond 2^53
// decimal text.
//
// A message that is cut short or damaged, or has an element of an unknown kind, is refused as a whole
// (TRUNCATED, BAD_CHECKSUM, BAD_FRAME). Nothing is allocated that the bytes do not fill.

import { refused } from '../reasons.ts'
import type { Decoded } from '../types.ts'
type Fields = Record<string, unknown>

/** Reads the value at `at`, and where it ends. Throws RangeError beyond the end. */
type ReadValue = (bytes: Buffer, at: number) => { value: unknown; end: number }

const sized = (size: number, read: (bytes: Buffer, at: number) => unknown): ReadValue => {
  return (bytes, at) => ({ value: read(bytes, at), end: at + size })
}

const counted = (sizeBytes: 1 | 2, encoding: 'latin1' | 'hex'): ReadValue => {
  return (bytes, at) => {
    const start = at + sizeBytes
    const end = start + bytes.readUIntLE(at, sizeBytes)
    if (end > bytes.length) throw new RangeError('beyond the end')
    return { value: bytes.toString(encoding, start, end), end }
  }
}

const readers = new Map<number, ReadValue>([
  [0, sized(0, () => false)],
  [1, sized(0, () => true)],
  [3, sized(0, () => 0)],
  [4, sized(1, (bytes, at) => bytes.readUInt8(at))],
  [5, sized(2, (bytes, at) => bytes.readUInt16LE(at))],
  [6, sized(4, (bytes, at) => bytes.readUInt32LE(at))],
  [7, sized(8, (bytes, at) => exact(bytes.readBigUInt64LE(at)))],
  [8, sized(1, (bytes, at) => bytes.readInt8(at))],
  [9, sized(2, (bytes, at) => bytes.readInt16LE(at))],
  [10, sized(4, (bytes, at) => bytes.readInt32LE(at))],
  [11, sized(8, (bytes, at) => exact(bytes.readBigInt64LE(at)))],
  [12, sized(4, (bytes, at) => finite(bytes.readFloatLE(at)))],
  [13, sized(8, (bytes, at) => finite(bytes.readDoubleLE(at)))],
  [32, counted(1, 'latin1')],
  [33, counted(1, 'hex')],
  [64, counted(2, 'latin1')],
  [65, counted(2, 'hex')],
])

const positionKind = 14

/** Bounds of the elements of a record and of the parts of a message, far above those of any tracker. */
const elementsMax = 1000
const partsMax = 1000

/** Total: no bytes make it throw. */
export function decodeIotm(bytes: Buffer): Decoded {
  if (bytes.length === 0) return { kind: 'empty' }
  if (bytes.length < 2) return truncated
  const end = bytes.length - 1
  if (bytes[end] !== sumOf(bytes, end))
    return refused('BAD_CHECKSUM', 'The sum of the bytes differs from the checksum in the last one.')
  try {
    return decodeParts(bytes.subarray(0, end))
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    return truncated
  }
}

const truncated: Decoded = refused('TRUNCATED', 'The message ends in the middle of a value.')

function decodeParts(bytes: Buffer): Decoded {
  const records: Fields[] = []
  const events: Fields[] = []
  const message: Fields = { version: bytes.readUInt8(0), records, events }
  let at = 1
  for (let parts = 0; at < bytes.length; parts += 1) {
    if (parts === partsMax) return refused('TOO_MANY', `The message has more than ${partsMax} parts.`)
    const type = bytes.readUInt8(at)
    const start = at + 3
    at = start + bytes.readUInt16LE(at + 1)
    if (at > bytes.length) return truncated
    const part = bytes.subarray(start, at)
    if (type === 2) {
      message['imei'] = part.length === 8 ? String(part.readBigUInt64LE(0)) : part.toString('hex')
    } else if (type === 3) {
      events.push({ ts: part.readUInt32LE(0), function: part.readUInt8(4), event: part.readUInt8(5) })
    } else if (type === 1) {
      const record = recordIn(part)
      if (record.kind === 'refused') return record
      records.push(record.fields)
    }
  }
  return { kind: 'value', value: message }
}

function recordIn(part: Buffer): { kind: 'record'; fields: Fields } | ReturnType<typeof refused> {
  const io: Fields = {}
  const record: Fields = { ts: part.readUInt32LE(0) }
  let at = 4
  for (let elements = 0; at < part.length; elements += 1) {
    if (elements === elementsMax)
      return refused('TOO_MANY', `A record has more than ${elementsMax} elements.`)
    const kind = part.readUInt8(at)
    const id = part
      .readUInt16LE(at + 1)
      .toString(16)
      .padStart(4, '0')
    at += 3
    if (kind === positionKind) {
      Object.assign(record, positionAt(part, at))
      at += 16
      continue
    }
    const read = readers.get(kind)
    if (!read) return refused('BAD_FRAME', `The element ${id} is of the unknown kind ${kind}.`)
    const { value, end } = read(part, at)
    io[id] = value
    at = end
  }
  return { kind: 'record', fields: { ...record, io } }
}

function positionAt(part: Buffer, at: number): Fields {
  return {
    latitude: finite(part.readFloatLE(at)),
    longitude: finite(part.readFloatLE(at + 4)),
    speed: part.readUInt16LE(at + 8),
    hdop: part.readUInt8(at + 10) / 10,
    satellites: part.readUInt8(at + 11),
    course: part.readUInt16LE(at + 12),
    altitude: part.readInt16LE(at + 14),
  }
}

function sumOf(bytes: Buffer, end: number): number {
  let sum = 0
  for (let at = 0; at < end; at += 1) sum = (sum + (bytes[at] ?? 0)) & 0xff
  return sum
}

function exact(value: bigint): number | string {
  const number = Number(value)
  return Number.isSafeInteger(number) ? number : String(value)
}

/** NaN and the infinities mean "absent". */
function finite(value: number): number | null {
  return Number.isFinite(value) ? value : null
}
