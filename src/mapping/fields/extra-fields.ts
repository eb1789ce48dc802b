// extra-fields.ts: `map.fields`: payload fields beyond those of the interface, as text: `gps.altitude`,
// `trip.driver`.
//
// Names nest at their dots; the fields of one object keep the order of the config. Values of another type
// than the configured one are omitted and counted: a type that changes could make the service refuse the
// payload.
import type { Read } from '../path/path.ts'
import { rejects, type Bounds } from '../plausibility/plausibility.ts'
import { jsonString } from './json-string.ts'
import type { Convert } from './units.ts'
import type { Condition } from '../expression/expression.ts'
import { booleanFrom, numberFrom } from '../path/value.ts'
import type { RecordContext } from '../types.ts'

/** `,"name":value` each, or ''. */
export type WriteExtraFields = (context: RecordContext) => string

export type ExtraField = {
  source: string
  /** As in the config. */
  name: string
  /** The keys of the nested objects, without `gps`. */
  keys: readonly string[]
  kind: 'number' | 'text' | 'boolean'
  read: Read
  convert: Convert
  /** Of a number; null where it has none. */
  bounds: Bounds | null
  when: Condition | null
  /** Its bit among the fields of the source (lost-fields/watched-fields.ts); 0 for none. */
  bit: number
}

/** Null for an empty list. */
export function compileExtraFields(fields: readonly ExtraField[]): WriteExtraFields | null {
  if (fields.length === 0) return null
  const writers = membersOf(fields, 0)
  return (context) => {
    let text = ''
    for (const write of writers) text += write(context)
    return text
  }
}

function membersOf(fields: readonly ExtraField[], depth: number): WriteExtraFields[] {
  const groups = Map.groupBy(fields, ({ keys }) => keys[depth] ?? '')
  return [...groups].map(([key, members]) => {
    const [only] = members
    if (only && members.length === 1 && only.keys.length === depth + 1) return compileMember(key, only)
    return compileObject(key, membersOf(members, depth + 1))
  })
}

function compileObject(key: string, members: readonly WriteExtraFields[]): WriteExtraFields {
  const head = `,${jsonString(key)}:{`
  return (context) => {
    let text = ''
    for (const write of members) text += write(context)
    return text === '' ? '' : `${head}${text.slice(1)}}`
  }
}

function compileMember(key: string, field: ExtraField): WriteExtraFields {
  const { when, bit } = field
  const write = compileValue(key, field)
  return (context) => {
    if ((context.unwanted & bit) !== 0) return ''
    if (when !== null && !when(context.record, context.root, context.captures, context.up)) return ''
    const text = write(context)
    if (text !== '') context.present |= bit
    return text
  }
}

/** A double beyond 2^53 stands for several whole numbers. */
function isRounded(value: number): boolean {
  return Number.isFinite(value) && Math.abs(value) > Number.MAX_SAFE_INTEGER
}

function compileValue(key: string, field: ExtraField): WriteExtraFields {
  const { source, name, kind, read, convert, bounds } = field
  const head = `,${jsonString(key)}:`
  const unread = `${source}|${name}|not a ${kind}`
  const inexact = `${source}|${name}|not exact`
  const found = ({ record, root, up, captures }: RecordContext) => read(record, root, up, captures)
  switch (kind) {
    case 'number':
      return (context) => {
        const value = convert(numberFrom(found(context)))
        if (isRounded(value)) {
          context.omit(inexact)
          return ''
        }
        if (Number.isFinite(value)) {
          const isOutside = bounds !== null && !(value >= bounds.min && value <= bounds.max)
          return isOutside && rejects(bounds, value, context) ? '' : `${head}${value}`
        }
        if (!Number.isNaN(value)) context.omit(unread)
        return ''
      }
    case 'boolean':
      return (context) => {
        const value = booleanFrom(found(context))
        if (value === true || value === false) return `${head}${value}`
        if (value === null) context.omit(unread)
        return ''
      }
    case 'text':
    default:
      return (context) => {
        const value = found(context)
        if (typeof value === 'string') return value === '' ? '' : head + jsonString(value)
        // Written with an exponent or a point; the digits of whole numbers come as a text.
        if (typeof value === 'number' && isRounded(value)) {
          context.omit(inexact)
          return ''
        }
        if (typeof value === 'number' || typeof value === 'boolean') return `${head}"${value}"`
        if (value !== undefined && value !== null) context.omit(unread)
        return ''
      }
  }
}
