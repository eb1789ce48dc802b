// result-router.ts: stores the result of a message, and counts it.
//
//   result       stored                                               counted as
//   payloads     appended to the open group                           mapped; duplicates where all are known
//   ignored      nothing                                              ignored
//   part         in the state of the mapping, with the open group     openParts; then as what it became
//   deferred     whole on the shelf of its source                     deferred
//   quarantined  whole on the shelf of its provider                   quarantined
//   unmappable   whole as a dead letter                               dead
//
// While earlier messages of the device are being released, payloads and parts are quarantined instead, behind
// those (release-order.ts). All that becomes of one message goes into the open group: one write, or none of
// it.

import { hash } from 'node:crypto'
import type { Clock } from '../../std/clock.ts'
import { assertNever } from '../../std/assert.ts'
import type { OurTime } from '../../domain/arrival.ts'
import type { Emit } from '../../domain/event.ts'
import { envelopeOf, type Envelope, type KeptMessage, type Message } from '../../domain/message.ts'
import type { DuplicateRule } from '../../domain/payload.ts'
import { messageKeyOf, type StateChanges, type UnsentPart, type MapResult } from '../../mapping/mapping.ts'
import { deadLetterFor, keptBehind, keptMessageFor, quarantineFor } from '../remap/kept-message.ts'
import { deviceBefore } from '../remap/release-order.ts'
import type { IntakeSpool, ReleaseOrder } from '../types.ts'
import type { Tap } from './message-tap.ts'
import { createReasonCounter } from './reason-counter.ts'
import { createUnmappableCounter } from './unmappable-counter.ts'

/** Messages since the start; the maps are keyed `source|reason`. */
export type RoutedCounters = {
  /** Became payloads, at least one of them new. */
  mapped: number
  /** Were accepted before, with all their payloads. */
  duplicates: number
  ignored: number
  dead: number
  /** Kept whole until the device is listed, or its clock is judged. */
  quarantined: number
  /** Kept whole until their expression is evaluated. */
  deferred: number
  ignoredByReason: ReadonlyMap<string, number>
  deadByReason: ReadonlyMap<string, number>
  quarantinedByReason: ReadonlyMap<string, number>
}

export type ResultRouter = {
  route(result: MapResult, message: Message, parts: { apply(): StateChanges }): void
  /** Adds what closed to the open group: its payloads, and the deletion of its state. */
  routeClosed(applied: StateChanges): void
  /** Counts a message that was accepted before. */
  countDuplicate(): void
  counters(): RoutedCounters
}

type Deps = {
  spool: Pick<IntakeSpool, 'append' | 'addDeadLetter' | 'addWindowKey' | 'putState' | 'keepMessage'>
  clock: Clock
  ourTime: Pick<OurTime, 'stamp'>
  emit: Emit
  releaseOrder?: ReleaseOrder | undefined
  tap?: Tap | undefined
}

/** If it seems to be longer, the clock was set meanwhile. */
const recordAgeMaxMs = 600_000

export function createResultRouter(
  { spool, clock, ourTime, emit, releaseOrder, tap }: Deps,
  { eventEveryMs }: { eventEveryMs: number },
): ResultRouter {
  const ignoredBy = createReasonCounter(clock, { eventEveryMs })
  const deadBy = createUnmappableCounter({ clock, emit }, { eventEveryMs })
  const quarantinedBy = createReasonCounter(clock, { eventEveryMs })
  const counts = { mapped: 0, duplicates: 0, ignored: 0, dead: 0, quarantined: 0, deferred: 0 }
  /** The key of the message being routed, where it is marked DUP. */
  let ownKey: string | null = null
  return { route, routeClosed, countDuplicate, counters }

  function route(result: MapResult, message: Message, parts: { apply(): StateChanges }): void {
    if (result.writes) for (const { key, value } of result.writes) spool.putState(key, value)
    ownKey = message.dup ? wholeKeyOf(result, message) : null
    if (ownKey !== null && spool.addWindowKey(ownKey, true) === 'duplicate') {
      counts.duplicates += 1
      return
    }
    if (releaseOrder !== undefined && keptInOrder(result, message, releaseOrder)) return
    switch (result.kind) {
      case 'payloads':
        append(result, message)
        break
      case 'ignored':
        ignore(result.source, result.reason, 1)
        break
      case 'part':
        if (isDuplicate(result, message)) counts.duplicates += 1
        else routeClosed(parts.apply())
        break
      case 'deferred':
        defer(result, message)
        break
      case 'quarantined':
        keep(keptMessageFor(result, envelopeOf(message, result.source)), result.windowKey, message.dup)
        break
      case 'unmappable':
        addDeadLetter(result, message)
        break
      default:
        assertNever(result)
    }
  }

  /**
   * The key under which the message may have been kept whole before (in quarantine, before its expression, as
   * a dead letter), although the mapping in force makes something else of it. Null where its result has that
   * key anyway.
   */
  function wholeKeyOf({ kind }: MapResult, message: Message): string | null {
    return kind === 'payloads' || kind === 'part' ? messageKeyOf(message) : null
  }

  /** A key that equals that of the whole message was looked up already. */
  function isResent(windowKey: string, { dup }: Message): boolean {
    return dup && windowKey !== ownKey
  }

  function keptInOrder(result: MapResult, message: Message, order: ReleaseOrder): boolean {
    const device = deviceBefore(result, order)
    if (device === null) return false
    if (isDuplicate(result, message)) {
      counts.duplicates += 1
      return true
    }
    const kept = keptBehind(device, envelopeOf(message, result.source))
    order.addBehind(device.device)
    keep(kept, keyOf(kept.envelope), false)
    return true
  }

  /** Whether everything in it was accepted before; if not, the dedup window stores its keys. */
  function isDuplicate(result: MapResult, message: Message): boolean {
    switch (result.kind) {
      case 'payloads': {
        let stored = 0
        for (const one of result.payloads) if (isNew(one, message)) stored += 1
        return stored === 0
      }
      case 'part':
        return !isNew(result, message)
      case 'deferred':
      case 'ignored':
      case 'quarantined':
      case 'unmappable':
      default:
        return false
    }
  }

  function isNew(
    { windowKey, duplicateRule }: { windowKey: string; duplicateRule: DuplicateRule },
    message: Message,
  ): boolean {
    return (
      spool.addWindowKey(windowKey, duplicateRule === 'always' || isResent(windowKey, message)) === 'stored'
    )
  }

  function append({ source, payloads }: Extract<MapResult, { kind: 'payloads' }>, message: Message): void {
    let stored = 0
    for (const payload of payloads)
      if (spool.append(payload, isResent(payload.windowKey, message)) === 'stored') stored += 1
    if (stored > 0) counts.mapped += 1
    else if (payloads.length > 0) counts.duplicates += 1
    else ignore(source, 'no_payloads', 1)
  }

  function routeClosed(applied: StateChanges): void {
    if (tap?.on === true) tap.recordClosed(applied)
    const { payloads, writes, closed, unsent } = applied
    for (const { key, value } of writes) spool.putState(key, value)
    for (const payload of payloads) spool.append(payload, false)
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
      // No message with this key ever arrived, so it is no duplicate, whatever the window contains.
      spool.keepMessage(quarantineFor({ ...part, provider }, envelope), keyOf(envelope), false)
      return
    }
    counts.dead += messages
    deadBy.add(part, message.topic)
    spool.addDeadLetter(deadLetterFor(part, envelope, clock.now()), null, false)
  }

  function ignore(source: string, reason: string, messages: number): void {
    counts.ignored += messages
    ignoredBy.add(source, reason)
  }

  function defer(result: Extract<MapResult, { kind: 'deferred' }>, message: Message): void {
    const kept = keptMessageFor(result, envelopeOf(message, result.source))
    if (spool.keepMessage(kept, result.windowKey, message.dup) === 'duplicate') counts.duplicates += 1
    else counts.deferred += 1
  }

  function keep(kept: KeptMessage, windowKey: string, dup: boolean): void {
    if (spool.keepMessage(kept, windowKey, dup) === 'duplicate') {
      counts.duplicates += 1
      return
    }
    counts.quarantined += 1
    const { reason, detail, device, envelope } = kept
    const { source, topic } = envelope
    if (source !== null && device !== null && quarantinedBy.add(source, reason))
      emit({ kind: 'message_quarantined', source, device, topic, reason, detail })
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

  function addDeadLetter(result: Extract<MapResult, { kind: 'unmappable' }>, message: Message): void {
    const deadLetter = deadLetterFor(result, envelopeOf(message, result.source), clock.now())
    if (spool.addDeadLetter(deadLetter, result.windowKey, message.dup) === 'duplicate') {
      counts.duplicates += 1
      return
    }
    counts.dead += 1
    deadBy.add(result, message.topic)
  }

  function countDuplicate(): void {
    counts.duplicates += 1
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

/** 32 hexadecimal digits for a kept message that needs some key, distinct from those of the window. */
function keyOf({ topic, bytes, arrivedAt }: Envelope): string {
  return hash('sha256', `closed ${arrivedAt} ${topic}\n${bytes}`).slice(0, 32)
}
