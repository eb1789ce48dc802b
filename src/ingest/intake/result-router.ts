// result-router.ts: puts what became of a message where it belongs, and counts it.
//
//   payloads     appended to the open group                     mapped, or duplicates where all are known
//   ignored      nothing                                        ignored
//   part         into the mapping's memory, its state into the group    parts, later mapped, ignored or dead
//   deferred     whole on the shelf of its source               deferred
//   quarantined  whole on the shelf of its provider             quarantined
//   unmappable   buried as a dead letter                        dead
//
// Payloads and parts are quarantined instead while earlier messages of the device are being released: they stand behind
// those (release-order.ts).
//
// All of it goes into the open group, with the message: one write, or none of it.

import { hash } from 'node:crypto'
import type { Clock } from '../../std/clock.ts'
import { assertNever } from '../../std/assert.ts'
import type { Emit } from '../../domain/event.ts'
import { envelopeOf, type Envelope, type KeptMessage, type Message } from '../../domain/message.ts'
import { messageKeyOf, type StateChanges, type UnsentPart, type MapResult } from '../../mapping/mapping.ts'
import { deviceBefore } from '../quarantine/release-order.ts'
import type { IntakeSpool, ReleaseOrder } from './intake.ts'
import { keptBehind, keptMessageFor, deadLetterFor, quarantineFor } from '../quarantine/kept-message.ts'
import { createReasonCounter } from './reason-counter.ts'
import type { Tap } from './message-tap.ts'

export type RoutedCounters = {
  mapped: number
  duplicates: number
  ignored: number
  dead: number
  quarantined: number
  deferred: number
  ignoredByReason: ReadonlyMap<string, number>
  deadByReason: ReadonlyMap<string, number>
  quarantinedByReason: ReadonlyMap<string, number>
}

export type ResultRouter = {
  route(result: MapResult, message: Message, parts: { apply(): StateChanges }): void
  /** What closed goes into the open group: its state leaves, its payloads come. */
  routeClosed(applied: StateChanges): void
  /** A message that was taken in before. */
  countDuplicate(): void
  counters(): RoutedCounters
}

type Deps = {
  spool: Pick<IntakeSpool, 'append' | 'addDeadLetter' | 'addWindowKey' | 'putState' | 'keepMessage'>
  clock: Clock
  emit: Emit
  releaseOrder?: ReleaseOrder | undefined
  tap?: Tap | undefined
}

export function createResultRouter(
  { spool, clock, emit, releaseOrder, tap }: Deps,
  { eventEveryMs }: { eventEveryMs: number },
): ResultRouter {
  const ignoredBy = createReasonCounter(clock, { eventEveryMs })
  const deadBy = createReasonCounter(clock, { eventEveryMs })
  const quarantinedBy = createReasonCounter(clock, { eventEveryMs })
  const counts = { mapped: 0, duplicates: 0, ignored: 0, dead: 0, quarantined: 0, deferred: 0 }
  /** Of the message at hand, where it was sent before. */
  let own: string | null = null
  return { route, routeClosed, countDuplicate, counters }

  function route(result: MapResult, message: Message, parts: { apply(): StateChanges }): void {
    if (result.writes) for (const { key, value } of result.writes) spool.putState(key, value)
    own = message.dup ? nameOf(result, message) : null
    if (own !== null && spool.addWindowKey(own, true) === 'duplicate') {
      counts.duplicates += 1
      return
    }
    if (releaseOrder !== undefined && stoodBehind(result, message, releaseOrder)) return
    switch (result.kind) {
      case 'payloads':
        append(result, message)
        break
      case 'ignored':
        ignore(result.source, result.reason, 1)
        break
      case 'part':
        if (isCopy(result, message)) counts.duplicates += 1
        else routeClosed(parts.apply())
        break
      case 'deferred':
        defer(result, message)
        break
      case 'quarantined':
        keep(keptMessageFor(result, envelopeOf(message, result.source)), result.windowKey, message.dup)
        break
      case 'unmappable':
        bury(result, message)
        break
      default:
        assertNever(result)
    }
  }

  /**
   * The name under which the message may be here whole, in quarantine, before its expression or as a dead letter,
   * although by the mapping of now it is something else. Null where what it became is kept under that name anyway.
   */
  function nameOf({ kind }: MapResult, message: Message): string | null {
    return kind === 'payloads' || kind === 'part' ? messageKeyOf(message) : null
  }

  /** What has the name of the message itself was judged by that. */
  function isResent(windowKey: string, { dup }: Message): boolean {
    return dup && windowKey !== own
  }

  function stoodBehind(result: MapResult, message: Message, before: ReleaseOrder): boolean {
    const device = deviceBefore(result, before)
    if (device === null) return false
    if (isCopy(result, message)) {
      counts.duplicates += 1
      return true
    }
    const kept = keptBehind(device, envelopeOf(message, result.source))
    before.addBehind(device.device)
    keep(kept, keyOf(kept.envelope), false)
    return true
  }

  /** Whether all that it says was taken in before; the window learns of it otherwise. */
  function isCopy(result: MapResult, message: Message): boolean {
    switch (result.kind) {
      case 'payloads': {
        let fresh = 0
        for (const { windowKey, duplicateRule } of result.payloads)
          if (
            spool.addWindowKey(windowKey, duplicateRule === 'always' || isResent(windowKey, message)) ===
            'stored'
          )
            fresh += 1
        return fresh === 0
      }
      case 'part': {
        const { windowKey, duplicateRule } = result
        return (
          spool.addWindowKey(windowKey, duplicateRule === 'always' || isResent(windowKey, message)) ===
          'duplicate'
        )
      }
      case 'deferred':
      case 'ignored':
      case 'quarantined':
      case 'unmappable':
      default:
        return false
    }
  }

  function append({ source, payloads }: Extract<MapResult, { kind: 'payloads' }>, message: Message): void {
    let stored = 0
    for (const payload of payloads)
      if (spool.append(payload, isResent(payload.windowKey, message)) === 'stored') stored += 1
    if (stored > 0) counts.mapped += 1
    else if (payloads.length > 0) counts.duplicates += 1
    else ignore(source, 'no payloads', 1)
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
    const { source, provider, reason, detail, messages, message } = part
    const envelope = envelopeOf(message, source)
    if (part.kind === 'quarantined' && provider !== null) {
      counts.quarantined += messages
      quarantinedBy.add(source, reason)
      // It never came as a message of this name: whatever stands in the window, it is no copy.
      spool.keepMessage(quarantineFor({ ...part, provider }, envelope), keyOf(envelope), false)
      return
    }
    counts.dead += messages
    if (deadBy.add(source, reason))
      emit({ kind: 'message_unmappable', source, topic: message.topic, reason, detail })
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

  function bury(result: Extract<MapResult, { kind: 'unmappable' }>, message: Message): void {
    const { source, reason, detail, windowKey } = result
    const letter = deadLetterFor(result, envelopeOf(message, source), clock.now())
    if (spool.addDeadLetter(letter, windowKey, message.dup) === 'duplicate') {
      counts.duplicates += 1
      return
    }
    counts.dead += 1
    if (deadBy.add(source, reason))
      emit({ kind: 'message_unmappable', source, topic: message.topic, reason, detail })
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

/** 32 hexadecimal digits that name what is kept beside the window's own names; it must have some key. */
function keyOf({ topic, bytes, arrivedAt }: Envelope): string {
  return hash('sha256', `closed ${arrivedAt} ${topic}\n${bytes}`).slice(0, 32)
}
