// result-router.ts: stores the result of a message, and counts it.
//
//   result       stored                                               counted as
//   payloads     appended to the open group                           mapped; duplicates where all are known
//   ignored      nothing                                              ignored
//   part         in the state of the mapping, with the open group     openParts; then as what it became
//   quarantined  whole on the shelf of its provider                   quarantined
//   unmappable   whole as a dead letter                               dead
//   rest         of a message of several vehicles, for each place and reason of its records that are kept: as
//                quarantined or unmappable, and in `split`, since the message is counted once more
//
// A message is a duplicate by the window key of each of its payloads, which contains the device time, and
// without one by its packet identifier (untimed-resends.ts): then nothing of it is stored. What is kept of a
// message with a device time has a key of its own there (kept-message.ts).
//
// While earlier messages of the device are being released, payloads and parts are quarantined instead, behind
// those (release-order.ts). All that becomes of one message goes into the open group: one write, or none of
// it.

import type { Clock } from '../../std/clock.ts'
import { assertNever } from '../../std/assert.ts'
import type { OurTime } from '../../domain/arrival.ts'
import type { Emit } from '../../domain/event.ts'
import { envelopeOf, type KeptMessage, type Message } from '../../domain/message.ts'
import type { DuplicateRule, MappedPayload } from '../../domain/payload.ts'
import {
  messageKeyOf,
  type KeptResult,
  type StateChanges,
  type UnsentPart,
  type MapResult,
} from '../../mapping/mapping.ts'
import type { Stored } from '../../spool/spool.ts'
import {
  deadLetterFor,
  keptBehind,
  keptKeyOf,
  unmappedStoreOf,
  quarantineFor,
} from '../remap/kept-message.ts'
import { deviceBefore } from '../remap/release-order.ts'
import type { IntakeSpool, ReceivedMessage, ReleaseOrder } from '../types.ts'
import type { Tap } from './message-tap.ts'
import { createReasonCounter, type ReasonCount } from './reason-counter.ts'
import type { RebirthRequests } from '../rebirth-requests.ts'
import { putWrites } from './state-writes.ts'
import { createUnmappableCounter, fromOf } from './unmappable-counter.ts'
import { isStored, isUntimed, type UntimedResends } from './untimed-resends.ts'

/** Messages since the start; the maps are keyed `source|reason`. */
export type RoutedCounters = {
  /** Became payloads, at least one of them new. */
  mapped: number
  /** Were accepted before, with all their payloads. */
  duplicates: number
  /** Those of them that were recognised as a whole: by their packet identifier. */
  resent: number
  ignored: number
  dead: number
  /** Kept whole until the device is listed, or its clock is judged. */
  quarantined: number
  /** Messages of several vehicles are in several counters: how many more than once. */
  split: number
  ignoredByReason: readonly ReasonCount[]
  deadByReason: readonly ReasonCount[]
  quarantinedByReason: readonly ReasonCount[]
}

export type ResultRouter = {
  route(result: MapResult, message: ReceivedMessage, mapping: RouterMapping): void
  /** Adds what closed to the open group: its payloads, and the deletion of its state. */
  routeClosed(applied: StateChanges): void
  /** Counts a message that was accepted before. */
  countResent(): void
  counters(): RoutedCounters
}

type RouterMapping = { wasStoredBefore: UntimedResends['isDuplicate'] }

/** What became of a payload, right after its message was mapped. */
export type NotePayload = (
  payload: Pick<MappedPayload, 'device' | 'provider' | 'windowKey' | 'duplicateRule'>,
  became: ReturnType<IntakeSpool['append']>,
) => void

type Deps = {
  spool: Pick<
    IntakeSpool,
    'append' | 'addDeadLetter' | 'addWindowKey' | 'hasWindowKey' | 'putState' | 'putLateState' | 'keepMessage'
  >
  clock: Clock
  ourTime: Pick<OurTime, 'now' | 'stamp'>
  emit: Emit
  releaseOrder?: ReleaseOrder | undefined
  tap?: Tap | undefined
  resends: Pick<UntimedResends, 'isDuplicate' | 'enter'>
  /** Receives each payload that was stored or is a duplicate. */
  notePayload?: NotePayload | undefined
  requestRebirth?: RebirthRequests['request'] | undefined
}

/** If it seems to be longer, the clock was set meanwhile. */
const recordAgeMaxMs = 600_000

export function createResultRouter(
  { spool, clock, ourTime, emit, releaseOrder, tap, resends, notePayload, requestRebirth }: Deps,
  { eventEveryMs }: { eventEveryMs: number },
): ResultRouter {
  const ignoredBy = createReasonCounter(clock, { eventEveryMs })
  const deadBy = createUnmappableCounter({ clock, emit }, { eventEveryMs })
  const quarantinedBy = createReasonCounter(clock, { eventEveryMs })
  const counts = {
    mapped: 0,
    duplicates: 0,
    resent: 0,
    ignored: 0,
    dead: 0,
    quarantined: 0,
    split: 0,
  }
  return { route, routeClosed, countResent, counters }

  function route(result: MapResult, message: ReceivedMessage, mapping: RouterMapping): void {
    if (result.writes) putWrites(spool, result.writes)
    if (result.rebirth) requestRebirth?.(result.rebirth, message)
    // The session knows exactly which QoS 2 messages came before.
    const isExact = message.qos === 2 && message.link?.session?.stored === true
    if (message.dup && !isExact && (resends.isDuplicate(message) || mapping.wasStoredBefore(message))) {
      resends.enter(message, 'duplicate')
      noteResent(result)
      countResent()
      return
    }
    if (message.qos > 0) resends.enter(message, !isExact && isUntimed(result) ? 'untimed' : 'other')
    store(result, message)
  }

  function store(result: MapResult, message: Message): void {
    if (releaseOrder !== undefined && keptInOrder(result, message, releaseOrder)) {
      result.undo?.()
      return
    }
    const before = counts.duplicates
    storeMain(result, message)
    if (result.rest !== undefined) storeRest(result.rest, message, counts.duplicates > before)
  }

  /** What a message lacks is kept when it comes first, and not with its duplicates. */
  function storeRest(rest: readonly KeptResult[], message: Message, isDuplicate: boolean): void {
    for (const one of rest) {
      if (isDuplicate && one.kind === 'unmappable' && one.isCopy === true) continue
      if (storeKept(one, message) === 'stored') counts.split += 1
    }
  }

  function storeMain(result: MapResult, message: Message): void {
    switch (result.kind) {
      case 'payloads':
        append(result)
        break
      case 'ignored':
        ignore(result.source, result.reason, 1)
        break
      case 'part':
        if (notedPart(result, isNew(result))) routeClosed(result.apply())
        else counts.duplicates += 1
        break
      case 'quarantined':
      case 'unmappable':
        if (storeKept(result, message) === 'duplicate') counts.duplicates += 1
        break
      default:
        assertNever(result)
    }
  }

  function storeKept(result: KeptResult, message: Message): Stored {
    if (result.isTimed === true && spool.addWindowKey(keptKeyOf(result)) === 'duplicate') return 'duplicate'
    const envelope = envelopeOf(message, result.source)
    if (result.kind === 'quarantined') {
      keep(quarantineFor(result, envelope))
      return 'stored'
    }
    spool.addDeadLetter(deadLetterFor({ ...result, store: unmappedStoreOf(result) }, envelope, ourTime.now()))
    counts.dead += 1
    deadBy.add(result, message.topic, message.sender)
    return 'stored'
  }

  function keptInOrder(result: MapResult, message: Message, order: ReleaseOrder): boolean {
    const device = deviceBefore(result, order)
    if (device === null) return false
    if (wasStored(result, message)) {
      counts.duplicates += 1
      return true
    }
    const kept = keptBehind(device, envelopeOf(message, result.source))
    order.addBehind(device.device)
    keep(kept)
    return true
  }

  /** Whether everything in it was accepted or kept before. Its own keys are entered when it is released. */
  function wasStored(result: MapResult, message: Message): boolean {
    if (result.rest !== undefined || (result.kind !== 'payloads' && result.kind !== 'part')) return false
    if (isStored(result, spool)) return true
    if (isUntimed(result)) return false
    return spool.addWindowKey(keptKeyOf({ windowKey: messageKeyOf(message) })) === 'duplicate'
  }

  function isNew({ windowKey, duplicateRule }: { windowKey: string; duplicateRule: DuplicateRule }): boolean {
    return duplicateRule === 'resend' || spool.addWindowKey(windowKey) === 'stored'
  }

  function append({ source, payloads }: Extract<MapResult, { kind: 'payloads' }>): void {
    let stored = 0
    for (const payload of payloads) {
      const became = spool.append(payload)
      if (became === 'stored') stored += 1
      notePayload?.(payload, became)
    }
    if (stored > 0) counts.mapped += 1
    else if (payloads.length > 0) counts.duplicates += 1
    else ignore(source, 'no_payloads', 1)
  }

  function noteResent(result: MapResult): void {
    if (result.kind === 'payloads') for (const one of result.payloads) notePayload?.(one, 'duplicate')
    else if (result.kind === 'part') notedPart(result, false)
  }

  function notedPart(part: Extract<MapResult, { kind: 'part' }>, isStored: boolean): boolean {
    const { windowKey, duplicateRule, records } = part
    const entry = records[0]?.entry
    if (entry !== undefined && notePayload !== undefined) {
      const { device, provider } = entry
      notePayload({ device, provider, windowKey, duplicateRule }, isStored ? 'stored' : 'duplicate')
    }
    return isStored
  }

  function routeClosed(applied: StateChanges): void {
    if (tap?.on() === true) tap.recordClosed(applied)
    const { payloads, writes, closed, unsent } = applied
    putWrites(spool, writes)
    for (const payload of payloads) spool.append(payload)
    counts.mapped += closed
    for (const one of unsent) endPart(one)
  }

  function endPart(part: UnsentPart): void {
    if (part.kind === 'ignored') {
      ignore(part.source, part.reason, part.messages)
      return
    }
    const { source, provider, reason, messages, message } = part
    stampRecord(message)
    const envelope = envelopeOf(message, source)
    if (part.kind === 'quarantined' && provider !== null) {
      counts.quarantined += messages
      quarantinedBy.add(source, reason)
      spool.keepMessage(quarantineFor({ ...part, provider }, envelope))
      return
    }
    counts.dead += messages
    deadBy.add(part, message.topic, message.sender)
    spool.addDeadLetter(deadLetterFor({ ...part, store: 'part_dead_letters' }, envelope, ourTime.now()))
  }

  function ignore(source: string, reason: string, messages: number): void {
    counts.ignored += messages
    ignoredBy.add(source, reason)
  }

  function keep(kept: KeptMessage): void {
    spool.keepMessage(kept)
    counts.quarantined += 1
    const { reason, detail, device, envelope } = kept
    const { source, topic } = envelope
    if (source !== null && device !== null && quarantinedBy.add(source, reason))
      emit({ kind: 'message_quarantined', source, device, topic, reason, detail, ...fromOf(envelope) })
  }

  /** A record arrived with the last of its messages, which was not long ago. */
  function stampRecord(message: Message): void {
    const { arrivedAt } = message
    ourTime.stamp(message, clock.now())
    const agoMs = message.arrivedAt - arrivedAt
    if (message.arrival === undefined || agoMs < 0 || agoMs > recordAgeMaxMs) return
    message.arrivedAt = arrivedAt
    message.arrival.monotonicMs -= agoMs
  }

  function countResent(): void {
    counts.duplicates += 1
    counts.resent += 1
  }

  function counters(): RoutedCounters {
    return {
      ...counts,
      ignoredByReason: ignoredBy.counts(),
      deadByReason: deadBy.counts(),
      quarantinedByReason: quarantinedBy.counts(),
    }
  }
}
