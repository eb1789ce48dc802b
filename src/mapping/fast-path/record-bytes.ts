// record-bytes.ts: writes the name of a payload (identity.ts), and notes where its parts are: the payload is
// made of them.
//
//   ["provider","device",  time  ]  ,"gps":{...}  signal signal  extra fields
//
// `write` is false for a value that is not usual. Nothing has changed then besides the buffer, and the
// position and counter values of the context, which each record sets anew.

import type { EpochMs } from '../../std/clock.ts'
import { unchanged } from '../fields/units.ts'
import { nearNowhere } from '../fields/gps.ts'
import { decimalFrom, placeholderMin } from '../path/value.ts'
import { unscaled } from '../fields/decimal.ts'
import type { RecordContext } from '../types.ts'
import type { DeviceEntry } from '../devices/devices.ts'
import { deviceBytesMax } from './device-bytes.ts'
import type {
  FastPlan,
  LimitedNumber,
  PlainField,
  PlainNumber,
  PlainPosition,
  PlainSignal,
} from './fast-plan.ts'
import { isFalse, isTrue, text } from './found-values.ts'
import { messageBytesMax } from './message-scan.ts'
import type { MessageValues } from './message-values.ts'
import {
  createWrittenBytes,
  pieceOf,
  put,
  putFrom,
  putLong,
  putText,
  putTime,
  type WrittenBytes,
} from './written-bytes.ts'

/** Plain fields, since they are filled for each message. */
export type RecordBytes = {
  /** The name is at the start of it. */
  readonly written: WrittenBytes
  nameEnd: number
  timeStart: number
  timeEnd: number
  gpsStart: number
  gpsEnd: number
  signals: number
  readonly signalStarts: number[]
  readonly signalEnds: number[]
  fieldsStart: number
  /** The speed from which motion is to be derived, NaN where it is not. */
  motionSpeed: number
  /** The written position. */
  gpsText(): string
  /** `serial`: of a message without a time of its own, whose arrival is `time`; null for others. */
  write(message: Buffer, entry: DeviceEntry, time: EpochMs, serial: number | null): boolean
}

const pieces = {
  ownTime: pieceOf(']'),
  latitude: pieceOf(',"gps":{"latitude":'),
  longitude: pieceOf(',"longitude":'),
  speed: pieceOf(',"speed":'),
  heading: pieceOf(',"heading":'),
  moving: pieceOf(',"inMotion":true'),
  standing: pieceOf(',"inMotion":false'),
  true: pieceOf('true'),
  false: pieceOf('false'),
}

/** Longer than any number that was converted or scaled. */
const numberBytesMax = 160

/** A name and a payload; all parts of a name are in the payload, too. */
function sizeOf({ position, signals, fields }: FastPlan): number {
  const kinds = signals.flat(2)
  const all = [...fields, ...(position?.fields ?? [])]
  const heads = [...kinds.flatMap(({ head, tail }) => [head, tail]), ...all.map(({ head }) => head)]
  const texts = all.filter(({ kind }) => kind === 'text').length * messageBytesMax
  const fixed = heads.reduce((sum, { length }) => sum + length, position?.speedTail.length ?? 0)
  const name = 512 + fixed + texts + (kinds.length + all.length + 5) * numberBytesMax
  // The last bytes are those of payload-bytes.ts for the digest.
  return deviceBytesMax + 2 * name + kinds.length * 64 + 64
}

export function createRecordBytes(
  plan: FastPlan,
  values: MessageValues,
  context: RecordContext,
): RecordBytes {
  const { position, fields } = plan
  const { kinds, starts, ends, isRead } = values
  const written = createWrittenBytes(sizeOf(plan))
  let bytes: Buffer = written.bytes
  const record: RecordBytes = {
    written,
    nameEnd: 0,
    timeStart: 0,
    timeEnd: 0,
    gpsStart: 0,
    gpsEnd: 0,
    signals: 0,
    signalStarts: [],
    signalEnds: [],
    fieldsStart: 0,
    motionSpeed: Number.NaN,
    gpsText: () => written.bytes.toString('latin1', record.gpsStart, record.gpsEnd),
    write,
  }
  return record

  function write(message: Buffer, entry: DeviceEntry, time: EpochMs, serial: number | null): boolean {
    bytes = message
    written.at = 0
    putLong(written, entry.nameHead)
    writeTime(time, serial)
    record.gpsStart = written.at
    record.motionSpeed = Number.NaN
    if (position !== null && !writePosition(position)) return false
    record.gpsEnd = written.at
    if (!writeSignals(plan.signals[entry.family] ?? [])) return false
    record.fieldsStart = written.at
    if (record.gpsStart === record.fieldsStart || !writeFields(fields)) return false
    record.nameEnd = written.at
    return true
  }

  function writeTime(time: EpochMs, serial: number | null): void {
    record.timeStart = written.at
    putTime(written, time)
    record.timeEnd = written.at
    if (serial === null) put(written, pieces.ownTime)
    else putText(written, serial === 0 ? ',"arrival"]' : `,"arrival",${serial}]`)
  }

  function writePosition(parts: PlainPosition): boolean {
    const { latitude, longitude, speed, speedTail, heading, inMotion } = parts
    const northSlot = values.find(latitude.slots)
    const eastSlot = values.find(longitude.slots)
    if (northSlot < 0 || eastSlot < 0) return northSlot === eastSlot
    const north = latitude.convert(values.numberIn(northSlot))
    const east = longitude.convert(values.numberIn(eastSlot))
    if (!(north >= -90 && north <= 90 && east >= -180 && east <= 180)) return false
    if (north < nearNowhere && north > -nearNowhere && east < nearNowhere && east > -nearNowhere) return false
    context.latitude = north
    context.longitude = east
    put(written, pieces.latitude)
    putNumber(latitude, northSlot, north)
    put(written, pieces.longitude)
    putNumber(longitude, eastSlot, east)
    let speedNow = Number.NaN
    const speedSlot = speed === null ? -1 : values.find(speed.slots)
    if (speed !== null && speedSlot >= 0) {
      speedNow = limitedIn(speed, speedSlot)
      if (Number.isNaN(speedNow)) return false
      put(written, pieces.speed)
      putNumber(speed, speedSlot, speedNow)
      put(written, speedTail)
    }
    if (heading !== null && !writeHeading(heading)) return false
    if (inMotion !== null && !writeMotion(inMotion, speedNow)) return false
    if (!writeFields(parts.fields)) return false
    written.bytes[written.at] = 0x7d
    written.at += 1
    return true
  }

  function writeHeading(heading: LimitedNumber): boolean {
    const slot = values.find(heading.slots)
    if (slot < 0) return true
    const value = limitedIn(heading, slot)
    if (Number.isNaN(value)) return false
    put(written, pieces.heading)
    if (value === 360) putText(written, '0')
    else putNumber(heading, slot, value)
    return true
  }

  function writeMotion({ slots, fromSpeed }: NonNullable<PlainPosition['inMotion']>, speed: number): boolean {
    const slot = values.find(slots)
    if (slot < 0) {
      if (fromSpeed) record.motionSpeed = speed
      return true
    }
    const moving = truthIn(slot)
    if (moving === null) return false
    put(written, moving ? pieces.moving : pieces.standing)
    return true
  }

  /** As booleanFrom; null for a text, and for what is neither true nor false. */
  function truthIn(slot: number): boolean | null {
    const kind = kinds[slot]
    if (kind === isTrue) return true
    if (kind === isFalse) return false
    const value = values.numberIn(slot)
    return value === 1 ? true : value === 0 ? false : null
  }

  /** NaN where it is not usual. */
  function limitedIn({ convert, low, high }: LimitedNumber, slot: number): number {
    const value = convert(values.numberIn(slot))
    return value >= low && value <= high ? value : Number.NaN
  }

  function putNumber({ convert }: PlainNumber, slot: number, value: number): void {
    if (convert === unchanged && isRead[slot] === 1) putFrom(written, bytes, starts[slot]!, ends[slot]!)
    else putText(written, String(value))
  }

  function writeSignals(signalKinds: FastPlan['signals'][number]): boolean {
    record.signals = 0
    const { counterValues } = context
    for (let index = 0; index < counterValues.length; index += 1) counterValues[index] = Number.NaN
    for (let index = 0; index < signalKinds.length; index += 1) {
      const start = written.at
      if (!writeKind(signalKinds[index]!)) return false
      if (written.at === start) continue
      record.signalStarts[record.signals] = start
      record.signalEnds[record.signals] = written.at
      record.signals += 1
    }
    return true
  }

  function writeKind(choices: readonly PlainSignal[]): boolean {
    for (let index = 0; index < choices.length; index += 1) {
      const signal = choices[index]!
      const slot = values.find(signal.slots)
      if (slot >= 0) return writeSignal(signal, slot)
    }
    return true
  }

  function writeSignal(signal: PlainSignal, slot: number): boolean {
    const { head, tail, scale, neverNegative, bounds, counter } = signal
    let value = values.numberIn(slot)
    if (Number.isNaN(value)) return false
    const isSpelled = isRead[slot] === 1
    if ((value >= placeholderMin || !isSpelled) && decimalFrom(value) === undefined) return false
    put(written, head)
    if (scale === unscaled && isSpelled) {
      putFrom(written, bytes, starts[slot]!, ends[slot]!)
    } else {
      const scaled = scale(isSpelled ? bytes.toString('latin1', starts[slot], ends[slot]) : String(value))
      if (scaled === undefined) return false
      value = Number(scaled)
      putText(written, scaled)
    }
    put(written, tail)
    if (neverNegative && value < 0) return false
    if (bounds !== null && !(value >= bounds.min && value <= bounds.max)) return false
    if (counter >= 0) context.counterValues[counter] = value
    return true
  }

  function writeFields(extra: readonly PlainField[]): boolean {
    for (let index = 0; index < extra.length; index += 1) {
      const field = extra[index]!
      const slot = values.find(field.number.slots)
      if (slot >= 0 && !writeField(field, slot)) return false
    }
    return true
  }

  function writeField({ kind, head, number: limited }: PlainField, slot: number): boolean {
    put(written, head)
    if (kind === 'number') {
      const value = limitedIn(limited, slot)
      putNumber(limited, slot, value)
      return !Number.isNaN(value)
    }
    if (kind === 'boolean' || kinds[slot] === isTrue || kinds[slot] === isFalse) return writeTruth(kind, slot)
    const value = kinds[slot] === text ? 0 : values.numberIn(slot)
    if (Number.isNaN(value)) return false
    if (kinds[slot] === text || isRead[slot] === 1) putQuoted(slot)
    else putText(written, `"${value}"`)
    return true
  }

  function writeTruth(kind: PlainField['kind'], slot: number): boolean {
    const truth = truthIn(slot)
    if (truth === null) return false
    const piece = truth ? pieces.true : pieces.false
    if (kind === 'boolean') put(written, piece)
    else putText(written, truth ? '"true"' : '"false"')
    return true
  }

  /** A text without escapes, or a number: both stand between the quotes as in the message. */
  function putQuoted(slot: number): void {
    written.bytes[written.at] = 0x22
    written.at += 1
    putFrom(written, bytes, starts[slot]!, ends[slot]!)
    written.bytes[written.at] = 0x22
    written.at += 1
  }
}
