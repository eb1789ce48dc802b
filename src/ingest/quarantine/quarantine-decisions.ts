// quarantine-decisions.ts: what a person decides about messages in quarantine.
//
//   release   kept because of its clock: mapped after all, with the time that it has, or restamped: what is still wrong
//             with it gets the time of its arrival
//   drop      kept for whatever: it becomes a dead letter that says so. `dead-letters remap` with that reason takes it
//             back; without, a remap leaves it alone
//
// Promises
//   Nothing is lost and nothing comes twice: a run is taken off its shelf in the write that adds what it became, so a
//   process that dies in the middle has done a part of it, and the same order again does the rest.
//   The messages of a device go in the order of their arrival, provider by provider. What it sent since with a right
//   time is ahead of them.
//   What waits for its device goes by itself when that is listed (quarantine.ts); of unlisted ones nothing is released.
//
// What can go wrong, and what then happens
//   nothing fits, or the device is unlisted   DAEMON_REFUSED says what to do
//   an expression cannot be evaluated now     the same, after what could be done
//   the store is lost, somebody took it first the fault is told; what was done is done
//   the spool is full                         the work waits; whoever asked can hang up

import type { Clock } from '../../std/clock.ts'
import { GatewayError } from '../../std/gateway-error.ts'
import { quote } from '../../std/quote.ts'
import { droppedByPerson } from '../../domain/dead-letter.ts'
import type { Emit } from '../../domain/event.ts'
import type { Mapping } from '../../mapping/mapping.ts'
import type { KeptEntry, Spool } from '../../spool/spool.ts'
import { evaluated, type Expressions } from '../expressions/expressions.ts'
import { remapSlice, type Remapped, type RemapEntry } from '../remap/remap.ts'
import { deadLetterFor, unknownDevice } from '../remap/kept-message.ts'
import { storeLostFault, mapperFactory, waitForRoom } from '../remap/release-throttle.ts'
import { settleSlice, inSlices } from '../remap/kept-slices.ts'

/** Both null: all of them. */
export type KeptSelection = { device: string | null; id: string | null }

export type ReleaseReport = {
  /** Messages that left the quarantine, and payloads that they became. */
  released: number
  payloads: number
  /** Of them: became dead letters, by reason; were left out by the config, by source and reason. */
  dead: Record<string, number>
  ignored: Record<string, number>
  /** Kept anew, by reason. */
  kept: Record<string, number>
  /** Messages that stay: their devices are not listed. */
  unlisted: number
  /** Messages that were not touched, since they go by themselves. */
  releasing: number
}

export type DropReport = {
  dryRun: boolean
  messages: number
  /** By why they were kept. */
  reasons: Record<string, number>
}

export type QuarantineDecisions = {
  release(which: KeptSelection, options: { restamp: boolean }, signal: AbortSignal): Promise<ReleaseReport>
  drop(which: KeptSelection, options: { dryRun: boolean }, signal: AbortSignal): Promise<DropReport>
  counters(): DecisionCounters
}

/** Messages, since the start. */
export type DecisionCounters = { released: number; dead: number; dropped: number }

export type DecisionSpool = Pick<
  Spool,
  'holdReason' | 'congested' | 'deadLettersFull' | 'shelves' | 'keptMessages' | 'exchange' | 'stateEntries'
>

type Deps = {
  spool: DecisionSpool
  clock: Clock
  emit: Emit
  expressions: Pick<Expressions, 'evaluate'>
  mapping: () => Mapping
}

type Kept = RemapEntry & KeptEntry

const droppedAtOnce = 500

export function createQuarantineDecisions({
  spool,
  clock,
  emit,
  expressions,
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
      dead: {},
      ignored: {},
      kept: {},
      unlisted: 0,
      releasing: 0,
    }
    const open = await mapperFactory(now, spool, restamp ? 'restamp' : 'accept')
    const stalled = new AbortController()
    const either = AbortSignal.any([signal, stalled.signal])
    try {
      for (const shelf of shelvesNow())
        await inSlices({
          entries: forTheirClock(keptOn(shelf, which, signal), now, report),
          async map(run, options) {
            const values = await evaluated(expressions, open(), run)
            if (values === null) stalled.abort()
            return values === null ? null : remapSlice(open, run, { ...options, evaluated: values })
          },
          settle: (again) => settle(again, report, signal),
          signal: either,
        })
    } finally {
      const { released: messages, payloads } = report
      const dead = sumOf(report.dead)
      const decision = restamp ? 'restamp' : 'release'
      if (messages > 0)
        emit({ kind: 'quarantine_decided', decision, device: which.device, messages, payloads, dead })
    }
    if (stalled.signal.aborted) throw stalledFault(report)
    if (report.released + report.unlisted + report.releasing === 0 && !signal.aborted)
      throw nothingFault(which)
    if (which.id !== null && report.unlisted > 0) throw unlistedFault(null)
    return report
  }

  /** Those that a person may release. */
  async function* forTheirClock(
    all: AsyncIterable<Kept>,
    { admits }: Mapping,
    report: ReleaseReport,
  ): AsyncGenerator<Kept> {
    for await (const entry of all) {
      const { device, reason } = entry.message
      if (device !== null && !admits(device)) report.unlisted += 1
      else if (reason === unknownDevice) report.releasing += 1
      else yield entry
    }
  }

  async function settle(again: Remapped, report: ReleaseReport, signal: AbortSignal): Promise<void> {
    const { payloads, keep, ignored, refused } = again
    if (!(await waitForRoom(spool, clock, signal))) return
    const released = await settleSlice(spool, again, clock.now())
    report.released += released
    report.payloads += payloads.length
    for (const { reason } of refused) count(report.dead, reason, 1)
    for (const { reason } of keep) count(report.kept, reason, 1)
    for (const [reason, messages] of ignored) count(report.ignored, reason, messages)
    counts.released += released
    counts.dead += refused.length
    for (const { source, reason, detail, envelope } of refused.slice(0, 1))
      emit({ kind: 'message_unmappable', source, topic: envelope.topic, reason, detail })
  }

  async function drop(
    which: KeptSelection,
    { dryRun }: { dryRun: boolean },
    signal: AbortSignal,
  ): Promise<DropReport> {
    const report: DropReport = { dryRun, messages: 0, reasons: {} }
    let group: Kept[] = []
    try {
      for (const shelf of shelvesNow()) {
        for await (const entry of keptOn(shelf, which, signal)) {
          group.push(entry)
          if (group.length === droppedAtOnce) await end()
        }
        await end()
      }
    } finally {
      const { messages } = report
      if (messages > 0 && !dryRun)
        emit({
          kind: 'quarantine_decided',
          decision: 'drop',
          device: which.device,
          messages,
          payloads: 0,
          dead: messages,
        })
    }
    if (report.messages === 0 && !signal.aborted) throw nothingFault(which)
    return report

    async function end(): Promise<void> {
      const some = group
      group = []
      if (some.length === 0) return
      if (!dryRun) {
        if (!(await waitForRoom(spool, clock, signal))) return
        const at = clock.now()
        const letters = some.map(({ message }) => deadLetterFor(droppedOf(message), message.envelope, at))
        await spool.exchange({
          take: some.map(({ id }) => id),
          payloads: [],
          deadLetters: letters,
          stateChanges: [],
        })
        counts.dropped += some.length
      }
      report.messages += some.length
      for (const { message } of some) count(report.reasons, message.reason, 1)
    }
  }

  function shelvesNow() {
    // A lost store shows no shelves, which must not look like empty ones.
    if (spool.holdReason === 'store_lost') throw storeLostFault()
    return spool.shelves().filter(({ shelf, messages }) => shelf.startsWith('quarantine:') && messages > 0)
  }

  async function* keptOn(
    { shelf }: ReturnType<typeof shelvesNow>[number],
    { device, id }: KeptSelection,
    signal: AbortSignal,
  ): AsyncGenerator<Kept> {
    for await (const entry of spool.keptMessages(shelf, device, { limit: Infinity })) {
      if (signal.aborted) return
      if (id !== null && entry.id !== id) continue
      yield { ...entry, envelope: entry.message.envelope }
      if (id !== null) return
    }
  }
}

function droppedOf({ device, reason, detail, envelope }: KeptEntry['message']) {
  const why = `A person dropped it from the quarantine, where it was kept as ${reason}: ${detail}`
  return { source: envelope.source, device, reason: droppedByPerson, detail: why }
}

function count(by: Record<string, number>, reason: string, messages: number): void {
  by[reason] = (by[reason] ?? 0) + messages
}

function sumOf(by: Record<string, number>): number {
  return Object.values(by).reduce((sum, messages) => sum + messages, 0)
}

/** `device` is null where the messages were named, and not it. */
function unlistedFault(device: string | null): GatewayError {
  const name = device === null ? 'of the message' : quote(device, 80)
  return new GatewayError('DAEMON_REFUSED', {
    what: `The device ${name} is not in the device table, so nothing of it is released.`,
    why: 'What the table says of a device stands in its payloads: its asset, its operator, its provider.',
    act:
      'Add it to the device table (devices.file): what is kept for want of a row then goes by itself, and the rest can be ' +
      'released. To get rid of its messages: quarantine drop.',
  })
}

function nothingFault({ device, id }: KeptSelection): GatewayError {
  const what =
    id === null ? (device === null ? 'message' : `message of ${quote(device, 80)}`) : quote(id, 100)
  return new GatewayError('DAEMON_REFUSED', {
    what: `There is no ${what} in the quarantine.`,
    why: 'It was released or dropped, or it never was.',
    act: 'Nothing was changed. See what there is: quarantine list.',
  })
}

function stalledFault({ released }: ReleaseReport): GatewayError {
  return new GatewayError('DAEMON_REFUSED', {
    what: `An expression cannot be evaluated for now; ${released} messages were released before that.`,
    why: 'The thread of the JSONata expressions does not run, or another mapping came into force meanwhile.',
    act: 'Ask again; where it stays, see the conditions in /status.',
  })
}
