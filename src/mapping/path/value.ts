// value.ts: reads a value of a message as a number, an exact decimal, true or false, or a name.
//
// Numbers may be texts, with blanks around them and as `+5`, `.5`, `12.` or with the minus of typography
// (U+2212); anything else, such as `48,8566`, is refused, not guessed. Each reader tells an absent value from
// one that cannot be used, as an absent speed is usual and a speed of "fast" is a fault of the mapping.

import { messageOf } from '../../std/gateway-error.ts'
import { bounded, quote } from '../../std/quote.ts'

// What an operation makes of values that it has no result for, such as a division by zero. It
// is neither a number, nor true or false, nor a text, so every field omits it and counts it. An absent value
// is undefined or null instead, and is not counted.

export class NoResult {
  /** Continues "no value: ". */
  readonly reason: string

  constructor(reason: string) {
    this.reason = reason
    Object.freeze(this)
  }
}

/** Absent, or without a result. */
export function isNone(value: unknown): value is undefined | null | NoResult {
  return value === undefined || value === null || value instanceof NoResult
}

/** Why a value that must be there is not, as a sentence; undefined for any other value. */
export function withoutResult(name: string, value: unknown): string | undefined {
  return value instanceof NoResult ? `The ${name} has no value: ${value.reason}.` : undefined
}

/**
 * Above this a double cannot distinguish neighbouring integers: the number was rounded by the JSON parser.
 */
const exactMax = Number.MAX_SAFE_INTEGER

/**
 * Numbers that trackers and buses send when they have no value: the largest of 32 bits, its neighbour (an
 * error), and the largest with a sign. As counters of metres they would be plausible; also where they were
 * converted to kilometres before.
 */
const placeholders: ReadonlySet<number> = new Set(
  [4_294_967_295, 4_294_967_294, 2_147_483_647].flatMap((number) => [number, number / 1000]),
)

/** What is computed from a placeholder: no number, and for a signal the same fault as the placeholder. */
export const placeholderResult: unknown = new NoResult('a number is a placeholder for "no value"')

/** Smaller numbers, nearly all, need no look-up. */
const placeholderMin = 2_147_483

export function isPlaceholder(number: number): boolean {
  return number >= placeholderMin && placeholders.has(number)
}

const decimalLengthMax = 40

const words = new Map<string, boolean>([
  ['true', true],
  ['yes', true],
  ['on', true],
  ['1', true],
  ['false', false],
  ['no', false],
  ['off', false],
  ['0', false],
])

/** NaN for an absent value, an infinity for anything but a number (1e400 is already one). */
export function numberFrom(value: unknown): number {
  if (typeof value === 'number') return value
  if (value === null || value === undefined || value === '') return Number.NaN
  if (typeof value === 'string') {
    const text = decimalIn(value)
    if (text !== undefined) return Number(text)
    if (isBlank(value)) return Number.NaN
  }
  // A D-Bus writes an absent value as an empty list.
  return Array.isArray(value) && value.length === 0 ? Number.NaN : Number.POSITIVE_INFINITY
}

/** A number, or a text of one; NaN for anything else. */
export function numberIn(value: unknown): number {
  if (typeof value === 'number') return value
  return typeof value === 'string' ? Number(decimalIn(value)) : Number.NaN
}

/** The value as decimal text, as it was written (`12.50`, `1e3`); undefined for a `decimalFault`. */
export function decimalFrom(value: unknown): string | undefined {
  if (typeof value === 'number') return isExact(value) ? String(value) : undefined
  const text = typeof value === 'string' ? decimalIn(value) : undefined
  return text !== undefined && isExact(Number(text)) ? text : undefined
}

/** Why a value is not an exact decimal; `absent` is not an error. */
export type DecimalFault = 'absent' | 'not a number' | 'not exact' | 'a placeholder'

/** For a value of which `decimalFrom` is undefined. */
export function decimalFault(value: unknown): DecimalFault {
  if (value === placeholderResult) return 'a placeholder'
  const number = numberFrom(value)
  if (Number.isNaN(number)) return 'absent'
  if (!Number.isFinite(number)) return 'not a number'
  return placeholders.has(number) ? 'a placeholder' : 'not exact'
}

function isExact(number: number): boolean {
  if (number < placeholderMin) return number >= -exactMax
  return number <= exactMax && !placeholders.has(number)
}

/** Undefined for an absent value, null for one that is neither true nor false. */
export function booleanFrom(value: unknown): boolean | null | undefined {
  if (typeof value === 'boolean') return value
  if (value === null || value === undefined || value === '') return undefined
  if (value === 1) return true
  if (value === 0) return false
  if (typeof value !== 'string' || value.length > 5) return null
  return words.get(value) ?? words.get(value.toLowerCase()) ?? null
}

/** Whether a value is one of those that mean "absent" in a source. */
type IsAbsent = (value: unknown) => boolean

/** A number of `list` also matches a text of that number (`"-1"`), and the other way round. */
export function compileAbsent(list: readonly (number | string)[]): IsAbsent {
  const texts = new Set<unknown>(list)
  const numbers = new Set<number>()
  for (const one of list) if (typeof one === 'number' || isDecimal(one)) numbers.add(Number(one))
  return (value) =>
    typeof value === 'string'
      ? texts.has(value) || (numbers.size > 0 && numbers.has(numberFrom(value)))
      : typeof value === 'number' && numbers.has(value)
}

/** The name of a device; '' for an absent one, null for anything but a text or a whole number. */
export function nameFrom(value: unknown): string | null {
  if (value === null || value === undefined) return ''
  if (typeof value === 'string') {
    const name = nameIn(value)
    return isRoundedName(name) ? null : name
  }
  return typeof value === 'number' && Number.isSafeInteger(value) && !isRoundedNumber(value)
    ? String(value)
    : null
}

/** What spreadsheets and firmware make of a number of more than eleven digits: 8.67459E+14. */
const rounded = /^[0-9](?:[.,][0-9]+[eE]\+?0*[0-9]{2}|[eE]\+[0-9]{2})$/

/** Several devices may have it. */
export function isRoundedName(text: string): boolean {
  return text.length <= 24 && rounded.test(text)
}

/** The same as a number of JSON: six digits of a long one, which is what `%g` in C leaves. */
function isRoundedNumber(value: number): boolean {
  return value >= 1e11 && value % 1e6 === 0
}

/** What programs write for a name that they do not have; `unknown` is the serial number of Android. */
const noNames: ReadonlySet<string> = new Set([
  'null',
  '(null)',
  '<null>',
  'nil',
  'undefined',
  'nan',
  'none',
  'n/a',
  'n.a.',
  '#n/a',
  '(none)',
  '-1',
  'unknown',
  '[object object]',
])

/** The IMEI of a modem that does not answer, an address that was not read, and dashes. */
const unset = /^(?:(?:0x)?(?:0{8,}|f{8,})|(?:00[:-]){5}00|(?:ff[:-]){5}ff|[-?]+)$/i

/** A name as messages carry it; '' for a word that means none. */
export function nameIn(text: string): string {
  const name = trimmedName(text)
  return name.length <= 40 && (noNames.has(name.toLowerCase()) || unset.test(name)) ? '' : name
}

/** Without what is not visible at both ends: blanks, line breaks, NULs that pad it. */
export function trimmedName(text: string): string {
  let start = 0
  let end = text.length
  while (start < end && isInvisible(text.charCodeAt(start))) start += 1
  while (end > start && isInvisible(text.charCodeAt(end - 1))) end -= 1
  return text.slice(start, end)
}

function isInvisible(unit: number): boolean {
  return unit <= 0x20 || (unit >= 0x7f && invisible.test(String.fromCharCode(unit)))
}

/** Nothing that is visible: blanks, NULs, characters without a width. */
const invisible = /^[\s\p{Cc}\p{Cf}]*$/u

export function isBlank(text: string): boolean {
  const first = text.charCodeAt(0)
  return first <= 0x20 || first >= 0x7f ? invisible.test(text) : text === ''
}

const decimal = /^-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?$/

/** A number as devices write it. */
const written = /^\s*(?:\+|([-\u2212]))?([0-9]*)(?:\.([0-9]*))?([eE][+-]?[0-9]+)?\s*$/

/** The plain decimal that a text is, without blanks and a plus, and with the digits that it leaves out. */
export function decimalIn(text: string): string | undefined {
  if (isDecimal(text)) return text
  if (text.length > decimalLengthMax) return undefined
  const [found, minus = '', whole = '', decimals = '', exponent = ''] = written.exec(text) ?? []
  if (found === undefined || (whole === '' && decimals === '')) return undefined
  return `${minus && '-'}${whole || '0'}${decimals && `.${decimals}`}${exponent}`
}

/** Digits, at most one point, perhaps an exponent and a leading minus: `-12`, `0054.2`, `1e3`. */
export function isDecimal(text: string): boolean {
  return text.length <= decimalLengthMax && decimal.test(text)
}

export function isDigitAt(text: string, at: number): boolean {
  const unit = text.charCodeAt(at)
  return unit >= 0x30 && unit <= 0x39
}

/** The end of the run of digits that starts at `start`. */
export function digitsEnd(text: string, start: number): number {
  let at = start
  // Never reads beyond the end: charCodeAt gives NaN there, and the engine would compare doubles.
  for (; at < text.length; at += 1) {
    const unit = text.charCodeAt(at)
    if (unit < 0x30 || unit > 0x39) break
  }
  return at
}

/** A value of a message, quoted and bounded for a sentence. */
export function shown(value: unknown): string {
  try {
    return typeof value === 'string' ? quote(value, 60) : bounded(JSON.stringify(value) ?? 'nothing', 60)
  } catch (error) {
    // The value is nested too deeply for JSON.stringify.
    return `a value that cannot be shown (${messageOf(error)})`
  }
}
