// message-values.ts: the wanted values of a message that message-scan.ts found.
//
// A number of at most 15 digits is read from its bytes: a double holds these exactly, and JavaScript writes
// them as the message does, without the zeros at the end. So the bytes can be copied. Other numbers (more
// digits, an exponent, a minus before zero) are read and written by JavaScript itself.

import {
  absent,
  createFoundValues,
  digitsMax,
  isNull,
  number,
  plainMin,
  powers,
  text,
  trimmedEnd,
  type FoundValues,
} from './found-values.ts'
import { createMessageScan, type KeyNode } from './message-scan.ts'

export type MessageValues = FoundValues & {
  /** False where the message is to be parsed. */
  begin(message: Buffer): boolean
  /** The first of the slots that has a value; -1 where none has one. */
  find(slots: readonly number[]): number
  /** NaN where the value is not a number. JavaScript writes it like the bytes where `isRead` is 1 then. */
  numberIn(slot: number): number
}

const minus = 0x2d
const point = 0x2e
const zero = 0x30
const nine = 0x39

export function createMessageValues(root: KeyNode, sizes: { slots: number; keys: number }): MessageValues {
  const found = createFoundValues(sizes.slots)
  const { kinds, starts, ends, isRead, numbers } = found
  const { scan } = createMessageScan(root, sizes.keys, found)
  let bytes: Buffer = Buffer.alloc(0)
  return { ...found, begin, find, numberIn }

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
    if (isRead[slot] === 1) return numbers[slot]!
    const source = bytes
    const start = starts[slot]!
    const end = ends[slot]!
    const isNegative = source[start] === minus
    const first = isNegative ? start + 1 : start
    let pointAt = end
    let whole = 0
    if (end - first > digitsMax + 1) return otherNumber(slot)
    for (let at = first; at < end; at += 1) {
      const byte = source[at]!
      if (byte === point) pointAt = at
      else if (byte > nine) return otherNumber(slot)
      else whole = whole * 10 + byte - zero
    }
    const places = pointAt === end ? 0 : end - pointAt - 1
    if (places === 0 && end - first > digitsMax) return otherNumber(slot)
    const value = whole / powers[places]!
    // A minus before zero, and what is written with an exponent.
    if (value < plainMin && (isNegative || whole !== 0)) return otherNumber(slot)
    if (places > 0) ends[slot] = trimmedEnd(source, pointAt, end)
    const read = isNegative ? -value : value
    isRead[slot] = 1
    numbers[slot] = read
    return read
  }

  function otherNumber(slot: number): number {
    return Number(bytes.toString('latin1', starts[slot], ends[slot]))
  }
}
