// device-bytes.ts: the parts of a name and of a payload that depend only on the device, as bytes. They are
// kept with the entry of the device.

import { payloadHead } from '../../domain/payload.ts'
import type { DeviceEntry } from '../devices/devices.ts'
import { isAscii, pieceOf } from './written-bytes.ts'

export type DeviceBytes = {
  /** False for a device whose messages are parsed: its name is long, or not of ASCII characters. */
  readonly isUsual: boolean
  readonly nameHead: Uint8Array
  /** The start of a payload up to the value of `signalTimestamp`, with room for the payloadId. */
  readonly jsonHead: Uint8Array
  readonly jsonAfterTime: Uint8Array
}

/** Of all parts together. */
export const deviceBytesMax = 2048

const payloadIdLength = 36

export function deviceBytesOf(entry: DeviceEntry): DeviceBytes {
  return (entry.bytes ??= makeBytes(entry)) as DeviceBytes
}

function makeBytes({ nameHead, jsonBeforeTime, jsonAfterTime }: DeviceEntry): DeviceBytes {
  const jsonHead = payloadHead + ' '.repeat(payloadIdLength) + jsonBeforeTime
  const all = nameHead + jsonHead + jsonAfterTime
  const isUsual = all.length <= deviceBytesMax && isAscii(all)
  const kept = (text: string) => pieceOf(isUsual ? text : '')
  return { isUsual, nameHead: kept(nameHead), jsonHead: kept(jsonHead), jsonAfterTime: kept(jsonAfterTime) }
}
