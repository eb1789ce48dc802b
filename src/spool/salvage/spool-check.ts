// spool-check.ts: walks over every record of the database once, in the order of the keys, and compares what is there
// with what the totals say. Owner of what `spool verify` prints.
//
//   chunks       CRC; none begins within another; appended = settled + open for each lane (invariant 6)
//   batches      CRC; the whole range of a claim stands in chunks of its lane
//   letters, kept messages, state    CRC; their number is that of their totals
//   shelves      CRC; kept = taken + damaged + there, and as many keys by device as messages that name one
//   window, receipts, format, lanes, totals    CRC
//   set aside    counted: that damage was told when it was found
//
// One iteration sees one moment of the database, so the daemon can be walked over while it works. Only where damage has
// to be stepped over the rest belongs to a later moment; the totals are then not held against it.

import { readChunk } from '../chunk-log/chunk-codec.ts'
import {
  keptSeqOf,
  laneOf,
  letterLane,
  partLane,
  receiptLane,
  seqOf,
  shelfNameOf,
  table,
} from '../chunk-log/key-layout.ts'
import {
  claimRecord,
  decodeKeptAt,
  decodeSeen,
  formatRecord,
  keptRecord,
  laneRecord,
  letterRecord,
  letterTotalsRecord,
  partRecord,
  partTotalsRecord,
  receiptRecord,
  receiptTotalsRecord,
  shelfRecord,
  totalsRecord,
} from '../chunk-log/record-codec.ts'
import {
  appendedOf,
  disagreements,
  laneSum,
  newSums,
  settledOf,
  shelfIn,
  shelfSum,
  type LaneSum,
  type Sums,
} from './record-sums.ts'

export type SpoolCheck = {
  ok: boolean
  tables: readonly { table: string; records: number; bytes: number; damaged: number }[]
  lanes: readonly {
    lane: number
    provider: string
    role: string
    batches: number
    appended: number
    settled: number
    open: number
  }[]
  shelves: readonly { shelf: string; kept: number; taken: number; damaged: number; messages: number }[]
  /** One sentence each; at most `problemsMax` of them. */
  problems: readonly string[]
  problemsHidden: number
}

export type Check = {
  see(key: Buffer, value: Buffer): void
  /** Something between the keys cannot be read. */
  skip(from: Buffer, why: string): void
  finish(): SpoolCheck
}

const problemsMax = 200

/** Names of the tables as people read them; in the order of the keys. */
const names: Record<number, string> = {
  [table.format]: 'format',
  [table.lanes]: 'lanes',
  [table.chunks]: 'chunks',
  [table.batches]: 'batches',
  [table.totals]: 'totals',
  [table.seen]: 'dedup window',
  [table.parts]: 'mapping state',
  [table.deadLetters]: 'dead letters',
  [table.kept]: 'kept messages',
  [table.damaged]: 'damaged chunks, set aside',
  [table.setAside]: 'damaged records, set aside',
  [table.keptByDevice]: 'kept by device',
  [table.shelves]: 'shelves',
  [table.receipts]: 'receipts',
}

export function createCheck(): Check {
  const sums = newSums()
  const problems: string[] = []
  let problemsHidden = 0
  let gaps = 0
  return { see, skip, finish }

  function tell(problem: string): void {
    if (problems.length < problemsMax) problems.push(problem)
    else problemsHidden += 1
  }

  function see(key: Buffer, value: Buffer): void {
    const kind = key[0] ?? 0
    const count = sums.counts.get(kind) ?? { records: 0, bytes: 0, damaged: 0 }
    sums.counts.set(kind, count)
    count.records += 1
    count.bytes += key.length + value.length
    const fault = faultIn(sums, kind, key, value)
    if (fault === null) return
    count.damaged += 1
    tell(`${names[kind] ?? `table ${kind}`}, record ${key.toString('hex', 1)}: ${fault}.`)
  }

  function skip(from: Buffer, why: string): void {
    gaps += 1
    tell(
      `${names[from[0] ?? 0] ?? 'some table'}: records from ${from.toString('hex', 1)} on cannot be read (${why}).`,
    )
  }

  function finish(): SpoolCheck {
    if (!sums.hasFormat) tell('There is no format record, or it is damaged.')
    if (gaps === 0) for (const problem of disagreements(sums)) tell(problem)
    return {
      ok: problems.length === 0,
      tables: [...sums.counts].map(([kind, count]) => ({ table: names[kind] ?? `table ${kind}`, ...count })),
      lanes: [...sums.lanes].map(([lane, sum]) => ({
        lane,
        provider: sum.record?.provider ?? 'unknown',
        role: sum.record?.role.kind ?? 'unknown',
        batches: sum.batches,
        appended: appendedOf(sum),
        settled: settledOf(sum),
        open: sum.open,
      })),
      shelves: [...sums.shelves].map(([shelf, { record, messages }]) => ({
        shelf,
        kept: (record?.nextSeq ?? 0) - (record?.unexplained ?? 0),
        taken: record?.taken ?? 0,
        damaged: record?.damaged ?? 0,
        messages,
      })),
      problems,
      problemsHidden,
    }
  }
}

const wrongChecksum = 'its checksum is wrong'

/** Takes a record into the sums; what is wrong with it by itself, or null. */
function faultIn(sums: Sums, kind: number, key: Buffer, value: Buffer): string | null {
  try {
    return faultOf(sums, kind, key, value)
  } catch (error) {
    // A key that was damaged can be too short, or no text.
    if (error instanceof RangeError || error instanceof SyntaxError) return 'its key is damaged'
    throw error
  }
}

function faultOf(sums: Sums, kind: number, key: Buffer, value: Buffer): string | null {
  const judged = (body: unknown) => (body === null ? wrongChecksum : null)
  switch (kind) {
    case table.format:
      sums.hasFormat = formatRecord.decode(value) !== null
      return sums.hasFormat ? null : wrongChecksum
    case table.lanes:
      return judged((laneSum(sums, laneOf(key)).record = laneRecord.decode(value)))
    case table.chunks:
      return chunkFault(laneSum(sums, laneOf(key)), seqOf(key), value)
    case table.batches: {
      const claim = claimRecord.decode(value)
      if (claim === null) return wrongChecksum
      const { endSeq, payloads } = claim
      const sum = laneSum(sums, laneOf(key))
      sum.batches += 1
      sum.endSeq = Math.max(sum.endSeq, endSeq)
      sums.claims.push({ lane: laneOf(key), firstSeq: seqOf(key), endSeq, payloads })
      return null
    }
    case table.totals:
      if (laneOf(key) === letterLane) return judged((sums.letterTotals = letterTotalsRecord.decode(value)))
      if (laneOf(key) === partLane) return judged((sums.partTotals = partTotalsRecord.decode(value)))
      if (laneOf(key) === receiptLane) return judged(receiptTotalsRecord.decode(value))
      return judged((laneSum(sums, laneOf(key)).totals = totalsRecord.decode(value)))
    case table.seen:
      return judged(decodeSeen(value))
    case table.parts:
      sums.parts.entries += 1
      sums.parts.bytes += key.length + value.length
      return judged(partRecord.decode(value))
    case table.receipts:
      return judged(receiptRecord.decode(value))
    case table.deadLetters:
      sums.letters.letters += 1
      sums.letters.bytes += value.length
      return judged(letterRecord.decode(value))
    case table.kept: {
      const sum = shelfSum(sums, shelfIn(key))
      const record = keptRecord.decode(value)
      sum.messages += 1
      if (record !== null && record.device !== null) sum.named += 1
      return keptSeqOf(key) >= 0 ? judged(record) : null
    }
    case table.keptByDevice:
      shelfSum(sums, shelfIn(key)).byDevice += 1
      return judged(decodeKeptAt(value))
    case table.shelves:
      return judged((shelfSum(sums, shelfNameOf(key)).record = shelfRecord.decode(value)))
    case table.damaged:
    case table.setAside:
      return null
    default:
      return 'no table has such keys'
  }
}

function chunkFault(sum: LaneSum, firstSeq: number, value: Buffer): string | null {
  const chunk = readChunk(value)
  if (chunk === null) return wrongChecksum
  sum.open += chunk.count
  const last = sum.runs[sum.runs.length - 1]
  const overlaps = last !== undefined && firstSeq < last[1]
  const endSeq = firstSeq + chunk.count
  if (last !== undefined && firstSeq <= last[1]) last[1] = Math.max(last[1], endSeq)
  else sum.runs.push([firstSeq, endSeq])
  sum.endSeq = Math.max(sum.endSeq, endSeq)
  return overlaps ? 'it begins within the chunk before it' : null
}
