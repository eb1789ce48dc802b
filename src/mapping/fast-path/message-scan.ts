// message-scan.ts: walks the bytes of a JSON message once, checks them, and notes where the wanted values
// are. Nothing is allocated, and no text or number is made.
//
// `scan` is false for bytes that are not JSON, and for anything unusual in JSON: an escape sequence, a wanted
// key twice, deep nesting, a byte order mark, a message that is no object. JSON.parse decides about these.

import { isUtf8 } from 'node:buffer'
import {
  absent,
  isFalse,
  isNull,
  isTrue,
  number,
  other,
  plain,
  text,
  type FoundValues,
} from './found-values.ts'
import { createMessageLayouts } from './message-layout.ts'

/** The keys of one object that are wanted. */
export type KeyNode = { readonly keys: readonly WantedKey[] }

export type WantedKey = {
  readonly bytes: Uint8Array
  /** Its number among all wanted keys. */
  readonly id: number
  /** The place of its value; -1 where only values inside of it are wanted. */
  readonly slot: number
  readonly inner: KeyNode | null
}

export type MessageScan = {
  /** False where the message is to be parsed. */
  scan(message: Buffer): boolean
}

/** Longer messages are parsed: the walk is as slow as JSON.parse then. */
export const messageBytesMax = 2048

const levelsMax = 32

/** After so many messages in a row without a known layout, one of `triedEvery` is compared with them. */
const missesMax = 64
const triedEvery = 16

const quote = 0x22
const comma = 0x2c
const colon = 0x3a
const openBracket = 0x5b
const closeBracket = 0x5d
const openBrace = 0x7b
const closeBrace = 0x7d
const lastBlank = 0x20

const literals = { true: bytesOf('true'), false: bytesOf('false'), null: bytesOf('null') }

function bytesOf(word: string): Uint8Array {
  return Uint8Array.from(Buffer.from(word))
}

export function createMessageScan(root: KeyNode, keys: number, found: FoundValues): MessageScan {
  const { kinds, starts, ends, isRead } = found
  const layouts = createMessageLayouts(found)
  /** Messages without a known layout, since the last one that had one. */
  let misses = 0
  /** The run in which a key was seen last. */
  const seen = new Uint32Array(keys)
  let run = 0
  let bytes: Uint8Array = new Uint8Array(0)
  let end = 0
  /** A text with bytes above ASCII was passed. */
  let isWide = false
  /** No wanted value is a list or an object. */
  let isPlain = true
  /** What the value is that was passed last. */
  let passed = absent
  return { scan }

  function scan(message: Buffer): boolean {
    if (message.length > messageBytesMax) return false
    const isTried = misses < missesMax || misses % triedEvery === 0
    if (isTried && layouts.follow(message)) {
      misses = 0
      return true
    }
    misses += 1
    if (!walk(message)) return false
    // Texts beyond ASCII have no layout, and lists that are wanted none that would do.
    if (isTried && !isWide && isPlain) layouts.keep(message)
    return true
  }

  function walk(message: Buffer): boolean {
    bytes = message
    end = message.length
    isWide = false
    isPlain = true
    layouts.begin()
    run = (run + 1) >>> 0
    // Once in four billion messages.
    if (run === 0) seen.fill(0)
    kinds.fill(absent)
    const start = behindBlanks(0)
    if (start >= end || bytes[start] !== openBrace) return false
    let at = objectEnd(start + 1, root, 0)
    if (at < 0) return false
    for (; at < end; at += 1) if (bytes[at] !== 0 && !isBlank(bytes[at]!)) return false
    return !isWide || isUtf8(message)
  }

  /** Behind the object whose brace is before `start`; -1 where the message is to be parsed. */
  function objectEnd(start: number, node: KeyNode | null, level: number): number {
    if (level > levelsMax) return -1
    const source = bytes
    let at = behindBlanks(start)
    let likely = 0
    if (at < end && source[at] === closeBrace) return at + 1
    while (at < end && source[at] === quote) {
      const keyStart = at + 1
      at = textEnd(keyStart)
      if (at < 0) return -1
      const index = node === null ? -1 : keyIn(node, keyStart, at, likely)
      at = behindBlanks(at + 1)
      if (at >= end || source[at] !== colon) return -1
      at = behindBlanks(at + 1)
      if (node === null || index < 0) {
        at = valueEnd(at, null, level)
      } else {
        at = wantedEnd(at, node.keys[index]!, level)
        likely = index + 1
      }
      if (at < 0) return -1
      at = behindBlanks(at)
      if (at >= end) return -1
      if (source[at] === closeBrace) return at + 1
      if (source[at] !== comma) return -1
      at = behindBlanks(at + 1)
    }
    return -1
  }

  /** Messages of one sender have their keys in one order, so the key behind the last one is tried first. */
  function keyIn({ keys: all }: KeyNode, start: number, keyEnd: number, likely: number): number {
    if (likely < all.length && isKey(all[likely]!.bytes, start, keyEnd)) return likely
    for (let index = 0; index < all.length; index += 1)
      if (index !== likely && isKey(all[index]!.bytes, start, keyEnd)) return index
    return -1
  }

  function isKey(key: Uint8Array, start: number, keyEnd: number): boolean {
    if (key.length !== keyEnd - start) return false
    const source = bytes
    for (let at = 0; at < key.length; at += 1) if (source[start + at] !== key[at]) return false
    return true
  }

  function wantedEnd(at: number, { id, slot, inner }: WantedKey, level: number): number {
    if (seen[id] === run) return -1
    seen[id] = run
    const wasWide = isWide
    isWide = false
    const behind = valueEnd(at, inner, level)
    if (slot >= 0 && behind >= 0) {
      if (passed === other) isPlain = false
      else layouts.name(slot)
      isRead[slot] = 0
      const isText = passed === text
      kinds[slot] = isText && isWide ? other : passed
      starts[slot] = isText ? at + 1 : at
      ends[slot] = isText ? behind - 1 : behind
    }
    isWide ||= wasWide
    return behind
  }

  /** Behind the value at `at`; of an object with the wanted keys `inner`. */
  function valueEnd(at: number, inner: KeyNode | null, level: number): number {
    if (at >= end) return -1
    switch (bytes[at]!) {
      case openBrace: {
        const behind = objectEnd(at + 1, inner, level + 1)
        passed = other
        return behind
      }
      case openBracket: {
        const behind = listEnd(at + 1, level + 1)
        passed = other
        return behind
      }
      default: {
        const behind = plainEnd(at)
        layouts.add(at, behind)
        return behind
      }
    }
  }

  /** Behind a text, a number or a word. */
  function plainEnd(at: number): number {
    switch (bytes[at]!) {
      case quote: {
        const behind = textEnd(at + 1)
        passed = text
        return behind < 0 ? -1 : behind + 1
      }
      case 0x74:
        passed = isTrue
        return wordEnd(at, literals.true)
      case 0x66:
        passed = isFalse
        return wordEnd(at, literals.false)
      case 0x6e:
        passed = isNull
        return wordEnd(at, literals.null)
      default:
        return numberEnd(at)
    }
  }

  function listEnd(start: number, level: number): number {
    if (level > levelsMax) return -1
    let at = behindBlanks(start)
    if (at < end && bytes[at] === closeBracket) return at + 1
    for (;;) {
      at = valueEnd(at, null, level)
      if (at < 0) return -1
      at = behindBlanks(at)
      if (at >= end) return -1
      if (bytes[at] === closeBracket) return at + 1
      if (bytes[at] !== comma) return -1
      at = behindBlanks(at + 1)
    }
  }

  /** The place of the quote that ends the text. */
  function textEnd(start: number): number {
    const source = bytes
    let at = start
    for (; at < end; at += 1) {
      const byte = source[at]!
      if (plain[byte] === 1) continue
      if (byte === quote) return at
      if (byte < 0x7f) return -1
      isWide = true
    }
    return -1
  }

  function wordEnd(start: number, word: Uint8Array): number {
    if (start + word.length > end) return -1
    for (let at = 1; at < word.length; at += 1) if (bytes[start + at] !== word[at]) return -1
    return start + word.length
  }

  function numberEnd(start: number): number {
    const source = bytes
    let at = source[start] === 0x2d ? start + 1 : start
    const whole = at
    at = digitsEnd(at)
    if (at === whole || (source[whole] === 0x30 && at > whole + 1)) return -1
    if (at < end && source[at] === 0x2e) {
      const places = at + 1
      at = digitsEnd(places)
      if (at === places) return -1
    }
    passed = number
    if (at >= end || (source[at]! | 0x20) !== 0x65) return at
    at += 1
    if (at < end && (source[at] === 0x2b || source[at] === 0x2d)) at += 1
    const power = at
    at = digitsEnd(at)
    return at === power ? -1 : at
  }

  function digitsEnd(start: number): number {
    const source = bytes
    let at = start
    while (at < end && source[at]! >= 0x30 && source[at]! <= 0x39) at += 1
    return at
  }

  function behindBlanks(start: number): number {
    const source = bytes
    let at = start
    while (at < end && source[at]! <= lastBlank && isBlank(source[at]!)) at += 1
    return at
  }
}

function isBlank(byte: number): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09
}
