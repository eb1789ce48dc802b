// high-water-mark.ts: what the database must hold, in a file beside it. Entry file of this folder.
//
// LevelDB cannot show that its log was deleted or cut short: it opens with what is there. So the spool counts
// its writes in the database. It notes that count, and of each lane the next number and the number of open
// payloads, in the file `<spool>/mark`, right after the fsync of each write and before its acks. A start that
// finds less than the mark reports how much is missing (recovery/missing-writes.ts), and numbers go on from
// the larger of both.
//
//   | slot 0: serial 7 | slot 1: serial 8 |      a write overwrites the slot with the smaller serial number
//
// The mark is written without fsync, so it costs no second fsync for each write. It is never ahead of the
// database: it survives the end of the process as it is, and a power cut leaves an older mark, or a slot with
// a wrong checksum. A mark that cannot be read, or that belongs to another store, is unknown and not damage.
//
// Bound: a slot has room for more than 4,000 lanes. Beyond that the oldest backfill lanes are left out; they
// change least. A write error of the mark is reported and retried after a minute. It never stops intake: the
// mark gets old, and an old mark shows less.
//
// The write is synchronous and allocates nothing, since it is part of every group (docs/decisions/0038).

import type { Clock } from '../../std/clock.ts'
import { messageOf } from '../../std/gateway-error.ts'
import type { LaneId } from '../../domain/ids.ts'
import type { Disk, FixedFile, StoreOp } from '../../storage/storage.ts'
import { laneKey, table, writeCountLane } from '../chunk-log/key-layout.ts'
import type { Lane } from '../chunk-log/lane.ts'
import { newWriteCount, setWriteCount } from '../chunk-log/record-codec.ts'
import {
  decodeMark,
  layOutMark,
  sealMark,
  writeLaneNumbers,
  type Mark,
  type MarkedLane,
} from './mark-codec.ts'

export type { Mark, MarkedLane } from './mark-codec.ts'

/** What the file held when it was opened. */
export type FoundMark =
  | { kind: 'mark'; mark: Mark }
  /** The file is new, or it cannot be opened, which is reported. */
  | { kind: 'none' }
  | { kind: 'unreadable'; why: string }

/** What the mark is about. The lanes are read at each write. */
export type MarkedSpool = { readonly lanes: ReadonlyMap<LaneId, Lane>; nextLane: number }

export type HighWaterMark = {
  readonly found: FoundMark
  /** The number of writes so far, also those of earlier processes. */
  writes(): number
  /** Writes the mark anew and forces it to the disk. Before the first call of the others. */
  start(spool: MarkedSpool, first: { instance: string; writes: number }): void
  /** Adds the count of writes to a write that is put together. */
  prepare(ops: StoreOp[]): void
  /** The write that was put together last is durable. Before its acks. */
  written(): void
  /** The id of the store, and its writes that are durable. */
  durable(): { instance: string; writes: number }
  /** What the mark says now; between two writes. */
  current(): Omit<Mark, 'serial' | 'lanesLeftOut'>
  close(): void
}

/** Name of the file below the directory of the spool. */
export const markName = 'mark'

export const slotBytes = 128 * 1024
export const fileBytes = 2 * slotBytes
/** How long nothing is written after an error. */
const retryMs = 60_000

type Deps = {
  clock: Clock
  disk: Disk
  manifest: () => string
  /** Of the process: a store that is opened again goes on with the failure of the one before. */
  memory: { markFailedAtMs: number | null; markFailure: string | null }
}

/** One entry of the mark in memory, to see what changed. Position -1: left out. */
type Entry = { offset: number } & Pick<MarkedLane, 'nextSeq' | 'open' | 'role' | 'provider'>

/** Opens the mark below `path`. Never throws: without the file the spool works as usual. */
export function openHighWaterMark({ clock, disk, manifest, memory }: Deps, path: string): HighWaterMark {
  const buffer = Buffer.alloc(slotBytes)
  /** Used again for each write: the database copies it. */
  const count = { type: 'put', key: laneKey(table.totals, writeCountLane), value: newWriteCount() } as const
  const entries = new Map<LaneId, Entry>()
  let spool: MarkedSpool = { lanes: new Map(), nextLane: 1 }
  let identity = { instance: '', manifest: '' }
  let layout = layOutMark(buffer, { ...identity, nextLane: 1, lanes: [] })
  let file: FixedFile | null = null
  /** What changes with each write. */
  const numbers = { serial: 0, writes: 0, nextLane: 1 }
  let durableWrites = 0
  let recordedLanes = 0
  let isLayoutOld = true
  const found = open()

  function open(): FoundMark {
    try {
      file = disk.openFixedFile(path, markName, fileBytes)
      const read = readMark(file.read())
      if (read.kind === 'mark') numbers.serial = read.mark.serial
      return read
    } catch (error) {
      fail(error)
      return { kind: 'none' }
    }
  }

  function start(marked: MarkedSpool, first: { instance: string; writes: number }): void {
    spool = marked
    identity = { instance: first.instance, manifest: manifest() }
    numbers.writes = first.writes
    durableWrites = first.writes
    isLayoutOld = true
    put(true)
  }

  function prepare(ops: StoreOp[]): void {
    numbers.writes += 1
    setWriteCount(count.value, numbers.writes)
    ops.push(count)
  }

  function written(): void {
    durableWrites = numbers.writes
    if (memory.markFailedAtMs === null) put(false)
    else if (clock.monotonic() - memory.markFailedAtMs >= retryMs) put(true)
  }

  function put(isForced: boolean): void {
    recordedLanes = 0
    spool.lanes.forEach(update)
    if (isLayoutOld || recordedLanes !== entries.size) layOut()
    numbers.serial += 1
    numbers.nextLane = spool.nextLane
    sealMark(buffer, layout, numbers)
    try {
      file ??= disk.openFixedFile(path, markName, fileBytes)
      file.write(buffer, layout.used, (numbers.serial % 2) * slotBytes)
      if (isForced) file.sync()
    } catch (error) {
      fail(error)
      return
    }
    if (memory.markFailedAtMs === null) return
    memory.markFailedAtMs = null
    memory.markFailure = null
  }

  /** Notes the number of a lane where it changed. A lane whose record waits to be written does not count. */
  function update(lane: Lane): void {
    if (!lane.recorded) return
    recordedLanes += 1
    const entry = entries.get(lane.id)
    if (entry === undefined || entry.role !== lane.role || entry.provider !== lane.provider) {
      isLayoutOld = true
      return
    }
    if (entry.nextSeq === lane.committedSeq && entry.open === lane.openPayloads) return
    entry.nextSeq = lane.committedSeq
    entry.open = lane.openPayloads
    if (entry.offset >= 0) writeLaneNumbers(buffer, entry.nextSeq, entry.open, entry.offset)
  }

  /** A lane was opened or deleted, or has another role. */
  function layOut(): void {
    const mark = current()
    layout = layOutMark(buffer, mark)
    entries.clear()
    for (const { id, provider, role, nextSeq, open } of mark.lanes)
      entries.set(id, { offset: layout.offsets.get(id) ?? -1, nextSeq, open, role, provider })
    isLayoutOld = false
  }

  function current(): Omit<Mark, 'serial' | 'lanesLeftOut'> {
    const lanes = [...spool.lanes.values()].filter(({ recorded }) => recorded).sort(byChange)
    const marked = lanes.map(({ id, provider, role, committedSeq: nextSeq, openPayloads: open }) => {
      return { id, provider, role, nextSeq, open }
    })
    return { ...identity, writes: numbers.writes, nextLane: spool.nextLane, lanes: marked }
  }

  function fail(error: unknown): void {
    memory.markFailure ??= messageOf(error)
    memory.markFailedAtMs = clock.monotonic()
  }

  return {
    found,
    writes() {
      return numbers.writes
    },
    start,
    prepare,
    written,
    durable: () => ({ instance: identity.instance, writes: durableWrites }),
    current,
    close() {
      try {
        file?.close()
      } catch (error) {
        fail(error)
      }
      file = null
    },
  }
}

/** The lanes that change most first, so that others are left out where there is no room. */
function byChange(one: Lane, other: Lane): number {
  const isBackfill = ({ role }: Lane) => Number(role.kind === 'backfill')
  return isBackfill(one) - isBackfill(other) || other.id - one.id
}

/** The newer of the readable slots. */
export function readMark(content: Buffer): FoundMark {
  const slots = [content.subarray(0, slotBytes), content.subarray(slotBytes, fileBytes)]
  const marks = slots.map(decodeMark).filter((mark) => mark !== null)
  const [newest] = marks.sort((one, other) => other.serial - one.serial)
  if (newest !== undefined) return { kind: 'mark', mark: newest }
  const isNew = content.equals(Buffer.alloc(content.length))
  return isNew ? { kind: 'none' } : { kind: 'unreadable', why: 'its checksums are wrong' }
}
