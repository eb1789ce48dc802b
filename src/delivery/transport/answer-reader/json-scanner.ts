// json-scanner.ts: reads JSON part by part in bounded memory, and calls back for what it finds.
//
// JSON.parse() needs the whole text and builds all of it: 16 MiB of `[{},{},...]` need more memory than the
// sender thread has. The packages for streams keep each string whole, however long it is. This scanner keeps
// at most `textBytesMax` of a string and one bit per level of nesting.
//
// It accepts what JSON.parse() accepts, except for more than `depthMax` levels; a number longer than
// `numberBytesMax` is taken as it is.

import { assertNever } from '../../../std/assert.ts'

export type JsonHandler = {
  /** An object or a list begins, as the value at the current place. */
  open(isList: boolean): void
  close(): void
  key(name: string): void
  /** A value that is neither; undefined where the handler does not want it. */
  value(value: string | number | boolean | null | undefined): void
  /** The next string or number is needed; else it is read over. */
  wanted(): boolean
}

export type JsonScanner = {
  /** False: the text is not JSON. Nothing more may be pushed then. */
  push(part: Buffer): boolean
  /** The text is a whole JSON value. */
  ended(): boolean
}

const depthMax = 1 << 20
const textBytesMax = 4096
const numberBytesMax = 400
const escapeBytesMax = 6

/** What the grammar allows next. */
type Next = 'value' | 'value or end' | 'key' | 'key or end' | 'colon' | 'comma or end' | 'nothing'
type Inside = 'string' | 'escape' | 'unicode' | 'number' | 'word' | null

const [quote, backslash, comma, colon] = [0x22, 0x5c, 0x2c, 0x3a]
const [openList, closeList, openObject, closeObject] = [0x5b, 0x5d, 0x7b, 0x7d]
const escapes = new Set(Buffer.from('"\\/bfnrt'))
const unicodeEscape = 0x75
const numberPattern = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/
const words = new Map<number, readonly [text: string, value: boolean | null]>([
  [0x74, ['true', true]],
  [0x66, ['false', false]],
  [0x6e, ['null', null]],
])

export function createJsonScanner(handler: JsonHandler): JsonScanner {
  let next: Next = 'value'
  let inside: Inside = null
  let isKey = false
  /** Whether the string or number is collected, and what of it is. */
  let wanted = false
  let textBytes = 0
  let full = false
  let escaped = false
  let digits = 0
  let word: readonly [text: string, value: boolean | null] = ['', null]
  let wordAt = 0
  let depth = 0
  const text = Buffer.alloc(textBytesMax)
  /** One bit per level: 1 for a list. */
  let lists = new Uint8Array(64)

  return {
    push,
    ended() {
      return next === 'nothing' && inside === null
    },
  }

  function push(part: Buffer): boolean {
    let at = 0
    while (at < part.length) {
      if (inside === null) at = structure(part, at)
      else if (inside === 'string') at = string(part, at)
      else if (inside === 'number') at = number(part, at)
      else at = one(part[at] ?? 0) ? at + 1 : -1
      if (at < 0) return false
    }
    return true
  }

  /** Each of these returns where to go on, or -1. */
  function structure(part: Buffer, at: number): number {
    const byte = part[at] ?? 0
    if (byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09) return at + 1
    switch (next) {
      case 'colon':
        if (byte !== colon) return -1
        next = 'value'
        return at + 1
      case 'comma or end':
        if (byte === comma) {
          next = isList() ? 'value' : 'key'
          return at + 1
        }
        return end(byte) ? at + 1 : -1
      case 'key':
      case 'key or end':
        if (byte === quote) {
          begin('string', true)
          return at + 1
        }
        return next === 'key or end' && end(byte) ? at + 1 : -1
      case 'value or end':
        if (byte === closeList) return end(byte) ? at + 1 : -1
        return value(byte) ? at + (inside === 'number' ? 0 : 1) : -1
      case 'value':
        return value(byte) ? at + (inside === 'number' ? 0 : 1) : -1
      case 'nothing':
        return -1
      default:
        return assertNever(next)
    }
  }

  function value(byte: number): boolean {
    if (byte === openObject || byte === openList) return open(byte === openList)
    if (byte === quote) begin('string', false)
    else if (byte === 0x2d || (byte >= 0x30 && byte <= 0x39)) begin('number', false)
    else {
      const found = words.get(byte)
      if (found === undefined) return false
      inside = 'word'
      word = found
      wordAt = 1
    }
    return true
  }

  function begin(what: 'string' | 'number', key: boolean): void {
    inside = what
    isKey = key
    wanted = key || handler.wanted()
    textBytes = 0
    full = false
    escaped = false
  }

  function ended(): void {
    inside = null
    next = depth === 0 ? 'nothing' : 'comma or end'
  }

  function string(part: Buffer, start: number): number {
    let at = start
    let byte = 0
    while (at < part.length) {
      byte = part[at] ?? 0
      if (byte === quote || byte === backslash || byte < 0x20) break
      at += 1
    }
    keep(part, start, at)
    if (at === part.length) return at
    if (byte === backslash) {
      // Kept whole or not at all, so that what is kept can be decoded.
      full ||= textBytes + escapeBytesMax > textBytesMax
      escaped = true
      keep(part, at, at + 1)
      inside = 'escape'
      return at + 1
    }
    if (byte !== quote) return -1
    if (isKey) {
      handler.key(decoded())
      inside = null
      next = 'colon'
    } else {
      ended()
      handler.value(wanted ? decoded() : undefined)
    }
    return at + 1
  }

  function number(part: Buffer, start: number): number {
    let at = start
    while (at < part.length && isOfNumber(part[at] ?? 0)) at += 1
    keep(part, start, at)
    if (at === part.length) return at
    const digitsOf = text.toString('latin1', 0, textBytes)
    if (textBytes <= numberBytesMax && !numberPattern.test(digitsOf)) return -1
    ended()
    handler.value(wanted ? Number(digitsOf) : undefined)
    return at
  }

  /** One byte of an escape or a word. */
  function one(byte: number): boolean {
    if (inside === 'word') {
      if (byte !== word[0].charCodeAt(wordAt)) return false
      wordAt += 1
      if (wordAt < word[0].length) return true
      ended()
      handler.value(word[1])
      return true
    }
    if (inside === 'escape') {
      if (byte !== unicodeEscape && !escapes.has(byte)) return false
      digits = 0
      inside = byte === unicodeEscape ? 'unicode' : 'string'
    } else {
      if (!isHex(byte)) return false
      digits += 1
      if (digits === 4) inside = 'string'
    }
    if (wanted && !full) {
      text[textBytes] = byte
      textBytes += 1
    }
    return true
  }

  function keep(part: Buffer, start: number, until: number): void {
    // A number is always kept, since it is checked as a whole.
    if (full || (!wanted && inside === 'string')) return
    const bytes = Math.min(until - start, textBytesMax - textBytes)
    part.copy(text, textBytes, start, start + bytes)
    textBytes += bytes
    full = bytes < until - start
  }

  function decoded(): string {
    const kept = text.toString('utf8', 0, textBytes)
    return escaped ? (JSON.parse(`"${kept}"`) as string) : kept
  }

  function open(asList: boolean): boolean {
    if (depth === depthMax) return false
    handler.open(asList)
    if (depth >> 3 === lists.length) {
      const larger = new Uint8Array(2 * lists.length)
      larger.set(lists)
      lists = larger
    }
    const bit = 1 << (depth & 7)
    const byte = lists[depth >> 3] ?? 0
    lists[depth >> 3] = asList ? byte | bit : byte & ~bit
    depth += 1
    next = asList ? 'value or end' : 'key or end'
    return true
  }

  function end(byte: number): boolean {
    if (depth === 0 || byte !== (isList() ? closeList : closeObject)) return false
    depth -= 1
    ended()
    handler.close()
    return true
  }

  function isList(): boolean {
    const top = depth - 1
    return ((lists[top >> 3] ?? 0) & (1 << (top & 7))) !== 0
  }
}

function isOfNumber(byte: number): boolean {
  return (
    (byte >= 0x30 && byte <= 0x39) ||
    byte === 0x2e ||
    byte === 0x2d ||
    byte === 0x2b ||
    (byte | 0x20) === 0x65
  )
}

function isHex(byte: number): boolean {
  const lower = byte | 0x20
  return (byte >= 0x30 && byte <= 0x39) || (lower >= 0x61 && lower <= 0x66)
}
