// lost-records.ts: which records of the spool a damaged part of a file can have held, in words. Pure.

import type { FileDamage } from '../../storage/storage.ts'
import { deadLetterIdOf, laneOf, seqOf, table } from '../chunk-log/key-layout.ts'
import type { DamagedFile } from '../views.ts'

/** Names of the tables for people, in the order of the keys. */
export const tableNames: Record<number, string> = {
  [table.format]: 'format',
  [table.lanes]: 'lanes',
  [table.chunks]: 'chunks',
  [table.batches]: 'batches',
  [table.totals]: 'totals',
  [table.windowKeys]: 'dedup window',
  [table.state]: 'mapping state',
  [table.journal]: 'journal of the intake',
  [table.sessions]: 'stored sessions',
  [table.deadLetters]: 'dead letters',
  [table.kept]: 'kept messages',
  [table.damaged]: 'damaged chunks, set aside',
  [table.setAside]: 'damaged records, set aside',
  [table.keptByDevice]: 'kept by device',
  [table.shelves]: 'shelves',
  [table.receipts]: 'receipts',
}

const seqKeyBytes = 13
const deadLetterKeyBytes = 17

export function damagedFileOf(damage: FileDamage): DamagedFile {
  const { file, unit, offset, bytes, what, keys } = damage
  return { file, unit, offset, bytes, what, records: keys === null ? [] : recordsIn(keys) }
}

/** One sentence. */
export function damageSentence({ file, unit, offset, bytes, what, records }: DamagedFile): string {
  const isWhole = offset === 0 && (unit === 'CURRENT' || unit === 'manifest' || unit === 'log')
  const place = isWhole ? file : `${file}, ${unit} at byte ${offset} (${bytes} bytes),`
  const held = records.length === 0 ? '' : ` It can have held: ${records.join('; ')}.`
  return `${place} cannot be read: ${what}.${held}`
}

/** What keys behind `after`, up to and including `until`, are in. */
function recordsIn({ after, until }: { after: Buffer | null; until: Buffer | null }): string[] {
  if (after === null && until === null) return ['records of any table']
  const kinds = Object.keys(tableNames).map(Number)
  return kinds
    .toSorted((one, other) => one - other)
    .filter((kind) => kind >= (after?.[0] ?? 0) && kind <= (until?.[0] ?? 255))
    .map((kind) => {
      const from = after?.[0] === kind ? after : null
      const to = until?.[0] === kind ? until : null
      return rangeText(kind, from, to)
    })
}

/** The records of one table between two keys of it; null: from its start, to its end. */
function rangeText(kind: number, from: Buffer | null, to: Buffer | null): string {
  const name = tableNames[kind] ?? `table ${kind}`
  switch (kind) {
    case table.chunks:
      return seqText('payloads', from, to)
    case table.batches:
    case table.damaged:
      return seqText(name, from, to)
    case table.deadLetters: {
      const [first = null, last = null] = [from, to].map((key) =>
        key?.length === deadLetterKeyBytes ? deadLetterIdOf(key) : null,
      )
      return first === null && last === null ? name : `${name} ${bounds(first, last)}`
    }
    default:
      return name
  }
}

/**
 * Keys of a lane and a number: the first number of a chunk or batch. The key `from` is not lost, `to` is.
 * LevelDB shortens the keys that bound blocks, so they can be incomplete.
 */
function seqText(name: string, from: Buffer | null, to: Buffer | null): string {
  const firstLane = from !== null && from.length >= 5 ? laneOf(from) : null
  const lastLane = to !== null && to.length >= 5 ? laneOf(to) : null
  if (firstLane === null && lastLane === null) return name
  if (firstLane === null || firstLane !== lastLane) return `${name} of lanes ${bounds(firstLane, lastLane)}`
  const [before = null, last = null] = [from, to].map((key) =>
    key?.length === seqKeyBytes ? seqOf(key) : null,
  )
  const unit = name === 'payloads' ? 'the chunks' : 'those'
  const starts = bounds(before === null ? 0 : before + 1, last)
  return `${name} of lane ${firstLane}, ${unit} that start at numbers ${starts}`
}

function bounds(first: string | number | null, last: string | number | null): string {
  if (first === null) return `up to ${last ?? 'the last'}`
  return last === null ? `from ${first} on` : `${first} to ${last}`
}
