// lenient-json.ts: reads the bytes of a message as JSON, with the deviations that firmware is known for.
//
// Accepted: a byte order mark, NULs and blanks after the end, and bare `nan`, `inf`, `Infinity` for a missing
// value (they become null). An empty message is empty, not wrong. Refused, with the place: anything else that
// is not JSON, bytes that are not UTF-8, and nesting deeper than any device needs.
//
// A whole number that a double cannot hold becomes the text of its digits: as a name or a text it is exact
// then, and as a number it is left out. Other numbers are doubles.

import { isAscii, isUtf8 } from 'node:buffer'
import { quote } from '../../std/quote.ts'
import { refused } from '../reasons.ts'
import type { Decoded } from '../types.ts'
import { faultAt, withoutNonFinite } from './json-error.ts'

const levelsMax = 256

/** A message of so few bytes cannot have more than `levelsMax` levels. */
const shallowBytes = 2 * levelsMax

export function decodeJson(bytes: Buffer): Decoded {
  const isPlain = isAscii(bytes)
  if (!isPlain && !isUtf8(bytes)) return notUtf8(bytes)
  const end = trimmedEnd(bytes)
  const start = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? 3 : 0
  if (end <= start) return { kind: 'empty' }
  if (end > shallowBytes && levelsIn(bytes, start, end) > levelsMax) {
    const detail = `The message nests objects and lists more than ${levelsMax} levels deep.`
    return refused('TOO_DEEP', detail)
  }
  const text = bytes.toString(isPlain ? 'latin1' : 'utf8', start, end)
  try {
    return { kind: 'value', value: parse(text) }
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    return decodeLeniently(text)
  }
}

/** Refuses bytes that are not UTF-8, with the place. */
export function notUtf8(bytes: Buffer): Decoded {
  const detail = `The message is not UTF-8 from byte ${firstBadByte(bytes) + 1} on.`
  return refused('NOT_UTF8', detail)
}

/** A whole number that may be beyond 2^53, behind what stands before a number. */
const large = /(?:^|[:,[\s-])(?:9[0-9]{15}|[1-9][0-9]{16})/

/** A text, which stays as it is, or a whole number of so many digits that is a value. */
const textOrLarge = /"[^"\\]*(?:\\.[^"\\]*)*"|(?<![0-9.eE+-])-?[1-9][0-9]{15,}(?![0-9.eE]|\s*:)/gs

/** Throws SyntaxError. A reviver would be called for each value, and cost twenty times the parser. */
function parse(text: string): unknown {
  return JSON.parse(large.test(text) ? text.replaceAll(textOrLarge, withDigits) : text)
}

function withDigits(found: string): string {
  return found.startsWith('"') || Number.isSafeInteger(Number(found)) ? found : `"${found}"`
}

function decodeLeniently(text: string): Decoded {
  const repaired = withoutNonFinite(text)
  const at = faultAt(repaired ?? text)
  if (repaired !== undefined && at === undefined) return { kind: 'value', value: parse(repaired) }
  return refused('NOT_JSON', describeFault(repaired ?? text, at ?? 0))
}

function describeFault(text: string, at: number): string {
  if (at >= text.length)
    return `The message is not JSON: it ends at position ${at + 1} in the middle of a value.`
  const near = quote(text.slice(Math.max(0, at - 12), at + 12))
  return `The message is not JSON: unexpected character at position ${at + 1}, near ${near}.`
}

/** The end of the message without trailing NULs and blanks. */
function trimmedEnd(bytes: Buffer): number {
  let end = bytes.length
  while (end > 0) {
    const byte = bytes[end - 1]
    if (byte !== 0 && byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) break
    end -= 1
  }
  return end
}

/** The depth of the brackets outside of texts. */
function levelsIn(bytes: Buffer, start: number, end: number): number {
  let depth = 0
  let deepest = 0
  let inText = false
  for (let at = start; at < end; at += 1) {
    const byte = bytes[at]
    if (inText) {
      if (byte === 0x5c) at += 1
      else if (byte === 0x22) inText = false
    } else if (byte === 0x22) {
      inText = true
    } else if (byte === 0x7b || byte === 0x5b) {
      depth += 1
      if (depth > deepest) deepest = depth
    } else if (byte === 0x7d || byte === 0x5d) {
      depth -= 1
    }
  }
  return deepest
}

/** The first byte that the decoded text replaces by a replacement character. */
function firstBadByte(bytes: Buffer): number {
  const text = bytes.toString('utf8')
  let good = 0
  for (let start = 0; ;) {
    const at = text.indexOf('\uFFFD', start)
    if (at === -1) return good
    good += Buffer.byteLength(text.slice(start, at))
    if (bytes[good] !== 0xef || bytes[good + 1] !== 0xbf || bytes[good + 2] !== 0xbd) return good
    good += 3
    start = at + 1
  }
}
