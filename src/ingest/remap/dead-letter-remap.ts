// dead-letter-remap.ts: dead letters of the mapping are mapped once more, with the mapping that is in force now, because somebody
// has mended it and asks for it.
//
// What can be mapped leaves the dead letters in the write that adds its payloads (or puts it where messages wait for
// their device, their clock or their expression); what still cannot stays as it is, with its id, its time and its first
// reason, and what a person dropped from quarantine unless that reason is asked for. A dry run looks and changes nothing. Letters that come while it runs are left for the next time.

import type { Clock } from '../../std/clock.ts'
import { droppedByPerson } from '../../domain/dead-letter.ts'
import type { Emit } from '../../domain/event.ts'
import type { Mapping } from '../../mapping/mapping.ts'
import type { DeadLetterEntry, Spool } from '../../spool/spool.ts'
import { remapSlice, type Remapped, type RemapEntry } from './remap.ts'
import { deadLetterFor } from './kept-message.ts'
import { mapperFactory, waitForRoom } from './release-throttle.ts'
import { inSlices } from './kept-slices.ts'

export type RemapRequest = {
  /** Null for any. A letter's source is the one that took its message; null there where none did. */
  reason: string | null
  source: string | null
  dryRun: boolean
  /** These letters instead of all. */
  deadLetters?: AsyncIterable<DeadLetterEntry>
  /** Messages that are not in the spool, instead of letters: what cannot be mapped becomes a letter. */
  messages?: AsyncIterable<RemapEntry>
}

export type RemapReport = {
  dryRun: boolean
  /** Letters that were looked at, and those of them that are letters no more. */
  deadLetters: number
  remapped: number
  payloads: number
  /** Messages that the config leaves out on purpose, by source and reason. */
  ignored: Record<string, number>
  /** Put into quarantine or before an expression. */
  kept: number
  /** Letters that stay, by the reason of now. */
  stillRefused: Record<string, number>
}

type RemapSpool = Pick<
  Spool,
  'holdReason' | 'congested' | 'deadLettersFull' | 'deadLetters' | 'exchange' | 'stateEntries'
>

export type RemapDeps = { spool: RemapSpool; clock: Clock; emit: Emit; mapping: Mapping }

/** Rejects with what the spool rejects with; what was done until then is done. Ends early where `signal` aborts. */
export async function remap(
  { spool, clock, emit, mapping }: RemapDeps,
  request: RemapRequest,
  signal: AbortSignal,
): Promise<RemapReport> {
  const { dryRun, messages = null } = request
  const startedAt = clock.now()
  const report: RemapReport = {
    dryRun,
    deadLetters: 0,
    remapped: 0,
    payloads: 0,
    ignored: {},
    kept: 0,
    stillRefused: {},
  }
  const open = await mapperFactory(mapping, spool)
  await inSlices({
    entries: messages ?? lettersToMap(),
    map: (run, options) => remapSlice(open, run, options),
    settle,
    signal,
  })
  const refused = Object.values(report.stillRefused).reduce((sum, count) => sum + count, 0)
  if (!dryRun)
    emit({ kind: 'dead_letters_remapped', deadLetters: report.remapped, payloads: report.payloads, refused })
  return report

  async function* lettersToMap(): AsyncGenerator<RemapEntry> {
    const { reason, source } = request
    const filter = { limit: Infinity, stage: 'mapping' as const, ...(reason === null ? {} : { reason }) }
    for await (const { id, deadLetter: letter } of request.deadLetters ?? spool.deadLetters(filter)) {
      // One of the future is of a clock that was set back since.
      const isNew = letter.at > startedAt && letter.at <= clock.now()
      if (isNew && request.deadLetters === undefined) continue
      if (letter.reason === droppedByPerson && reason === null && request.deadLetters === undefined) continue
      const { envelope } = letter
      if (envelope !== null && (source === null || envelope.source === source)) yield { id, envelope }
    }
  }

  async function settle({ entries, taken: gone, payloads, keep, ignored, refused }: Remapped): Promise<void> {
    // A record of several messages that cannot be mapped is a letter of its own; the messages are in it.
    const records = refused.filter(({ id }) => id === null || messages !== null)
    if (!dryRun && gone.length + (messages === null ? 0 : records.length) > 0) {
      if (!(await waitForRoom(spool, clock, signal, { takesLetters: messages === null }))) return
      const letters = records.map((one) => deadLetterFor(one, one.envelope, clock.now()))
      await spool.exchange({
        take: messages === null ? gone : [],
        payloads,
        deadLetters: letters,
        keptMessages: keep,
        stateChanges: [],
      })
    }
    report.deadLetters += entries
    report.remapped += gone.length
    report.payloads += payloads.length
    report.kept += keep.length
    for (const [reason, count] of ignored) report.ignored[reason] = (report.ignored[reason] ?? 0) + count
    for (const { reason } of refused) report.stillRefused[reason] = (report.stillRefused[reason] ?? 0) + 1
  }
}
