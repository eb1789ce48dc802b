// device-memory.ts: what is remembered of one device by one source.

import type { EpochMs } from '../../std/clock.ts'
import { ByteReader } from '../encodings/byte-reader.ts'

export type Plain = string | number | boolean

export type RememberedValue = { time: EpochMs; value: Plain }

/** A longer text is no value that a later record is compared with. */
export const previousTextMax = 64

export type CounterReading = { time: EpochMs; value: number }

/** The newest plausible reading of a counter (counter-memory.ts). */
export type CounterState = CounterReading & {
  /** The readings that were withheld since; null for none. */
  run: {
    since: EpochMs
    withheld: number
    /** Those of them that count towards the most that may be withheld, and when the last one of them was. */
    counted: number
    countedAt: EpochMs
    /** How many of the last ones agree with each other, and since when. */
    agreeing: number
    agreeingSince: EpochMs
    last: CounterReading
    /** It began with a change by the factor of two units, and agrees with itself since. */
    isOtherUnit: boolean
  } | null
}

export type DeviceMemory = {
  /** Of its entry in the spool. */
  readonly key: string
  /** The asset of the last message. */
  asset: string
  /** By the names of `remember`, and `$previous.odo` of what the record before had. */
  values: Map<string, RememberedValue>
  /** By signal: `OBD_TOTAL_ENGINE_TIME ENGINE`. */
  counters: Map<string, CounterState>
  /** False once it was forgotten. */
  inUse: boolean
}

/** What was known before a value of a record was noted for the next one. */
export type PreviousNote = { memory: DeviceMemory; name: string; before: RememberedValue | undefined }

// The stored form of what is remembered of a device.
//
//   version 2 (1)   asset (text)
//   count (2)       of the values; each: name (text), time (8), kind (1): false, true, number (8) or text
//   count (2)       of the counters; each: name (text), 0 without a run, 1 with one, 2 with one in another
//                   unit (1), time (8), value (8)
//     the run       since (8), withheld (4), counted (4), countedAt (8), agreeing (4), agreeingSince (8),
//                   time and value of its last reading (8, 8)
//
// A text is its length in bytes (2) and UTF-8. Times and values are float64; numbers are big endian. It is
// no JSON, since a truck in motion is encoded with nearly every commit.
//
// Decoding is total: bytes that are no such entry give null.

type Content = Pick<DeviceMemory, 'asset' | 'values' | 'counters'>

const version = 2

const kinds = { false: 0, true: 1, number: 2, text: 3 } as const

/** Texts are cut to this many bytes: more than any name of a signal or an asset has. */
const textBytesMax = 0xff_ff

/** One entry is written at a time; the spool copies it. */
let page = Buffer.alloc(4096)
let end = 0

/** Valid until the next call. */
export function encodeMemory({ asset, values, counters }: Content): Buffer {
  end = 0
  room(1)
  page[end] = version
  end += 1
  putText(asset)
  putCount(values.size)
  if (values.size > 0) values.forEach(putValue)
  putCount(counters.size)
  // An iterator would make a list of each entry.
  counters.forEach(putCounter)
  return page.subarray(0, end)
}

function putValue({ time, value }: RememberedValue, name: string): void {
  putText(name)
  putNumber(time)
  room(1)
  const kind =
    typeof value === 'number' ? 'number' : typeof value === 'string' ? 'text' : value ? 'true' : 'false'
  page[end] = kinds[kind]
  end += 1
  if (typeof value === 'number') putNumber(value)
  else if (typeof value === 'string') putText(value)
}

function putCounter({ time, value, run }: CounterState, name: string): void {
  putText(name)
  room(1)
  page[end] = run === null ? 0 : run.isOtherUnit ? 2 : 1
  end += 1
  putNumber(time)
  putNumber(value)
  if (run === null) return
  putNumber(run.since)
  putUint32(run.withheld)
  putUint32(run.counted)
  putNumber(run.countedAt)
  putUint32(run.agreeing)
  putNumber(run.agreeingSince)
  putNumber(run.last.time)
  putNumber(run.last.value)
}

function room(bytes: number): void {
  if (end + bytes <= page.length) return
  const larger = Buffer.alloc((page.length + bytes) * 2)
  page.copy(larger)
  page = larger
}

function putText(text: string): void {
  room(2 + text.length * 3)
  const length = Math.min(page.write(text, end + 2), textBytesMax)
  page.writeUInt16BE(length, end)
  end += 2 + length
}

function putCount(count: number): void {
  room(2)
  page.writeUInt16BE(count, end)
  end += 2
}

function putUint32(number: number): void {
  room(4)
  page.writeUInt32BE(number, end)
  end += 4
}

function putNumber(number: number): void {
  room(8)
  page.writeDoubleBE(number, end)
  end += 8
}

export function decodeMemory(bytes: Buffer): Content | null {
  const reader = new ByteReader(bytes)
  try {
    if (reader.uint(1) !== version) return null
    const asset = textIn(reader)
    const values = new Map<string, RememberedValue>()
    for (let left = reader.uint(2); left > 0; left -= 1)
      values.set(textIn(reader), { time: numberIn(reader), value: plainIn(reader) })
    const counters = new Map<string, CounterState>()
    for (let left = reader.uint(2); left > 0; left -= 1) counters.set(textIn(reader), counterIn(reader))
    return reader.isAtEnd ? { asset, values, counters } : null
  } catch (error) {
    // Reading behind the end.
    if (error instanceof RangeError) return null
    throw error
  }
}

/** No time, value or reading is infinite or NaN. */
function numberIn(reader: ByteReader): number {
  const number = reader.double()
  if (number === null) throw new RangeError('not a number')
  return number
}

const textIn = (reader: ByteReader) => reader.text(reader.uint(2))

function plainIn(reader: ByteReader): Plain {
  switch (reader.uint(1)) {
    case kinds.false:
      return false
    case kinds.true:
      return true
    case kinds.number:
      return numberIn(reader)
    case kinds.text:
      return textIn(reader)
    default:
      throw new RangeError('no known kind')
  }
}

function counterIn(reader: ByteReader): CounterState {
  const kind = reader.uint(1)
  const reading = readingIn(reader)
  if (kind === 0) return { ...reading, run: null }
  return {
    ...reading,
    run: {
      since: numberIn(reader),
      withheld: reader.uint(4),
      counted: reader.uint(4),
      countedAt: numberIn(reader),
      agreeing: reader.uint(4),
      agreeingSince: numberIn(reader),
      last: readingIn(reader),
      isOtherUnit: kind === 2,
    },
  }
}

function readingIn(reader: ByteReader): CounterReading {
  return { time: numberIn(reader), value: numberIn(reader) }
}
