// unread-keys.ts: finds the keys of a message that no path of its source reads, for a person who looks for a
// value that is missing. It costs time with the size of the message, and runs only for explanations and for
// messages that are refused because something is missing.
//
//   {"lat":47.1,"Longitud":1.4,"spd":54}   nothing reads Longitud, spd
//
// Each path is followed through the message and marks the place where it ends. What has a value and no mark,
// and is not inside of a marked value, is unread. Elements of lists count once: `records[].spd`. A condition
// that asks for an object, as `exists(payload)` does, reads nothing in it. What `unused` of the source names
// counts as read.

import { assertNever } from '../../std/assert.ts'
import { fieldNear } from '../fields/field-names.ts'
import type { SourceConfig } from '../config.ts'
import { holderOf } from '../extract/decoded-positions.ts'
import { findPositions } from '../positions/positions.ts'
import { compileFindSelected, isRecord, type Step } from './path-eval.ts'
import type { Path } from './path.ts'
import type { ExpressionRead, ReadStep } from '../expression/reads.ts'
import { pathIn, pathsReadBy } from './paths-used.ts'
import type { Place } from '../types.ts'

export type UnreadKeys = {
  /** As paths; those that are similar to a known name first. */
  keys: readonly string[]
  /** Further ones. */
  more: number
  /** The fields that they may be. */
  near: readonly string[]
  /** Where not all was looked at: what was, such as `its first 5000 values`. */
  partOf?: string
}

type Holder = Record<string, unknown> | readonly unknown[]

/** Keys that a path ends at, by the object or list that holds them. */
type Marks = Map<Holder, Set<string>>

export const keysMax = 8

/** Values of a message that are looked at, and keys that are named. */
export type UnreadLimits = { visitsMax: number; keysMax?: number }

const depthMax = 16
/** Of a list or an object, of which an expression reads all elements or keys. */
const insideMax = 1000

/** What a source reads, of its plan: the paths of its options, as their parser gives them. */
export type SourceReads = {
  /** Of a message; of a source that collects, of the record that was collected. */
  readonly record: Reads
  /** Of a message of a source that collects: its name, value, time and device. */
  readonly part: Reads | null
}

export type Reads = {
  readonly paths: readonly ExpressionRead[]
  /** What is unpacked of a message, and where positions are found in it. */
  readonly fromRoot: readonly ExpressionRead[]
  readonly unpacked: ReadonlySet<string>
  readonly decoded: readonly Path[]
}

export function readsOfSource(source: SourceConfig): SourceReads {
  const { each: _each, extract, ...options } = source
  const { coalesce, device, unused } = source
  if (coalesce === undefined) return { record: readsOf(options, extract, unused), part: null }
  const { coalesce: _coalesce, device: _device, ...collected } = options
  // The names that complete a record are used, and the time is that of the record.
  const { require = [], complete = [], latest = [] } = coalesce
  const needed = ['$time', ...require, ...complete, ...latest].map((name) => JSON.stringify(name))
  return {
    record: readsOf(collected, extract, [...unused, ...needed]),
    part: readsOf({ device, coalesce, value: { path: coalesce.value } }, [], unused),
  }
}

function readsOf(options: object, extract: SourceConfig['extract'], unused: readonly string[]): Reads {
  const whole = (text: string) => pathIn(text).map((path) => ({ path, below: [], isWhole: true }))
  return {
    paths: [...pathsReadBy(options), ...unused.flatMap(whole)],
    fromRoot: extract.flatMap(({ as, from, when }) => [
      ...(as === 'positions' ? [] : [from]).flat().flatMap(whole),
      ...pathsReadBy({ when }),
    ]),
    unpacked: new Set(extract.map(({ into }) => into)),
    decoded: extract
      .filter((one) => one.as === 'positions')
      .flatMap(({ from }) => [from].flat().flatMap(pathIn)),
  }
}

/** `value`: where to look for unread keys. `places`: the records in it. */
export function findUnread(
  { paths, fromRoot, unpacked, decoded }: Reads,
  value: unknown,
  places: readonly Place[],
  limits: UnreadLimits,
): UnreadKeys {
  const marks: Marks = new Map()
  const root = places[0]?.root ?? value
  for (const path of decoded) {
    const { holder: find, key } = holderOf(path)
    const holder = find(root)
    if (!isRecord(holder)) continue
    findPositions(holder[key], (object, read) => add(marks, object, read))
    // The records are copies of this object.
    for (const each of paths) markAt(each, { record: holder, root, up: undefined, captures: [] }, marks)
  }
  // Without a record there are still paths that start at the message.
  const none = { record: undefined, root: value, up: undefined, captures: [] }
  for (const place of places.length > 0 ? places : [none])
    for (const path of paths) markAt(path, place, marks)
  for (const record of [root].flat().slice(0, limits.visitsMax))
    for (const path of fromRoot) markAt(path, { record, root, up: undefined, captures: [] }, marks)
  return unreadIn(value, { isRead: isMarked(marks), unpacked, ...limits })
}

function isMarked(marks: Marks): IsRead {
  return (holder, key) => marks.get(holder)?.has(key) === true
}

/** `It has "spd", which nothing reads; near: speed.`; '' where everything is read. */
export function unreadText({ keys, more, near, partOf }: UnreadKeys): string {
  if (keys.length === 0) return ''
  const others = more === 0 ? '' : ` and ${more} more`
  const fields = near.length === 0 ? '' : `; near: ${near.join(', ')}`
  const where = partOf === undefined ? '' : ` (of ${partOf})`
  return `The message has ${keys.map((key) => `\`${key}\``).join(', ')}${others}, which nothing reads${where}${fields}.`
}

function markAt({ path, below, isWhole }: ExpressionRead, place: Place, marks: Marks): void {
  mark(startOf(path, place), [...path.steps, ...below], { marks, isWhole })
}

function startOf({ from, levels }: Path, { record, root, up }: Place): unknown {
  // A previous value is read in each record, for the next one.
  if (from === 'record' || from === 'previous') return record
  if (from === 'root') return root
  let outer = up
  for (let left = levels; left > 1; left -= 1) outer = outer?.up
  return outer?.record
}

function mark(
  start: unknown,
  steps: readonly ReadStep[],
  { marks, isWhole }: { marks: Marks; isWhole: boolean },
): void {
  let value = start
  let slot: { holder: Holder; key: string } | null = null
  let readsWhole = isWhole
  for (const [at, step] of steps.entries()) {
    if (step.kind === 'each' || step.kind === 'each value') {
      if (isHolder(value) && Array.isArray(value) === (step.kind === 'each'))
        markInside(value, steps.slice(at), { marks, isWhole })
      return
    }
    // Parts of a text or a number, and all entries of an object: what is there is read as a whole.
    if (isOfWhole(step)) {
      readsWhole = true
      break
    }
    const key = keyOf(step, value)
    if (key === undefined) return
    if (step.kind === 'select') markSelector(value, Number(key), step.key, marks)
    const holder = value as Holder
    slot = { holder, key }
    value = (holder as Record<string, unknown>)[key]
  }
  if (slot && (readsWhole || !isHolder(value))) add(marks, slot.holder, slot.key)
}

/** What is no object or list is read itself. */
function markInside(
  holder: Holder,
  [each, ...steps]: readonly ReadStep[],
  options: { marks: Marks; isWhole: boolean },
): void {
  const isChosen = each?.kind === 'each' ? each.holds : undefined
  let left = insideMax
  for (const [key, value] of entriesOf(holder)) {
    if (left === 0) return
    left -= 1
    if (isChosen?.(value) === false) continue
    if (!isHolder(value) || (steps.length === 0 && options.isWhole)) add(options.marks, holder, key)
    else mark(value, steps, options)
  }
}

type WholeStep = Extract<Step, { kind: 'split' | 'entries' }>

function isOfWhole(step: Step): step is WholeStep {
  return step.kind === 'split' || step.kind === 'entries'
}

/** The key of `value` that the step goes to; undefined where there is none. */
function keyOf(step: Exclude<Step, WholeStep>, value: unknown): string | undefined {
  switch (step.kind) {
    case 'key':
      return isRecord(value) && Object.hasOwn(value, step.key) ? step.key : undefined
    case 'first':
      return isRecord(value) ? Object.keys(value)[0] : undefined
    case 'element':
      return Array.isArray(value) ? elementKey(placeOf(step.index, value.length), value) : undefined
    case 'select':
      return Array.isArray(value) ? elementKey(compileFindSelected(step)(value), value) : undefined
    default:
      return assertNever(step)
  }
}

function elementKey(at: number, list: readonly unknown[]): string | undefined {
  return at >= 0 && at < list.length ? String(at) : undefined
}

function placeOf(index: number, length: number): number {
  return index < 0 ? length + index : index
}

function markSelector(list: unknown, at: number, key: string, marks: Marks): void {
  const chosen: unknown = Array.isArray(list) ? list[at] : undefined
  if (isRecord(chosen)) add(marks, chosen, key)
}

function add(marks: Marks, holder: Holder, key: string): void {
  const known = marks.get(holder)
  if (known) known.add(key)
  else marks.set(holder, new Set([key]))
}

/** Whether the value at `key` is read; `path` are the keys above it, without places in lists. */
type IsRead = (holder: Holder, key: string, path: readonly string[]) => boolean

type UnreadOptions = UnreadLimits & { isRead: IsRead; unpacked: ReadonlySet<string> }

export function unreadIn(
  root: unknown,
  { isRead, unpacked, visitsMax, keysMax: most = keysMax }: UnreadOptions,
): UnreadKeys {
  const found = new Map<string, string | undefined>()
  let visits = 0
  const unpackedAt = Array.isArray(root) ? 1 : 0
  visit(root, '', [])
  const isNear = (path: string) => (found.get(path) === undefined ? 1 : 0)
  const keys = [...found.keys()].sort((a, b) => isNear(a) - isNear(b))
  const near = [...new Set([...found.values()].filter((field) => field !== undefined))]
  const unread = { keys: keys.slice(0, most), more: Math.max(0, keys.length - most), near }
  return visits > visitsMax ? { ...unread, partOf: `its first ${visitsMax} values` } : unread

  function visit(holder: unknown, path: string, above: readonly string[], depth = 0): void {
    if (!isHolder(holder) || depth > depthMax) return
    const inList = isList(holder)
    for (const [key, value] of entriesOf(holder)) {
      visits += 1
      if (visits > visitsMax) return
      if (isRead(holder, key, above) || (depth === unpackedAt && unpacked.has(key))) continue
      const own = inList ? `${path}[]` : path === '' ? stepText(key) : `${path}.${stepText(key)}`
      if (isHolder(value)) visit(value, own, inList ? above : [...above, key], depth + 1)
      else if (value !== null && value !== '') found.set(own, inList ? undefined : fieldNear(key))
    }
  }
}

/** One by one: a list of all entries of a large message would cost more than the few that are looked at. */
function* entriesOf(holder: Holder): Generator<[key: string, value: unknown]> {
  if (isList(holder)) for (let at = 0; at < holder.length; at += 1) yield [String(at), holder[at]]
  else for (const key in holder) if (Object.hasOwn(holder, key)) yield [key, holder[key]]
}

function isList(holder: Holder): holder is readonly unknown[] {
  return Array.isArray(holder)
}

function isHolder(value: unknown): value is Holder {
  return typeof value === 'object' && value !== null && !Buffer.isBuffer(value)
}

/** A key as it is written in a path. */
export function stepText(key: string): string {
  return /^[A-Za-z_][\w-]{0,63}$/.test(key) ? key : JSON.stringify(key.slice(0, 64))
}
