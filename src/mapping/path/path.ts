// path.ts: the place of a value in a message.
//
//   gps.lat              key by key
//   "position.latitude"  a key that holds dots, spaces or brackets is quoted; ['a b'] does the same
//   records[0].lat       an element of a list; [-1] is the last one
//   analogues[id=5].val  the first object of a list whose key has this value; either side may be quoted,
//                        and 5 is the same as "5"
//   latlng.$split(",")   a text as the list of its parts, without the blanks around them
//   $first().lat         the value of an object's first key, whatever its name ({"VP": {...}}); keys that are
//                        whole numbers come before all others, as JSON.parse orders them
//   $entries()           an object as a list of { key, value }
//   $.imei               from the message itself, where `each` has chosen a part of it; `$` is the message
//   $up.key              from the record one level out, where `each` has several steps; `$up` is that record,
//                        `$up.$up.key` goes one level further out
//   $properties.tenant   a user property of a message of MQTT 5 (packet-properties.ts); `$.$properties` where
//                        `each` has chosen a part of the message; $packet.content_type is another property
//
// What else a message needs is an expression (../expression/expression.ts).
//
// Only keys of the message itself are found: `__proto__`, `constructor` or `length`, which every object
// inherits, are found only where the message holds them.
//
// Other files of this folder: record-selection.ts (`each`) and topic-pattern.ts are the other
// small languages of a source, text-cursor.ts reads them, path-eval.ts runs a path, value.ts reads the value.

import { assertNever } from '../../std/assert.ts'
import { isAtEnd, Malformed, malformed, skipSpaces, take, takeQuoted, type Cursor } from './text-cursor.ts'
import { compileSteps, type Path, type Step } from './path-eval.ts'
import type { Place, Up } from '../types.ts'
import type { EpochMs } from '../../std/clock.ts'

export type { Path } from './path-eval.ts'

/** Finds a value from the record that `each` chose, from the message, or from a record further out. */
export type Read = (place: Place) => unknown

/** Equal to the number of steps that `each` may have. */
export const levelsMax = 4

const closers = new Set(' \t.[](){}"\'<>=!,')

/** Reads a path that is the whole of `text`; throws Malformed. */
export function parsePath(text: string): Path {
  const cursor = { text, at: 0 }
  const path = parsePathAt(cursor, true)
  if (isAtEnd(cursor)) return path
  const isComputed = /[()*+/?<>=]/.test(text)
  const act = isComputed ? '; what is computed is an expression: write `expr` in place of `path`' : ''
  return malformed(cursor, `has a character that belongs in a quoted key, such as ["a b"]${act},`)
}

/** Reads a path at the cursor. In a condition a path cannot start with a quote, which starts a text there. */
export function parsePathAt(cursor: Cursor, quotedStart: boolean): Path {
  const steps: Step[] = []
  const levels = takeLevels(cursor)
  const from = levels > 0 ? 'up' : takeWord(cursor, '$') ? 'root' : 'record'
  if (from !== 'record') {
    takeBrackets(cursor, steps)
    if (!take(cursor, '.')) return { from, levels, steps }
  }
  let quoted = quotedStart || from !== 'record'
  do {
    takeStep(cursor, steps, quoted)
    takeBrackets(cursor, steps)
    quoted = true
  } while (take(cursor, '.'))
  return { from, levels, steps }
}

/** Counts the `$up`s and takes them; the dot after the last one is left. */
function takeLevels(cursor: Cursor): number {
  let levels = 0
  for (let before = cursor.at; takeWord(cursor, '$up'); before = cursor.at) {
    levels += 1
    if (levels > levelsMax) {
      cursor.at = before
      malformed(cursor, `has more than ${levelsMax} levels of $up`)
    }
    const end = cursor.at
    if (!take(cursor, '.')) break
    if (isWord(cursor, '$up')) continue
    cursor.at = end
    break
  }
  return levels
}

/** Takes `word` if it is the whole of an unquoted key. */
function takeWord(cursor: Cursor, word: string): boolean {
  return isWord(cursor, word) && take(cursor, word)
}

function isWord({ text, at }: Cursor, word: string): boolean {
  const next = text[at + word.length]
  return text.startsWith(word, at) && (next === undefined || (closers.has(next) && next !== '('))
}

function takeStep(cursor: Cursor, steps: Step[], quoted: boolean): void {
  const start = cursor.text[cursor.at]
  if (take(cursor, '$first()')) {
    steps.push({ kind: 'first' })
  } else if (take(cursor, '$entries()')) {
    steps.push({ kind: 'entries' })
  } else if (take(cursor, '$split(')) {
    steps.push({ kind: 'split', separator: takeSeparator(cursor) })
  } else if (quoted && isQuote(start)) {
    steps.push({ kind: 'key', key: takeQuoted(cursor) })
  } else if (start !== '[' || steps.length > 0) {
    steps.push({ kind: 'key', key: takePlainKey(cursor) })
  }
}

function takePlainKey(cursor: Cursor): string {
  if (isWord(cursor, '$up')) malformed(cursor, 'has $up after its start; a key of that name is ["$up"],')
  if (isWord(cursor, '$previous'))
    malformed(
      cursor,
      'has $previous, which is `previous.KEY` in `expr`; a key of that name is ["$previous"],',
    )
  const start = cursor.at
  while (!isAtEnd(cursor) && !closers.has(cursor.text[cursor.at] ?? '')) cursor.at += 1
  if (cursor.at === start) malformed(cursor, 'has an empty key')
  if (cursor.text[start] === '$' && cursor.text[cursor.at] === '(')
    malformed(
      cursor,
      'has an unknown function; known are $first(), $entries() and $split(","), and `expr` has others,',
    )
  return cursor.text.slice(start, cursor.at)
}

function takeSeparator(cursor: Cursor): string {
  const separator = isQuote(cursor.text[cursor.at]) ? takeQuoted(cursor) : ''
  if (separator === '' || !take(cursor, ')'))
    malformed(cursor, 'needs a quoted separator, such as $split(",")')
  return separator
}

function takeBrackets(cursor: Cursor, steps: Step[]): void {
  while (take(cursor, '[')) {
    steps.push(takeChoice(cursor))
    if (!take(cursor, ']')) malformed(cursor, 'lacks a "]"')
  }
}

/** The text in brackets: `0`, `"key"` or `key=value`. */
function takeChoice(cursor: Cursor): Step {
  const start = cursor.at
  const quoted = isQuote(cursor.text[start])
  const word = quoted ? takeQuoted(cursor) : takeUntil(cursor, ' \t[]"\'=')
  skipSpaces(cursor)
  if (take(cursor, '=')) {
    if (word === '' && !quoted) malformed(cursor, 'has an empty key')
    skipSpaces(cursor)
    const value = isQuote(cursor.text[cursor.at]) ? takeQuoted(cursor) : takeUntil(cursor, ' \t[]"\'=')
    if (value === '' && !isQuote(cursor.text[cursor.at - 1]))
      malformed(cursor, 'lacks a value after "=", such as [id=5],')
    skipSpaces(cursor)
    return { kind: 'select', key: word, value }
  }
  if (quoted) return { kind: 'key', key: word }
  if (/^-?[0-9]{1,9}$/.test(word)) return { kind: 'element', index: Number(word) }
  cursor.at = start
  return malformed(
    cursor,
    'needs a number such as [0] or [-1], a quoted key, or a key and its value such as [id=5], in its brackets',
  )
}

function takeUntil(cursor: Cursor, ends: string): string {
  const start = cursor.at
  while (!isAtEnd(cursor) && !ends.includes(cursor.text[cursor.at] ?? '')) cursor.at += 1
  return cursor.text.slice(start, cursor.at)
}

function isQuote(character: string | undefined): boolean {
  return character === '"' || character === "'"
}

export function compilePath({ from, levels, steps }: Path): Read {
  const walk = compileSteps(steps)
  switch (from) {
    case 'record':
      return ({ record }) => walk(record)
    case 'root':
      return ({ root }) => walk(root)
    case 'previous': {
      const name = previousName(steps)
      return ({ record }) => previousIn(record, name)
    }
    case 'up':
      return ({ up }) => walk(outer(up, levels)?.record)
    default:
      return assertNever(from)
  }
}

/** The name of a previous value: its path. */
export function previousName(steps: readonly Step[]): string {
  return stepsText('$previous', steps)
}

function outer(up: Up, levels: number): Up {
  let found = up
  for (let left = levels; left > 1 && found !== undefined; left -= 1) found = found.up
  return found
}

/** One path, or several of which the first with a value is read; throws Malformed. */
export function compilePaths(texts: string | readonly string[]): Read {
  const reads = (typeof texts === 'string' ? [texts] : texts).map((text) => compilePath(parsePath(text)))
  return firstPresent(reads)
}

/** The first value that is not undefined, null or an empty text. Throws Malformed for an empty list. */
export function firstPresent(reads: readonly Read[]): Read {
  const [only, ...others] = reads
  if (!only) throw new Malformed('needs a path')
  if (others.length === 0) return only
  return (place) => {
    for (const read of reads) {
      const value = read(place)
      if (value !== undefined && value !== null && value !== '') return value
    }
    return undefined
  }
}

// The steps of a path as they are written in the config.

/** `start`: what the path begins with, such as `$up`; '' for a path of the record. */
export function stepsText(start: string, steps: readonly Step[]): string {
  let text = start
  for (const step of steps) {
    if (step.kind === 'element') text += `[${step.index}]`
    else if (step.kind === 'select') text += `[${step.key}=${step.value}]`
    else {
      const plain = step.kind === 'key' ? keyText(step.key) : functionText(step)
      text += text === '' ? plain : `.${plain}`
    }
  }
  return text
}

function functionText(step: Exclude<Step, { kind: 'key' | 'element' | 'select' }>): string {
  return step.kind === 'split' ? `$split(${JSON.stringify(step.separator)})` : `$${step.kind}()`
}

function keyText(key: string): string {
  const isPlain = /^\$?[A-Za-z_][\w-]*$/.test(key) && key !== '$up' && key !== '$previous'
  return isPlain ? key : JSON.stringify(key)
}

// What paths that begin with `$previous` read: values of the newest earlier record of the
// device. They are put on the record at hand under a symbol, so that they are no key of the message, and no
// message can have them.

/** By the path of the value, such as `$previous.odo`. */
export type PreviousValues = ReadonlyMap<string, { readonly time: EpochMs; readonly value: unknown }>

/** The time of the newest earlier record, in milliseconds. */
export const previousTimeName = '$previous.$time'

const key = Symbol('previous')

type Carrier = { [key]?: PreviousValues | null }

/** A record that is no object has none. */
export function setPrevious(record: unknown, values: PreviousValues | null): void {
  if (typeof record === 'object' && record !== null && Object.isExtensible(record))
    (record as Carrier)[key] = values
}

/** All of a record; null where there are none. */
export function previousValuesOf(record: unknown): PreviousValues | null {
  return typeof record === 'object' && record !== null ? ((record as Carrier)[key] ?? null) : null
}

function previousIn(record: unknown, name: string): unknown {
  return previousValuesOf(record)?.get(name)?.value
}
