// path.ts: where a value stands in a message.
//
//   gps.lat              key by key
//   "position.latitude"  a key that holds dots, spaces or brackets is quoted; ['a b'] does the same
//   records[0].lat       an element of a list; [-1] is the last one
//   $first().lat         the value of an object's first key, whatever it is called ({"VP": {...}}); keys that are
//                        whole numbers come before all others, as JSON.parse orders them
//   $.imei               from the message itself, where `each` has chosen a part of it; `$` is all of it
//
// Only what the message itself says is ever found: keys such as `__proto__`, `constructor` or `length`,
// which every object has without being told, are found only where the message holds them.

import { assertNever } from '../std/assert.ts'
import { isAtEnd, malformed, take, takeQuoted, type Cursor } from './cursor.ts'

type Step = { kind: 'key'; key: string } | { kind: 'element'; index: number } | { kind: 'first' }

export type Path = { absolute: boolean; steps: readonly Step[] }

/** Finds a value: relative to the record that `each` chose, or from the message's root. */
export type Read = (record: unknown, root: unknown) => unknown

type Walk = (value: unknown) => unknown

const closers = new Set(' \t.[](){}"\'<>=!,')

/** Reads a path that is the whole of `text`; throws Malformed. */
export function parsePath(text: string): Path {
  const cursor = { text, at: 0 }
  const path = parsePathAt(cursor, true)
  if (isAtEnd(cursor)) return path
  return malformed(cursor, 'has a character that belongs in a quoted key, such as ["a b"],')
}

/** Reads a path at the cursor. In a condition a path cannot start with a quote: that is a text there. */
export function parsePathAt(cursor: Cursor, quotedStart: boolean): Path {
  const steps: Step[] = []
  const next = cursor.text[cursor.at + 1]
  const absolute =
    cursor.text[cursor.at] === '$' && (next === undefined || (closers.has(next) && next !== '('))
  if (absolute) {
    cursor.at += 1
    takeBrackets(cursor, steps)
    if (!take(cursor, '.')) return { absolute, steps }
  }
  do {
    takeStep(cursor, steps, quotedStart || steps.length > 0)
    takeBrackets(cursor, steps)
  } while (take(cursor, '.'))
  return { absolute, steps }
}

function takeStep(cursor: Cursor, steps: Step[], quoted: boolean): void {
  const start = cursor.text[cursor.at]
  if (take(cursor, '$first()')) {
    steps.push({ kind: 'first' })
  } else if (quoted && (start === '"' || start === "'")) {
    steps.push({ kind: 'key', key: takeQuoted(cursor) })
  } else if (start !== '[' || steps.length > 0) {
    steps.push({ kind: 'key', key: takePlainKey(cursor) })
  }
}

function takePlainKey(cursor: Cursor): string {
  const start = cursor.at
  while (!isAtEnd(cursor) && !closers.has(cursor.text[cursor.at] ?? '')) cursor.at += 1
  if (cursor.at === start) malformed(cursor, 'has an empty key')
  return cursor.text.slice(start, cursor.at)
}

function takeBrackets(cursor: Cursor, steps: Step[]): void {
  while (take(cursor, '[')) {
    const start = cursor.text[cursor.at]
    if (start === '"' || start === "'") steps.push({ kind: 'key', key: takeQuoted(cursor) })
    else steps.push({ kind: 'element', index: takeIndex(cursor) })
    if (!take(cursor, ']')) malformed(cursor, 'lacks a "]"')
  }
}

function takeIndex(cursor: Cursor): number {
  const start = cursor.at
  take(cursor, '-')
  const digits = cursor.at
  while (isDigit(cursor.text.charCodeAt(cursor.at))) cursor.at += 1
  if (cursor.at === digits || cursor.at - digits > 9)
    malformed(cursor, 'needs a number such as [0] or [-1], or a quoted key, in its brackets')
  return Number(cursor.text.slice(start, cursor.at))
}

function isDigit(unit: number): boolean {
  return unit >= 0x30 && unit <= 0x39
}

export function compilePath({ absolute, steps }: Path): Read {
  const walk = compileSteps(steps)
  return absolute ? (_record, root) => walk(root) : walk
}

function compileSteps(steps: readonly Step[]): Walk {
  const [one, two] = steps
  if (steps.length === 2 && one?.kind === 'key' && two?.kind === 'key')
    return compileKeyPair(one.key, two.key)
  const [first, second, third, ...rest] = steps.map(compileStep)
  if (!first) return (value) => value
  if (!second) return first
  if (!third) return (value) => second(first(value))
  if (rest.length === 0) return (value) => third(second(first(value)))
  return (value) => {
    let found = third(second(first(value)))
    for (const walk of rest) found = walk(found)
    return found
  }
}

function compileStep(step: Step): Walk {
  switch (step.kind) {
    case 'key':
      return compileKey(step.key)
    case 'element':
      return compileElement(step.index)
    case 'first':
      return firstValue
    default:
      return assertNever(step)
  }
}

function compileKey(key: string): Walk {
  // A key that every object inherits must be asked for as its own; for all others the plain look-up is the
  // same.
  if (key in Object.prototype)
    return (value) => (isRecord(value) && Object.hasOwn(value, key) ? value[key] : undefined)
  return (value) => (isRecord(value) ? value[key] : undefined)
}

/** The usual path, `gps.lat`, without a call in between. */
function compileKeyPair(outer: string, inner: string): Walk {
  if (outer in Object.prototype || inner in Object.prototype) {
    const first = compileKey(outer)
    const second = compileKey(inner)
    return (value) => second(first(value))
  }
  return (value) => {
    if (!isRecord(value)) return undefined
    const found = value[outer]
    return isRecord(found) ? found[inner] : undefined
  }
}

function compileElement(index: number): Walk {
  if (index >= 0) return (value) => (Array.isArray(value) ? (value[index] as unknown) : undefined)
  return (value) => (Array.isArray(value) ? (value[value.length + index] as unknown) : undefined)
}

function firstValue(value: unknown): unknown {
  if (!isRecord(value)) return undefined
  for (const key in value) if (Object.hasOwn(value, key)) return value[key]
  return undefined
}

/** An object of JSON, as against a list, null or a plain value. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
