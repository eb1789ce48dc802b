// teltonika.ts: frames of Teltonika trackers in Codec 8, Codec 8 Extended (0x8E) and Codec 16, as a bridge
// from TCP or UDP passes them on. The topic names the device; only a UDP frame names it itself.
//
//   TCP      | 0 (4) | length (4) | body | checksum (4) |         length: of the body
//   UDP      | length (2) | packet (2) | 1 | number | 15 (2) | IMEI (15) | body |
//   bare     | body |   or   | body | checksum (4) |              where the bridge removed the head
//
//   body     | codec | count | record ... | count |               all numbers big-endian
//   record   | ms (8) | priority | longitude (4) | latitude (4) | altitude (2) | angle (2) | satellites |
//            | speed (2) | event | generation, Codec 16 | elements | group of 1, 2, 4, 8 bytes |
//            | group of any length, 8E |
//   group    | how many | id, value | id, value | ...              ids and counts: see `layouts`
//
// The value is { codec, records: [{ ts, priority, latitude, longitude, altitude, angle, satellites, speed,
// event, io: { "239": 1 } }] }, the records in the order of the frame, which on many units is newest first.
// Values are unsigned as in the lists of Teltonika; beyond 2^53 they are decimal text, and those of variable
// length are hexadecimal.
//
// What can go wrong, and what then happens
//   cut short, damaged, not a frame    refused as a whole: TRUNCATED, BAD_CHECKSUM, BAD_FRAME; half a frame
//                                      and a wrong one cannot always be recognised
//   login, keep-alive, command         ignored, with that reason; Codec 12 to 15 are commands and answers
//
// A frame has at most 255 records, as its count is one byte. Nothing is allocated that its bytes do not fill.
import { crc16 } from './crc16.ts'
import { plural } from '../../std/quantity.ts'
import { refused } from '../reasons.ts'
import type { Decoded } from '../types.ts'

type Layout = {
  /** Bytes of the id of an element, and of the event. */
  idBytes: 1 | 2
  /** Bytes of a count of elements. */
  countBytes: 1 | 2
  hasGeneration: boolean
  hasVariable: boolean
}

const layouts = new Map<number, Layout>([
  [0x08, { idBytes: 1, countBytes: 1, hasGeneration: false, hasVariable: false }],
  [0x8e, { idBytes: 2, countBytes: 2, hasGeneration: false, hasVariable: true }],
  [0x10, { idBytes: 2, countBytes: 1, hasGeneration: true, hasVariable: false }],
])

/** Codecs 12 to 15 carry commands, their answers and texts of a serial port. */
const isCommandCodec = (codec: number) => codec >= 0x0c && codec <= 0x0f

const headBytes = 8
const checksumBytes = 4
const imeiDigits = 15
const channelHeadBytes = 8 + imeiDigits

/** From the time to the speed. */
const positionBytes = 24

type Records = Record<string, unknown>[]

/** A body that was read and its end, or why it was not. */
type Body =
  { kind: 'body'; codec: number; records: Records; end: number } | Exclude<Decoded, { kind: 'value' }>

const truncated: Body = refused('TRUNCATED', 'The frame ends in the middle of a record.')

/** Total: no bytes make it throw. */
export function decodeTeltonika(bytes: Buffer): Decoded {
  if (bytes.length === 0) return { kind: 'empty' }
  if (bytes.length === 1 && bytes[0] === 0xff) return { kind: 'ignored', reason: 'keep-alive' }
  if (isLogin(bytes)) return { kind: 'ignored', reason: 'login' }
  if (bytes.length >= 4 && bytes.readUInt32BE(0) === 0) return decodeTcp(bytes)
  if (isChannel(bytes)) return decodeChannel(bytes)
  return decodeBare(bytes)
}

/** The first packet of a unit on TCP: its IMEI. */
function isLogin(bytes: Buffer): boolean {
  return bytes.length === 2 + imeiDigits && bytes.readUInt16BE(0) === imeiDigits && hasImeiAt(bytes, 2)
}

function isChannel(bytes: Buffer): boolean {
  return (
    bytes.length > channelHeadBytes &&
    bytes.readUInt16BE(0) === bytes.length - 2 &&
    bytes.readUInt16BE(6) === imeiDigits &&
    hasImeiAt(bytes, 8)
  )
}

function hasImeiAt(bytes: Buffer, start: number): boolean {
  for (let at = start; at < start + imeiDigits; at += 1) {
    const unit = bytes[at] ?? 0
    if (unit < 0x30 || unit > 0x39) return false
  }
  return true
}

function decodeTcp(bytes: Buffer): Decoded {
  if (bytes.length < headBytes) return refused('TRUNCATED', 'The frame ends before its length.')
  const end = headBytes + bytes.readUInt32BE(4)
  const missing = end + checksumBytes - bytes.length
  if (missing > 0)
    return refused('TRUNCATED', `The frame is ${plural(missing, 'byte')} shorter than its length says.`)
  if (missing < 0) return refused('BAD_FRAME', `The frame has ${plural(-missing, 'byte')} after its end.`)
  const stated = bytes.readUInt32BE(end)
  const found = crc16(bytes, headBytes, end)
  if (stated !== found)
    return refused('BAD_CHECKSUM', `The checksum is ${hex(found, 4)}, but the frame says ${hex(stated, 4)}.`)
  const body = readBody(bytes, headBytes, end)
  return body.kind === 'body' ? valueOf(body, end) : body
}

function decodeChannel(bytes: Buffer): Decoded {
  const body = readBody(bytes, channelHeadBytes, bytes.length)
  if (body.kind !== 'body') return body
  const decoded = valueOf(body, bytes.length)
  if (decoded.kind !== 'value') return decoded
  const imei = bytes.toString('latin1', 8, 8 + imeiDigits)
  return { kind: 'value', value: { imei, codec: body.codec, records: body.records } }
}

function decodeBare(bytes: Buffer): Decoded {
  if (!layouts.has(bytes[0] ?? 0))
    return refused(
      'BAD_FRAME',
      `The message begins with ${hex(bytes[0] ?? 0, 2)}; frames of Codec 8, 8 Extended and 16 do not.`,
    )
  const body = readBody(bytes, 0, bytes.length)
  if (body.kind !== 'body') return body
  const isChecked =
    body.end + checksumBytes === bytes.length && bytes.readUInt32BE(body.end) === crc16(bytes, 0, body.end)
  return valueOf(body, isChecked ? body.end : bytes.length)
}

function valueOf(body: Extract<Body, { kind: 'body' }>, end: number): Decoded {
  if (body.end !== end)
    return refused('BAD_FRAME', `The frame has ${plural(end - body.end, 'byte')} after its end.`)
  return { kind: 'value', value: { codec: body.codec, records: body.records } }
}

function readBody(bytes: Buffer, start: number, end: number): Body {
  if (end - start < 3) return truncated
  const codec = bytes[start] ?? 0
  const layout = layouts.get(codec)
  if (!layout) {
    if (isCommandCodec(codec)) return { kind: 'ignored', reason: 'command' }
    return refused('BAD_FRAME', `The frame is in codec ${hex(codec, 2)}, not in Codec 8, 8 Extended or 16.`)
  }
  const count = bytes[start + 1] ?? 0
  const cursor = { bytes, at: start + 2, end }
  const records: Records = []
  for (let left = count; left > 0; left -= 1) {
    const record = takeRecord(cursor, layout)
    if (!record) return truncated
    records.push(record)
  }
  if (cursor.at >= end) return truncated
  const countBehind = bytes[cursor.at] ?? 0
  if (countBehind !== count)
    return refused(
      'BAD_FRAME',
      `The frame counts ${plural(count, 'record')} at its start and ${countBehind} at its end.`,
    )
  return { kind: 'body', codec, records, end: cursor.at + 1 }
}

type Cursor = { readonly bytes: Buffer; at: number; readonly end: number }

/** Null where the bytes end in the record. */
function takeRecord(cursor: Cursor, layout: Layout): Record<string, unknown> | null {
  const { bytes, at } = cursor
  const { idBytes, countBytes, hasGeneration } = layout
  const fixedBytes = positionBytes + idBytes + (hasGeneration ? 1 : 0) + countBytes
  const eventAt = at + positionBytes
  // The total count of elements is skipped: the counts of the groups are used. Bytes that end before the
  // first group are noticed there.
  cursor.at = at + fixedBytes
  const io: Record<string, unknown> = {}
  const isWhole =
    takeGroup(cursor, layout, 1, io) &&
    takeGroup(cursor, layout, 2, io) &&
    takeGroup(cursor, layout, 4, io) &&
    takeGroup(cursor, layout, 8, io) &&
    (!layout.hasVariable || takeVariable(cursor, io))
  if (!isWhole) return null
  const record: Record<string, unknown> = {
    ts: longAt(bytes, at),
    priority: bytes[at + 8],
    // The quotient is the double nearest to the decimal of seven places, so it is written as that decimal.
    latitude: bytes.readInt32BE(at + 13) / 1e7,
    longitude: bytes.readInt32BE(at + 9) / 1e7,
    altitude: bytes.readInt16BE(at + 17),
    angle: bytes.readUInt16BE(at + 19),
    satellites: bytes[at + 21],
    speed: bytes.readUInt16BE(at + 22),
    event: idBytes === 1 ? bytes[eventAt] : bytes.readUInt16BE(eventAt),
    io,
  }
  if (hasGeneration) record['generation'] = bytes[eventAt + idBytes]
  return record
}

/** False where the bytes end in the group. */
function takeGroup(
  cursor: Cursor,
  { idBytes, countBytes }: Layout,
  valueBytes: 1 | 2 | 4 | 8,
  io: Record<string, unknown>,
): boolean {
  const { bytes } = cursor
  const start = cursor.at + countBytes
  if (start > cursor.end) return false
  const count = countBytes === 1 ? (bytes[cursor.at] ?? 0) : bytes.readUInt16BE(cursor.at)
  const stepBytes = idBytes + valueBytes
  const end = start + count * stepBytes
  if (end > cursor.end) return false
  for (let at = start; at < end; at += stepBytes) {
    const id = idBytes === 1 ? (bytes[at] ?? 0) : bytes.readUInt16BE(at)
    io[id] = valueAt(bytes, at + idBytes, valueBytes)
  }
  cursor.at = end
  return true
}

/** The group of Codec 8 Extended whose elements have their own lengths. False where the bytes end in it. */
function takeVariable(cursor: Cursor, io: Record<string, unknown>): boolean {
  const { bytes, end } = cursor
  if (cursor.at + 2 > end) return false
  let at = cursor.at + 2
  for (let left = bytes.readUInt16BE(cursor.at); left > 0; left -= 1) {
    if (at + 4 > end) return false
    const valueEnd = at + 4 + bytes.readUInt16BE(at + 2)
    if (valueEnd > end) return false
    io[bytes.readUInt16BE(at)] = bytes.toString('hex', at + 4, valueEnd)
    at = valueEnd
  }
  cursor.at = at
  return true
}

function valueAt(bytes: Buffer, at: number, valueBytes: 1 | 2 | 4 | 8): unknown {
  if (valueBytes === 1) return bytes[at]
  if (valueBytes === 2) return bytes.readUInt16BE(at)
  return valueBytes === 4 ? bytes.readUInt32BE(at) : longAt(bytes, at)
}

/** A number, or decimal text where a number would be rounded. */
function longAt(bytes: Buffer, at: number): number | string {
  const high = bytes.readUInt32BE(at)
  if (high < 0x20_0000) return high * 0x1_0000_0000 + bytes.readUInt32BE(at + 4)
  return String(bytes.readBigUInt64BE(at))
}

function hex(value: number, digits: number): string {
  return `0x${value.toString(16).padStart(digits, '0')}`
}
