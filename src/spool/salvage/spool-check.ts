// spool-check.ts: compares every record of the database with the totals, in one walk in the order of the
// keys. Owner of what `spool verify` prints.
//
//   chunks       CRC; none starts inside another; appended = settled + open for each lane (invariant 6)
//   batches      CRC; the whole range of a claim is in chunks of its lane
//   dead letters, kept messages, state    CRC; their number is that of their totals
//   shelves      CRC; kept = taken + damaged + present, and as many keys by device as messages that name one
//   window keys, journal, sessions, receipts, format, lanes, totals    CRC
//   set aside    counted; the damage was reported when it was found
//
// One iteration reads one snapshot of the database, so the daemon can be checked while it works. Behind
// damage that has to be stepped over, a later snapshot is read; then the totals are not compared. The files
// of a spool at rest are read without LevelDB: there all damage is known, with what it can have held.

import { messageOf } from '../../std/gateway-error.ts'
import type { FileDamage } from '../../storage/storage.ts'
import type { ShelfName } from '../../domain/kept-store.ts'
import { devicesOf } from '../../domain/message.ts'
import { readChunk } from '../chunk-log/chunk-codec.ts'
import type { Scanned } from '../chunk-log/damage-scan.ts'
import {
  keptSeqOf,
  laneOf,
  mergedStoresLane,
  deadLetterTotalsLane,
  stateTotalsLane,
  receiptTotalsLane,
  seqOf,
  shelfOf,
  table,
  textOf,
  writeCountLane,
} from '../chunk-log/key-layout.ts'
import {
  claimRecord,
  decodeJournal,
  decodeKeptAt,
  decodeWriteCount,
  decodeWindowKeys,
  formatRecord,
  keptMessageRecord,
  mergedStoresRecord,
  laneRecord,
  deadLetterRecord,
  deadLetterTotalsRecord,
  sessionRecord,
  stateRecord,
  stateTotalsRecord,
  receiptRecord,
  receiptTotalsRecord,
  shelfRecord,
  totalsRecord,
} from '../chunk-log/record-codec.ts'
import {
  disagreements,
  laneBook,
  laneSum,
  missingByMark,
  newSums,
  settledOf,
  shelfSum,
  type LaneSum,
  type MarkBefore,
  type Sums,
} from './record-sums.ts'
import { damagedFileOf, damageSentence, tableNames } from './lost-records.ts'
import type { SpoolCheck } from '../views.ts'

type Check = {
  add(key: Buffer, value: Buffer): void
  /** Records from this key on cannot be read. */
  skip(from: Buffer, why: string): void
  finish(): SpoolCheck
}

type CheckOptions = {
  /** Called for each page; may throw to end the check. */
  eachPage?: () => void
  mark?: MarkBefore
  /** Damage of the files, known when all pages are read. */
  damage?: () => readonly FileDamage[]
}

const problemsMax = 200

/** Checks the pages of a scan over all keys. The sums are those of the records that can be read. */
export async function checkPages(
  pages: AsyncIterable<Scanned>,
  { eachPage = () => undefined, mark, damage = () => [] }: CheckOptions = {},
): Promise<{ check: SpoolCheck; sums: Sums }> {
  const sums = newSums()
  const check = createCheck(sums, { mark, damage })
  for await (const page of pages) {
    eachPage()
    if (page.kind === 'gap') check.skip(page.from, messageOf(page.why))
    else for (const [key, value] of page.entries) check.add(key, value)
  }
  return { check: check.finish(), sums }
}

/** Of a spool in use whose tables are damaged: LevelDB must not read them. */
export function damagedCheck(damage: readonly FileDamage[], lanes: SpoolCheck['lanes']): SpoolCheck {
  const files = damage.slice(0, problemsMax).map(damagedFileOf)
  const notRead = 'The records were not read and compared, because tables of the database are damaged.'
  return {
    ok: false,
    damage: files,
    tables: [],
    lanes,
    shelves: [],
    problems: [...files.map(damageSentence), notRead],
    problemsHidden: damage.length - files.length,
  }
}

function createCheck(
  sums: Sums,
  { mark, damage }: { mark: MarkBefore | undefined; damage: () => readonly FileDamage[] },
): Check {
  const problems: string[] = []
  let problemsHidden = 0
  let gaps = 0
  return { add, skip, finish }

  function addProblem(problem: string): void {
    if (problems.length < problemsMax) problems.push(problem)
    else problemsHidden += 1
  }

  function add(key: Buffer, value: Buffer): void {
    const kind = key[0] ?? 0
    const count = sums.counts.get(kind) ?? { records: 0, bytes: 0, damaged: 0 }
    sums.counts.set(kind, count)
    count.records += 1
    count.bytes += key.length + value.length
    const problem = problemIn(sums, kind, key, value)
    if (problem === null) return
    count.damaged += 1
    addProblem(`${tableNames[kind] ?? `table ${kind}`}, record ${key.toString('hex', 1)}: ${problem}.`)
  }

  function skip(from: Buffer, why: string): void {
    gaps += 1
    const name = tableNames[from[0] ?? 0] ?? 'an unknown table'
    addProblem(`${name}: records from ${from.toString('hex', 1)} on cannot be read (${why}).`)
  }

  function finish(): SpoolCheck {
    const files = damage().slice(0, problemsMax).map(damagedFileOf)
    const records = problems.splice(0)
    for (const problem of [...files.map(damageSentence), ...records]) addProblem(problem)
    problemsHidden += damage().length - files.length
    if (sums.instance === null) addProblem('The format record is missing or damaged.')
    if (gaps === 0) for (const problem of disagreements(sums)) addProblem(problem)
    if (gaps === 0 && mark !== undefined) for (const problem of missingByMark(sums, mark)) addProblem(problem)
    return {
      ok: problems.length === 0,
      damage: files,
      tables: [...sums.counts].map(([kind, count]) => ({
        table: tableNames[kind] ?? `table ${kind}`,
        ...count,
      })),
      lanes: [...sums.lanes].map(([lane, sum]) => ({
        lane,
        provider: sum.record?.provider ?? 'unknown',
        role: sum.record?.role.kind ?? 'unknown',
        batches: sum.claims.length,
        appended: laneBook(sum).nextSeq,
        settled: settledOf(sum),
        open: sum.chunks.payloads,
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

/** Adds a record to the sums. Returns what is wrong with the record itself, or null. */
function problemIn(sums: Sums, kind: number, key: Buffer, value: Buffer): string | null {
  try {
    return recordProblem(sums, kind, key, value)
  } catch (error) {
    // A damaged key can be too short, or no JSON text.
    if (error instanceof RangeError || error instanceof SyntaxError) return 'its key is damaged'
    throw error
  }
}

function recordProblem(sums: Sums, kind: number, key: Buffer, value: Buffer): string | null {
  const verdict = (body: unknown) => (body === null ? wrongChecksum : null)
  switch (kind) {
    case table.format:
      sums.instance = formatRecord.decode(value)?.instance ?? null
      return verdict(sums.instance)
    case table.lanes:
      return verdict((laneSum(sums, laneOf(key)).record = laneRecord.decode(value)))
    case table.chunks:
      return chunkProblem(laneSum(sums, laneOf(key)), key, value)
    case table.batches: {
      const record = claimRecord.decode(value)
      if (record === null) return wrongChecksum
      const { batchId, endSeq, payloads, held } = record
      const claim = { firstSeq: seqOf(key), endSeq, payloads, batchId, held: held ?? null }
      laneSum(sums, laneOf(key)).claims.push(claim)
      return null
    }
    case table.totals:
      if (laneOf(key) === deadLetterTotalsLane)
        return verdict((sums.deadLetterTotals = deadLetterTotalsRecord.decode(value)))
      if (laneOf(key) === stateTotalsLane)
        return verdict((sums.stateTotals = stateTotalsRecord.decode(value)))
      if (laneOf(key) === receiptTotalsLane) return verdict(receiptTotalsRecord.decode(value))
      if (laneOf(key) === writeCountLane) return verdict((sums.writes = decodeWriteCount(value)))
      if (laneOf(key) === mergedStoresLane) return verdict(mergedStoresRecord.decode(value))
      return verdict((laneSum(sums, laneOf(key)).totals = totalsRecord.decode(value)))
    case table.windowKeys:
      return verdict(decodeWindowKeys(value))
    case table.state:
      sums.state.entries += 1
      sums.state.bytes += key.length + value.length
      return verdict(stateRecord.decode(value))
    case table.journal:
      return verdict(decodeJournal(value))
    case table.sessions:
      return verdict(sessionRecord.decode(value))
    case table.receipts:
      return verdict(receiptRecord.decode(value))
    case table.deadLetters:
      sums.deadLetters.letters += 1
      sums.deadLetters.bytes += value.length
      return verdict(deadLetterRecord.decode(value))
    case table.kept: {
      const sum = shelfSum(sums, shelfOf(key))
      const record = keptMessageRecord.decode(value)
      sum.messages += 1
      if (record !== null) sum.named += devicesOf(record).length
      return keptSeqOf(key) >= 0 ? verdict(record) : null
    }
    case table.keptByDevice:
      shelfSum(sums, shelfOf(key)).byDevice += 1
      return verdict(decodeKeptAt(value))
    case table.shelves:
      return verdict((shelfSum(sums, textOf(key) as ShelfName).record = shelfRecord.decode(value)))
    case table.damaged:
    case table.setAside:
      return null
    default:
      return 'its key belongs to no table'
  }
}

function chunkProblem({ chunks }: LaneSum, key: Buffer, value: Buffer): string | null {
  const chunk = readChunk(key, value)
  if (chunks.add(seqOf(key), chunk)) return 'it starts inside the chunk before it'
  return chunk === null ? wrongChecksum : null
}
