// intake.ts: the hot path, from a message to the spool. It does not know where messages come from.
//
//   message -> map (mapping-state.ts) -> store the result (result-router.ts) -> endMessage(ack)
//
// The spool calls `ack` after the fsync, in the order of arrival. Messages wait in order
// (waiting-messages.ts) while the spool takes nothing in (full, disk low, store lost), or while the state of
// the mapping is read again (mapping-state.ts). Everything behind them waits too, so acks keep the order
// of arrival over the whole daemon [MQTT-4.6.0-2]. QoS 0 is dropped and counted then (dropped-messages.ts):
// nothing else could keep it. At the bound of the waiting list, or while too many bytes are uncommitted,
// `readingPaused` asks the broker to stop reading, and `busy` to read little from each connection.
//
// While a store of kept messages is full and holds, a message for it waits with all that its connection sent
// behind it (store-backpressure.ts). Other connections continue.
//
// Conservation (invariant 6): received + carried + split = mapped + ignored + duplicates + dead + quarantined
// + openParts + dropped + returned + held. Per message: no promise, no closure, no log line, and
// one message object for all.

import type { DropReason, Emit } from '../../domain/event.ts'
import type { Sender } from '../../domain/message.ts'
import type { MapResult } from '../../mapping/mapping.ts'
import type { Ack } from '../../spool/spool.ts'
import { isKeptWhole } from '../remap/kept-message.ts'
import type { IntakeSpool, ReceivedMessage, IntakeMapper, ReleaseOrder, RequestRebirth } from '../types.ts'
import { createDropReporter } from './dropped-messages.ts'
import { createMappingState, type MappingState } from './mapping-state.ts'
import { createResultRouter, type RoutedCounters, type NotePayload } from './result-router.ts'
import { createStoreBackpressure, type StoreBackpressure } from './store-backpressure.ts'
import { createUntimedResends, type UntimedResends, type ResendCounters } from './untimed-resends.ts'
import { addUnreleased, isUnreleased } from './unreleased-messages.ts'
import { createWaitingList } from './waiting-messages.ts'
import type { EpochMs, Clock } from '../../std/clock.ts'
import type { OurTime } from '../../domain/arrival.ts'
import type { Tap } from './message-tap.ts'

export type Intake = {
  /**
   * Takes a message; `ack` is null where no acknowledgement is expected (QoS 0, wills). `message` belongs to
   * the caller and may be reused after the call, its bytes too; `arrivedAt` and `arrival` are set here.
   */
  accept(message: ReceivedMessage, ack: Ack | null): void
  /** The connections of the clients whose messages come here. */
  readonly links: Pick<UntimedResends, 'connect' | 'disconnect' | 'release'>
  /** While the store is lost: resolves when it is open and read. Nothing may be noted before. */
  storeReturn(): Promise<void> | null
  /** Whose topic it is, by the mapping in force. */
  readonly owners: Pick<MappingState, 'currentOwnerOf'>
  /** No socket may be read for now; the listeners of onReadingChange are called when this changes. */
  readingPaused(): boolean
  /**
   * While it is busy, only a few messages of each connection may be read between commits; the same listeners.
   */
  readonly load: Pick<IntakeSpool, 'busy' | 'commits'>
  /** Too much of this connection waits for a full store, so it is not read; the same listeners. */
  pausesSender(sender: Sender): boolean
  /** For the device list. */
  readonly waitOf: StoreBackpressure['waitOf']
  onReadingChange(listener: () => void): void
  /** A connection has ended: its messages without an ack that wait are left to the device. */
  connectionEnded(sender: Sender): void
  counters(): IntakeCounters
  /** Reads the state of the mapping from the spool; before the first message. */
  restore(): Promise<void>
  /** Puts another mapping in force between two messages; it takes over what is being collected. */
  swap: MappingState['swap']
  /** Resolves when all that waits was appended, or the spool takes nothing; nothing more is appended then. */
  finish(): Promise<void>
  close(): void
}

/** Waiting messages are taken in slices, so that resuming does not block the event loop for seconds. */
const sliceMessages = 1000
const sliceMs = 20
const eventEveryMs = 1000

export function createIntake(deps: IntakeDeps, options: IntakeOptions): Intake {
  const { spool, clock, ourTime, emit, tap, sessions } = deps
  const bounds = { messagesMax: options.heldMessagesMax, bytesMax: options.heldBytesMax }
  const waiting = createWaitingList(bounds)
  const resends = createUntimedResends(deps)
  const router = createResultRouter({ ...deps, resends }, { eventEveryMs })
  const state = createMappingState({ spool, clock, ourTime, router }, deps.mapper)
  const drops = createDropReporter({ clock, emit }, { eventEveryMs })
  const backpressure = createStoreBackpressure(
    { now: ourTime.now, spool, map: state.map, route, drop },
    bounds,
  )
  const counters = { received: 0, lastMessageAt: 0, lastOfClientsAt: 0, bytes: 0, dropped: 0 }
  /** The state of the mapping is being read: nothing may be mapped. */
  let restoring = false
  let storeReturn: PromiseWithResolvers<void> | null = null
  /** Messages that arrived in this millisecond before. */
  let serial = 0
  let draining = false
  let readingPaused = false
  let wasBusy = false
  let finished = false
  const finishing: (() => void)[] = []
  const readingListeners: (() => void)[] = []

  const unlisten = spool.listen({
    intakeChanged,
    storeLost() {
      restoring = true
      storeReturn ??= Promise.withResolvers()
      sessions?.lost()
    },
    storeReopened() {
      // It rejects for a store that is lost again; storeReopened follows again then.
      void restore().catch(() => undefined)
    },
  })

  function accept(message: ReceivedMessage, ack: Ack | null): void {
    count(message)
    ourTime.stamp(message, counters.lastMessageAt)
    if (mayTake()) take(message, ack)
    else wait(message, ack)
  }

  function count(message: ReceivedMessage): void {
    const now = clock.now()
    serial = now === counters.lastMessageAt ? serial + 1 : 0
    message.serial = serial
    counters.received += 1
    counters.lastMessageAt = now
    if ((message.from ?? null) === null) counters.lastOfClientsAt = now
    counters.bytes += message.bytes.length
  }

  function mayTake(): boolean {
    return waiting.size() === 0 && spool.holdReason() === null && !restoring
  }

  function wait(message: ReceivedMessage, ack: Ack | null): void {
    if (ack === null) {
      const reason = spool.holdReason() ?? (waiting.full() ? 'waiting_full' : null)
      if (reason !== null) {
        drop(reason)
        return
      }
    }
    waiting.add(message, ack)
    updateReading()
  }

  function take(message: ReceivedMessage, ack: Ack | null): void {
    const isBehind = backpressure.size() > 0 && backpressure.holdsSender(message.sender)
    if (!isBehind && isUnreleased(message)) return endResent(ack)
    const result = isBehind ? null : state.map(message)
    if (result !== null && !isKeptWhole(result)) route(message, result, ack)
    else if (!backpressure.delays(message, result, ack) && result !== null) route(message, result, ack)
  }

  function route(message: ReceivedMessage, result: MapResult, ack: Ack | null): void {
    // It may have waited behind the one that it repeats.
    if (isUnreleased(message)) return endResent(ack)
    if (tap?.on() === true) tap.record(message, result)
    router.route(result, message, state)
    // [MQTT-4.3.3-9]: no PUBREL follows a PUBREC that refuses.
    if (message.qos === 2 && message.isRefused !== true) addUnreleased(message)
    // All that was added since the last call belongs to this message: its ack follows its commit.
    const { link = null } = message
    // Who waits for each ack loses at most a fifth of the rate; who sends rarely shares the write of others.
    const waitMs = link === null ? 0 : (clock.monotonic() - link.ackedAtMs) / 4
    spool.endMessage(ack, waitMs)
    if (result.kind === 'part') state.partAdded()
  }

  /** It only needs its ack, behind that of the first one. */
  function endResent(ack: Ack | null): void {
    router.countResent()
    spool.endMessage(ack)
  }

  function connectionEnded(sender: Sender): void {
    backpressure.connectionEnded(sender)
    checkFinished()
  }

  async function restore(): Promise<void> {
    restoring = true
    await resends.restore(spool.journal())
    await sessions?.restore()
    await state.restore()
    restoring = false
    storeReturn?.resolve()
    storeReturn = null
    intakeChanged()
  }

  async function swap(...next: Parameters<MappingState['swap']>): Promise<void> {
    restoring = true
    try {
      await state.swap(...next)
      backpressure.mappingChanged()
    } finally {
      restoring = false
      intakeChanged()
    }
  }

  function drop(reason: DropReason): void {
    counters.dropped += 1
    drops.add(reason)
  }

  function intakeChanged(): void {
    if (!draining && mayDrain()) {
      draining = true
      // Not from within the committer, which reports the change.
      setImmediate(drainSlice)
    }
    updateReading()
    checkFinished()
  }

  function mayDrain(): boolean {
    return (waiting.size() > 0 || backpressure.canResume()) && mayContinue()
  }

  function mayContinue(): boolean {
    return spool.holdReason() === null && !spool.congested() && !finished && !restoring
  }

  /** Ends when nothing waits or the spool takes nothing more in; intakeChanged starts it again then. */
  function drainSlice(): void {
    // Its messages came before those that their connections have sent since.
    if (backpressure.canResume() && mayContinue()) {
      backpressure.resume(sliceMessages)
      onReadingChange()
    }
    const endMs = clock.monotonic() + sliceMs
    for (let taken = 0; taken < sliceMessages && mayContinue(); taken += 1) {
      if (clock.monotonic() > endMs) break
      const next = waiting.take()
      if (next === undefined) break
      take(next.message, next.ack)
    }
    updateReading()
    draining = mayDrain()
    if (draining) setImmediate(drainSlice)
    checkFinished()
  }

  async function finish(): Promise<void> {
    await new Promise<void>((resolve) => {
      finishing.push(resolve)
      checkFinished()
    })
    // Open records stay in the spool; no timer writes after this.
    state.close()
  }

  function checkFinished(): void {
    if (finishing.length === 0) return
    finished ||= (waiting.size() === 0 && !backpressure.canResume()) || spool.holdReason() !== null
    if (finished) for (const resolve of finishing.splice(0)) resolve()
  }

  function updateReading(): void {
    const paused = spool.congested() || waiting.full()
    if (paused === readingPaused && spool.busy() === wasBusy) return
    readingPaused = paused
    wasBusy = spool.busy()
    onReadingChange()
  }

  function onReadingChange(): void {
    for (const listener of readingListeners) listener()
  }

  return {
    accept,
    links: resends,
    storeReturn() {
      return storeReturn?.promise ?? null
    },
    owners: state,
    readingPaused() {
      return readingPaused
    },
    load: spool,
    onReadingChange: (listener) => void readingListeners.push(listener),
    counters: () => ({
      ...counters,
      lastMessageAt: counters.lastMessageAt || null,
      lastOfClientsAt: counters.lastOfClientsAt || null,
      ...router.counters(),
      ...state.counters(),
      ...resends.counters(),
      returned: backpressure.returned(),
      held: waiting.size() + backpressure.size(),
    }),
    waitOf: backpressure.waitOf,
    pausesSender: (sender) => backpressure.size() > 0 && backpressure.pausesSender(sender),
    connectionEnded,
    restore,
    swap,
    finish,
    close() {
      finished = true
      unlisten()
      state.close()
      drops.close()
    },
  }
}

// What the intake counts; the terms of its conservation.

/** Messages since the start. */
export type IntakeCounters = RoutedCounters &
  ResendCounters & {
    received: number
    /** When the last one arrived; null before the first. */
    lastMessageAt: EpochMs | null
    /** The same of the clients of the embedded broker. */
    lastOfClientsAt: EpochMs | null
    bytes: number
    /** QoS 0 messages that could not be kept. */
    dropped: number
    /** Never acknowledged: their connection ended while they waited, so the device still has them. */
    returned: number
    /** Waiting now. */
    held: number
    /** In open records now, and those of them that were open when the state was read. */
    openParts: number
    carried: number
  }

// What the intake works with, and its bounds.

export type IntakeDeps = {
  /** In force until swap(). */
  mapper: IntakeMapper
  spool: IntakeSpool
  clock: Clock
  ourTime: OurTime
  emit: Emit
  releaseOrder?: ReleaseOrder
  tap?: Tap
  /** Receives each payload that was stored or is a duplicate. */
  notePayload?: NotePayload
  requestRebirth?: RequestRebirth
  /** Sessions of the broker, which are read again with the state. */
  sessions?: { lost(): void; restore(): Promise<void> }
}

export type IntakeOptions = {
  /** Bounds of what waits while the spool takes nothing in; at the bound reading stops. */
  heldMessagesMax: number
  heldBytesMax: number
}
