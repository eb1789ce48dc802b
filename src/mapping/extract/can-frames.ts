// can-frames.ts: frames of a CAN bus as gateways list them in JSON: `{ "id": 419357952, "data":
// "F53700004FEF0000" }`. The identifier is a number or hexadecimal, the data hexadecimal or a list of bytes.

import { bytesFromHex, hexDigit } from '../encodings/text-bytes.ts'
import { isRecord } from '../path/path-eval.ts'

/** `id`: 11 or 29 bits. */
export type CanFrame = { id: number; data: Buffer }

const idMax = 0x1fffffff

/** SocketCAN sets this bit in identifiers of 29 bits. */
const extendedFlag = 0x80000000

/** Of the frames in a value those whose identifier is wanted. What is no frame is passed over. */
export function* framesIn(value: unknown, isWanted: (id: number) => boolean): Generator<CanFrame> {
  for (const frame of Array.isArray(value) ? (value as readonly unknown[]) : [value]) {
    if (!isRecord(frame)) continue
    const id = identifierOf(frame['id'])
    const data = id >= 0 && isWanted(id) ? bytesOf(frame['data']) : undefined
    if (data !== undefined) yield { id, data }
  }
}

/** -1 for anything else. */
export function identifierOf(id: unknown): number {
  const bits = typeof id === 'string' ? idFrom(id) : id
  if (typeof bits !== 'number' || !Number.isInteger(bits)) return -1
  const identifier = bits > idMax ? bits - extendedFlag : bits
  return identifier < 0 || identifier > idMax ? -1 : identifier
}

/**
 * Hexadecimal, with or without 0x. Nine digits are too many for that and are read as decimal: identifiers of
 * vehicles have nine decimal digits.
 */
function idFrom(text: string): number {
  const prefixed = text.charCodeAt(0) === 0x30 && (text.charCodeAt(1) | 0x20) === 0x78
  const start = prefixed ? 2 : 0
  const digits = text.length - start
  if (digits === 0 || digits > 9 || (digits === 9 && prefixed)) return -1
  const base = digits === 9 ? 10 : 16
  let id = 0
  for (let at = start; at < text.length; at += 1) {
    const digit = hexDigit(text.charCodeAt(at))
    if (digit < 0 || digit >= base) return -1
    id = id * base + digit
  }
  return id
}

function bytesOf(data: unknown): Buffer | undefined {
  if (typeof data === 'string') return bytesFromHex(data)
  if (!Array.isArray(data)) return undefined
  for (const byte of data) if (!Number.isInteger(byte) || byte < 0 || byte > 255) return undefined
  return Buffer.from(data)
}
