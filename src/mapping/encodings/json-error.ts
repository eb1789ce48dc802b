// json-error.ts: finds what is wrong with a text that JSON.parse refused. Used only after a refusal: the
// message of the engine names the place in some cases only.

import { digitsEnd } from '../path/value.ts'
import { hexDigit } from './text-bytes.ts'

/** The place of the first character that JSON does not allow there; the length of a text that is cut off. */
export function faultAt(text: string): number | undefined {
  const end = valueEnd(text, 0)
  if (end < 0) return -end - 1
  const next = skipBlanks(text, end)
  return next === text.length ? undefined : next
}

/** The end of the value that begins at `start`; for a fault its place as -(place + 1). */
export function valueEnd(text: string, start: number): number {
  // The closing bracket of each open one: a list instead of recursion, so that no nesting overflows the
  // stack.
  const open: ('}' | ']')[] = []
  let at = skipBlanks(text, start)
  for (;;) {
    // A value is expected.
    const first = text[at]
    if (first === '{' || first === '[') {
      const close = first === '{' ? '}' : ']'
      at = skipBlanks(text, at + 1)
      if (text[at] !== close) {
        open.push(close)
        if (close === '}' && (at = keyEnd(text, at)) < 0) return at
        continue
      }
      at += 1
    } else if ((at = scalarEnd(text, at)) < 0) {
      return at
    }
    // A value has ended: brackets close, or the next one follows.
    for (;;) {
      const close = open.at(-1)
      if (close === undefined) return at
      at = skipBlanks(text, at)
      if (text[at] === close) {
        open.pop()
        at += 1
        continue
      }
      if (text[at] !== ',') return -(at + 1)
      at = skipBlanks(text, at + 1)
      if (close === '}' && (at = keyEnd(text, at)) < 0) return at
      break
    }
  }
}

/** The end of a key with its colon and blanks; for anything else the place of the error as -(place + 1). */
function keyEnd(text: string, at: number): number {
  if (text[at] !== '"') return -(at + 1)
  const end = stringEnd(text, at)
  if (end < 0) return end
  const colon = skipBlanks(text, end)
  return text[colon] === ':' ? skipBlanks(text, colon + 1) : -(colon + 1)
}

function scalarEnd(text: string, at: number): number {
  const start = text[at]
  if (start === undefined) return -(at + 1)
  if (start === '"') return stringEnd(text, at)
  const unit = text.charCodeAt(at)
  if (unit === 0x2d || (unit >= 0x30 && unit <= 0x39)) return numberEnd(text, at)
  for (const word of ['true', 'false', 'null']) if (text.startsWith(word, at)) return at + word.length
  return -(at + 1)
}

function stringEnd(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at += 1) {
    const character = text[at]
    if (character === '"') return at + 1
    if (text.charCodeAt(at) < 0x20) return -(at + 1)
    if (character !== '\\') continue
    at += 1
    if (text[at] === 'u') {
      for (let digit = 1; digit <= 4; digit += 1)
        if (hexDigit(text.charCodeAt(at + digit)) < 0) return -(at + digit + 1)
      at += 4
    } else if (!'"\\/bfnrt'.includes(text[at] ?? 'x')) {
      return -(at + 1)
    }
  }
  return -(text.length + 1)
}

function numberEnd(text: string, start: number): number {
  let at = text[start] === '-' ? start + 1 : start
  if (text[at] === '0') at += 1
  else if ((at = someDigitsEnd(text, at)) < 0) return at
  if (text[at] === '.' && (at = someDigitsEnd(text, at + 1)) < 0) return at
  if (text[at] === 'e' || text[at] === 'E') {
    at += text[at + 1] === '+' || text[at + 1] === '-' ? 2 : 1
    at = someDigitsEnd(text, at)
  }
  return at
}

/** The end of the digits; for none the place of the error as -(place + 1). */
function someDigitsEnd(text: string, start: number): number {
  const end = digitsEnd(text, start)
  return end === start ? -(start + 1) : end
}

export function skipBlanks(text: string, start: number): number {
  let at = start
  for (; at < text.length; at += 1) {
    const unit = text.charCodeAt(at)
    if (unit !== 0x20 && unit !== 0x0a && unit !== 0x0d && unit !== 0x09) break
  }
  return at
}

/**
 * A text, which stays as it is, also one without an end; or a bare `nan`, `inf`, `infinity` in any case, with
 * or without a minus. It follows a colon, comma, bracket or blank, and is no part of a word or number.
 */
const textOrNonFinite = /"[^"\\]*(?:\\.[^"\\]*)*"?|(?<![^:,[ \t\r\n])-?(?:nan|inf(?:inity)?)(?![\w+.-])/gis

/** The text with null for each bare nan or infinity; undefined where it has none. */
export function withoutNonFinite(text: string): string | undefined {
  let isFound = false
  const repaired = text.replaceAll(textOrNonFinite, (found) => {
    if (found.startsWith('"')) return found
    isFound = true
    return 'null'
  })
  return isFound ? repaired : undefined
}
