// device-bytes.ts: the parts of a name and of a payload that depend only on the device. What many devices
// have in common is kept as bytes; the rest is written from the texts of the entry: bytes of each device take
// five times the memory of their text, and are not in the cache of the processor when its message comes.

import { payloadHead } from '../../domain/payload.ts'
import { createCache } from '../bounded-cache.ts'
import type { DeviceEntry } from '../devices/devices.ts'
import { isAscii, pieceOf } from './written-bytes.ts'

export type DeviceBytes = {
  /** False for a device whose messages are parsed: its name is long, or not of ASCII characters. */
  readonly isUsual: boolean
  /** The start of a payload up to the value of `signalTimestamp`, with room for the payloadId. */
  readonly jsonHead: Uint8Array
}

/** Of all parts together. */
export const deviceBytesMax = 2048

const payloadIdLength = 36
const unusual: DeviceBytes = { isUsual: false, jsonHead: new Uint8Array() }

/** By the carrier, as it is written; more than a fleet has. */
const shared = createCache<DeviceBytes>(256)

export function deviceBytesOf(entry: DeviceEntry): DeviceBytes {
  return (entry.bytes ??= findBytes(entry)) as DeviceBytes
}

function findBytes({ nameHead, jsonBeforeTime, jsonAfterTime }: DeviceEntry): DeviceBytes {
  const length = payloadHead.length + payloadIdLength + jsonBeforeTime.length
  const isUsual =
    nameHead.length + length + jsonAfterTime.length <= deviceBytesMax &&
    isAscii(nameHead) &&
    isAscii(jsonBeforeTime) &&
    isAscii(jsonAfterTime)
  if (!isUsual) return unusual
  const known = shared.get(jsonBeforeTime)
  if (known !== undefined) return known
  const jsonHead = pieceOf(payloadHead + ' '.repeat(payloadIdLength) + jsonBeforeTime)
  const made = { isUsual, jsonHead }
  shared.set(jsonBeforeTime, made)
  return made
}
