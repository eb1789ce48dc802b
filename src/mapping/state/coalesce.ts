// coalesce.ts: scalar topics become records. Vehicles that publish one value a message (OVMS, TeslaMate,
// Victron, OpenXC) say in a burst of them what others say in one.
//
//   a value comes      no record is open for its owner             it opens one
//                      the name is free                            it joins
//                      this very reading is there (name, value,    it is a duplicate: nothing changes
//                        own time)
//                      the name is taken, but one of `latest`      it takes the place of the one before
//                      the name is taken                           the record closes, a new one opens
//                      further from the record than `pairWithin`,  the same
//                        or the window is over
//   a record closes    window    so long after its first value
//                      complete  all names of `complete` are there
//                      repeat, apart, full, crowded
//   closed             all of `require` there and not null: a record to be mapped; else incomplete
//
// An owner is a device; for `merge` an asset, whose "values" are the halves that its sources contribute.
//
// Times. A record's own time is the newest among its required values', since a position is what the time is
// asked for; where none of those has one, the newest of all. Its arrival is that of its last value. Whether a
// value is in the window is judged by arrivals, so it matters little when tick() is called: a replay closes
// the same records.
//
// Durable state. Every value that is taken is one write: the whole record under its owner's key; closing
// deletes it. One entry a record and not one a value, measured with records of 20 values in LevelDB:
//
//                               entry a value          entry a record
//   each value its own fsync    277 us, 1.9 KB         277 us, 11.1 KB    a value, and bytes a record
//   a burst in one fsync        36 us, 1.9 KB          28 us, 1.1 KB      (of a key the last write counts)
//   left behind when it closes  20 tombstones          1 tombstone
//
// A burst is what these vehicles send, and a lone value costs its fsync whatever else is written. To write a
// record costs no copy of it: its bytes only grow (open-record.ts).
//
// Bounds, and what happens there
//   valuesMax, bytesMax of a record    it closes early (`full`), the value opens the next
//   recordsMax, openBytesMax in all    the record that was opened first closes early (`crowded`)
//   closedPerTickMax                   the rest is closed by the next tick, which is due at once
// A value that is too large for any record was refused before (see fits).

import type { EpochMs } from '../../std/clock.ts'
import {
  addValue,
  bytesOf,
  decodeRecord,
  frameBytesMax,
  hasReading,
  newRecord,
  type OpenRecord,
  type Value,
} from './open-record.ts'

export type CoalesceRules = {
  /** Without all of these, present and not null, a record is incomplete. */
  require: readonly string[]
  /** With all of these a record closes at once; empty: never early. */
  complete: readonly string[]
  /** Of these the newest value counts, and none closes a record. */
  latest: readonly string[]
  windowMs: number
  /** Infinity where values of one window always belong together. */
  pairWithinMs: number
}

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

/** What came of a step: records that closed, and what is to be kept (null: deleted), by owner. */
export type Step = { closed: ClosedRecord[]; kept: Map<string, Buffer | null> }

export type Coalescer = {
  /** Whether a value can stand in a record at all. */
  fits(name: string, text: string): boolean
  add(owner: string, value: Value, step: Step): 'taken' | 'duplicate'
  /** Closes what is over. */
  tick(nowMs: EpochMs, step: Step): void
  nextTickAt(): EpochMs | null
  /** Replaces everything by what was kept; tells what cannot be read. */
  restore(
    entries: Iterable<[owner: string, bytes: Buffer]>,
    damaged: (owner: string, why: string) => void,
  ): void
  /** Everything as it is kept. */
  entries(): Iterable<[owner: string, bytes: Buffer]>
  counters(): CoalesceCounters
}

export type CoalesceCounters = {
  /** Open now. */
  records: number
  messages: number
  bytes: number
  /** Since start. */
  values: number
  duplicates: number
  closed: Readonly<Record<WhyClosed, number>>
}

const closedPerTickMax = 1000

export function createCoalescer(rules: CoalesceRules, bounds: CoalesceBounds): Coalescer {
  /**
   * In the order in which they were opened, and so are due: the window is the same for all. Those of one millisecond may
   * change places over a restart.
   */
  let open = new Map<string, OpenRecord>()
  let openBytes = 0
  let openMessages = 0
  let values = 0
  let duplicates = 0
  const closed = { window: 0, complete: 0, repeat: 0, apart: 0, full: 0, crowded: 0 }
  return { fits, add, tick, nextTickAt, restore, entries, counters }

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
    else step.kept.set(owner, bytesOf(record))
    return 'taken'
  }

  function whyEnded(record: OpenRecord, value: Value): WhyClosed | null {
    if (isOver(record, value.arrivedAt)) return 'window'
    const known = record.values.has(value.name)
    if (known && !rules.latest.includes(value.name)) return 'repeat'
    if (isApart(record, value)) return 'apart'
    if (!known && record.values.size >= bounds.valuesMax) return 'full'
    return record.length + frameBytesMax(value.name, value.text) > bounds.bytesMax ? 'full' : null
  }

  /** Also over when the clock was set back beyond the window: nobody can tell how long it was open. */
  function isOver({ openedAt }: OpenRecord, nowMs: EpochMs): boolean {
    return Math.abs(nowMs - openedAt) >= rules.windowMs
  }

  function isApart(record: OpenRecord, { time, arrivedAt }: Value): boolean {
    if (Number.isNaN(time) || Number.isNaN(record.latest))
      return Math.abs(arrivedAt - record.openedAt) > rules.pairWithinMs
    return time - record.earliest > rules.pairWithinMs || record.latest - time > rules.pairWithinMs
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
    step.kept.set(owner, null)
    const time = timeOf(record)
    // Without a prototype, so that no name whatever means anything but a value.
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

  function tick(nowMs: EpochMs, step: Step): void {
    let left = closedPerTickMax
    for (const record of open.values()) {
      const over = isOver(record, nowMs)
      if (left === 0 || (!over && open.size <= bounds.recordsMax)) return
      close(record, over ? 'window' : 'crowded', step)
      left -= 1
    }
  }

  function nextTickAt(): EpochMs | null {
    for (const { openedAt } of open.values()) return openedAt + rules.windowMs
    return null
  }

  function restore(kept: Iterable<[string, Buffer]>, damaged: (owner: string, why: string) => void): void {
    const records: OpenRecord[] = []
    for (const [owner, bytes] of kept) {
      const decoded = decodeRecord(owner, bytes)
      if (decoded.kind === 'record') records.push(decoded.record)
      else damaged(owner, decoded.why)
    }
    records.sort((a, b) => a.openedAt - b.openedAt)
    open = new Map(records.map((record) => [record.owner, record]))
    openBytes = records.reduce((total, { length }) => total + length, 0)
    openMessages = records.reduce((total, { messages }) => total + messages, 0)
  }

  function* entries(): Generator<[string, Buffer]> {
    for (const record of open.values()) yield [record.owner, bytesOf(record)]
  }

  function counters(): CoalesceCounters {
    return {
      records: open.size,
      messages: openMessages,
      bytes: openBytes,
      values,
      duplicates,
      closed: { ...closed },
    }
  }
}
