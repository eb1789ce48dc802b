// lenient-json.ts: reads the bytes of a message as JSON, with the deviations that firmware is known for.
//
// Accepted: a byte order mark, NULs and blanks after the end, bare `nan`, `inf`, `Infinity` for a missing
// value (they become null), and several objects behind each other, on lines of their own or not (a list). A
// broken one of them is its text in the list, up to the next line that begins with `{`.
// Bytes that are not UTF-8 become U+FFFD (../body/body.ts). An empty message is empty, not wrong.
// Refused: anything else that is not JSON, with what JSON.parse says; nesting deeper, and more different
// keys, than any device needs.
//
// A whole number that a double cannot hold becomes the text of its digits: as a name or a text it is exact
// then, and as a number it is left out. Other numbers are doubles.

import { bounded, visible } from '../../std/quote.ts'
import { refused } from '../reasons.ts'
import { tooManyValues, usualLimits } from '../body/body-limits.ts'
import type { Decoded } from '../types.ts'

const levelsMax = 256

/** A message of so few bytes cannot have more than `levelsMax` levels. */
const shallowBytes = 2 * levelsMax

export function decodeJson(bytes: Buffer, limits = usualLimits): Decoded {
  const end = trimmedEnd(bytes)
  const start = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? 3 : 0
  if (end <= start) return { kind: 'empty' }
  if (end > shallowBytes) {
    const { levels, values } = shapeOf(bytes, start, end)
    if (levels > levelsMax)
      return refused('TOO_DEEP', `The message nests objects and lists more than ${levelsMax} levels deep.`)
    if (values > limits.valuesMax) return tooManyValues(limits)
  }
  const text = bytes.toString('utf8', start, end)
  if (text.length > fewKeysLength && hasTooManyKeys(text))
    return refused('TOO_MANY', `The message has more than some ${keysMax} different keys.`)
  try {
    return { kind: 'value', value: parse(text) }
  } catch (error) {
    return decodeLeniently(text, faultOf(error))
  }
}

/** A whole number that may be beyond 2^53, behind what stands before a number. */
const large = /(?:^|[:,[\s-])(?:9[0-9]{15}|[1-9][0-9]{16})/

/**
 * A text, which stays as it is, or a whole number of so many digits that is a value. A text without an end
 * goes to the end: else it would be searched again from each of its quotes.
 */
const textOrLarge = /"[^"\\]*(?:\\.[^"\\]*)*"?|(?<![0-9.eE+-])-?[1-9][0-9]{15,}(?![0-9.eE]|\s*:)/gs

/** Throws SyntaxError. A reviver would be called for each value, and cost twenty times the parser. */
function parse(text: string): unknown {
  return JSON.parse(large.test(text) ? text.replaceAll(textOrLarge, withDigits) : text)
}

/** A word that may be a bare `nan` or `inf`. */
const nonFinite = /(?:^|[:,[\s])-?(?:nan|inf)/i

/**
 * A text, which stays as it is, also one without an end; or a bare `nan`, `inf`, `infinity` in any case, with
 * or without a minus. It follows a colon, comma, bracket or blank, and is no part of a word or number.
 */
const textOrNonFinite = /"[^"\\]*(?:\\.[^"\\]*)*"?|(?<![^:,[ \t\r\n])-?(?:nan|inf(?:inity)?)(?![\w+.-])/gis

function withDigits(found: string): string {
  return found.startsWith('"') || Number.isSafeInteger(Number(found)) ? found : `"${found}"`
}

function withNull(found: string): string {
  return found.startsWith('"') ? found : 'null'
}

/** `fault`: of the text as it is. */
function decodeLeniently(text: string, fault: string): Decoded {
  if (!nonFinite.test(text)) return decodeObjects(text) ?? refused('NOT_JSON', fault)
  const repaired = text.replaceAll(textOrNonFinite, withNull)
  const whole = read(repaired)
  if (typeof whole !== 'string') return { kind: 'value', value: whole.value }
  return decodeObjects(repaired) ?? refused('NOT_JSON', whole)
}

/** The value, or a sentence that says what is wrong. */
function read(text: string): { value: unknown } | string {
  try {
    return { value: parse(text) }
  } catch (error) {
    return faultOf(error)
  }
}

function faultOf(error: unknown): string {
  if (!(error instanceof SyntaxError)) throw error
  return `The message is not JSON: ${visible(bounded(error.message, 200))}.`
}

/**
 * Several objects behind each other as a list; null for anything else. The message is no list of objects
 * unless it begins with one, or has two: it may be one document that is cut off.
 */
function decodeObjects(text: string): Decoded | null {
  const found: unknown[] = []
  const broken = new Map<string, string>()
  let sound = 0
  let isFirstSound = false
  let overlap = 0
  for (let at = skipBlanks(text, 0); at < text.length;) {
    const end = objectEnd(text, at)
    const next = skipBlanks(text, end)
    const isLast = next === text.length || text[next] === '{' || text.slice(end, next).includes('\n')
    const one = isLast && text[at] === '{' ? read(text.slice(at, end)) : otherText
    if (typeof one !== 'string') {
      found.push(one.value)
      sound += 1
      isFirstSound ||= found.length === 1
      at = next
      continue
    }
    // Each may be read to the end of the message before it is found broken.
    overlap += end - at
    if (overlap > text.length) return null
    const line = text.indexOf('\n{', at)
    const piece = text.slice(at, line === -1 ? text.length : line).trimEnd()
    broken.set(piece, one)
    found.push(piece)
    at = line === -1 ? text.length : line + 1
  }
  if (!isFirstSound && sound < 2) return null
  return { kind: 'value', value: found, ...(broken.size > 0 && { broken }) }
}

const otherText = 'The message is not JSON: there is other text beside an object.'

/** Behind the bracket that closes an object, if it is one; else behind what cannot be in one. */
function objectEnd(text: string, start: number): number {
  let depth = 0
  let inText = false
  /** The last sign that is no blank: an object begins behind some of them only. */
  let before = 0x3a
  for (let at = start; at < text.length; at += 1) {
    const unit = text.charCodeAt(at)
    if (inText) {
      if (unit === 0x5c) at += 1
      else if (unit === 0x22) inText = false
      else if (unit < 0x20) return at
      continue
    }
    if (isBlank(unit)) continue
    if (unit === 0x22) inText = true
    else if (unit === 0x7b || unit === 0x5b) {
      if (before !== 0x3a && before !== 0x2c && before !== 0x5b) return at
      depth += 1
    } else if (unit === 0x7d || unit === 0x5d) depth -= 1
    if (depth <= 0) return at + 1
    before = unit
  }
  return text.length
}

/** The end of the message without trailing NULs and blanks. */
function trimmedEnd(bytes: Buffer): number {
  let end = bytes.length
  while (end > 0 && (bytes[end - 1] === 0 || isBlank(bytes[end - 1]!))) end -= 1
  return end
}

function isBlank(unit: number): boolean {
  return unit === 0x20 || unit === 0x0a || unit === 0x0d || unit === 0x09
}

function skipBlanks(text: string, start: number): number {
  let at = start
  while (at < text.length && isBlank(text.charCodeAt(at))) at += 1
  return at
}

/**
 * The depth of the brackets outside of texts, and how many values there are (body-limits.ts), or more:
 * two texts may be a key and its value.
 */
function shapeOf(bytes: Buffer, start: number, end: number): { levels: number; values: number } {
  let depth = 0
  let levels = 0
  let brackets = 0
  let commas = 0
  let texts = 0
  let inText = false
  for (let at = start; at < end; at += 1) {
    const byte = bytes[at]
    if (inText) {
      if (byte === 0x5c) at += 1
      else if (byte === 0x22) inText = false
    } else if (byte === 0x22) {
      inText = true
      texts += 1
    } else if (byte === 0x2c) {
      commas += 1
    } else if (byte === 0x7b || byte === 0x5b) {
      brackets += 1
      depth += 1
      if (depth > levels) levels = depth
    } else if (byte === 0x7d || byte === 0x5d) {
      depth -= 1
    }
  }
  return { levels, values: 2 * brackets + Math.max(commas, texts / 2) }
}

// Whether a JSON text has so many different keys that it would take long to read: an object
// of 80,000 of them takes a tenth of a second, in which nothing else happens. The same few keys in 80,000
// places, as in a list of records, take a tenth of that.
//
// Each eighth key is looked at. A text in the message that looks like a key counts, too.

const keyEnd = '":'
const everyKey = 8

/** A shorter text cannot have too many. */
const fewKeysLength = 65_536

const keysMax = 10_000

function hasTooManyKeys(text: string): boolean {
  const distinct = new Set<string>()
  let count = 0
  for (let at = text.indexOf(keyEnd); at !== -1; at = text.indexOf(keyEnd, at + 2)) {
    count += 1
    if (count % everyKey !== 0) continue
    distinct.add(text.slice(text.lastIndexOf('"', at - 1), at))
    if (distinct.size * everyKey > keysMax) return true
  }
  return false
}
