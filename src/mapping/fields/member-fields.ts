// member-fields.ts: the values of a payload beside its coordinates and signals, as members of JSON objects:
// speed, heading and motion, and `map.fields`: payload fields beyond those of the interface, such as
// `gps.altitude`, `trip.driver`.
//
// Names nest at their dots; the fields of one object keep the order of the config. Values of another type
// than the configured one are omitted and counted: a type that changes could make the service refuse the
// payload.
import type { Read } from '../path/path.ts'
import { isWithoutValue, rejects, type Bounds } from '../plausibility/plausibility.ts'
import { notingWritten, type Notable } from './field-notes.ts'
import { jsonString } from './json-string.ts'
import type { Convert } from './units.ts'
import { booleanFrom, numberFrom } from '../path/value.ts'
import type { RecordContext } from '../types.ts'

/** `,"name":value` each, or ''. */
export type WriteMembers = (context: RecordContext) => string

export type MemberField = Notable & {
  source: string
  /** As in `map`: `speed`, `gps.altitude`. */
  name: string
  /** The keys of the nested objects, without `gps`. */
  keys: readonly string[]
  kind: 'number' | 'text' | 'boolean'
  read: Read
  convert: Convert
  /** Of a number; null where it has none. */
  bounds: Bounds | null
  /** Below zero means "unknown" to many receivers: left out and counted. */
  neverNegative: boolean
  /** Motion may follow from it. */
  isSpeed: boolean
  /** A double beyond 2^53, which stands for several whole numbers, is not sent. */
  isExact: boolean
  /** What is counted where the value is of another kind. */
  otherKind: string
  /** What stands behind the value. */
  tail: string
  /** Its bit among the fields of the source (lost-fields/watched-fields.ts); 0 for none. */
  bit: number
}

/** Null for an empty list. */
export function compileMembers(fields: readonly MemberField[]): WriteMembers | null {
  return fields.length === 0 ? null : joined(membersOf(fields, 0))
}

/** One key of an object, with its bit; 0 for an object of several fields. */
type Member = { bit: number; write: WriteMembers }

function joined(members: readonly Member[]): WriteMembers {
  return (context) => {
    let all = ''
    for (const { bit, write } of members) {
      if ((context.unwanted & bit) !== 0) continue
      const text = write(context)
      if (text === '') continue
      context.present |= bit
      all += text
    }
    return all
  }
}

function membersOf(fields: readonly MemberField[], depth: number): Member[] {
  const groups = Map.groupBy(fields, ({ keys }) => keys[depth] ?? '')
  return [...groups].map(([key, members]) => {
    const head = `,${jsonString(key)}:`
    const [only] = members
    if (only && members.length === 1 && only.keys.length === depth + 1)
      return { bit: only.bit, write: notingWritten(only, writers[only.kind](only, head)) }
    return { bit: 0, write: compileObject(head, joined(membersOf(members, depth + 1))) }
  })
}

function compileObject(head: string, write: WriteMembers): WriteMembers {
  return (context) => {
    const text = write(context)
    return text === '' ? '' : `${head}{${text.slice(1)}}`
  }
}

const writers: Readonly<Record<MemberField['kind'], (field: MemberField, head: string) => WriteMembers>> = {
  number(field, head) {
    const { source, name, read, convert, bounds, neverNegative, isExact, isSpeed, otherKind, tail } = field
    const unread = `${source}|${name}|${otherKind}`
    const inexact = `${source}|${name}|not exact`
    const negative = `${source}|${name}|negative`
    return (context) => {
      const written = numberFrom(read(context))
      const value = convert(written)
      if (Number.isNaN(value)) return ''
      if (!Number.isFinite(value)) return leftOut(context, unread)
      if (isExact && isRounded(value)) return leftOut(context, inexact)
      if (neverNegative && value < 0) return leftOut(context, negative)
      const isOutside = bounds !== null && !(value >= bounds.min && value <= bounds.max)
      if (isOutside && rejects(bounds, value, context)) return ''
      if (bounds !== null && isWithoutValue(bounds, value, written, context)) return ''
      if (isSpeed) context.speed = value
      return `${head}${value}${tail}`
    }
  },
  boolean({ source, name, read, otherKind }, head) {
    const texts = { true: `${head}true`, false: `${head}false` }
    const unread = `${source}|${name}|${otherKind}`
    return (context) => {
      const value = booleanFrom(read(context))
      if (value === null) return leftOut(context, unread)
      return value === undefined ? '' : value ? texts.true : texts.false
    }
  },
  text({ source, name, read, otherKind }, head) {
    const unread = `${source}|${name}|${otherKind}`
    const inexact = `${source}|${name}|not exact`
    return (context) => {
      const value = read(context)
      if (typeof value === 'string') return value === '' ? '' : head + jsonString(value)
      // Written with an exponent or a point; the digits of whole numbers come as a text.
      if (typeof value === 'number' && isRounded(value)) return leftOut(context, inexact)
      if (typeof value === 'number' || typeof value === 'boolean') return `${head}"${value}"`
      return value === undefined || value === null ? '' : leftOut(context, unread)
    }
  },
}

function leftOut(context: RecordContext, key: string): string {
  context.omit(key)
  return ''
}

/** An infinity (1e400) stands for all numbers beyond the doubles. */
function isRounded(value: number): boolean {
  return Math.abs(value) > Number.MAX_SAFE_INTEGER
}
