// intake.ts: the hot path, from a message to the spool. Knows nothing of the broker it came through.
//
//   message -> map -> [result-router.ts: payloads, part, dead letter, shelf, or nothing] -> endMessage(ack)
//
// The spool calls `ack` after the fsync, in the order of arrival. While it takes nothing in (full, disk low, a shelf
// full, store lost), or the mapping's memory is being read again (mapping-state.ts), a message that wants
// an ack waits in order (waiting-messages.ts) and everything behind it waits too: acks keep the order of arrival over the whole
// daemon [MQTT-4.6.0-2]. QoS 0 is dropped and counted then; nobody else could keep it. At the bound of the
// waiting list, or while too much is uncommitted, `readingPaused` asks the broker to stop reading.
// While the dead letters are full, a message that would become one waits with what its connection sent behind it
// (dead-letter-backpressure.ts); everything else goes on. It is mapped again when there is room, perhaps by a mapping that was mended.
//
// Conservation (invariant 6): received + carried = mapped + ignored + copies + dead + quarantined + deferred + parts
// + dropped + returned + held; `carried` are the messages that were open parts when their state was read, `parts` those
// now, `returned` those that had to wait and whose connection ended first: their devices have them still.
// Per message: no promise, no closure, no log line, and one message object for all.

import type { Clock, EpochMs } from '../../std/clock.ts'
import type { Emit } from '../../domain/event.ts'
import type { Message, QoS, Sender } from '../../domain/message.ts'
import type { MapResult, Mapper } from '../../mapping/mapping.ts'
import type { Ack, Spool } from '../../spool/spool.ts'
import { createDropReporter, type DropReason } from './dropped-messages.ts'
import { createDeadLetterBackpressure } from './dead-letter-backpressure.ts'
import { createMappingState } from './mapping-state.ts'
import { createResultRouter, type RoutedCounters } from './result-router.ts'
import type { Tap } from './message-tap.ts'
import { createWaitingList } from './waiting-messages.ts'

/** The half of the spool that takes in. */
export type IntakeSpool = Pick<
  Spool,
  | 'holdReason'
  | 'congested'
  | 'deadLettersFull'
  | 'append'
  | 'addDeadLetter'
  | 'addWindowKey'
  | 'putState'
  | 'keepMessage'
  | 'exchange'
  | 'stateEntries'
  | 'endMessage'
  | 'listen'
>

/** What the intake asks of the mapping. */
export type IntakeMapper = Pick<Mapper, 'map' | 'apply' | 'tick' | 'nextTickAt' | 'restore' | 'openParts'>

/** A device's messages that were quarantined are on their way out: what comes meanwhile stands behind them. */
export type ReleaseOrder = { isReleasing(device: string): boolean; addBehind(device: string): void }

export type IntakeDeps = {
  mapper: IntakeMapper
  spool: IntakeSpool
  clock: Clock
  emit: Emit
  releaseOrder?: ReleaseOrder
  tap?: Tap
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
  acceptAgain: Intake['accept']
  /** No socket should be read for now; `listener` of onReadingChange is told when that changes. */
  readonly readingPaused: boolean
  onReadingChange(listener: () => void): void
  /** A connection has ended: what waits of it without an ack is its device's again. */
  connectionEnded(sender: Sender): void
  counters(): IntakeCounters
  /** Reads the mapping's memory from the spool; before the first message. */
  restore(): Promise<void>
  /** Puts another mapping in force between two messages; it takes over what is being collected. */
  swap(mapper: IntakeMapper): Promise<void>
  /** Resolves when what waits was appended, or can not be because the spool takes nothing in; then nothing more is. */
  finish(): Promise<void>
  close(): void
}

export type IntakeCounters = RoutedCounters & {
  received: number
  lastMessageAt: EpochMs | null
  bytes: number
  dropped: number
  /** Never acknowledged: their connection ended while they had to wait. */
  returned: number
  held: number
  /** Open parts now, and those that were open when the state was read. */
  openParts: number
  carried: number
}

/** Messages that were held go on in slices, so that a resume does not stop the loop for seconds. */
const sliceMessages = 1000
const eventEveryMs = 1000

export function createIntake(deps: IntakeDeps, options: IntakeOptions): Intake {
  const { spool, clock, emit, tap } = deps
  const waiting = createWaitingList({ messagesMax: options.heldMessagesMax, bytesMax: options.heldBytesMax })
  const placing = createResultRouter(deps, { eventEveryMs })
  const parts = createMappingState({ spool, clock, placing }, deps.mapper)
  const drops = createDropReporter({ clock, emit }, { eventEveryMs })
  const parked = createDeadLetterBackpressure(
    { spool, map: parts.map, put, drop },
    { messagesMax: options.heldMessagesMax, bytesMax: options.heldBytesMax },
  )
  const counters = { received: 0, bytes: 0, dropped: 0 }
  const message: Message = {
    topic: '',
    bytes: Buffer.alloc(0),
    qos: 0,
    retain: false,
    dup: false,
    sender: { clientId: '', userName: null, certificateName: null },
    arrivedAt: 0,
  }
  /** Its memory is being read: nothing may be mapped. */
  let reading = false
  let draining = false
  let paused = false
  let finished = false
  const tellFinished: (() => void)[] = []
  let tellReading: () => void = () => {}

  const unlisten = spool.listen({
    intakeChanged,
    storeLost() {
      reading = true
    },
    storeReopened() {
      // restore() rejects for a store that is lost again, and then comes again.
      void restore().catch(() => undefined)
    },
  })

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
    if (waiting.size === 0 && spool.holdReason === null && !reading) take(message, ack)
    else wait(ack)
  }

  function repeat(...known: Parameters<Intake['accept']>): void {
    if (waiting.size > 0 || spool.holdReason !== null || reading || parked.delaysSender(known[5])) {
      // Behind the others; the dedup window knows it.
      accept(...known)
      return
    }
    counters.received += 1
    counters.bytes += known[1].length
    placing.countDuplicate()
    spool.endMessage(known[6])
  }

  function wait(ack: Ack | null): void {
    if (ack === null) {
      const hold = spool.holdReason ?? (waiting.full ? 'waiting_full' : null)
      if (hold !== null) {
        drop(hold)
        return
      }
    }
    waiting.add(message, ack)
    judgeReading()
  }

  function take(message: Message, ack: Ack | null): void {
    const result = parked.size > 0 && parked.delaysSender(message.sender) ? null : parts.map(message)
    if (result !== null && result.kind !== 'unmappable') put(message, result, ack)
    else if (parked.delays(message, result, ack)) judgeReading()
    else if (result !== null) put(message, result, ack)
  }

  function put(message: Message, result: MapResult, ack: Ack | null): void {
    if (tap?.on === true) tap.record(message, result)
    placing.route(result, message, parts)
    // Everything appended since the last call is this message's: its ack follows the commit that holds it.
    spool.endMessage(ack)
    if (result.kind === 'part') parts.partAdded()
  }

  function gone(sender: Sender): void {
    if (!parked.delaysSender(sender)) return
    parked.connectionEnded(sender)
    judgeReading()
    judgeFinish()
  }

  async function restore(): Promise<void> {
    reading = true
    await parts.restore()
    reading = false
    intakeChanged()
  }

  async function swap(next: IntakeMapper): Promise<void> {
    reading = true
    try {
      await parts.swap(next)
      parked.mappingChanged()
    } finally {
      reading = false
      intakeChanged()
    }
  }

  function drop(hold: DropReason): void {
    counters.dropped += 1
    drops.add(hold)
  }

  function intakeChanged(): void {
    if ((waiting.size > 0 || parked.canResume) && !draining && mayDrain()) {
      draining = true
      // Not from within the committer that tells us of the change.
      setImmediate(drainSlice)
    }
    judgeReading()
    judgeFinish()
  }

  function mayDrain(): boolean {
    return spool.holdReason === null && !spool.congested && !finished && !reading
  }

  /** Ends when the list is empty or the spool takes nothing more in; then intakeChanged starts it again. */
  function drainSlice(): void {
    // It came before what its connections have sent since.
    if (parked.canResume && mayDrain()) parked.resume(sliceMessages)
    for (let count = 0; count < sliceMessages && mayDrain(); count += 1) {
      const next = waiting.take()
      if (next === undefined) break
      take(next.message, next.ack)
    }
    judgeReading()
    draining = (waiting.size > 0 || parked.canResume) && mayDrain()
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
    finished ||= (waiting.size === 0 && !parked.canResume) || spool.holdReason !== null
    if (finished) for (const tell of tellFinished.splice(0)) tell()
  }

  function judgeReading(): void {
    const now = spool.congested || waiting.full || parked.full
    if (now === paused) return
    paused = now
    tellReading()
  }

  return {
    accept,
    acceptAgain: repeat,
    get readingPaused() {
      return paused
    },
    onReadingChange(listener) {
      tellReading = listener
    },
    counters: () => ({
      ...counters,
      lastMessageAt: message.arrivedAt || null,
      ...placing.counters(),
      ...parts.counters(),
      returned: parked.returned,
      held: waiting.size + parked.size,
    }),
    connectionEnded: gone,
    restore,
    swap,
    finish,
    close() {
      finished = true
      unlisten()
      parts.close()
      drops.close()
    },
  }
}
