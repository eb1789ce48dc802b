// letters.ts: dead letters in the database. Their number and bytes stand in a record of their own that is
// written with every change, so that nobody has to count them at start.

import type { Store, StoreOp } from '../storage/storage.ts'
import { deadLetterKey, laneKey, letterLane, table, tableRange } from './keys.ts'
import { letterRecord, letterTotalsRecord } from './records.ts'
import type { DeadLetterEntry } from './spool.ts'
import type { SpoolState } from './state.ts'

/** Adds the operations that bury `values` at `at`. The totals count at once: the write follows for certain. */
export function buryAll(state: SpoolState, at: number, values: readonly Buffer[], ops: StoreOp[]): void {
  if (values.length === 0) return
  for (const value of values) {
    ops.push({ type: 'put', key: deadLetterKey(at, state.nextLetter), value })
    state.nextLetter += 1
    state.letters.letters += 1
    state.letters.bytes += value.length
  }
  ops.push({
    type: 'put',
    key: laneKey(table.totals, letterLane),
    value: letterTotalsRecord.encode(state.letters),
  })
}

/** Reads dead letters, oldest first. A damaged one is left out here and left alone on the disk. */
export async function* readLetters(
  store: Store,
  options: { limit: number },
): AsyncGenerator<DeadLetterEntry> {
  for await (const page of store.pages(tableRange(table.deadLetters), options)) {
    for (const [key, value] of page) {
      const letter = letterRecord.decode(value)
      if (letter !== null) yield { id: key.subarray(1).toString('hex'), letter }
    }
  }
}
