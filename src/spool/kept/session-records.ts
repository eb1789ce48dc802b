// session-records.ts: records of the sessions that the broker stores for its clients. Each is a key and
// bytes, in the same write as the message that changed it. To the spool they are
// bytes, and it keeps none of them in memory: ingest does, and bounds their number.
//
// A damaged record is reported and skipped. It stays on the disk until its key is written again.

import type { StoreOp } from '../../storage/storage.ts'
import { scan } from '../chunk-log/damage-scan.ts'
import { isTextKey, sessionKey, table, tableRange, textOf } from '../chunk-log/key-layout.ts'
import { sessionRecord } from '../chunk-log/record-codec.ts'
import type { SpoolState } from '../session-state.ts'
import type { StateEntry } from '../types.ts'

/** The changes of one group; the last change of each key is written. */
export type SessionWrites = Map<string, StoreOp>

/** Returns by how many bytes the group grows. */
export function changeSession(writes: SessionWrites, name: string, value: Buffer | null): number {
  const key = sessionKey(name)
  if (value === null) {
    writes.set(name, { type: 'del', key })
    return key.length
  }
  const record = sessionRecord.encode(value)
  writes.set(name, { type: 'put', key, value: record })
  return key.length + record.length
}

/** The durable records. */
export async function* readSessionRecords({ store, emit }: SpoolState): AsyncGenerator<StateEntry> {
  for await (const page of scan(store, tableRange(table.sessions))) {
    if (page.kind === 'gap') {
      emit({
        kind: 'record_damaged',
        table: 'sessions',
        name: '',
        what: 'a block of a table is damaged; its records stay on the disk unread',
      })
      continue
    }
    for (const [key, record] of page.entries) {
      const value = isTextKey(key) ? sessionRecord.decode(record) : null
      const name = isTextKey(key) ? textOf(key) : ''
      if (value !== null) yield { key: name, value }
      else emit({ kind: 'record_damaged', table: 'sessions', name, what: 'its key or its checksum is wrong' })
    }
  }
}
