// placing.ts: puts what became of a message where it belongs, and counts it.
//
//   payloads     appended to the open group                     mapped, or copies where all are known
//   ignored      nothing                                        ignored
//   part         into the mapping's memory, its state into the group    parts, later mapped, ignored or dead
//   deferred     whole on the shelf of its source               deferred
//   quarantined  whole on the shelf of its provider             quarantined
//   unmappable   buried as a dead letter                        dead
//
// All of it goes into the open group, with the message: one write, or none of it.

import { hash } from 'node:crypto'
import type { Clock } from '../std/clock.ts'
import { assertNever } from '../std/assert.ts'
import type { DeadLetter } from '../domain/deadletter.ts'
import type { Emit } from '../domain/event.ts'
import { envelopeOf, type Envelope, type KeptMessage, type Message } from '../domain/message.ts'
import type { Applied, Dropped, MapResult } from '../mapping/mapping.ts'
import type { IntakeSpool, Releasing } from './intake.ts'
import { createTally } from './tally.ts'
import type { Tap } from './tap.ts'

export type Counted = {
  mapped: number
  copies: number
  ignored: number
  dead: number
  quarantined: number
  deferred: number
  ignoredByReason: ReadonlyMap<string, number>
  deadByReason: ReadonlyMap<string, number>
  quarantinedByReason: ReadonlyMap<string, number>
}

export type Placing = {
  place(result: MapResult, message: Message, parts: { apply(): Applied }): void
  /** What closed goes into the open group: its state leaves, its payloads come. */
  close(applied: Applied): void
  /** A message that was taken in before. */
  repeated(): void
  counted(): Counted
}

type Deps = {
  spool: Pick<IntakeSpool, 'append' | 'bury' | 'note' | 'remember' | 'keep'>
  clock: Clock
  emit: Emit
  releasing?: Releasing | undefined
  tap?: Tap | undefined
}

export function createPlacing(
  { spool, clock, emit, releasing, tap }: Deps,
  { eventEveryMs }: { eventEveryMs: number },
): Placing {
  const ignoredBy = createTally(clock, { eventEveryMs })
  const deadBy = createTally(clock, { eventEveryMs })
  const quarantinedBy = createTally(clock, { eventEveryMs })
  const counts = { mapped: 0, copies: 0, ignored: 0, dead: 0, quarantined: 0, deferred: 0 }
  return { place, close, repeated, counted }

  function place(result: MapResult, message: Message, parts: { apply(): Applied }): void {
    if (result.writes) for (const { key, value } of result.writes) spool.remember(key, value)
    switch (result.kind) {
      case 'payloads':
        append(result, message)
        break
      case 'ignored':
        ignore(result.source, result.reason, 1)
        break
      case 'part':
        if (spool.note(result.windowKey, result.copyRule === 'always' || message.dup) === 'copy')
          counts.copies += 1
        else close(parts.apply())
        break
      case 'deferred':
        defer(result, message)
        break
      case 'quarantined':
        quarantine(result, message)
        break
      case 'unmappable':
        bury(result, message)
        break
      default:
        assertNever(result)
    }
  }

  function append({ source, payloads }: Extract<MapResult, { kind: 'payloads' }>, message: Message): void {
    const [first] = payloads
    if (first !== undefined && releasing?.isReleasing(first.device) === true) {
      const { device, provider, windowKey } = first
      const detail = 'Earlier messages of the device are being released; it stands behind them.'
      quarantine({ source, device, provider, reason: 'UNKNOWN_DEVICE', detail, windowKey }, message)
      releasing.kept(device)
      return
    }
    let stored = 0
    for (const payload of payloads) if (spool.append(payload, message.dup) === 'stored') stored += 1
    if (stored > 0) counts.mapped += 1
    else if (payloads.length > 0) counts.copies += 1
    else ignore(source, 'no payloads', 1)
  }

  function close(applied: Applied): void {
    if (tap?.on === true) tap.sawClosed(applied)
    const { payloads, writes, closed, dropped } = applied
    for (const { key, value } of writes) spool.remember(key, value)
    for (const payload of payloads) spool.append(payload, false)
    counts.mapped += closed
    for (const one of dropped) drop(one)
  }

  function drop(dropped: Dropped): void {
    if (dropped.kind === 'ignored') {
      ignore(dropped.source, dropped.reason, dropped.messages)
      return
    }
    const { source, provider, device, reason, detail, messages, message } = dropped
    if (dropped.kind === 'quarantined' && provider !== null) {
      counts.quarantined += messages
      quarantinedBy.add(source, reason)
      const envelope = envelopeOf(message, source)
      const shelf = `quarantine:${provider}` as const
      // It never came as a message of this name: whatever stands in the window, it is no copy.
      spool.keep({ shelf, provider, device, reason, detail, envelope }, keyOf(envelope), false)
      return
    }
    counts.dead += messages
    if (deadBy.add(source, reason))
      emit({ kind: 'message_unmappable', source, topic: message.topic, reason, detail })
    spool.bury(letterOf(dropped, message), null, false)
  }

  function ignore(source: string, reason: string, messages: number): void {
    counts.ignored += messages
    ignoredBy.add(source, reason)
  }

  function defer({ source, windowKey }: Extract<MapResult, { kind: 'deferred' }>, message: Message): void {
    const kept: KeptMessage = {
      shelf: `deferred:${source}`,
      provider: null,
      device: null,
      reason: 'EXPRESSION',
      detail: 'It waits for its expression to be evaluated.',
      envelope: envelopeOf(message, source),
    }
    if (spool.keep(kept, windowKey, message.dup) === 'copy') counts.copies += 1
    else counts.deferred += 1
  }

  function quarantine(
    result: Omit<Extract<MapResult, { kind: 'quarantined' }>, 'kind'>,
    message: Message,
  ): void {
    const { source, provider, device, reason, detail, windowKey } = result
    const kept: KeptMessage = {
      shelf: `quarantine:${provider}`,
      provider,
      device,
      reason,
      detail,
      envelope: envelopeOf(message, source),
    }
    if (spool.keep(kept, windowKey, message.dup) === 'copy') {
      counts.copies += 1
      return
    }
    counts.quarantined += 1
    if (quarantinedBy.add(source, reason))
      emit({ kind: 'message_quarantined', source, device, topic: message.topic, reason, detail })
  }

  function bury(result: Extract<MapResult, { kind: 'unmappable' }>, message: Message): void {
    const { source, reason, detail, windowKey } = result
    if (spool.bury(letterOf(result, message), windowKey, message.dup) === 'copy') {
      counts.copies += 1
      return
    }
    counts.dead += 1
    if (deadBy.add(source, reason))
      emit({ kind: 'message_unmappable', source, topic: message.topic, reason, detail })
  }

  function letterOf(
    about: { source: string | null; device: string | null; reason: string; detail: string },
    message: Message,
  ): DeadLetter {
    const { source, device, reason, detail } = about
    return {
      stage: 'mapping',
      at: clock.now(),
      reason,
      detail,
      provider: null,
      device,
      envelope: envelopeOf(message, source),
      payload: null,
      payloadId: null,
      batchId: null,
      requestId: null,
      failure: null,
    }
  }

  function repeated(): void {
    counts.copies += 1
  }

  function counted(): Counted {
    return {
      ...counts,
      ignoredByReason: ignoredBy.counts(),
      deadByReason: deadBy.counts(),
      quarantinedByReason: quarantinedBy.counts(),
    }
  }
}

/** 32 hexadecimal digits that name what closed; the window must have some key of it. */
function keyOf({ topic, bytes, arrivedAt }: Envelope): string {
  return hash('sha256', `closed ${arrivedAt} ${topic}\n${bytes}`).slice(0, 32)
}
