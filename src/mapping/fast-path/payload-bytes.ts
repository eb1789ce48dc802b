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
import { pieceOf, put, putAgain } from './written-bytes.ts'

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
const keyLength = 32

/** Where the digits of half a digest stand in an id: 8-4-4-4-12. */
const hyphen = 0x2d
const hyphenPlaces = [8, 13, 18, 23]
const places = Array.from({ length: idLength }, (_, place) => place).filter(
  (place) => !hyphenPlaces.includes(place),
)

/** The version of the UUID, and its variant by the digit that stands in its place. */
const versionPlace = 14
const variantPlace = 19
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
  const key = Buffer.alloc(keyLength)
  return { payload }

  function payload(
    message: Message,
    entry: DeviceEntry,
    time: EpochMs,
    moving: boolean | null,
  ): MappedPayload {
    const digest = digestOf(nameView())
    const start = written.at
    const device = deviceBytesOf(entry)
    put(written, device.jsonHead)
    writeId(digest, 0, bytes, start + idAt)
    putAgain(written, record.timeStart, record.timeEnd)
    put(written, device.jsonAfterTime)
    writeGps(moving)
    if (record.signals > 0) writeSignals(digest)
    putAgain(written, record.fieldsStart, record.nameEnd)
    bytes[written.at] = 0x7d
    written.at += 1
    const hasOwnTime = !Number.isNaN(time)
    return {
      provider: entry.provider,
      device: entry.device,
      deviceTime: hasOwnTime ? time : null,
      payloadId: bytes.toString('latin1', start + idAt, start + idAt + idLength) as PayloadId,
      windowKey: hasOwnTime ? windowKeyAt(start + idAt) : partKeyOf(messageKeyOf(message), 0),
      duplicateRule: hasOwnTime ? 'always' : 'resend',
      json: bytes.toString('latin1', start, written.at),
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

  function writeSignals(digest: string): void {
    const { signals, signalStarts, signalEnds } = record
    writeId(digest, keyLength, signalId, 0)
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

  /** The digits of the payloadId: as windowKeyOf. */
  function windowKeyAt(start: number): string {
    for (let index = 0; index < keyLength; index += 1) key[index] = bytes[start + places[index]!]!
    return key.toString('latin1', 0, keyLength)
  }
}

/** As payloadIdOf, and signalIdHeadOf with four digits more. */
function writeId(digest: string, from: number, target: Uint8Array, start: number): void {
  for (let index = 0; index < keyLength; index += 1)
    target[start + places[index]!] = digest.charCodeAt(from + index)
  for (const place of hyphenPlaces) target[start + place] = hyphen
  target[start + versionPlace] = version
  target[start + variantPlace] = variants[valueOf(target[start + variantPlace]!) & 3]!
}

/** Of a hexadecimal digit in lower case. */
function valueOf(digit: number): number {
  return digit > 0x39 ? digit - 0x57 : digit - 0x30
}
