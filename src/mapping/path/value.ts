// value.ts: what a message holds, read as a number, an exact decimal, true or false, or a name.
//
// Numbers come as numbers and as texts. A text counts only where it is a plain decimal: `48,8566` is
// refused, not guessed at. Each reader tells apart what is absent and what is present but cannot be used,
// since an absent speed is usual and a speed of "fast" is a fault of the mapping.

/**
 * Above this, neighbouring integers can no longer be told apart: what stands there was rounded on the way.
 */
const exactMax = Number.MAX_SAFE_INTEGER

/** The largest 32-bit number: what a tracker sends when it has no value. */
const absentCounter = 4_294_967_295

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

/** NaN where there is none, an infinity where there is something else (1e400 is one by itself). */
export function numberFrom(value: unknown): number {
  if (typeof value === 'number') return value
  if (value === null || value === undefined || value === '') return Number.NaN
  if (typeof value === 'string' && isDecimal(value)) return Number(value)
  // An empty list is how a D-Bus says "none" in JSON.
  return Array.isArray(value) && value.length === 0 ? Number.NaN : Number.POSITIVE_INFINITY
}

/** The value as decimal text as it was written (`12.50`, `1e3`); undefined where `decimalFault` says why. */
export function decimalFrom(value: unknown): string | undefined {
  if (typeof value === 'number') return isExact(value) ? String(value) : undefined
  return typeof value === 'string' && isDecimal(value) && isExact(Number(value)) ? value : undefined
}

/** Why a value is no exact decimal; `absent` is no fault. */
export type DecimalFault = 'absent' | 'not a number' | 'not exact' | 'a placeholder'

/** Asked only where `decimalFrom` found none. */
export function decimalFault(value: unknown): DecimalFault {
  const number = numberFrom(value)
  if (Number.isNaN(number)) return 'absent'
  if (!Number.isFinite(number)) return 'not a number'
  return number === absentCounter ? 'a placeholder' : 'not exact'
}

function isExact(number: number): boolean {
  return number <= exactMax && number >= -exactMax && number !== absentCounter
}

/** Null where there is something that is neither. */
export function booleanFrom(value: unknown): boolean | null | undefined {
  if (typeof value === 'boolean') return value
  if (value === null || value === undefined || value === '') return undefined
  if (value === 1) return true
  if (value === 0) return false
  if (typeof value !== 'string' || value.length > 5) return null
  return words.get(value) ?? words.get(value.toLowerCase()) ?? null
}

/** Whether a value is one of those that mean "not there" in the source at hand. */
type IsAbsent = (value: unknown) => boolean

/** A number of `list` is also found where it is written as a text (`"-1"`), and the other way round. */
export function compileAbsent(list: readonly (number | string)[]): IsAbsent {
  const texts = new Set<unknown>(list)
  const numbers = new Set<number>()
  for (const one of list) if (typeof one === 'number' || isDecimal(one)) numbers.add(Number(one))
  return (value) =>
    typeof value === 'string'
      ? texts.has(value) || (numbers.size > 0 && isDecimal(value) && numbers.has(Number(value)))
      : typeof value === 'number' && numbers.has(value)
}

/** A text with a decimal comma, such as `48,8566`, with a point instead; everything else as it is. */
export function withPoint(value: unknown): unknown {
  if (typeof value !== 'string') return value
  const comma = value.indexOf(',')
  if (comma === -1) return value
  const pointed = `${value.slice(0, comma)}.${value.slice(comma + 1)}`
  return isDecimal(pointed) ? pointed : value
}

/** A device's name, or '' where there is none; null where it is no name, or a number that was rounded. */
export function nameFrom(value: unknown): string | null {
  if (typeof value === 'string') return value
  if (value === null || value === undefined) return ''
  return typeof value === 'number' && Number.isSafeInteger(value) ? String(value) : null
}

/**
 * Digits, at most one point, an exponent if need be: `-12`, `0054.2`, `1e3`. No sign in front but a minus.
 */
export function isDecimal(text: string): boolean {
  if (text.length > decimalLengthMax) return false
  let at = text.charCodeAt(0) === 0x2d ? 1 : 0
  const whole = digitsFrom(text, at)
  if (whole === at) return false
  at = whole
  if (text.charCodeAt(at) === 0x2e) {
    const end = digitsFrom(text, at + 1)
    if (end === at + 1) return false
    at = end
  }
  const mark = text.charCodeAt(at)
  if (mark === 0x65 || mark === 0x45) {
    const sign = text.charCodeAt(at + 1)
    const start = sign === 0x2b || sign === 0x2d ? at + 2 : at + 1
    const end = digitsFrom(text, start)
    if (end === start) return false
    at = end
  }
  return at === text.length
}

/** Where the run of digits that starts at `start` ends. */
function digitsFrom(text: string, start: number): number {
  let at = start
  for (; at < text.length; at += 1) {
    const unit = text.charCodeAt(at)
    if (unit < 0x30 || unit > 0x39) break
  }
  return at
}
