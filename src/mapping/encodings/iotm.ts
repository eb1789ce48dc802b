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
import { ByteReader } from './byte-reader.ts'

type Fields = Record<string, unknown>

const readers = new Map<number, (reader: ByteReader) => unknown>([
  [0, () => false],
  [1, () => true],
  [3, () => 0],
  [4, (reader) => reader.uint(1)],
  [5, (reader) => reader.uint(2)],
  [6, (reader) => reader.uint(4)],
  [7, (reader) => reader.uint64()],
  [8, (reader) => reader.int(1)],
  [9, (reader) => reader.int(2)],
  [10, (reader) => reader.int(4)],
  [11, (reader) => reader.int64()],
  [12, (reader) => reader.float()],
  [13, (reader) => reader.double()],
  [32, (reader) => reader.text(reader.uint(1), 'latin1')],
  [33, (reader) => reader.hex(reader.uint(1))],
  [64, (reader) => reader.text(reader.uint(2), 'latin1')],
  [65, (reader) => reader.hex(reader.uint(2))],
])

const positionKind = 14

/** Bounds of the elements of a record and of the parts of a message, far above those of any tracker. */
const elementsMax = 1000
const partsMax = 1000

/** Total: no bytes make it throw. */
export function decodeIotm(bytes: Buffer): Decoded {
  if (bytes.length === 0) return { kind: 'empty' }
  const end = bytes.length - 1
  if (end > 0 && bytes[end] !== sumOf(bytes, end))
    return refused('BAD_CHECKSUM', 'The sum of the bytes differs from the checksum in the last one.')
  try {
    return takeMessage(new ByteReader(bytes.subarray(0, end), 'little'))
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    return refused('TRUNCATED', 'The message ends in the middle of a value.')
  }
}

function takeMessage(reader: ByteReader): Decoded {
  const records: Fields[] = []
  const events: Fields[] = []
  const message: Fields = { version: reader.uint(1), records, events }
  for (let parts = 0; !reader.isAtEnd; parts += 1) {
    if (parts === partsMax) return refused('TOO_MANY', `The message has more than ${partsMax} parts.`)
    const type = reader.uint(1)
    const part = reader.part(reader.uint(2))
    if (type === 2) message['imei'] = imeiIn(part)
    else if (type === 3) events.push({ ts: part.uint(4), function: part.uint(1), event: part.uint(1) })
    else if (type === 1) {
      const record = takeRecord(part)
      if (record.kind === 'refused') return record
      records.push(record.fields)
    }
  }
  return { kind: 'value', value: message }
}

function imeiIn(part: ByteReader): string {
  const { length } = part.bytes
  return length === 8 ? String(part.uint64()) : part.bytes.toString('hex')
}

function takeRecord(part: ByteReader): { kind: 'record'; fields: Fields } | ReturnType<typeof refused> {
  const io: Fields = {}
  const record: Fields = { ts: part.uint(4) }
  for (let elements = 0; !part.isAtEnd; elements += 1) {
    if (elements === elementsMax)
      return refused('TOO_MANY', `A record has more than ${elementsMax} elements.`)
    const kind = part.uint(1)
    const id = part.uint(2).toString(16).padStart(4, '0')
    const read = readers.get(kind)
    if (kind === positionKind) Object.assign(record, takePosition(part))
    else if (read) io[id] = read(part)
    else return refused('BAD_FRAME', `The element ${id} is of the unknown kind ${kind}.`)
  }
  return { kind: 'record', fields: { ...record, io } }
}

function takePosition(part: ByteReader): Fields {
  return {
    latitude: part.float(),
    longitude: part.float(),
    speed: part.uint(2),
    hdop: part.uint(1) / 10,
    satellites: part.uint(1),
    course: part.uint(2),
    altitude: part.int(2),
  }
}

function sumOf(bytes: Buffer, end: number): number {
  let sum = 0
  for (let at = 0; at < end; at += 1) sum = (sum + (bytes[at] ?? 0)) & 0xff
  return sum
}
