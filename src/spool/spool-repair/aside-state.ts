// aside-state.ts: the mapping state of a store that was set aside, for its merge. Records of late entries are
// numbered for their own store, so their entries are given under their own keys.

import {
  isTextKey,
  laneKey,
  stateKey,
  stateTotalsLane,
  table,
  tableRange,
  textOf,
} from '../chunk-log/key-layout.ts'
import { stateRecord, stateTotalsRecord } from '../chunk-log/record-codec.ts'
import { isLateRecordKey, lateEntriesIn, type LateEntry } from '../kept/late-records.ts'
import type { AsideStore } from './aside-store.ts'

type Entry = readonly [key: Buffer, value: Buffer]

/** In the order of the keys. */
export async function* stateOf(aside: AsideStore): AsyncGenerator<Entry> {
  const late = await lateEntriesOf(aside)
  let next = 0
  for await (const entry of recordsOf(aside)) {
    // A damaged one is reported by the next start.
    if (bodyOf(entry) !== null) continue
    for (; next < late.length && late[next]!.key.compare(entry[0]) < 0; next += 1) yield entryOf(late[next]!)
    const same = late[next]?.key.equals(entry[0]) === true ? late[next] : undefined
    if (same !== undefined) next += 1
    yield same === undefined || same.isBehindGap ? entry : entryOf(same)
  }
  yield* late.slice(next).map(entryOf)
}

type KeyedEntry = LateEntry & { readonly key: Buffer }

async function lateEntriesOf(aside: AsideStore): Promise<KeyedEntry[]> {
  const bodies: Buffer[] = []
  let damaged = 0
  for await (const entry of recordsOf(aside)) {
    if (!isLateRecord(entry)) continue
    const body = bodyOf(entry)
    if (body === null) damaged += 1
    else bodies.push(body)
  }
  const totals = stateTotalsRecord.decode(await aside.files.get(laneKey(table.totals, stateTotalsLane)))
  const found = lateEntriesIn(bodies, { fromSeq: totals?.lateFrom ?? 0, damaged })
  return [...found]
    .map(([key, entry]) => ({ key: stateKey(key), ...entry }))
    .toSorted((one, other) => one.key.compare(other.key))
}

function entryOf({ key, value }: KeyedEntry): Entry {
  return [key, stateRecord.encode(value)]
}

async function* recordsOf({ files, returned }: AsideStore): AsyncGenerator<Entry> {
  for await (const page of files.pages(tableRange(table.state)))
    for (const entry of page) if (!returned.has(entry[0].toString('hex'))) yield entry
}

/** Of a record of late entries; null for a damaged one, and for other entries. */
function bodyOf(entry: Entry): Buffer | null {
  return isLateRecord(entry) ? stateRecord.decode(entry[1]) : null
}

function isLateRecord([key]: Entry): boolean {
  return isTextKey(key) && isLateRecordKey(textOf(key))
}
