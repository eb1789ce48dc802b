// message-layout.ts: the messages of one sender often differ in their values only. Of some messages that were
// walked (message-scan.ts) their layout is kept: all bytes besides the numbers, texts and words. A message
// with the same bytes there is JSON, too, and its wanted values are at the same places among the others:
//
//   {"ts":1760000000000,"gps":{"lat":48.1},"fw":"1.2"}      a message
//   {"ts":.............,"gps":{"lat":....},"fw":.....}      its layout
//
// A layout has all keys of the message, so no wanted key can be there twice. Numbers that are wanted are read
// on the way.

import {
  absent,
  digitsMax,
  isFalse,
  isNull,
  isTrue,
  number,
  plain,
  plainMin,
  powers,
  text,
  trimmedEnd,
  type FoundValues,
} from './found-values.ts'

export type MessageLayouts = {
  /** Notes the wanted values of a message that has a layout that is known; false for others. */
  follow(message: Uint8Array): boolean
  /** The layout of a message that is walked: its values, in the order of the message. */
  begin(): void
  add(start: number, end: number): void
  /** The last value is wanted. */
  name(slot: number): void
  /** Keeps the layout of a message that was walked, in the place of the oldest one. */
  keep(message: Uint8Array): void
}

type Layout = {
  /** A message; the bytes of its values are not used. */
  bytes: Uint8Array
  length: number
  values: number
  starts: Uint16Array
  ends: Uint16Array
  /** -1: not wanted. */
  slots: Int16Array
}

/** Layouts that are kept for a source, and values in each. */
const layoutsMax = 4
const valuesMax = 512

const quote = 0x22
const minus = 0x2d
const point = 0x2e
const zero = 0x30

const nine = 0x39

const words = [
  { first: 0x74, kind: isTrue, rest: bytesOf('rue') },
  { first: 0x66, kind: isFalse, rest: bytesOf('alse') },
  { first: 0x6e, kind: isNull, rest: bytesOf('ull') },
]

function bytesOf(word: string): Uint8Array {
  return Uint8Array.from(Buffer.from(word))
}

export function createMessageLayouts(found: FoundValues): MessageLayouts {
  const { kinds, starts, ends, isRead, numbers } = found
  const layouts: Layout[] = []
  /** The one that a message had last, and the one that is replaced next. */
  let likely = 0
  let oldest = 0
  /** Of the message that is walked. */
  const valueStarts = new Uint16Array(valuesMax)
  const valueEnds = new Uint16Array(valuesMax)
  const valueSlots = new Int16Array(valuesMax)
  let values = 0
  return { follow, begin, add, name, keep }

  function follow(message: Uint8Array): boolean {
    for (let tried = 0; tried < layouts.length; tried += 1) {
      if (followOne(layouts[likely]!, message)) return true
      likely = likely + 1 === layouts.length ? 0 : likely + 1
    }
    return false
  }

  function followOne(layout: Layout, message: Uint8Array): boolean {
    const source = message
    const end = source.length
    const { bytes, length, values: count, starts: froms, ends: tos, slots } = layout
    for (let slot = 0; slot < kinds.length; slot += 1) kinds[slot] = absent
    let at = 0
    let from = 0
    for (let index = 0; index < count; index += 1) {
      const until = froms[index]!
      // A value and its end follow.
      if (at + until - from >= end) return false
      for (; from < until; from += 1) {
        if (source[at] !== bytes[from]) return false
        at += 1
      }
      from = tos[index]!
      const slot = slots[index]!
      const first = source[at]!
      const start = at
      if (first === quote) {
        at += 1
        while (at < end && plain[source[at]!] === 1) at += 1
        if (at >= end || source[at] !== quote) return false
        if (slot >= 0) {
          kinds[slot] = text
          starts[slot] = start + 1
          ends[slot] = at
        }
        at += 1
      } else if (first <= nine) {
        at = slot < 0 ? numberEnd(source, at) : wantedEnd(source, at, slot)
        if (at < 0) return false
      } else {
        at = wordEnd(source, at, slot)
        if (at < 0) return false
      }
    }
    if (end - at !== length - from) return false
    for (; at < end; at += 1) {
      if (source[at] !== bytes[from]) return false
      from += 1
    }
    return true
  }

  function wantedEnd(source: Uint8Array, start: number, slot: number): number {
    const end = source.length
    const isNegative = source[start] === minus
    const first = isNegative ? start + 1 : start
    let at = first
    let whole = 0
    for (; at < end; at += 1) {
      const digit = source[at]! - zero
      if (digit < 0 || digit > 9) break
      whole = whole * 10 + digit
    }
    const pointAt = at
    if (at === first || (source[first] === zero && at > first + 1) || at >= end) return -1
    let places = 0
    if (source[at] === point) {
      at += 1
      for (; at < end; at += 1) {
        const digit = source[at]! - zero
        if (digit < 0 || digit > 9) break
        whole = whole * 10 + digit
      }
      places = at - pointAt - 1
      if (places === 0 || at >= end) return -1
    }
    kinds[slot] = number
    starts[slot] = start
    ends[slot] = at
    isRead[slot] = 0
    if (pointAt - first + places > digitsMax) return at
    const value = whole / powers[places]!
    if (value < plainMin && (isNegative || whole !== 0)) return at
    if (places > 0) ends[slot] = trimmedEnd(source, pointAt, at)
    numbers[slot] = isNegative ? -value : value
    isRead[slot] = 1
    return at
  }

  function wordEnd(source: Uint8Array, start: number, slot: number): number {
    for (let index = 0; index < words.length; index += 1) {
      const { first, kind, rest } = words[index]!
      if (source[start] !== first) continue
      const behind = start + 1 + rest.length
      if (behind > source.length) return -1
      for (let at = 0; at < rest.length; at += 1) if (source[start + 1 + at] !== rest[at]) return -1
      if (slot >= 0) {
        kinds[slot] = kind
        starts[slot] = start
        ends[slot] = behind
      }
      return behind
    }
    return -1
  }

  function begin(): void {
    values = 0
  }

  function add(start: number, end: number): void {
    if (values < valuesMax) {
      valueStarts[values] = start
      valueEnds[values] = end
      valueSlots[values] = -1
    }
    values += 1
  }

  function name(slot: number): void {
    if (values <= valuesMax) valueSlots[values - 1] = slot
  }

  function keep(message: Uint8Array): void {
    if (values > valuesMax) return
    layouts[oldest] = {
      bytes: Uint8Array.from(message),
      length: message.length,
      values,
      starts: valueStarts.slice(0, values),
      ends: valueEnds.slice(0, values),
      slots: valueSlots.slice(0, values),
    }
    likely = oldest
    oldest = (oldest + 1) % layoutsMax
  }
}

/** Of a number that is not wanted; -1 where it is none. One with an exponent does not match the layout. */
function numberEnd(source: Uint8Array, start: number): number {
  const end = source.length
  const first = source[start] === minus ? start + 1 : start
  let at = first
  while (at < end && source[at]! >= zero && source[at]! <= nine) at += 1
  if (at === first || (source[first] === zero && at > first + 1)) return -1
  if (at < end && source[at] === point) {
    const places = at + 1
    at = places
    while (at < end && source[at]! >= zero && source[at]! <= nine) at += 1
    if (at === places) return -1
  }
  return at < end ? at : -1
}
