// message-values.ts: the wanted values of a message that message-scan.ts found. A number is read from its
// bytes where it has at most 15 digits: a double holds these exactly, and JavaScript writes them as the
// message does, without the zeros at the end. Every other number is unusual.

import { absent, createMessageScan, isNull, number, text, type KeyNode } from './message-scan.ts'

export type MessageValues = {
  /** False where the message is to be parsed. */
  begin(message: Buffer): boolean
  readonly kinds: Uint8Array
  /** The bytes of a value; of a number that was read, without zeros at its end. */
  readonly starts: Uint16Array
  readonly ends: Uint16Array
  /** The first of the slots that has a value; -1 where none has one. */
  find(slots: readonly number[]): number
  /** NaN where the value is not a number of the usual form. */
  numberIn(slot: number): number
}

const digitsMax = 15

/** JavaScript writes smaller numbers with an exponent. */
const plainMin = 1e-6

const powers = Array.from({ length: digitsMax + 1 }, (_, places) => 10 ** places)

const minus = 0x2d
const point = 0x2e
const zero = 0x30

export function createMessageValues(root: KeyNode, sizes: { slots: number; keys: number }): MessageValues {
  const { scan, kinds, starts, ends } = createMessageScan(root, sizes)
  let bytes: Uint8Array = new Uint8Array(0)
  return { begin, kinds, starts, ends, find, numberIn }

  function begin(message: Buffer): boolean {
    bytes = message
    return scan(message)
  }

  function find(slots: readonly number[]): number {
    for (let index = 0; index < slots.length; index += 1) {
      const slot = slots[index]!
      const kind = kinds[slot]!
      if (kind === absent || kind === isNull) continue
      if (kind !== text || starts[slot] !== ends[slot]) return slot
    }
    return -1
  }

  function numberIn(slot: number): number {
    if (kinds[slot] !== number) return Number.NaN
    const source = bytes
    const start = starts[slot]!
    const end = ends[slot]!
    const isNegative = source[start] === minus
    const first = isNegative ? start + 1 : start
    let pointAt = end
    let whole = 0
    if (end - first > digitsMax + 1) return Number.NaN
    for (let at = first; at < end; at += 1) {
      const byte = source[at]!
      if (byte === point) pointAt = at
      else whole = whole * 10 + byte - zero
    }
    const places = pointAt === end ? 0 : end - pointAt - 1
    if (places === 0 && end - first > digitsMax) return Number.NaN
    if (places > 0) ends[slot] = trimmedEnd(source, pointAt, end)
    const value = whole / powers[places]!
    // A minus before zero, and what is written with an exponent.
    if (value < plainMin && (isNegative || whole !== 0)) return Number.NaN
    return isNegative ? -value : value
  }
}

/** Without the zeros behind the last decimal, and without a point that has no decimals then. */
function trimmedEnd(source: Uint8Array, pointAt: number, end: number): number {
  let at = end
  while (source[at - 1] === zero) at -= 1
  return at - 1 === pointAt ? pointAt : at
}
