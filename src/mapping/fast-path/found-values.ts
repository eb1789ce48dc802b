// found-values.ts: the wanted values of the message at hand, by slot: the places that wanted-keys.ts gives to
// them. message-scan.ts and message-layout.ts fill them, message-values.ts reads them.

/** What a wanted value is. A `text` is ASCII. */
export const absent = 0
export const number = 1
export const text = 2
export const isTrue = 3
export const isFalse = 4
export const isNull = 5
export const other = 6

export type FoundValues = {
  readonly kinds: Uint8Array
  /** The bytes of a value: a text without its quotes, a number that was read without zeros at its end. */
  readonly starts: Uint16Array
  readonly ends: Uint16Array
  /** Of a number: whether it was read from its digits. 0 or 1. */
  readonly isRead: Uint8Array
  readonly numbers: Float64Array
}

/** A double holds so many digits exactly. */
export const digitsMax = 15

/** JavaScript writes smaller numbers with an exponent. */
export const plainMin = 1e-6

export const powers = Float64Array.from({ length: digitsMax + 1 }, (_, places) => 10 ** places)

const quote = 0x22
const backslash = 0x5c
const zero = 0x30

/** 1 for what stands in a text as it is: printable ASCII. */
export const plain = new Uint8Array(256)
for (let byte = 0x20; byte < 0x7f; byte += 1) plain[byte] = byte === quote || byte === backslash ? 0 : 1

export function createFoundValues(slots: number): FoundValues {
  return {
    kinds: new Uint8Array(slots),
    starts: new Uint16Array(slots),
    ends: new Uint16Array(slots),
    isRead: new Uint8Array(slots),
    numbers: new Float64Array(slots),
  }
}

/** Without the zeros behind the last decimal, and without a point that has no decimals then. */
export function trimmedEnd(source: Uint8Array, pointAt: number, end: number): number {
  let at = end
  while (source[at - 1] === zero) at -= 1
  return at - 1 === pointAt ? pointAt : at
}
