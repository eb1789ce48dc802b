// quarantine-decisions.ts: the commands `release` and `drop` for messages in quarantine.
//
//   release   maps messages that are kept because of their clock, with the time that they have, or restamped:
//             a time that is still wrong is replaced by that of the arrival
//   drop      messages kept for any reason become dead letters with a reason of their own. `dead-letters
//             remap` with that reason maps them again; without it, it leaves them alone
//
// Promises
//   Nothing is lost and nothing is sent twice: messages leave their shelf in the write that adds their
//   results. If the process dies in the middle, a part is done, and the same command does the rest.
//   The messages of a device go in the order of their arrival, provider by provider. What the device has sent
//   since with a right time is ahead of them.
//   Messages that wait for their device are released automatically when it is listed (quarantine.ts).
//   Messages of unlisted devices are not released.
//
// What can go wrong, and what then happens
//   nothing matches, or the device is unlisted    DAEMON_REFUSED says what to do
//   an expression cannot be evaluated now         the same, after what could be done
//   the store is lost, or other work was first    the fault is returned; what was done remains
//   the spool is full                             the work waits; the client can hang up

import { GatewayError } from '../../std/gateway-error.ts'
import { quote } from '../../std/quote.ts'
import { droppedByPerson } from '../../domain/dead-letter.ts'
import type { ShelfName } from '../../domain/kept-store.ts'
import type { KeptMessage } from '../../domain/message.ts'
import type { Mapping } from '../../mapping/mapping.ts'
import { deadLetterFor, deadLetterStoreOf, unknownDevice } from '../remap/kept-message.ts'
import { inSlices } from '../remap/kept-slices.ts'
import { mapperFactory, waitForRoom } from '../remap/release-throttle.ts'
import { remapSlice } from '../remap/remap.ts'
import { exchangeSlice, type KeptWorkDeps, type SliceResult } from '../remap/slice-result.ts'
import { quarantinedOn, quarantineShelves, type QuarantinedEntry } from './quarantine-shelves.ts'
import { fromOf } from '../intake/unmappable-counter.ts'

/** Without device and ids: all messages. `reason` is the one for which they are kept. */
export type KeptSelection = { device: string | null; ids: readonly string[]; reason?: string | null }

export type ReleaseReport = {
  /** Messages that left the quarantine, and payloads that they became. */
  released: number
  payloads: number
  /** Payloads that were stored before, with another message. */
  duplicates: number
  /** Of them: became dead letters, by reason; were ignored by the config, by source and reason. */
  dead: Record<string, number>
  ignored: Record<string, number>
  /** Kept again, by reason. */
  kept: Record<string, number>
  /** Messages that stay because their device is not listed. */
  unlisted: number
  /** Messages that are left to the automatic release. */
  releasing: number
}

export type DropReport = {
  dryRun: boolean
  messages: number
  /** By the reason for which they were kept. */
  reasons: Record<string, number>
}

export type QuarantineDecisions = {
  release(which: KeptSelection, options: { restamp: boolean }, signal: AbortSignal): Promise<ReleaseReport>
  drop(which: KeptSelection, options: { dryRun: boolean }, signal: AbortSignal): Promise<DropReport>
  counters(): DecisionCounters
}

/** Messages, since the start. */
export type DecisionCounters = { released: number; dead: number; dropped: number }

type Deps = KeptWorkDeps & {
  mapping: () => Mapping
}

const droppedAtOnce = 500

export function createQuarantineDecisions({
  spool,
  mapped,
  clock,
  ourTime,
  emit,
  mapping,
}: Deps): QuarantineDecisions {
  const counts = { released: 0, dead: 0, dropped: 0 }
  return { release, drop, counters: () => ({ ...counts }) }

  async function release(
    which: KeptSelection,
    { restamp }: { restamp: boolean },
    signal: AbortSignal,
  ): Promise<ReleaseReport> {
    const now = mapping()
    if (which.device !== null && !now.admits(which.device)) throw unlistedFault(which.device)
    const report: ReleaseReport = {
      released: 0,
      payloads: 0,
      duplicates: 0,
      dead: {},
      ignored: {},
      kept: {},
      unlisted: 0,
      releasing: 0,
    }
    const open = await mapperFactory(now, spool, restamp ? 'restamp' : 'accept')
    try {
      for (const shelf of quarantineShelves(spool)) {
        const entries = releasable(matching(shelf, which, signal), now, report)
        const settle = settleInto(report, signal)
        await inSlices({
          entries,
          map: (slice, options) => remapSlice(open, slice, options),
          settle,
          signal,
        })
      }
    } finally {
      const { released: messages, payloads } = report
      const dead = sumOf(report.dead)
      const decision = restamp ? 'restamp' : 'release'
      if (messages > 0)
        emit({ kind: 'quarantine_decided', decision, device: which.device, messages, payloads, dead })
    }
    if (report.released + report.unlisted + report.releasing === 0 && !signal.aborted)
      throw nothingFault(which)
    if (which.ids.length === 1 && report.unlisted > 0) throw unlistedFault(null)
    return report
  }

  /** Those that a person may release. */
  async function* releasable(
    all: AsyncIterable<QuarantinedEntry>,
    { admits }: Mapping,
    report: ReleaseReport,
  ): AsyncGenerator<QuarantinedEntry> {
    for await (const entry of all) {
      const { device, reason } = entry.message
      if (device !== null && !admits(device)) report.unlisted += 1
      else if (reason === unknownDevice) report.releasing += 1
      else yield entry
    }
  }

  function settleInto(report: ReleaseReport, signal: AbortSignal) {
    return async (slice: SliceResult): Promise<void> => {
      const { keptMessages, ignored, refused } = slice
      if (!(await waitForRoom(spool, clock, signal))) return
      const { taken, payloads, duplicates } = await exchangeSlice({ spool, mapped }, slice, ourTime.now())
      report.released += taken
      report.payloads += payloads
      report.duplicates += duplicates
      for (const { reason } of refused) count(report.dead, reason, 1)
      for (const { reason } of keptMessages) count(report.kept, reason, 1)
      for (const [reason, messages] of ignored) count(report.ignored, reason, messages)
      counts.released += taken
      counts.dead += refused.length
      const [first] = refused
      if (first !== undefined) {
        const { source, reason, detail, envelope } = first
        const { topic } = envelope
        emit({ kind: 'message_unmappable', source, topic, reason, detail, ...fromOf(envelope) })
      }
    }
  }

  async function drop(
    which: KeptSelection,
    { dryRun }: { dryRun: boolean },
    signal: AbortSignal,
  ): Promise<DropReport> {
    const report: DropReport = { dryRun, messages: 0, reasons: {} }
    let group: QuarantinedEntry[] = []
    try {
      for (const shelf of quarantineShelves(spool)) {
        for await (const entry of matching(shelf, which, signal)) {
          group.push(entry)
          if (group.length === droppedAtOnce) await dropGroup()
        }
        await dropGroup()
      }
    } finally {
      const { messages } = report
      const event = { decision: 'drop', device: which.device, messages, payloads: 0, dead: messages } as const
      if (messages > 0 && !dryRun) emit({ kind: 'quarantine_decided', ...event })
    }
    if (report.messages === 0 && !signal.aborted) throw nothingFault(which)
    return report

    async function dropGroup(): Promise<void> {
      const some = group
      group = []
      if (some.length === 0) return
      if (!dryRun) {
        if (!(await waitForRoom(spool, clock, signal))) return
        const at = ourTime.now()
        const deadLetters = some.map(({ message }) => deadLetterFor(droppedOf(message), message.envelope, at))
        await spool.exchange({
          take: some.map(({ id }) => id),
          payloads: [],
          deadLetters,
          stateChanges: [],
        })
        counts.dropped += some.length
      }
      report.messages += some.length
      for (const { message } of some) count(report.reasons, message.reason, 1)
    }
  }

  async function* matching(
    shelf: ShelfName,
    { device, ids, reason = null }: KeptSelection,
    signal: AbortSignal,
  ): AsyncGenerator<QuarantinedEntry> {
    const wanted = new Set(ids)
    for await (const entry of quarantinedOn({ spool, ourTime }, shelf, device, signal)) {
      if (ids.length > 0 && !wanted.delete(entry.id)) continue
      if (reason === null || entry.message.reason === reason) yield entry
      if (ids.length > 0 && wanted.size === 0) return
    }
  }
}

function droppedOf({ device, devices, reason, detail, envelope }: KeptMessage) {
  const store = deadLetterStoreOf({ reason })
  const why = `A person dropped it from the quarantine. It was kept as ${reason}: ${detail}`
  return {
    source: envelope.source,
    device,
    ...(devices && { devices }),
    reason: droppedByPerson,
    detail: why,
    store,
  }
}

function count(by: Record<string, number>, reason: string, messages: number): void {
  by[reason] = (by[reason] ?? 0) + messages
}

function sumOf(by: Record<string, number>): number {
  return Object.values(by).reduce((sum, messages) => sum + messages, 0)
}

/** `device` is null where a message was selected by its id. */
function unlistedFault(device: string | null): GatewayError {
  const name = device === null ? 'of the message' : quote(device, 80)
  return new GatewayError('DAEMON_REFUSED', {
    what: `The device ${name} is not in the device table, so its messages are not released.`,
    why: 'A payload contains what the table says of its device: asset, operator, provider.',
    act:
      'Add the device to the table (devices.file). Messages that wait for it are then released ' +
      'automatically; release the others again. To give its messages up, use `quarantine drop`.',
  })
}

function nothingFault({ device, ids, reason = null }: KeptSelection): GatewayError {
  const all = device === null ? 'message' : `message of ${quote(device, 80)}`
  const [id] = ids
  const named = id === undefined || ids.length > 1 ? `message with one of ${ids.length} ids` : quote(id, 100)
  const what =
    id === undefined ? all + (reason === null ? '' : ` with the reason ${quote(reason, 40)}`) : named
  return new GatewayError('DAEMON_REFUSED', {
    what: `There is no ${what} in the quarantine.`,
    why: 'It was released or dropped before, or it was never quarantined.',
    act: 'Nothing was changed. List the messages with `quarantine list`.',
  })
}
