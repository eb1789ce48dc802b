// dead-letters.ts: list, requeue, edit, export, import and purge dead letters. Entry file of this folder.
//
// A dead letter is a message that could not be mapped, or a payload that the service refused after all
// retries. The spool keeps both whole. This folder is what an operator does with them after the cause is
// known.
//
// Guarantees
//   A dead letter is removed in the same write that adds its payload to a lane. A crash during a requeue of
//   thousands leaves each of them in exactly one place.
//   A payload keeps its payloadId, so the service can recognise what it refused; its attempts start at 0.
//   Only an edit that changes device, asset or time gives it a new payloadId (payload-validation.ts).
//   Only `purge` and `dead_letters.retention` delete. Retention deletes while the clock is known to be right.
//   Each deletion is an event at `error` with reasons, and is counted, because data is lost.
//
// Files
//   types.ts               queries, reports, dependencies
//   select.ts              which dead letters a query selects
//   dead-letter-groups.ts  groups dead letters by cause
//   payload-writer.ts      writes payloads to live lanes, a group in one write
//   requeue.ts             payloads to their live lane; messages through the mapping in force
//   payload-edit.ts        one payload, corrected by hand
//   payload-validation.ts  whether a text is a payload that may be sent
//   ndjson-line.ts         dead letters, payloads and messages as NDJSON, for export, import and salvage
//   import.ts              imports such lines, except what the spool holds and what was delivered
//   import-plan.ts         the payloadIds of an import, and what spool and ledger know of them
//   payload-id-set.ts      a compact set of payloadIds
//   purge.ts               deletes, by hand and by age
//
// Failures
//   another command took a dead letter   SPOOL_ENTRY_GONE; earlier groups of the same request stay done
//   the spool is full                    the operation waits for space while payloads wait for delivery; the
//                                        client ends it by closing the connection
//   the store fails during the work      SPOOL_CLOSED; a second request continues with the rest
//   an import is interrupted             the same import again continues where it stopped
//   the provider left the config         the dead letter stays, and the report says so

import { createImporter } from './import.ts'
import { createImportPlans } from './import-plan.ts'
import { listDeadLetters } from './dead-letter-groups.ts'
import { exportLine } from './ndjson-line.ts'
import { editPayload } from './payload-edit.ts'
import { createPurge } from './purge.ts'
import { requeue } from './requeue.ts'
import { selectDeadLetters } from './select.ts'
import type { DeadLetterCounters, DeadLetterDeps, DeadLetterOperations } from './types.ts'

export { listDeadLetters } from './dead-letter-groups.ts'
export { envelopeLine, exportLine, messageLine, payloadLine } from './ndjson-line.ts'
export { noSuchDeadLetter } from './payload-edit.ts'
export { purgeByAge } from './purge.ts'
export { selectDeadLetters } from './select.ts'
export type * from './types.ts'

export function createDeadLetterOperations(deps: DeadLetterDeps): DeadLetterOperations {
  const { spool } = deps
  const counters: DeadLetterCounters = { requeued: 0, imported: 0, purged: { operator: 0, age: 0 } }
  const importer = createImporter(deps, counters, createImportPlans(deps))
  const purge = createPurge(deps, counters)
  return {
    list: (query, limit) => listDeadLetters(spool, query, limit),
    show: (id) => spool.deadLetter(id),
    requeue: (query, options, signal) => requeue(deps, counters, query, { ...options, signal }),
    edit: (id, text, signal) => editPayload(deps, counters, { id, text }, signal),
    async *export(query) {
      for await (const entry of selectDeadLetters(spool, query)) yield exportLine(entry)
    },
    planImport: importer.plan,
    checkImport: importer.check,
    importLines: importer.importLines,
    purge: (query, options, signal) => purge(query, { ...options, by: 'operator' }, signal),
    purgeOlder: (than, signal) => purge(than, { dryRun: false, by: 'age' }, signal),
    counters: () => ({ ...counters, purged: { ...counters.purged } }),
  }
}
