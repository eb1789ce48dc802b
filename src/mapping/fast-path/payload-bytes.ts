// payload-bytes.ts: makes the payload of a name that record-bytes.ts wrote: hashes the name, and writes the
// JSON behind it in the same buffer.

import type { PayloadId } from '../../domain/ids.ts'
import type { Message } from '../../domain/message.ts'
import { payloadHead, type MappedPayload } from '../../domain/payload.ts'
import type { EpochMs } from '../../std/clock.ts'
import type { DeviceEntry } from '../devices/devices.ts'
import { digestOf, messageKeyOf, partKeyOf, signalIdTail } from '../identity.ts'
import { deviceBytesOf } from './device-bytes.ts'
import type { RecordBytes } from './record-bytes.ts'
import { pieceOf, put, putAgain, putLong } from './written-bytes.ts'

export type PayloadBytes = {
  /** `time`: NaN where the message has none. `moving`: null where motion was not derived. */
  payload(message: Message, entry: DeviceEntry, time: EpochMs, moving: boolean | null): MappedPayload
}

/** Names of a few lengths come again and again. */
const viewsMax = 1024

const pieces = {
  firstSignal: pieceOf(',"signals":[{"id":"'),
  nextSignal: pieceOf(',{"id":"'),
  moving: pieceOf(',"inMotion":true}'),
  standing: pieceOf(',"inMotion":false}'),
}

const idAt = payloadHead.length
const idLength = 36
const idEnd = idAt + idLength
const keyLength = 32

/** Of 64 hexadecimal digits, of which each half becomes an id: 8-4-4-4-12. */
const digestLength = 64
const hyphen = 0x2d

/** The version of the UUID among its digits, and its variant by the digit that stands in its place. */
const versionAt = 12
const variantAt = 16
const version = 0x38
const variants = pieceOf('89ab')

const tails: Uint8Array[] = []
const tailLength = 4

export function createPayloadBytes(record: RecordBytes): PayloadBytes {
  const { written } = record
  const { bytes } = written
  const views: Uint8Array[] = []
  /** An id of a signal without its last digits. */
  const signalId = new Uint8Array(idLength)
  const digestAt = bytes.length - digestLength
  return { payload }

  function payload(
    message: Message,
    entry: DeviceEntry,
    time: EpochMs,
    moving: boolean | null,
  ): MappedPayload {
    noteDigest(digestOf(nameView()))
    const start = written.at
    put(written, deviceBytesOf(entry).jsonHead)
    writeId(digestAt, bytes, start + idAt)
    putAgain(written, record.timeStart, record.timeEnd)
    putLong(written, entry.jsonAfterTime)
    writeGps(moving)
    if (record.signals > 0) writeSignals()
    putAgain(written, record.fieldsStart, record.nameEnd)
    bytes[written.at] = 0x7d
    written.at += 1
    const hasOwnTime = !Number.isNaN(time)
    const json = bytes.toString('latin1', start, written.at)
    return {
      provider: entry.provider,
      device: entry.device,
      deviceTime: hasOwnTime ? time : null,
      payloadId: json.slice(idAt, idEnd) as PayloadId,
      windowKey: hasOwnTime
        ? bytes.toString('latin1', digestAt, digestAt + keyLength)
        : partKeyOf(messageKeyOf(message), 0),
      duplicateRule: hasOwnTime ? 'always' : 'resend',
      json,
    }
  }

  /** With the version and the variant of both halves in their places: as windowKeyOf. */
  function noteDigest(digest: string): void {
    bytes.write(digest, digestAt, digestLength, 'latin1')
    for (let at = digestAt; at < bytes.length; at += keyLength) {
      bytes[at + versionAt] = version
      bytes[at + variantAt] = variants[valueOf(bytes[at + variantAt]!) & 3]!
    }
  }

  function nameView(): Uint8Array {
    const { nameEnd } = record
    return nameEnd < viewsMax ? (views[nameEnd] ??= bytes.subarray(0, nameEnd)) : bytes.subarray(0, nameEnd)
  }

  function writeGps(moving: boolean | null): void {
    const { gpsStart, gpsEnd } = record
    if (gpsStart === gpsEnd) return
    putAgain(written, gpsStart, gpsEnd)
    if (moving === null) return
    written.at -= 1
    put(written, moving ? pieces.moving : pieces.standing)
  }

  function writeSignals(): void {
    const { signals, signalStarts, signalEnds } = record
    writeId(digestAt + keyLength, signalId, 0)
    for (let index = 0; index < signals; index += 1) {
      put(written, index === 0 ? pieces.firstSignal : pieces.nextSignal)
      const tail = (tails[index] ??= pieceOf(signalIdTail(index)))
      signalId.set(tail, idLength - tailLength)
      put(written, signalId)
      putAgain(written, signalStarts[index]!, signalEnds[index]!)
    }
    bytes[written.at] = 0x5d
    written.at += 1
  }

  /** As payloadIdOf, and signalIdHeadOf with four digits more. */
  function writeId(from: number, target: Uint8Array, start: number): void {
    for (let at = 0; at < 8; at += 1) target[start + at] = bytes[from + at]!
    target[start + 8] = hyphen
    for (let at = 8; at < 12; at += 1) target[start + at + 1] = bytes[from + at]!
    target[start + 13] = hyphen
    for (let at = 12; at < 16; at += 1) target[start + at + 2] = bytes[from + at]!
    target[start + 18] = hyphen
    for (let at = 16; at < 20; at += 1) target[start + at + 3] = bytes[from + at]!
    target[start + 23] = hyphen
    for (let at = 20; at < keyLength; at += 1) target[start + at + 4] = bytes[from + at]!
  }
}

/** Of a hexadecimal digit in lower case. */
function valueOf(digit: number): number {
  return digit > 0x39 ? digit - 0x57 : digit - 0x30
}
