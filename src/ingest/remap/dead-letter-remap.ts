// dead-letter-remap.ts: maps dead letters of the mapping once more, with the mapping in force, on request.
//
// A message that can be mapped now leaves the dead letters in the write that adds its payloads (or keeps it
// where messages wait for their device, their clock or their expression). One that still cannot be mapped
// stays as it is, with its id, its time and its first reason. So does one that a person dropped from
// quarantine, or that a bridge could not read, unless the request names that reason. A dry run changes
// nothing. Dead letters that arrive during the work are left for the next request.

import type { Clock } from '../../std/clock.ts'
import { correctedEnvelope, type OurTime } from '../../domain/arrival.ts'
import { droppedByPerson } from '../../domain/dead-letter.ts'
import type { Emit } from '../../domain/event.ts'
import type { MappedPayload } from '../../domain/payload.ts'
import type { Mapping } from '../../mapping/mapping.ts'
import type { DeadLetterEntry } from '../../spool/spool.ts'
import { deadLetterFor } from './kept-message.ts'
import { inSlices } from './kept-slices.ts'
import { mapperFactory, waitForRoom } from './release-throttle.ts'
import { remapSlice } from './remap.ts'
import type { RemapEntry, SliceResult } from './slice-result.ts'
import type { KeptSpool } from '../types.ts'

export type RemapRequest = {
  /** Null for any. The source of a dead letter is the one that took its message; null where none did. */
  reason: string | null
  source: string | null
  dryRun: boolean
  /** These dead letters instead of all. */
  deadLetters?: AsyncIterable<DeadLetterEntry>
  /** Messages from outside the spool instead: one that cannot be mapped becomes a dead letter. */
  messages?: AsyncIterable<RemapEntry>
  /** A payload of these messages for which it returns false is left out: it was imported before. */
  wants?: (payload: MappedPayload) => boolean
}

export type RemapReport = {
  dryRun: boolean
  /** Dead letters that were mapped, and those of them that are dead letters no longer. */
  deadLetters: number
  remapped: number
  payloads: number
  /** Payloads that were stored before, with another message. */
  duplicates: number
  /** Messages that the config ignores, by source and reason. */
  ignored: Record<string, number>
  /** Kept in quarantine or for their expression. */
  kept: number
  /** Dead letters that stay, by their present reason. */
  stillRefused: Record<string, number>
}

/** Dropped by a person, or not readable: only a request that names the reason maps them. */
const byNameOnly: ReadonlySet<string> = new Set([droppedByPerson, 'BAD_TOPIC', 'OVERSIZED'])

export type RemapDeps = { spool: KeptSpool; clock: Clock; ourTime: OurTime; emit: Emit; mapping: Mapping }

/** Rejects with a fault of the spool; what was done before it remains. Ends early where `signal` aborts. */
export async function remapDeadLetters(
  { spool, clock, ourTime, emit, mapping }: RemapDeps,
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
    duplicates: 0,
    ignored: {},
    kept: 0,
    stillRefused: {},
  }
  const open = await mapperFactory(mapping, spool)
  await inSlices({
    entries: messages ?? requested(),
    map: (entries, options) => remapSlice(open, entries, options),
    settle,
    signal,
  })
  const refused = Object.values(report.stillRefused).reduce((sum, count) => sum + count, 0)
  if (!dryRun)
    emit({ kind: 'dead_letters_remapped', deadLetters: report.remapped, payloads: report.payloads, refused })
  return report

  async function* requested(): AsyncGenerator<RemapEntry> {
    const { reason, source } = request
    const filter = { limit: Infinity, stage: 'mapping' as const, ...(reason === null ? {} : { reason }) }
    for await (const { id, deadLetter } of request.deadLetters ?? spool.deadLetters(filter)) {
      // A time in the future is that of a clock that was set back since.
      const isNew = deadLetter.at > startedAt && deadLetter.at <= clock.now()
      const isExcluded = isNew || (byNameOnly.has(deadLetter.reason) && reason === null)
      if (isExcluded && request.deadLetters === undefined) continue
      const { envelope } = deadLetter
      if (envelope !== null && (source === null || envelope.source === source))
        yield { id, envelope: correctedEnvelope(envelope, ourTime) }
    }
  }

  async function settle({
    entries,
    taken,
    payloads: mapped,
    keptMessages,
    ignored,
    refused,
  }: SliceResult): Promise<void> {
    const { wants } = request
    const payloads = wants === undefined ? mapped : mapped.filter(wants)
    // What was made of several messages, or of some records of one, becomes a dead letter of its own.
    const records = refused.filter(({ id }) => id === null || messages !== null)
    let duplicates = 0
    if (!dryRun && taken.length + (messages === null ? 0 : records.length) > 0) {
      if (!(await waitForRoom(spool, clock, signal, { takesDeadLetters: messages === null }))) return
      const exchanged = await spool.exchange({
        take: messages === null ? taken : [],
        payloads,
        // Of messages from outside `wants` has said it, by the ledger, too.
        areMapped: messages === null,
        deadLetters: records.map((one) => deadLetterFor(one, one.envelope, ourTime.now())),
        keptMessages,
        stateChanges: [],
      })
      ;({ duplicates } = exchanged)
    }
    report.deadLetters += entries
    report.remapped += taken.length
    report.payloads += payloads.length - duplicates
    report.duplicates += duplicates
    report.kept += keptMessages.length
    for (const [reason, count] of ignored) report.ignored[reason] = (report.ignored[reason] ?? 0) + count
    const counted = new Set<string | null>([null])
    for (const { id, reason } of refused) {
      // One entry with records that are refused for several reasons.
      if (id !== null && counted.has(id)) continue
      counted.add(id)
      report.stillRefused[reason] = (report.stillRefused[reason] ?? 0) + 1
    }
  }
}
