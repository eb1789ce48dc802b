// table-records.ts: reads a table for recovery. Nothing that a table holds ends a start: a block that cannot
// be read is reported and stepped over, a record with a key of a wrong form is reported and set aside.

import type { RecordTable } from '../../domain/events/spool-loss-events.ts'
import type { StoreEntry, StoreOp, StoreRange } from '../../storage/storage.ts'
import { scan } from '../chunk-log/damage-scan.ts'
import { setAsideKey } from '../chunk-log/key-layout.ts'
import type { SpoolState } from '../session-state.ts'

export type TableRead = {
  range: StoreRange
  /** For the reports. */
  table: RecordTable
  isKey: (key: Buffer) => boolean
  repairs: StoreOp[]
  /** Called where a block cannot be read. */
  skipped?: () => void
}

export async function* readTable(
  state: SpoolState,
  { range, table, isKey, repairs, skipped }: TableRead,
): AsyncGenerator<StoreEntry> {
  let isReported = false
  for await (const page of scan(state.store, range)) {
    if (page.kind === 'gap') {
      skipped?.()
      if (!isReported) reportRecord(state, table, blockDamaged)
      isReported = true
      continue
    }
    for (const [key, value] of page.entries) {
      if (isKey(key)) {
        yield [key, value]
        continue
      }
      reportRecord(state, table, 'the key of a record is damaged; it was set aside')
      setRecordAside(key, value, repairs)
    }
  }
}

export const blockDamaged = 'a block of a table is damaged; its records stay on the disk unread'

export function reportRecord({ emit }: SpoolState, table: RecordTable, what: string, name = ''): void {
  emit({ kind: 'record_damaged', table, name, what })
}

/**
 * A chunk where none was written. What it holds is missing in another place, and is counted there as damaged;
 * of the newest one nothing would show it, so it gets its key back (lane-numbers.ts).
 */
export function setMisplacedAside(state: SpoolState, key: Buffer, value: Buffer, repairs: StoreOp[]): void {
  reportRecord(state, 'chunks', 'the key of a chunk is damaged; it was set aside')
  setRecordAside(key, value, repairs)
}

/** Keeps a damaged record unchanged under another key. */
export function setRecordAside(key: Buffer, value: Buffer, repairs: StoreOp[]): void {
  repairs.push({ type: 'put', key: setAsideKey(key), value }, { type: 'del', key })
}
