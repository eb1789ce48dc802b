// path-eval.ts: the steps of a path as closures. A path of plain keys, which nearly all are, costs one call
// for each key.

import { NoResult } from './value.ts'
import { assertNever } from '../../std/assert.ts'

export type Step =
  | { kind: 'key'; key: string }
  | { kind: 'element'; index: number }
  | { kind: 'select'; key: string; value: string }
  | { kind: 'split'; separator: string }
  | { kind: 'first' }
  | { kind: 'entries' }

type SelectStep = Extract<Step, { kind: 'select' }>

/** `levels`: how many records out `up` goes. */
export type Path = { from: 'record' | 'root' | 'up' | 'previous'; levels: number; steps: readonly Step[] }

type Walk = (value: unknown) => unknown

export function compileSteps(steps: readonly Step[]): Walk {
  const [one, two] = steps
  if (steps.length === 2 && one?.kind === 'key' && two?.kind === 'key')
    return compileKeyPair(one.key, two.key)
  const [first, second, third, ...rest] = walksOf(steps)
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

/** One function for each step; a part of a split text is cut out without making the others. */
function walksOf(steps: readonly Step[]): Walk[] {
  const walks: Walk[] = []
  for (let at = 0; at < steps.length; at += 1) {
    const step = steps[at]
    const next = steps[at + 1]
    if (!step) continue
    if (step.kind === 'split' && next?.kind === 'element' && next.index >= 0) {
      walks.push(compilePart(step.separator, next.index))
      at += 1
    } else {
      walks.push(compileStep(step))
    }
  }
  return walks
}

function compileStep(step: Step): Walk {
  switch (step.kind) {
    case 'key':
      return compileKey(step.key)
    case 'element':
      return compileElement(step.index)
    case 'select':
      return compileSelect(step)
    case 'split':
      return compileSplit(step.separator)
    case 'first':
      return firstValue
    case 'entries':
      return entriesOf
    default:
      return assertNever(step)
  }
}

function compileKey(key: string): Walk {
  // A key that every object inherits is found only as an own key; for all others the plain look-up is the
  // same.
  if (key in Object.prototype)
    return (value) => (isRecord(value) && Object.hasOwn(value, key) ? value[key] : undefined)
  return (value) => (isRecord(value) ? value[key] : undefined)
}

/** The usual path, `gps.lat`, in one call. */
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

function compileSelect(step: SelectStep): Walk {
  const find = compileFindSelected(step)
  return (list) => (Array.isArray(list) ? (list[find(list)] as unknown) : undefined)
}

/** The place of the element that `[key=value]` selects; -1 for none. */
export function compileFindSelected({ key, value }: SelectStep): (list: readonly unknown[]) => number {
  const read = compileKey(key)
  // The number, or true or false, that is written like the text.
  const number = value === String(Number(value)) ? Number(value) : Number.NaN
  const truth = value === 'true' || (value === 'false' ? false : undefined)
  return (list) => {
    for (let at = 0; at < list.length; at += 1) {
      const found = read(list[at])
      if (found === value || found === number || (found === truth && truth !== undefined)) return at
    }
    return -1
  }
}

/** Of a text. More is no list of values of a vehicle, and takes memory for each. */
const partsMax = 10_000
const tooManyParts = new NoResult(`the text has more than ${partsMax} parts`)

function compileSplit(separator: string): Walk {
  return (value) => {
    if (typeof value !== 'string') return undefined
    const parts = value.split(separator, partsMax + 1)
    if (parts.length > partsMax) return tooManyParts
    for (let at = 0; at < parts.length; at += 1) parts[at] = (parts[at] ?? '').trim()
    return parts
  }
}

function compilePart(separator: string, index: number): Walk {
  return (value) => {
    if (typeof value !== 'string') return undefined
    let start = 0
    for (let left = index; left > 0; left -= 1) {
      const end = value.indexOf(separator, start)
      if (end === -1) return undefined
      start = end + separator.length
    }
    const end = value.indexOf(separator, start)
    return value.slice(start, end === -1 ? value.length : end).trim()
  }
}

function firstValue(value: unknown): unknown {
  if (!isRecord(value)) return undefined
  for (const key in value) if (Object.hasOwn(value, key)) return value[key]
  return undefined
}

export function entriesOf(value: unknown): unknown {
  if (!isRecord(value)) return undefined
  return Object.keys(value).map((key) => ({ key, value: value[key] }))
}

/** The value at these keys, such as `gps`, `altitude`; undefined where there is none. */
export function valueAt(values: unknown, keys: readonly string[]): unknown {
  let value = values
  for (const key of keys) value = isRecord(value) ? value[key] : undefined
  return value
}

/** A JSON object; not a list, null or a plain value. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Sets an own key of any name: an assignment to `__proto__` would set the prototype. */
export function setOwn(record: Record<string, unknown>, key: string, value: unknown): void {
  if (key !== '__proto__') record[key] = value
  else Object.defineProperty(record, key, { value, writable: true, enumerable: true, configurable: true })
}
