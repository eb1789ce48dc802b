// history-store.ts: the samples in the records database.
//
//   key    22 | span | place (2 bytes, big-endian)
//   value  JSON: the format version, the names of the columns, the number of the chunk, its samples as
//          [end, duration, values]
//
// A place is written again and again, so their number bounds the size: some 400 KB. Columns that a later
// version adds are null in what an earlier one wrote. Nothing depends on it: what cannot be read is ignored.

import type { RecordsStore } from '../../device-records/device-records.ts'
import { columnNames } from './history-samples.ts'
import { historySpans, type Chunk, type HistoryRing, type HistorySpan } from './history-ring.ts'

const table = 0x22
const version = 1
/** No daemon writes so many; a larger one is damaged. */
const numberMax = 2 ** 40
const range = { gte: Buffer.from([table]), lt: Buffer.from([table + 1]) }
/** Chunks of a span that are written at once. */
const chunksPerWrite = 50

export type Rings = Readonly<Record<HistorySpan, HistoryRing>>

/** True where the store could be read. */
export async function restoreHistory(store: RecordsStore, rings: Rings): Promise<boolean> {
  const found = new Map<number, Pick<Chunk, 'number' | 'samples'>[]>()
  const done = await store.use(async ({ pages }) => {
    for await (const page of pages(range))
      for (const [key, value] of page) {
        const chunk = decode(value)
        const span = key[1]
        if (chunk === null || span === undefined) continue
        found.set(span, [...(found.get(span) ?? []), chunk])
      }
    return true
  })
  if (done !== true) return false
  for (const [index, span] of historySpans.entries()) rings[span].restore(found.get(index) ?? [])
  return true
}

/** Not synced. What cannot be written now is written later. */
export async function writeHistory(store: RecordsStore, rings: Rings): Promise<void> {
  const changed = historySpans.flatMap((span, index) =>
    rings[span].takeDirty(chunksPerWrite).map((chunk) => ({ chunk, index, places: rings[span].places })),
  )
  if (changed.length === 0) return
  const ops = changed.map(({ chunk, index, places }) => ({
    type: 'put' as const,
    key: keyOf(index, chunk.number % places),
    value: encode(chunk),
  }))
  const written = await store.use(async (open) => {
    await open.write(ops, { sync: false })
    return true
  })
  if (written === null) for (const { chunk } of changed) chunk.isDirty = true
}

function keyOf(span: number, place: number): Buffer {
  return Buffer.from([table, span, place >> 8, place & 0xff])
}

function encode({ number, samples }: Chunk): Buffer {
  const rows = samples.map(({ at, ms, values }) => [at, Math.round(ms), values])
  return Buffer.from(JSON.stringify([version, columnNames, number, rows]))
}

type Row = [at: number, ms: number, values: (number | null)[]]

function decode(value: Buffer): Pick<Chunk, 'number' | 'samples'> | null {
  try {
    const [found, names, number, rows] = JSON.parse(value.toString()) as [number, string[], number, Row[]]
    if (found !== version || !(number >= 0 && number < numberMax)) return null
    const places = columnNames.map((name) => names.indexOf(name))
    const samples = rows.map(([at, ms, values]) => ({
      at,
      ms,
      values: places.map((place) => values[place] ?? null),
    }))
    return { number, samples }
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof TypeError) return null
    throw error
  }
}
