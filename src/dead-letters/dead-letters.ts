// dead-letters.ts: the door of this folder: dead letters are worked with, not just kept.
//
// A dead letter is a message that could not be mapped, or a payload that the service refused for good. Both are kept
// whole in the spool; here is what a person does with them once the cause is known.
//
// Promises
//   What leaves the dead letters is on the road in the same write, or it is where it was: a crash in the middle of a
//   thousand leaves each of them in one of the two places, and never in both.
//   A payload keeps its payloadId, so the service can tell that it is the one it refused; its attempts begin at 0. Only an
//   edit that makes it the reading of another device or moment gives it another one (payload-validation.ts).
//   Nothing is deleted but by somebody's `purge`, or by `dead_letters.retention` on a clock that is known to be right; each
//   deletion is an event at `error` with its reasons and a counter: data is lost by it.
//
// How
//   select.ts     which letters are meant: by id, or by stage, reason, device, source, provider and time
//   dead-letter-groups.ts   what is wrong with how many of how many devices
//   requeue.ts  payloads to their live lane; messages through the mapping that is in force
//   payload-edit.ts     one payload, mended by hand
//   ndjson-line.ts     letters, payloads and messages as NDJSON; what `export` and `spool salvage` write and `fill` reads
//   import.ts     takes such lines in; what stands in the spool already is refused by its payloadId
//   purge.ts    deletes, by hand and by age
//
// What can go wrong, and what then happens
//   somebody else took a letter     SPOOL_ENTRY_GONE; the letters before it in the same request stay done
//   the spool has no room           the work waits for it; who hangs up ends it
//   the store is lost meanwhile     SPOOL_CLOSED; asked again, it goes on with what is left
//   its provider left the config    the letter stays, and the report says so

import type { Clock } from '../std/clock.ts'
import type { DeadLetterStage } from '../domain/dead-letter.ts'
import type { Emit } from '../domain/event.ts'
import type { ProviderName } from '../domain/ids.ts'
import type { Envelope } from '../domain/message.ts'
import type { DeadLetterEntry, Spool } from '../spool/spool.ts'
import { editPayload, type EditReport } from './payload-edit.ts'
import { importLines, type ImportReport } from './import.ts'
import { listDeadLetters, type DeadLetterList } from './dead-letter-groups.ts'
import { exportLine } from './ndjson-line.ts'
import { selectDeadLetters } from './select.ts'
import { createPurge, type PurgeReport } from './purge.ts'
import { requeue, type RequeueReport } from './requeue.ts'

export { listDeadLetters, type DeadLetterList } from './dead-letter-groups.ts'
export { exportLine, messageLine, payloadLine } from './ndjson-line.ts'
export { selectDeadLetters } from './select.ts'
export { purgeByAge } from './purge.ts'
export type { EditReport } from './payload-edit.ts'
export type { ImportReport } from './import.ts'
export type { PurgeReport } from './purge.ts'
export type { RequeueReport } from './requeue.ts'

/** Which letters are meant; all of them where nothing is said. */
export type DeadLetterQuery = {
  /** These and no others, in this order. */
  ids?: readonly string[]
  stage?: DeadLetterStage
  reason?: string
  device?: string
  /** The one that took the message; for letters of the mapping. */
  source?: string
  provider?: string
  /** From this moment on, and before that one. */
  since?: number
  until?: number
}

/** What reads letters: a spool in use, or one at rest. */
export type DeadLetterReader = Pick<Spool, 'deadLetters' | 'deadLetter'>

/** Maps messages with the mapping in force; what ingest/quarantine/dead-letter-remap.ts does. */
export type Remap = (
  request: {
    reason: null
    source: null
    dryRun: boolean
    deadLetters?: AsyncIterable<DeadLetterEntry>
    messages?: AsyncIterable<{ id: string; envelope: Envelope }>
  },
  signal: AbortSignal,
) => Promise<RemapOutcome>

/** What became of messages that were mapped once more. */
export type RemapOutcome = {
  deadLetters: number
  remapped: number
  payloads: number
  ignored: Record<string, number>
  kept: number
  stillRefused: Record<string, number>
}

export type DeadLetterOperations = {
  list(query: DeadLetterQuery, limit: number): Promise<DeadLetterList>
  /** Null where there is none of this id. */
  show(id: string): Promise<DeadLetterEntry | null>
  requeue(query: DeadLetterQuery, options: { dryRun: boolean }, signal: AbortSignal): Promise<RequeueReport>
  /** Rejects with DEAD_LETTER_INVALID where `text` is no payload that may take its place. */
  edit(id: string, text: string, signal: AbortSignal): Promise<EditReport>
  /** Lines of NDJSON, as `fill` takes them. */
  export(query: DeadLetterQuery): AsyncIterable<string>
  /** Takes lines in; rejects with DEAD_LETTER_INVALID at the first that is none, and then nothing was taken. */
  importLines(text: string, options: { dryRun: boolean }, signal: AbortSignal): Promise<ImportReport>
  purge(query: DeadLetterQuery, options: { dryRun: boolean }, signal: AbortSignal): Promise<PurgeReport>
  /** For `dead_letters.retention`; ends at the first letter that is younger. */
  purgeOlder(than: { since: number; until: number }, signal: AbortSignal): Promise<PurgeReport>
  counters(): DeadLetterCounters
}

/** Since the start. */
export type DeadLetterCounters = {
  requeued: number
  imported: number
  purged: { operator: number; age: number }
}

export type DeadLetterDeps = {
  spool: Pick<
    Spool,
    | 'deadLetters'
    | 'deadLetter'
    | 'exchange'
    | 'holdReason'
    | 'congested'
    | 'deadLettersFull'
    | 'totals'
    | 'storedPayloadIds'
  >
  clock: Clock
  emit: Emit
  remap: Remap
  /** Names that the config knows now. */
  providers: () => readonly ProviderName[]
}

export function createDeadLetterOperations(deps: DeadLetterDeps): DeadLetterOperations {
  const { spool } = deps
  const counters: DeadLetterCounters = { requeued: 0, imported: 0, purged: { operator: 0, age: 0 } }
  const purge = createPurge(deps, counters)
  return {
    list: (query, limit) => listDeadLetters(spool, query, limit),
    show: (id) => spool.deadLetter(id),
    requeue: (query, options, signal) => requeue(deps, counters, query, options, signal),
    edit: (id, text, signal) => editPayload(deps, counters, id, text, signal),
    async *export(query) {
      for await (const entry of selectDeadLetters(spool, query)) yield exportLine(entry)
    },
    importLines: (text, options, signal) => importLines(deps, counters, text, options, signal),
    purge: (query, options, signal) => purge(query, { ...options, by: 'operator' }, signal),
    purgeOlder: (than, signal) => purge(than, { dryRun: false, by: 'age' }, signal),
    counters: () => ({ ...counters, purged: { ...counters.purged } }),
  }
}
