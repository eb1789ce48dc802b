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
import { plural } from '../../std/quantity.ts'
import { refused } from '../reasons.ts'
import type { Decoded } from '../types.ts'
import { ByteReader } from './byte-reader.ts'

/** `id`: bytes of the id of an element, and of the event. `count`: of a count of elements. */
type Layout = { id: 1 | 2; count: 1 | 2; hasGeneration: boolean; hasVariable: boolean }

const layouts = new Map<number, Layout>([
  [0x08, { id: 1, count: 1, hasGeneration: false, hasVariable: false }],
  [0x8e, { id: 2, count: 2, hasGeneration: false, hasVariable: true }],
  [0x10, { id: 2, count: 1, hasGeneration: true, hasVariable: false }],
])

/** Codecs 12 to 15 carry commands, their answers and texts of a serial port. */
const isCommandCodec = (codec: number) => codec >= 0x0c && codec <= 0x0f

const headBytes = 8
const checksumBytes = 4
const imeiDigits = 15
const channelHeadBytes = 8 + imeiDigits

type Value = { imei?: string; codec: number; records: Record<string, unknown>[] }

/** Total: no bytes make it throw. */
export function decodeTeltonika(bytes: Buffer): Decoded {
  if (bytes.length === 0) return { kind: 'empty' }
  if (bytes.length === 1 && bytes[0] === 0xff) return { kind: 'ignored', reason: 'keep-alive' }
  if (isLogin(bytes)) return { kind: 'ignored', reason: 'login' }
  try {
    if (bytes.length >= 4 && bytes.readUInt32BE(0) === 0) return decodeTcp(bytes)
    return isChannel(bytes) ? decodeChannel(bytes) : decodeBare(bytes)
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    return truncated
  }
}

const truncated = refused('TRUNCATED', 'The frame ends in the middle of a record.')

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
  return /^\d{15}$/.test(bytes.toString('latin1', start, start + imeiDigits))
}

function decodeTcp(bytes: Buffer): Decoded {
  if (bytes.length < headBytes) return refused('TRUNCATED', 'The frame ends before its length.')
  const end = headBytes + bytes.readUInt32BE(4)
  const missing = end + checksumBytes - bytes.length
  if (missing > 0)
    return refused('TRUNCATED', `The frame is ${plural(missing, 'byte')} shorter than its length says.`)
  if (missing < 0) return behindEnd(-missing)
  const stated = bytes.readUInt32BE(end)
  const found = crc16(bytes, headBytes, end)
  if (stated !== found)
    return refused('BAD_CHECKSUM', `The checksum is ${hex(found, 4)}, but the frame says ${hex(stated, 4)}.`)
  return readBody(bytes.subarray(headBytes, end))
}

function decodeChannel(bytes: Buffer): Decoded {
  const imei = bytes.toString('latin1', 8, channelHeadBytes)
  return readBody(bytes.subarray(channelHeadBytes), { imei })
}

function decodeBare(bytes: Buffer): Decoded {
  if (!layouts.has(bytes[0] ?? 0))
    return refused(
      'BAD_FRAME',
      `The message begins with ${hex(bytes[0] ?? 0, 2)}; frames of Codec 8, 8 Extended and 16 do not.`,
    )
  const body = bytes.subarray(0, -checksumBytes)
  const isChecked = body.length > 0 && bytes.readUInt32BE(body.length) === crc16(body, 0, body.length)
  return readBody(isChecked ? body : bytes)
}

/** Reads all of the bytes. */
function readBody(bytes: Buffer, head: { imei?: string } = {}): Decoded {
  if (bytes.length < 3) return truncated
  const reader = new ByteReader(bytes)
  const codec = reader.uint(1)
  const count = reader.uint(1)
  const layout = layouts.get(codec)
  if (!layout) {
    if (isCommandCodec(codec)) return { kind: 'ignored', reason: 'command' }
    return refused('BAD_FRAME', `The frame is in codec ${hex(codec, 2)}, not in Codec 8, 8 Extended or 16.`)
  }
  const value: Value = { ...head, codec, records: [] }
  while (value.records.length < count) value.records.push(takeRecord(reader, layout))
  const countBehind = reader.uint(1)
  if (countBehind !== count)
    return refused(
      'BAD_FRAME',
      `The frame counts ${plural(count, 'record')} at its start and ${countBehind} at its end.`,
    )
  return reader.isAtEnd ? { kind: 'value', value } : behindEnd(bytes.length - reader.at)
}

function behindEnd(count: number): Decoded {
  return refused('BAD_FRAME', `The frame has ${plural(count, 'byte')} after its end.`)
}

function takeRecord(reader: ByteReader, layout: Layout): Record<string, unknown> {
  const ts = reader.uint64()
  const priority = reader.uint(1)
  // The quotient is the double nearest to the decimal of seven places, so it is written as that decimal.
  const longitude = reader.int(4) / 1e7
  const latitude = reader.int(4) / 1e7
  const altitude = reader.int(2)
  const angle = reader.uint(2)
  const satellites = reader.uint(1)
  const speed = reader.uint(2)
  const event = reader.uint(layout.id)
  const generation = layout.hasGeneration ? { generation: reader.uint(1) } : {}
  // The total count of elements: the counts of the groups are used.
  reader.take(layout.count)
  const io: Record<string, unknown> = {}
  for (const size of [1, 2, 4, 8])
    for (let left = reader.uint(layout.count); left > 0; left -= 1)
      io[reader.uint(layout.id)] = size === 8 ? reader.uint64() : reader.uint(size)
  if (layout.hasVariable)
    for (let left = reader.uint(2); left > 0; left -= 1) io[reader.uint(2)] = reader.hex(reader.uint(2))
  const place = { latitude, longitude, altitude, angle, satellites, speed }
  return { ts, priority, ...place, event, io, ...generation }
}

function hex(value: number, digits: number): string {
  return `0x${value.toString(16).padStart(digits, '0')}`
}

// CRC-16/IBM, also called CRC-16/ARC (polynomial 0x8005 reflected, start 0): the checksum of frames
// of Teltonika.

const reflectedPolynomial = 0xa001

const table = Uint16Array.from({ length: 256 }, (_, byte) => {
  let remainder = byte
  for (let bit = 0; bit < 8; bit += 1)
    remainder = (remainder & 1) === 1 ? (remainder >>> 1) ^ reflectedPolynomial : remainder >>> 1
  return remainder
})

/** Of the bytes from `start` to before `end`, which must not be beyond the end. */
function crc16(bytes: Buffer, start: number, end: number): number {
  let crc = 0
  for (let at = start; at < end; at += 1) crc = (crc >>> 8) ^ (table[(crc ^ (bytes[at] ?? 0)) & 0xff] ?? 0)
  return crc
}
