// lost-kept.ts: how many dead letters, kept messages and entries of the mapping state are lost with damaged
// files, and which messages come back although they were taken. The totals count what must be there. The next
// start corrects them and counts what is missing (recovery/conservation-audit.ts).
//
// A message has a second key, by its device. Where only that is lost, nothing but a repair writes it again.

import { devicesOf } from '../../domain/message.ts'
import type { LevelFiles } from '../../storage/storage.ts'
import {
  deadLetterTotalsLane,
  keptByDeviceKey,
  keptSeqOf,
  laneKey,
  shelfOf,
  stateTotalsLane,
  table,
  tableRange,
  textOf,
} from '../chunk-log/key-layout.ts'
import {
  deadLetterTotalsRecord,
  encodeKeptAt,
  keptMessageRecord,
  shelfRecord,
  stateTotalsRecord,
  type ShelfRecord,
} from '../chunk-log/record-codec.ts'
import { eachRecord } from './readable-keys.ts'

export type LostMessages = { shelf: string; messages: number }

export type LostKept = {
  deadLetters: number
  messages: LostMessages[]
  stateEntries: number
  /** Keys by device that are missing, in their order. */
  added: (readonly [key: Buffer, value: Buffer])[]
  /** Messages before the head of their shelf were taken: the record of their deletion is lost. */
  returned: { messages: number; keys: Buffer[] }
}

/** Bounds of the keys by device in memory. With more of them, what is missing stays missing. */
const keysMax = 1_000_000
const addedMax = 100_000

export async function findLostKept(files: LevelFiles, signal: AbortSignal): Promise<LostKept> {
  const totalsOf = (lane: typeof deadLetterTotalsLane) => files.get(laneKey(table.totals, lane))
  const letters = deadLetterTotalsRecord.decode(await totalsOf(deadLetterTotalsLane))?.letters ?? 0
  const entries = stateTotalsRecord.decode(await totalsOf(stateTotalsLane))?.entries ?? 0
  const deadLetters = Math.max(0, letters - (await countIn(files, table.deadLetters, signal)))
  const stateEntries = Math.max(0, entries - (await countIn(files, table.state, signal)))
  return { deadLetters, stateEntries, ...(await readShelves(files, signal)) }
}

async function countIn(
  files: LevelFiles,
  kind: Parameters<typeof tableRange>[0],
  signal: AbortSignal,
): Promise<number> {
  let records = 0
  for await (const page of files.pages(tableRange(kind))) {
    signal.throwIfAborted()
    records += page.length
  }
  return records
}

async function readShelves(files: LevelFiles, signal: AbortSignal) {
  const shelves = new Map<string, ShelfRecord>()
  await eachRecord(files, tableRange(table.shelves), (key, value) => {
    const record = shelfRecord.decode(value)
    if (record !== null) shelves.set(textOf(key), record)
  })
  const byDevice = await keysIn(files, table.keptByDevice)
  const found = new Map<string, number>()
  const added: LostKept['added'] = []
  const returned: LostKept['returned'] = { messages: 0, keys: [] }
  await eachRecord(files, tableRange(table.kept), (key, value) => {
    signal.throwIfAborted()
    const shelf = shelfOf(key)
    const seq = keptSeqOf(key)
    const record = keptMessageRecord.decode(value)
    const deviceKeys =
      record === null ? [] : devicesOf(record).map((device) => keptByDeviceKey(shelf, device, seq))
    if (seq < (shelves.get(shelf)?.headSeq ?? 0)) {
      returned.messages += 1
      returned.keys.push(key, ...deviceKeys)
      return
    }
    found.set(shelf, (found.get(shelf) ?? 0) + 1)
    if (record === null || byDevice.size >= keysMax || added.length >= addedMax) return
    for (const deviceKey of deviceKeys)
      if (!byDevice.has(deviceKey.toString('latin1'))) added.push([deviceKey, encodeKeptAt(record.at)])
  })
  added.sort(([one], [other]) => one.compare(other))
  const messages = [...shelves]
    .map(([shelf, record]) => ({ shelf, messages: record.messages - (found.get(shelf) ?? 0) }))
    .filter((lost) => lost.messages > 0)
  return { messages, added, returned }
}

async function keysIn(files: LevelFiles, kind: Parameters<typeof tableRange>[0]): Promise<Set<string>> {
  const keys = new Set<string>()
  await eachRecord(files, tableRange(kind), (key) => {
    if (keys.size < keysMax) keys.add(key.toString('latin1'))
  })
  return keys
}
