// aside-merge.ts: the entries that bring a store that was set aside into the running one.
//
//   lanes          new numbers above all others, as backfill lanes, with their totals, chunks and claims:
//                  a batch keeps its batchId
//   dead letters   under their keys; another number within the millisecond where the key is taken
//   messages       behind those of their shelf, in their order
//   mapping state  only where the running store has no entry: it is newer
//
// Each entry has a key that the running store has not, so the order of the levels does not matter. Only
// totals replace what is there. The name of the store goes into the same version of the database: it is not
// merged a second time.

import type { LaneId, ProviderName } from '../../domain/ids.ts'
import type { ShelfName } from '../../domain/kept-store.ts'
import type { LevelFiles, NewEntry } from '../../storage/storage.ts'
import {
  deadLetterTotalsLane,
  deviceOf,
  isLane,
  keptByDeviceKey,
  keptKey,
  keptSeqOf,
  laneKey,
  laneOf,
  mergedStoresLane,
  seqKey,
  seqOf,
  shelfKey,
  shelfOf,
  stateTotalsLane,
  table,
  tableRange,
  textOf,
} from '../chunk-log/key-layout.ts'
import { underKey } from '../chunk-log/chunk-codec.ts'
import {
  deadLetterRecord,
  deadLetterTotalsRecord,
  laneRecord,
  mergedStoresRecord,
  shelfRecord,
  stateTotalsRecord,
  type LaneRecord,
  type ShelfRecord,
} from '../chunk-log/record-codec.ts'
import type { Mark } from '../high-water-mark/high-water-mark.ts'
import { newDeadLetterBytes } from '../kept/store-use.ts'
import { stateOf } from './aside-state.ts'
import { asideName, laneKeyBytes, type AsideStore } from './aside-store.ts'
import { unlessDamaged } from './readable-keys.ts'

type DeadLetterBytes = ReturnType<typeof newDeadLetterBytes>

export type Merge = {
  added: () => AsyncIterable<NewEntry>
  /** Complete when `added` was read to its end. */
  replaced: () => NewEntry[]
}

/** What the running store has. */
type Running = {
  files: LevelFiles
  nextLane: number
  shelves: ReadonlyMap<string, ShelfRecord>
}

/** Names of the stores that were merged into this one. */
export async function mergedNames(files: LevelFiles): Promise<string[]> {
  const record = mergedStoresRecord.decode(await files.get(laneKey(table.totals, mergedStoresLane)))
  return record?.names ?? []
}

/** `files`: the running store, which is whole. */
export async function createMerge(aside: AsideStore, files: LevelFiles, mark: Mark | null): Promise<Merge> {
  const running = await readRunning(files, mark)
  const sums = {
    deadLetters: { letters: 0, bytes: 0, bytesIn: newDeadLetterBytes() },
    state: { entries: 0, bytes: 0 },
  }
  const totals = {
    deadLetters: deadLetterTotalsRecord.decode(await files.get(laneKey(table.totals, deadLetterTotalsLane))),
    state: stateTotalsRecord.decode(await files.get(laneKey(table.totals, stateTotalsLane))),
    names: await mergedNames(files),
  }
  return { added: () => addedEntries(aside, running, sums), replaced }

  function replaced(): NewEntry[] {
    const {
      letters,
      bytes,
      bytesIn = { ...newDeadLetterBytes(), dead_letters: bytes },
    } = totals.deadLetters ?? {
      letters: 0,
      bytes: 0,
    }
    const { entries, bytes: stateBytes } = totals.state ?? { entries: 0, bytes: 0 }
    const found: NewEntry[] = [
      [
        laneKey(table.totals, deadLetterTotalsLane),
        deadLetterTotalsRecord.encode({
          letters: letters + sums.deadLetters.letters,
          bytes: bytes + sums.deadLetters.bytes,
          bytesIn: sumOfBytes(bytesIn, sums.deadLetters.bytesIn),
        }),
      ],
      [
        laneKey(table.totals, mergedStoresLane),
        mergedStoresRecord.encode({ names: [...totals.names, asideName(aside.path)] }),
      ],
      [
        laneKey(table.totals, stateTotalsLane),
        stateTotalsRecord.encode({
          ...totals.state,
          entries: entries + sums.state.entries,
          bytes: stateBytes + sums.state.bytes,
        }),
      ],
      ...[...aside.shelves.keys()].map((name): NewEntry => shelfEntry(name as ShelfName, aside, running)),
    ]
    return found.sort(([one], [other]) => one.compare(other))
  }
}

async function readRunning(files: LevelFiles, mark: Mark | null): Promise<Running> {
  let nextLane = mark?.nextLane ?? 1
  for (const kind of [table.lanes, table.chunks, table.batches, table.damaged])
    for await (const page of files.pages(tableRange(kind)))
      for (const [key] of page)
        if (key.length >= laneEndBytes && isLane(laneOf(key))) nextLane = Math.max(nextLane, laneOf(key) + 1)
  const shelves = new Map<string, ShelfRecord>()
  for await (const page of files.pages(tableRange(table.shelves)))
    for (const [key, value] of page) {
      const record = shelfRecord.decode(value)
      if (record !== null) unlessDamaged(() => shelves.set(textOf(key), record))
    }
  return { files, nextLane, shelves }
}

/** Table and lane. */
const laneEndBytes = 5

const emptyShelf: ShelfRecord = {
  nextSeq: 0,
  headSeq: 0,
  messages: 0,
  bytes: 0,
  taken: 0,
  damaged: 0,
  unexplained: 0,
}

/** How far the numbers of a shelf move: its first message comes behind all of the running one. */
function shiftOf(name: string, { shelves: asideShelves }: AsideStore, { shelves }: Running): number {
  return (shelves.get(name)?.nextSeq ?? 0) - (asideShelves.get(name)?.firstSeq ?? 0)
}

/** Numbers without a message, because others were taken, count as unexplained: kept = taken + present. */
function shelfEntry(name: ShelfName, aside: AsideStore, running: Running): NewEntry {
  const before = running.shelves.get(name) ?? emptyShelf
  const { firstSeq, endSeq, messages, bytes } = aside.shelves.get(name) ?? {
    ...emptyShelf,
    firstSeq: 0,
    endSeq: 0,
  }
  const numbers = endSeq - firstSeq
  const record = {
    ...before,
    nextSeq: before.nextSeq + numbers,
    messages: before.messages + messages,
    bytes: before.bytes + bytes,
    unexplained: before.unexplained + numbers - messages,
  }
  return [shelfKey(name), shelfRecord.encode(record)]
}

type Sums = {
  deadLetters: { letters: number; bytes: number; bytesIn: DeadLetterBytes }
  state: { entries: number; bytes: number }
}

/** In the order of their new keys: lanes and shelves keep their order. */
async function* addedEntries(aside: AsideStore, running: Running, sums: Sums): AsyncGenerator<NewEntry> {
  const ids = [...aside.lanes].toSorted((one, other) => one - other)
  const lanes = new Map(ids.map((id, index) => [id, (running.nextLane + index) as LaneId]))
  for (const [id, lane] of lanes) yield [laneKey(table.lanes, lane), await laneValue(aside, id)]
  yield* moved(aside, table.chunks, lanes)
  yield* moved(aside, table.batches, lanes)
  for (const [id, lane] of lanes) {
    const value = await aside.files.get(laneKey(table.totals, id))
    if (value !== undefined) yield [laneKey(table.totals, lane), value]
  }
  for await (const entry of absentOf(stateOf(aside), running)) {
    sums.state.entries += 1
    sums.state.bytes += entry[0].length + (entry[1]?.length ?? 0)
    yield entry
  }
  yield* deadLetters(aside, running, sums)
  for await (const [key, value] of entriesOf(aside, table.kept)) {
    const moved = unlessDamaged(() => movedMessage(key, aside, running))
    if (moved !== null) yield [moved, value]
  }
  yield* moved(aside, table.damaged, lanes)
  yield* absent(aside, running, table.setAside)
  for await (const [key, value] of entriesOf(aside, table.keptByDevice)) {
    const moved = unlessDamaged(() => movedByDevice(key, aside, running))
    if (moved !== null) yield [moved, value]
  }
}

function movedMessage(key: Buffer, aside: AsideStore, running: Running): Buffer {
  const name = shelfOf(key)
  return keptKey(name, keptSeqOf(key) + shiftOf(name, aside, running))
}

/** Null where the message of the key is gone. */
function movedByDevice(key: Buffer, aside: AsideStore, running: Running): Buffer | null {
  const name = shelfOf(key)
  const device = deviceOf(key, name)
  const shelf = aside.shelves.get(name)
  if (device === null || shelf === undefined || keptSeqOf(key) < shelf.firstSeq) return null
  return keptByDeviceKey(name, device, keptSeqOf(key) + shiftOf(name, aside, running))
}

async function laneValue({ files, mark }: AsideStore, id: LaneId): Promise<Buffer> {
  const record = laneRecord.decode(await files.get(laneKey(table.lanes, id)))
  const marked = mark?.lanes.find((lane) => lane.id === id)
  const provider = record?.provider ?? marked?.provider ?? (`unknown-lane-${id}` as ProviderName)
  const value: LaneRecord = { provider, role: { kind: 'backfill' }, openedAt: record?.openedAt ?? 0 }
  return laneRecord.encode(value)
}

type AnyTable = Parameters<typeof tableRange>[0]

async function* entriesOf(
  { files, returned }: AsideStore,
  kind: AnyTable,
): AsyncGenerator<readonly [Buffer, Buffer]> {
  for await (const page of files.pages(tableRange(kind)))
    for (const entry of page) if (!returned.has(entry[0].toString('hex'))) yield entry
}

/** Records of lanes under their new numbers. */
async function* moved(
  aside: AsideStore,
  kind: typeof table.chunks | typeof table.batches | typeof table.damaged,
  lanes: ReadonlyMap<LaneId, LaneId>,
): AsyncGenerator<NewEntry> {
  for await (const [key, value] of entriesOf(aside, kind)) {
    const lane = key.length === laneKeyBytes ? lanes.get(laneOf(key)) : undefined
    if (lane === undefined) continue
    const newKey = seqKey(kind, lane, seqOf(key))
    yield [newKey, kind === table.chunks ? underKey(newKey, key, value) : value]
  }
}

/** Entries whose key the running store has not. */
function absent(aside: AsideStore, running: Running, kind: AnyTable): AsyncGenerator<NewEntry> {
  return absentOf(entriesOf(aside, kind), running)
}

async function* absentOf(
  entries: AsyncGenerator<readonly [Buffer, Buffer]>,
  { files }: Running,
): AsyncGenerator<NewEntry> {
  for await (const entry of entries) if ((await files.get(entry[0])) === undefined) yield entry
}

async function* deadLetters(aside: AsideStore, { files }: Running, sums: Sums): AsyncGenerator<NewEntry> {
  let last: Buffer = Buffer.alloc(0)
  for await (const [key, value] of entriesOf(aside, table.deadLetters)) {
    // Keys ascend, also where one was moved behind a key that is taken.
    let free: Buffer = key.compare(last) > 0 ? key : nextKey(last)
    while ((await files.get(free)) !== undefined) free = nextKey(free)
    sums.deadLetters.letters += 1
    sums.deadLetters.bytes += value.length
    sums.deadLetters.bytesIn[deadLetterRecord.decode(value)?.store ?? 'dead_letters'] += value.length
    last = free
    yield [free, value]
  }
}

function sumOfBytes(one: DeadLetterBytes, other: DeadLetterBytes): DeadLetterBytes {
  const sum = { ...one }
  for (const store of Object.keys(other) as (keyof DeadLetterBytes)[]) sum[store] += other[store]
  return sum
}

/** The same millisecond and the next number. */
function nextKey(key: Buffer): Buffer {
  const next = Buffer.from(key)
  const at = next.length - 8
  next.writeBigUInt64BE(BigInt.asUintN(64, next.readBigUInt64BE(at) + 1n), at)
  return next
}
