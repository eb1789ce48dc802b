// intake.ts: the hot path, from a message to the spool. Knows nothing of the broker it came through.
//
//   message -> map -> payloads  appended to the open group      mapped, or copies where all are known
//                     ignored   nothing                         ignored
//                     unmappable, or the mapper threw: buried   dead
//           -> endMessage(ack): the spool calls `ack` after the fsync, in the order of arrival
//
// While the spool takes nothing in (full, disk low, dead letters full, store lost) a message that wants an ack
// waits in order (waiting.ts) and everything behind it waits too: acks keep the order of arrival over the whole
// daemon [MQTT-4.6.0-2]. QoS 0 is dropped and counted then; nobody else could keep it. At the bound of the
// waiting list, or while too much is uncommitted, `readingPaused` asks the broker to stop reading.
//
// Conservation (invariant 6): received = mapped + ignored + copies + dead + dropped + held.
// Per message: no promise, no closure, no log line, and one message object for all.

import type { Clock } from '../std/clock.ts'
import { assertNever } from '../std/assert.ts'
import type { Emit } from '../domain/event.ts'
import { envelopeOf, type Message, type QoS, type Sender } from '../domain/message.ts'
import type { Mapper, MapResult } from '../mapping/mapping.ts'
import type { Ack, Spool } from '../spool/spool.ts'
import { createDropTeller, type DropReason } from './drops.ts'
import { mapperFailed } from './mapper-failed.ts'
import { createTally } from './tally.ts'
import { createWaitingList } from './waiting.ts'

/** The half of the spool that takes in. */
export type IntakeSpool = Pick<Spool, 'hold' | 'congested' | 'append' | 'bury' | 'endMessage' | 'listen'>

export type IntakeDeps = {
  /** Read for each message, so that a new mapping is in force from one message to the next. */
  mapper: { readonly current: Pick<Mapper, 'map'> }
  spool: IntakeSpool
  clock: Clock
  emit: Emit
}

export type IntakeOptions = {
  /** Bounds of what waits while the spool takes nothing in; at the bound reading stops. */
  heldMessagesMax: number
  heldBytesMax: number
}

export type Intake = {
  /** Takes a message; `ack` is null where nobody waits (QoS 0, wills). `bytes` may be a view. */
  accept(
    topic: string,
    bytes: Buffer,
    qos: QoS,
    retain: boolean,
    dup: boolean,
    sender: Sender,
    ack: Ack | null,
  ): void
  /** Takes a message that was taken in before: it needs its ack only, in its turn, which is after the first one's. */
  repeat: Intake['accept']
  /** No socket should be read for now; `listener` of onReadingChange is told when that changes. */
  readonly readingPaused: boolean
  onReadingChange(listener: () => void): void
  counters(): IntakeCounters
  /** Resolves when what waits was appended, or can not be because the spool takes nothing in; then nothing more is. */
  finish(): Promise<void>
  close(): void
}

export type IntakeCounters = {
  received: number
  bytes: number
  mapped: number
  copies: number
  dead: number
  ignored: number
  dropped: number
  held: number
  ignoredByReason: ReadonlyMap<string, number>
  deadByReason: ReadonlyMap<string, number>
}

/** Messages that were held go on in slices, so that a resume does not stop the loop for seconds. */
const sliceMessages = 1000
const eventEveryMs = 1000

export function createIntake(deps: IntakeDeps, options: IntakeOptions): Intake {
  const { mapper, spool, clock, emit } = deps
  const waiting = createWaitingList({ messagesMax: options.heldMessagesMax, bytesMax: options.heldBytesMax })
  const ignoredBy = createTally(clock, { eventEveryMs })
  const deadBy = createTally(clock, { eventEveryMs })
  const drops = createDropTeller({ clock, emit }, { eventEveryMs })
  const counters = { received: 0, bytes: 0, mapped: 0, copies: 0, dead: 0, ignored: 0, dropped: 0 }
  const message: Message = {
    topic: '',
    bytes: Buffer.alloc(0),
    qos: 0,
    retain: false,
    dup: false,
    sender: { clientId: '', userName: null, certificateName: null },
    arrivedAt: 0,
  }
  let draining = false
  let paused = false
  let finished = false
  let tellFinished: (() => void)[] = []
  let tellReading: () => void = () => {}

  const unlisten = spool.listen({ intakeChanged })

  function accept(
    topic: string,
    bytes: Buffer,
    qos: QoS,
    retain: boolean,
    dup: boolean,
    sender: Sender,
    ack: Ack | null,
  ): void {
    counters.received += 1
    counters.bytes += bytes.length
    message.topic = topic
    message.bytes = bytes
    message.qos = qos
    message.retain = retain
    message.dup = dup
    message.sender = sender
    message.arrivedAt = clock.now()
    if (waiting.size === 0 && spool.hold === null) take(message, ack)
    else wait(ack)
  }

  function repeat(...known: Parameters<Intake['accept']>): void {
    if (waiting.size > 0 || spool.hold !== null) {
      // Behind the others; the dedup window knows it.
      accept(...known)
      return
    }
    counters.received += 1
    counters.bytes += known[1].length
    counters.copies += 1
    spool.endMessage(known[6])
  }

  function wait(ack: Ack | null): void {
    if (ack === null) {
      const hold = spool.hold ?? (waiting.full ? 'waiting_full' : null)
      if (hold !== null) {
        drop(hold)
        return
      }
    }
    waiting.add(message, ack)
    judgeReading()
  }

  function take(message: Message, ack: Ack | null): void {
    const result = map(message)
    switch (result.kind) {
      case 'payloads':
        append(result, message.dup)
        break
      case 'ignored':
        ignore(result.source, result.reason)
        break
      case 'unmappable':
        bury(result, message)
        break
      default:
        assertNever(result)
    }
    // Everything appended since the last call is this message's: its ack follows the commit that holds it.
    spool.endMessage(ack)
  }

  function map(message: Message): MapResult {
    try {
      return mapper.current.map(message)
    } catch (error) {
      return mapperFailed(message, error)
    }
  }

  function append({ source, payloads }: Extract<MapResult, { kind: 'payloads' }>, dup: boolean): void {
    let stored = 0
    for (const payload of payloads) if (spool.append(payload, dup) === 'stored') stored += 1
    if (stored > 0) counters.mapped += 1
    else if (payloads.length > 0) counters.copies += 1
    else ignore(source, 'no payloads')
  }

  function ignore(source: string, reason: string): void {
    counters.ignored += 1
    ignoredBy.add(source, reason)
  }

  function bury(result: Extract<MapResult, { kind: 'unmappable' }>, message: Message): void {
    const { source, device, reason, detail, windowKey } = result
    const letter = {
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
    } as const
    if (spool.bury(letter, windowKey, message.dup) === 'copy') {
      counters.copies += 1
      return
    }
    counters.dead += 1
    if (deadBy.add(source, reason))
      emit({ kind: 'message_unmappable', source, topic: message.topic, reason, detail })
  }

  function drop(hold: DropReason): void {
    counters.dropped += 1
    drops.add(hold)
  }

  function intakeChanged(): void {
    if (waiting.size > 0 && !draining && mayDrain()) {
      draining = true
      // Not from within the committer that tells us of the change.
      setImmediate(drainSlice)
    }
    judgeReading()
    judgeFinish()
  }

  function mayDrain(): boolean {
    return spool.hold === null && !spool.congested && !finished
  }

  /** Ends when the list is empty or the spool takes nothing more in; then intakeChanged starts it again. */
  function drainSlice(): void {
    for (let count = 0; count < sliceMessages && mayDrain(); count += 1) {
      const next = waiting.take()
      if (next === undefined) break
      take(next.message, next.ack)
    }
    judgeReading()
    draining = waiting.size > 0 && mayDrain()
    if (draining) setImmediate(drainSlice)
    judgeFinish()
  }

  function finish(): Promise<void> {
    return new Promise((resolve) => {
      tellFinished.push(resolve)
      judgeFinish()
    })
  }

  function judgeFinish(): void {
    if (tellFinished.length === 0) return
    finished ||= waiting.size === 0 || spool.hold !== null
    if (!finished) return
    for (const tell of tellFinished) tell()
    tellFinished = []
  }

  function judgeReading(): void {
    const now = spool.congested || waiting.full
    if (now === paused) return
    paused = now
    tellReading()
  }

  return {
    accept,
    repeat,
    get readingPaused() {
      return paused
    },
    onReadingChange(listener) {
      tellReading = listener
    },
    counters: () => ({
      ...counters,
      held: waiting.size,
      ignoredByReason: ignoredBy.counts(),
      deadByReason: deadBy.counts(),
    }),
    finish,
    close() {
      finished = true
      unlisten()
      drops.close()
    },
  }
}
