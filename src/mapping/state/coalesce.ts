// coalesce.ts: collects single values into records. Vehicles that publish one value per message (OVMS,
// TeslaMate, Victron, OpenXC) send a burst of messages with the data that others send in one.
//
//   a value arrives    no record is open for its owner             it opens one
//                      the record has no value of its name         it is added
//                      the record has this reading (name, value,   it is a duplicate: nothing changes
//                        own time)
//                      the name is in use and is one of `latest`   it replaces the previous value
//                      the name is in use                          the record closes, a new one opens
//                      further from the record than `pairWithin`,  the same
//                        or the window is over
//                      half a position, and the other half has     the same
//                        another time (`position`)
//   a record closes    window    this long after its first value
//                      complete  it has all names of `complete`
//                      repeat, apart, full, crowded
//   after that         with all of `require`, not null: a record to be mapped; else it is incomplete
//
// An owner is a device; for `merge` an asset, whose "values" are the mapped records of its sources.
//
// Times. The own time of a record is the newest time of its required values, since the time belongs to the
// position; if none of those has one, the newest of all. Its arrival is that of its last value. The window is
// checked by arrivals, so the moment of tick() matters little: a replay closes the same records.
//
// Durable state. Every value taken is one write: the whole record under the key of its owner. Closing deletes
// it. One entry per record, not one per value, measured with records of 20 values in LevelDB:
//
//                                entry per value        entry per record
//   each value in its own fsync  277 us, 1.9 KB         277 us, 11.1 KB    time per value, bytes per record
//   a burst in one fsync         36 us, 1.9 KB          28 us, 1.1 KB      (of a key the last write counts)
//   left after it closed         20 tombstones          1 tombstone
//
// These vehicles send bursts, and a single value costs its fsync in any case. A write does not copy the
// record, because its bytes only grow (open-record.ts).
//
// Bounds
//   valuesMax, bytesMax of a record     it closes early (`full`), the value opens the next
//   recordsMax, openBytesMax in total   the record that was opened first closes early (`crowded`)
//   closedPerTickMax, closedBytesMax    the next tick, which is due at once, closes the rest
// A value that is too large for any record was refused before (see fits).

import type { EpochMs } from '../../std/clock.ts'
import {
  addValue,
  bytesOf,
  decodeRecord,
  frameBytesMax,
  hasReading,
  newRecord,
  storedFormOf,
  type OpenRecord,
  type Value,
} from './open-record.ts'
import type { Read } from '../path/path.ts'
import type { UnmappableReason } from '../reasons.ts'
import type { Place, Rejection } from '../types.ts'
import type { ReadTime } from '../times/times.ts'
import { zoneAdvice, zoneMissing, type Zone } from '../times/zones.ts'

export type CoalesceRules = {
  /** Without all of these a record is incomplete. A null value does not count. */
  require: readonly string[]
  /** With all of these a record closes at once; empty: only when its window is over. */
  complete: readonly string[]
  /** Of these the newest value counts. A repeated one does not close the record. */
  latest: readonly string[]
  windowMs: number
  /** Infinity where values of one window always belong together. */
  pairWithinMs: number
  /** Null where latitude and longitude are not two single values. */
  position: PositionRule | null
}

/** The names of latitude and longitude, each with the other; with times further apart they are two places. */
export type PositionRule = { halves: ReadonlyMap<string, string>; withinMs: number }

export type CoalesceBounds = {
  valuesMax: number
  bytesMax: number
  recordsMax: number
  openBytesMax: number
}

export type WhyClosed = 'window' | 'complete' | 'repeat' | 'apart' | 'full' | 'crowded'

export type ClosedRecord = {
  owner: string
  /** By name; `$time` is the record's own time in milliseconds, where it has one. */
  record: Record<string, unknown>
  /** NaN where no value has a time of its own. */
  time: EpochMs
  /** Arrival of the last value. */
  arrivedAt: EpochMs
  messages: number
  complete: boolean
  why: WhyClosed
}

/** The changes of a step: records that closed, and the entries to write (null: to delete) by owner. */
export type Step = { closed: ClosedRecord[]; writes: Map<string, Buffer | null> }

export type Coalescer = ReturnType<typeof createCoalescer>

const closedPerTickMax = 1000
const closedBytesMax = 1024 * 1024

export function createCoalescer(rules: CoalesceRules, bounds: CoalesceBounds) {
  /**
   * In the order in which they were opened, and so are due: all have the same window. The order within a
   * millisecond may change with a restart.
   */
  let open = new Map<string, OpenRecord>()
  let openBytes = 0
  let openMessages = 0
  let values = 0
  let duplicates = 0
  const closed = { window: 0, complete: 0, repeat: 0, apart: 0, full: 0, crowded: 0 }
  return { fits, add, tick, nextTickAt, restore, entries, counters }

  /** Whether a record can have the value at all. */
  function fits(name: string, text: string): boolean {
    return 1 + frameBytesMax(name, text) <= bounds.bytesMax
  }

  function add(owner: string, value: Value, step: Step): 'taken' | 'duplicate' {
    values += 1
    const before = open.get(owner)
    if (before !== undefined && !Number.isNaN(value.time) && hasReading(before, value)) {
      duplicates += 1
      return 'duplicate'
    }
    const end = before === undefined ? null : whyEnded(before, value)
    if (before !== undefined && end !== null) close(before, end, step)
    const record = before !== undefined && end === null ? before : opened(owner, value.arrivedAt, step)
    const { length, messages } = record
    addValue(record, value)
    openBytes += record.length - length
    openMessages += record.messages - messages
    if (isComplete(record)) close(record, 'complete', step)
    else step.writes.set(owner, bytesOf(record))
    return 'taken'
  }

  function whyEnded(record: OpenRecord, value: Value): WhyClosed | null {
    if (isOver(record, value.arrivedAt)) return 'window'
    const known = record.values.has(value.name)
    if (known && !rules.latest.includes(value.name)) return 'repeat'
    if (isApart(record, value) || isOtherPlace(record, value)) return 'apart'
    if (!known && record.values.size >= bounds.valuesMax) return 'full'
    return record.length + frameBytesMax(value.name, value.text) > bounds.bytesMax ? 'full' : null
  }

  /** Also over when the clock was set back by more than the window: the time that it was open is unknown. */
  function isOver({ openedAt }: OpenRecord, nowMs: EpochMs): boolean {
    return Math.abs(nowMs - openedAt) >= rules.windowMs
  }

  function isApart(record: OpenRecord, { time, arrivedAt }: Value): boolean {
    if (Number.isNaN(time) || Number.isNaN(record.latest))
      return Math.abs(arrivedAt - record.openedAt) > rules.pairWithinMs
    return time - record.earliest > rules.pairWithinMs || record.latest - time > rules.pairWithinMs
  }

  /** Where one half was lost, all further pairs would be of two places. Without times nothing tells. */
  function isOtherPlace({ values }: OpenRecord, { name, time }: Value): boolean {
    const { position } = rules
    const half = position?.halves.get(name)
    const other = half === undefined ? undefined : values.get(half)
    return position !== null && other !== undefined && Math.abs(other.time - time) > position.withinMs
  }

  function isComplete({ values }: OpenRecord): boolean {
    return rules.complete.length > 0 && rules.complete.every((name) => values.has(name))
  }

  function opened(owner: string, arrivedAt: EpochMs, step: Step): OpenRecord {
    while (isCrowded()) closeOldest('crowded', step)
    const record = newRecord(owner, arrivedAt)
    open.set(owner, record)
    openBytes += record.length
    return record
  }

  function isCrowded(): boolean {
    return open.size > 0 && (open.size >= bounds.recordsMax || openBytes >= bounds.openBytesMax)
  }

  function closeOldest(why: WhyClosed, step: Step): void {
    for (const record of open.values()) {
      close(record, why, step)
      return
    }
  }

  function close(record: OpenRecord, why: WhyClosed, step: Step): void {
    const { owner, values, arrivedAt, messages } = record
    open.delete(owner)
    openBytes -= record.length
    openMessages -= messages
    closed[why] += 1
    step.writes.set(owner, null)
    const time = timeOf(record)
    // Without a prototype, so that every name is only a value.
    const fields = Object.create(null) as Record<string, unknown>
    for (const [name, { value }] of values) fields[name] = value
    if (!Number.isNaN(time)) fields['$time'] = time
    const complete = rules.require.every((name) => (fields[name] ?? null) !== null)
    step.closed.push({ owner, record: fields, time, arrivedAt, messages, complete, why })
  }

  function timeOf({ values, latest }: OpenRecord): EpochMs {
    let newest = Number.NaN
    for (const name of rules.require) {
      const time = values.get(name)?.time ?? Number.NaN
      if (!(time <= newest)) newest = Number.isNaN(time) ? newest : time
    }
    return Number.isNaN(newest) ? latest : newest
  }

  /** Closes the records whose window is over. */
  function tick(nowMs: EpochMs, step: Step): void {
    let left = closedPerTickMax
    let bytes = 0
    for (const record of open.values()) {
      const over = isOver(record, nowMs)
      if (left === 0 || bytes >= closedBytesMax || (!over && open.size <= bounds.recordsMax)) return
      bytes += record.length
      close(record, over ? 'window' : 'crowded', step)
      left -= 1
    }
  }

  function nextTickAt(): EpochMs | null {
    for (const { openedAt } of open.values()) return openedAt + rules.windowMs
    return null
  }

  /** Replaces all records by stored ones; reports those that cannot be read. */
  function restore(stored: Iterable<[string, Buffer]>, damaged: (owner: string, why: string) => void): void {
    const records: OpenRecord[] = []
    for (const [owner, bytes] of stored) {
      const decoded = decodeRecord(owner, bytes)
      if (decoded.kind === 'record') records.push(decoded.record)
      else damaged(owner, decoded.why)
    }
    records.sort((a, b) => a.openedAt - b.openedAt)
    open = new Map(records.map((record) => [record.owner, record]))
    openBytes = records.reduce((total, { length }) => total + length, 0)
    openMessages = records.reduce((total, { messages }) => total + messages, 0)
  }

  /** All records in their stored form. */
  function* entries(): Generator<[string, Buffer]> {
    for (const record of open.values()) yield [record.owner, bytesOf(record)]
  }

  function counters() {
    return {
      // Open now.
      records: open.size,
      messages: openMessages,
      bytes: openBytes,
      // Since start.
      values,
      duplicates,
      closed: { ...closed },
    }
  }
}

// Reads a record of a source that coalesces as one named value.

/** The `coalesce` of a source, compiled. */
export type CompiledCoalesce = {
  rules: CoalesceRules
  /** The name of the value; '' where there is none. */
  name(place: Place): string
  /** The same where the topic alone names it, so that unused values are ignored before decoding. */
  nameOfTopic: ((captures: readonly string[]) => string) | null
  names: ReadonlySet<string>
  value: Read
  /** Null where values have no time. */
  time: ReadTime | null
}

/** A record as a value, or why it is none. `zone`: of its device. */
export function valueIn(
  { name: nameOf, names, value: read, time: readTime }: CompiledCoalesce,
  place: Place & { readonly arrivedAt: EpochMs },
  zone: Zone | null,
): Value | Exclude<Rejection, { kind: 'quarantined' }> {
  const name = nameOf(place)
  if (name === '') return refused('NO_NAME', 'The name of the value is missing or empty.')
  if (!names.has(name)) return { kind: 'ignored', reason: 'not wanted' }
  const found = read(place)
  if (found === undefined) return { kind: 'ignored', reason: 'no value' }
  const time = readTime === null ? Number.NaN : readTime(place, zone)
  if (time === zoneMissing)
    return refused('NO_ZONE', `The time of the value has no zone, and neither has the device: ${zoneAdvice}`)
  if (time === Number.POSITIVE_INFINITY)
    return refused('BAD_TIME', 'The time of the value is not in the format of the source.')
  const stored = storedFormOf(name, found)
  if (stored === null) return refused('TOO_LARGE', 'The value cannot be stored until its record closes.')
  return { name, ...stored, time, arrivedAt: place.arrivedAt, messages: 0 }
}

function refused(reason: UnmappableReason, detail: string): Extract<Rejection, { kind: 'refused' }> {
  return { kind: 'refused', reason, detail }
}
