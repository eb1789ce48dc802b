// intake-journal.ts: short entries that ingest notes with its messages, and reads back after a start. To the
// spool they are bytes.
//
// The entries of one group are one record, in the same write as the messages. Records are numbered, and leave
// oldest first: when they are older than `windowMs`, or when there are more than `bytesMax` bytes. Ages come
// from the monotonic clock, and over a restart from the wall clock of the records, as in the dedup window.
//
// A damaged record is reported and skipped: what it noted counts as unknown.

import type { StoreOp } from '../../storage/storage.ts'
import type { IntakeJournal, JournalGroup, SpoolState } from '../session-state.ts'
import type { JournalEntries } from '../types.ts'
import { scan } from '../chunk-log/damage-scan.ts'
import { readTable, reportRecord } from '../recovery/table-records.ts'
import { isNumberKey, journalKey, numberOf, table, tableRange } from '../chunk-log/key-layout.ts'
import { decodeJournal, encodeJournal } from '../chunk-log/record-codec.ts'

export function newIntakeJournal(): IntakeJournal {
  return { nextN: 0, bytes: 0, groups: [], first: 0 }
}

/** Adds the entries of a group to its write. Only while a write is put together (committer.ts). */
export function putJournal({ journal, clock }: SpoolState, entries: Buffer, ops: StoreOp[]): void {
  const n = journal.nextN
  ops.push({ type: 'put', key: journalKey(n), value: encodeJournal(clock.now(), entries) })
  addGroup(journal, { n, addedAtMs: clock.monotonic(), bytes: entries.length })
}

function addGroup(journal: IntakeJournal, group: JournalGroup): void {
  journal.nextN = group.n + 1
  journal.bytes += group.bytes
  journal.groups.push(group)
}

/** Forgets at most `limit` records that are too old or too many. Only while a write is put together. */
export function expireJournal({ journal, clock, options }: SpoolState, limit: number, ops: StoreOp[]): void {
  const { windowMs, bytesMax } = options.journal
  const nowMs = clock.monotonic()
  const { groups } = journal
  for (let left = limit; left > 0 && journal.first < groups.length; left -= 1) {
    const { n, addedAtMs, bytes } = groups[journal.first]!
    if (journal.bytes <= bytesMax && nowMs - addedAtMs <= windowMs) break
    ops.push({ type: 'del', key: journalKey(n) })
    journal.bytes -= bytes
    journal.first += 1
  }
  if (journal.first > 1024 && journal.first * 2 > groups.length) {
    groups.splice(0, journal.first)
    journal.first = 0
  }
}

export async function recoverJournal(state: SpoolState, repairs: StoreOp[]): Promise<void> {
  const { journal, clock, options } = state
  let skipped = 0
  const read = { range, table: 'journal' as const, isKey: isNumberKey, repairs }
  const pages = readTable(state, { ...read, skipped: () => void (skipped = numbersSkipped) })
  for await (const [key, value] of pages) {
    const record = decodeJournal(value)
    if (record === null) reportRecord(state, 'journal', 'its checksum is wrong')
    const { at, entries } = record ?? { at: clock.now(), entries: Buffer.alloc(0) }
    const ageMs = Math.min(Math.max(0, clock.now() - at), options.journal.windowMs)
    addGroup(journal, { n: numberOf(key), addedAtMs: clock.monotonic() - ageMs, bytes: entries.length })
  }
  journal.nextN += skipped
}

const range = tableRange(table.journal)

/** More than the records of an unreadable block: their numbers are not given again. */
const numbersSkipped = 1_000_000

/** What is on the disk, oldest first. */
export async function* readJournal(state: SpoolState): AsyncGenerator<JournalEntries> {
  for await (const page of scan(state.store, range)) {
    if (page.kind === 'gap') continue
    for (const [, value] of page.entries) {
      const record = decodeJournal(value)
      if (record !== null && record.entries.length > 0)
        yield { ageMs: Math.max(0, state.clock.now() - record.at), entries: record.entries }
    }
  }
}
