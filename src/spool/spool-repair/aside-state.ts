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
import { isLateRecordKey, lateEntriesIn } from '../kept/late-records.ts'
import type { AsideStore } from './aside-store.ts'

type Entry = readonly [key: Buffer, value: Buffer]

/** In the order of the keys. */
export async function* stateOf(aside: AsideStore): AsyncGenerator<Entry> {
  const late = await lateEntriesOf(aside)
  let next = late.shift()
  for await (const entry of recordsOf(aside)) {
    // A damaged one is reported by the next start.
    if (isLateRecord(entry) && stateRecord.decode(entry[1]) !== null) continue
    for (; next !== undefined && next[0].compare(entry[0]) < 0; next = late.shift()) yield next
    if (next === undefined || !next[0].equals(entry[0])) {
      yield entry
      continue
    }
    yield next
    next = late.shift()
  }
  if (next !== undefined) yield* [next, ...late]
}

async function lateEntriesOf(aside: AsideStore): Promise<Entry[]> {
  const bodies: Buffer[] = []
  for await (const entry of recordsOf(aside)) {
    const body = isLateRecord(entry) ? stateRecord.decode(entry[1]) : null
    if (body !== null) bodies.push(body)
  }
  const entries: Entry[] = []
  const totals = stateTotalsRecord.decode(await aside.files.get(laneKey(table.totals, stateTotalsLane)))
  for (const [key, { value }] of lateEntriesIn(bodies, { fromSeq: totals?.lateFrom ?? 0 }))
    if (value !== null) entries.push([stateKey(key), stateRecord.encode(value)])
  return entries.toSorted(([one], [other]) => one.compare(other))
}

async function* recordsOf({ files, returned }: AsideStore): AsyncGenerator<Entry> {
  for await (const page of files.pages(tableRange(table.state)))
    for (const entry of page) if (!returned.has(entry[0].toString('hex'))) yield entry
}

function isLateRecord([key]: Entry): boolean {
  return isTextKey(key) && isLateRecordKey(textOf(key))
}
