// dead-letter-table.ts: dead letters in the database. Their number and bytes stand in a record of their own that is
// written with every change, so that nobody has to count them at start.

import type { StoreOp } from '../../storage/storage.ts'
import { deadLetterKey, laneKey, letterLane, table } from '../chunk-log/key-layout.ts'
import { letterTotalsRecord } from '../chunk-log/record-codec.ts'
import type { SpoolState } from '../session-state.ts'

/** Adds the operations that bury `values` at `at`. The totals count at once: the write follows for certain. */
export function buryAll(state: SpoolState, at: number, values: readonly Buffer[], ops: StoreOp[]): void {
  if (values.length === 0) return
  for (const value of values) {
    ops.push({ type: 'put', key: deadLetterKey(at, state.nextLetter), value })
    state.nextLetter += 1
    state.letters.letters += 1
    state.letters.bytes += value.length
  }
  putTotals(state, ops)
}

/** A dead letter that leaves. */
export type LetterPlace = { key: Buffer; bytes: number }

/** Adds the operations that take letters away. Only while a write is put together. */
export function takeLetters(state: SpoolState, places: readonly LetterPlace[], ops: StoreOp[]): void {
  if (places.length === 0) return
  for (const { key, bytes } of places) {
    ops.push({ type: 'del', key })
    state.letters.letters -= 1
    state.letters.bytes -= bytes
    state.lettersDrainedBytes += bytes
  }
  putTotals(state, ops)
}

function putTotals({ letters }: SpoolState, ops: StoreOp[]): void {
  const key = laneKey(table.totals, letterLane)
  ops.push({ type: 'put', key, value: letterTotalsRecord.encode(letters) })
}
