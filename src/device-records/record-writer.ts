// record-writer.ts: keeps the records on the disk, and reads them after a start.
//
//   start   the records are read in pages while messages come in already. A record that exists by then gets
//           the numbers of the stored one added
//   new     the record of a device that is not on the disk yet is written beside the write of its first
//           message, and again with what more is noted: a kill -9 leaves no device unknown whose message is
//           acknowledged. At most `newPerRound` in 10 s; of more devices, the others wait for their round
//   every   records that changed are written, those that wait a minute, the longest first: at most
//   10 s    `recordsPerRound`. So the disk gets a bounded number of bytes however many devices send
//   hourly  records without a message for `retentionMs` are removed, while the time is known
//   acts    what a person says of a device (forget, mute) is written at once, and synced
//   stop    all that changed are written
//
// Other writes are not synced: after a power cut the changes of the last minutes may be missing, after
// kill -9 those of the last minute of devices that are known. While the store cannot be used, the records are
// in memory only, and the next round tries again.

import type { CancelTimer, Clock, EpochMs } from '../std/clock.ts'
import type { WithheldValue } from '../domain/payload.ts'
import type { Store, StoreOp } from '../storage/storage.ts'
import {
  decodeRecord,
  encodeRecord,
  recordKey,
  recordRange,
  type StoredRecord,
} from './device-record-codec.ts'
import { endHour, hoursKept, mergePauses } from './row-history.ts'
import { column, hoursColumn, pausesColumn, keyOf, storedNumbers, type RecordTable } from './record-table.ts'
import { redated } from './record-times.ts'
import type { DeviceRecord, Loss, UnknownClock } from './types.ts'

/** The records database. `use` gives null where it is not open, or the work failed; it never rejects. */
export type RecordsStore = {
  use<Result>(work: (store: Pick<Store, 'write' | 'pages'>) => Promise<Result>): Promise<Result | null>
}

export type RecordWriter = {
  start(): void
  changed(record: DeviceRecord): void
  removed(record: DeviceRecord): void
  /** Adds what was noted in `former`, which is removed. */
  absorb(record: DeviceRecord, former: DeviceRecord): void
  /** Whether the stored records were read. */
  restored(): boolean
  /** Resolves with that, after the round that runs: the first one reads them. Never rejects. */
  whenRestored(): Promise<boolean>
  /** Deletes the stored records of these keys; false where that was not possible. Never rejects. */
  deleteStored(keys: readonly string[]): Promise<boolean>
  /** Writes these records now. Where that fails, they wait for the next rounds. Never rejects. */
  writeNow(records: readonly DeviceRecord[]): Promise<void>
  counters(): { written: number; waiting: number; unreadable: number; expired: number }
  /** Never rejects. */
  stop(deadline: AbortSignal): Promise<void>
}

export type WriterOptions = {
  retentionMs: number
  everyMs: number
  recordsPerRound: number
  newPerRound: number
  /** Rounds that a changed record waits. */
  roundsToWait: number
}

type Deps = {
  clock: Clock
  store: RecordsStore
  table: RecordTable
  /** The withheld values of the device, those of the mapping in force included. */
  withheldOf: (record: DeviceRecord) => readonly WithheldValue[]
  /** Null while the time is not known. */
  knownTime: () => EpochMs | null
  /** Whether `clock` is known to be right. */
  isTimeKnown: () => boolean
  bootId: string
  /** The disk has little room: nothing is written. */
  isDiskLow: () => boolean
}

const slice = 200
const hourMs = 3_600_000
const expireEveryRounds = 360

export function createRecordWriter(deps: Deps, options: WriterOptions): RecordWriter {
  const { clock, store, table, withheldOf, knownTime, isTimeKnown, isDiskLow } = deps
  /** Those that are not on the disk, and the others with the round of the change; the first change first. */
  const fresh = new Set<DeviceRecord>()
  const waiting = new Map<DeviceRecord, number>()
  const removals: string[] = []
  const counters = { written: 0, unreadable: 0, expired: 0 }
  let round = 0
  /** What of this round is left for records that are not on the disk. */
  let freshLeft = options.newPerRound
  let isWritingFresh = false
  let restored = false
  let wasTimeKnown = false
  let cancel: CancelTimer = () => {}
  let running: Promise<void> = Promise.resolve()
  let stopped = false
  return {
    start() {
      running = run()
    },
    changed,
    removed(record) {
      fresh.delete(record)
      waiting.delete(record)
      // At most those that were written: a flood of invented names adds none.
      if (record.isStored) removals.push(record.key)
      record.isStored = false
    },
    absorb,
    restored() {
      return restored
    },
    async whenRestored() {
      if (!restored) await running
      return restored
    },
    deleteStored: (keys) => write(keys.map(deletionOf), { sync: true }),
    async writeNow(records) {
      if (records.length === 0) return
      if (!(await write(records.map(put), { sync: true }))) for (const record of records) changed(record)
    },
    counters: () => ({ ...counters, waiting: fresh.size + waiting.size }),
    stop,
  }

  function changed(record: DeviceRecord): void {
    record.isDirty = true
    if (record.isStored) {
      waiting.set(record, round)
      return
    }
    fresh.add(record)
    // Never rejects: `use` does not.
    if (restored && !stopped && !isWritingFresh) void writeFresh()
  }

  async function writeFresh(): Promise<void> {
    isWritingFresh = true
    while (!isDiskLow()) {
      const some = [...fresh].slice(0, Math.min(slice, freshLeft))
      if (some.length === 0) break
      freshLeft -= some.length
      const ops = some.map(put)
      for (const record of some) {
        fresh.delete(record)
        // The rest of the message is not noted yet.
        changed(record)
      }
      await write(ops)
    }
    isWritingFresh = false
  }

  async function write(ops: StoreOp[], { sync } = { sync: false }): Promise<boolean> {
    const written = await store.use(async (open) => {
      await open.write(ops, { sync })
      return true
    })
    if (written !== null) counters.written += ops.length
    return written !== null
  }

  function schedule(): void {
    cancel = clock.after(options.everyMs, () => {
      running = run()
    })
  }

  /** Never rejects: `use` does not. */
  async function run(): Promise<void> {
    round += 1
    freshLeft = options.newPerRound
    if (!restored) await restore()
    if (restored) await writeRound(null)
    if (restored && round % expireEveryRounds === 0) expire()
    if (!stopped) schedule()
  }

  async function restore(): Promise<void> {
    const done = await store.use(async ({ pages }) => {
      for await (const page of pages(recordRange, { pageBytes: 256 * 1024 })) {
        for (const [, value] of page) take(decodeRecord(value))
        if (stopped) return false
      }
      return true
    })
    restored = done === true
  }

  function presentClock(): UnknownClock {
    return { bootId: deps.bootId, bootAt: clock.now() - clock.monotonic() }
  }

  function take(stored: StoredRecord | null): void {
    if (stored === null) {
      counters.unreadable += 1
      return
    }
    const live = table.find(keyOf(stored))
    const record = live ?? table.add(stored, stored.isListed)
    if (record === null) return
    merge(record, redated(stored, presentClock(), clock.now()), live !== undefined)
  }

  function absorb(record: DeviceRecord, former: DeviceRecord): void {
    const options = { withheld: former.withheld, unknownClock: null }
    const stored = decodeRecord(encodeRecord(former, table.numbers(), options))!
    const { isStored, withheld } = record
    table.remove(former)
    merge(record, stored, true)
    // What is withheld is counted by the name of the device.
    if (withheld.length > 0) record.withheld = withheld
    record.isStored = isStored
    changed(record)
  }

  function merge(record: DeviceRecord, stored: StoredRecord, isLive: boolean): void {
    record.isStored = true
    const numbers = table.numbers()
    const { base } = record
    const hourBefore = hourBeforeOf(record, stored)
    mergeHours(record, stored)
    mergePauses({ numbers, base: base + pausesColumn }, stored.pauses ?? [])
    const hasPosition = numbers[base + column.positionArrivedAt] !== 0
    for (let index = 0; index < storedNumbers; index += 1) {
      if (hasPosition && index >= column.positionAt && index <= column.longitude) continue
      const value = stored.numbers[index] ?? 0
      const now = numbers[base + index]!
      if (index === column.messages || index === column.duplicates) numbers[base + index] = now + value
      else if (index === column.firstAt || now === 0) numbers[base + index] = value
    }
    if (isLive) numbers[base + column.hourBefore] = hourBefore
    if (!isLive || numbers[base + column.gapCount] === 0) {
      numbers.set(stored.gaps, base + column.gaps)
      numbers[base + column.gapCount] = stored.gaps.length
    }
    numbers[base + column.used] = 1
    if (!isLive) {
      // Another device, which sent since the start, may have its asset.
      if (table.ofAsset({ device: stored.assetId, provider: stored.provider }) === undefined)
        table.setAsset(record, stored.assetId)
      else record.assetId = stored.assetId
      record.isListed = stored.isListed
      record.isPrivate = stored.isPrivate
    }
    record.sender ??= stored.sender
    record.from ??= stored.from ?? null
    record.source ??= stored.source ?? null
    record.mutedUntil ??= stored.mutedUntil ?? null
    record.accepted ??= stored.accepted
    record.refused ??= stored.refused && { times: 1, ...stored.refused }
    record.skewMs ??= stored.skewMs
    record.withheld = stored.withheld
    record.losses = mergedLosses(record, stored)
    if (!isLive) record.isFixed = stored.isFixed
    if (!isLive && stored.isLost === true) record.became = 'lost'
    record.isUndated = !isLive && stored.unknownClock !== undefined
    if (record.isPrivate) numbers[base + column.positionArrivedAt] = 0
  }

  /** Before the numbers are merged: `hourAt` is still that of this process. */
  function mergeHours({ base }: DeviceRecord, { numbers: stored, hours }: StoredRecord): void {
    const numbers = table.numbers()
    const places = hours.slice(0, hoursKept).map((count) => (count >= 0 ? count : 0))
    const own = numbers[base + column.hourAt]!
    const present = { hourAt: stored[column.hourAt] ?? 0, hourCount: stored[column.hourCount] ?? 0 }
    const row = Float64Array.from({ length: hoursKept }, (_, index) => places[index] ?? 0)
    // It sent before the stored record was read: what that says of the hours before is added.
    if (own > present.hourAt) endHour({ numbers: row, base: 0 }, present, own)
    if (own === 0 || own > present.hourAt)
      for (const [index, count] of row.entries()) numbers[base + hoursColumn + index]! += count
    else if (own === present.hourAt) {
      numbers[base + column.hourCount]! += present.hourCount
      for (const [index, count] of row.entries()) numbers[base + hoursColumn + index]! += count
    }
  }

  /** Messages of the hour before that of this process. */
  function hourBeforeOf({ base }: DeviceRecord, { numbers: stored }: StoredRecord): number {
    const numbers = table.numbers()
    const hoursAgo = (numbers[base + column.hourAt]! - (stored[column.hourAt] ?? 0)) / hourMs
    if (numbers[base + column.hourBefore]! > 0 || hoursAgo < 0 || hoursAgo > 1)
      return numbers[base + column.hourBefore]!
    return stored[hoursAgo === 0 ? column.hourBefore : column.hourCount] ?? 0
  }

  /** What was noted before is right now, or was moved. The disk still has it as times of an unknown clock. */
  function noteKnownTime(): void {
    const isKnown = isTimeKnown()
    if (isKnown && !wasTimeKnown)
      for (const record of table.all()) if (record.isUndated && !record.isDirty) changed(record)
    wasTimeKnown = isKnown
  }

  /** `deadline`: of a stop, which writes all that changed. */
  async function writeRound(deadline: AbortSignal | null): Promise<void> {
    if (isDiskLow()) return
    noteKnownTime()
    const isAll = deadline !== null
    if (isAll) freshLeft = Number.POSITIVE_INFINITY
    const left = { known: isAll ? Number.POSITIVE_INFINITY : options.recordsPerRound }
    for (;;) {
      if (deadline?.aborted === true) return
      const gone = removals.splice(0, slice)
      const ops = nextOps(gone, left, isAll)
      if (ops.length === 0) return
      if (await write(ops)) continue
      removals.unshift(...gone)
      return
    }
  }

  /** A change that could not be written is lost: the next one of the device writes all of it again. */
  function nextOps(gone: readonly string[], left: { known: number }, isAll: boolean): StoreOp[] {
    const ops = gone.map(deletionOf)
    for (const record of fresh) {
      if (ops.length >= slice || freshLeft <= 0) break
      fresh.delete(record)
      freshLeft -= 1
      ops.push(put(record))
    }
    for (const [record, since] of waiting) {
      if (ops.length >= slice || left.known <= 0) break
      if (!isAll && round - since < options.roundsToWait) break
      waiting.delete(record)
      left.known -= 1
      ops.push(put(record))
    }
    return ops
  }

  function put(record: DeviceRecord): StoreOp {
    record.isDirty = false
    record.isStored = true
    const isOfThisProcess = table.numbers()[record.base + column.number] !== 0
    record.isUndated = !isTimeKnown() && (isOfThisProcess || record.isUndated)
    const unknownClock = record.isUndated ? presentClock() : null
    const value = encodeRecord(record, table.numbers(), { withheld: withheldOf(record), unknownClock })
    return { type: 'put', key: recordKey(record.key), value }
  }

  function deletionOf(key: string): StoreOp {
    return { type: 'del', key: recordKey(key) }
  }

  function expire(): void {
    const now = knownTime()
    if (now === null) return
    for (const record of table.all()) {
      if (table.numbers()[record.base + column.lastAt]! >= now - options.retentionMs) continue
      table.remove(record)
      counters.expired += 1
    }
  }

  async function stop(deadline: AbortSignal): Promise<void> {
    stopped = true
    cancel()
    await running
    if (restored) await writeRound(deadline)
  }
}

function mergedLosses(record: DeviceRecord, stored: StoredRecord): DeviceRecord['losses'] {
  const isSame = (loss: Loss) => (other: Loss) =>
    other.kind === loss.kind && other.source === loss.source && other.reason === loss.reason
  const since = record.losses.map((loss) => {
    const { count, firstAt } = stored.losses.find(isSame(loss)) ?? { count: 0, firstAt: loss.firstAt }
    return { ...loss, count: count + loss.count, firstAt }
  })
  const before = stored.losses.filter((loss) => !since.some(isSame(loss)))
  return [...before.map((loss) => ({ ...loss })), ...since]
}
