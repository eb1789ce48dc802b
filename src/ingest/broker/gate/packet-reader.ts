// packet-reader.ts: reads the packets of one socket, as far as gate.ts says.

import type { ReceivedMessage } from '../../types.ts'
import type { ClientDropReason } from '../client-faults.ts'
import { createChunkReader } from './chunk-reader.ts'
import type { ControlRate } from './control-rate.ts'
import { createFraming, type Allowance, type FramingLimits } from './packet-framing.ts'
import type { MessageShare } from './message-share.ts'
import {
  createPartialPacket,
  type PartialMemory,
  type PartialPacket,
  type PartialPacketOptions,
} from './partial-packet/partial-packet.ts'
import { takePublishes, type TakePing, type TakePublish } from './publish-fast-path.ts'
import { createSocketBuffer } from './socket-buffer.ts'
import type { TurnBudget, Turns } from './turns.ts'
import type { DeviceSocket } from './device-socket.ts'

export type PacketReaderOptions = FramingLimits &
  PartialPacketOptions & {
    /** Messages of one client that wait for their commit. */
    inFlightMax: number
  }

export type PacketReaderDeps = {
  socket: DeviceSocket
  connection: { readonly address: string | null; readonly closed: boolean }
  partial: PartialMemory
  turns: Turns
  rate: ControlRate
  /** The client does not read its acks. */
  isBlocked: () => boolean
  /** True while no messages may be read; resumeReading is called at its end. */
  readingPaused: () => boolean
  share: MessageShare
  /** The share is used up; resumeReading is called when there is more. */
  pause: () => void
  /** Where the fast path puts a message before it calls `publish`. */
  message: ReceivedMessage
  publish: (messageId: number) => void
  ping: () => void
  drop: (reason: ClientDropReason, detail?: string) => void
}

export type PacketReader = {
  /** CONNECT was answered: packets behind it may be read. */
  startReading(): void
  stopReading(): void
  /** Reads on where reading had paused. */
  resumeReading(): void
  countInFlight(): void
  countAcked(): void
  /** Acks were written: reads on where their number was the bound. */
  resumeIfFull(): void
  /** Nothing but the client decides when the next byte is read. */
  isReading(): boolean
  /** Bytes have come since the last call. */
  sawBytes(): boolean
  readonly partial: Pick<PartialPacket, 'started' | 'isTooSlow' | 'discard'>
}

/** What is read from the buffer of the socket in one piece. */
const portionBytesMax = 16 * 1024
/** Taken where no more than some messages may be read. */
const fewMessages = 64
const fewBytes = 4096
const empty = Buffer.alloc(0)

export function createPacketReader(deps: PacketReaderDeps, options: PacketReaderOptions): PacketReader {
  const { socket, connection, turns, rate, share, isBlocked, readingPaused, drop } = deps
  const framing = createFraming(options)
  const partial = createPartialPacket(
    deps.partial,
    {
      get address() {
        return connection.address
      },
      close: (detail) => drop('partial_packets_full', detail),
    },
    framing.sizeAt,
    options,
  )
  const budget: TurnBudget = { turn: 0, packets: 0, control: 0, bytes: 0 }
  const allowance: Allowance = { messages: 0, packets: 0, control: 0 }
  const later = {
    nextTurn() {
      waitsForTurn = false
      waiting.readNetwork()
      resumeReading()
    },
  }
  let isConnected = false
  let stopped = false
  let full = false
  /** The buffer of the socket starts with a PUBLISH that had to wait. */
  let publishWaits = false
  let waitsForTurn = false
  let inFlight = 0
  let bytesCame = false

  const waiting = createSocketBuffer(socket, { read, takeChunk })
  const chunks = createChunkReader({
    waiting,
    partial,
    connection,
    sizeAt: framing.sizeAt,
    mayRead,
    mayBypassStream,
    takeFast: (bytes) => takeFast(bytes, takeWithinLimit, pingWithinRate),
  })

  function read(): Buffer | null {
    for (;;) {
      if (!mayRead()) return null
      publishWaits = false
      const chunk = waiting.take(messagesLeft() < fewMessages ? fewBytes : portionBytesMax)
      const portion = chunk === null ? null : portionOf(chunk)
      // Empty: nothing is left for aedes, and the socket may have more.
      if (portion?.length === 0) continue
      // The microtask runs after this portion was parsed: aedes' parser must not be entered twice.
      if (portion !== null && !waiting.isEmpty) queueMicrotask(resumeReading)
      return portion
    }
  }

  function mayRead(): boolean {
    if (stopped || waitsForTurn || waiting.isLost || isBlocked()) return false
    if (!isConnected) return !framing.connectEnded
    return !(publishWaits || partial.isPublish) || mayPublish()
  }

  function mayPublish(): boolean {
    if (inFlight >= options.inFlightMax) {
      full = true
      return false
    }
    if (share.left() > 0) return !readingPaused()
    deps.pause()
    return false
  }

  function messagesLeft(): number {
    return Math.min(options.inFlightMax - inFlight, share.left())
  }

  function takeChunk(chunk: Buffer, isShared: boolean): boolean {
    bytesCame = true
    const more = waiting.isLost || chunks.read(chunk)
    if (!isShared || !turns.spendBytes(budget, chunk.length) || connection.closed) return more
    waitForTurn()
    return false
  }

  function waitForTurn(): void {
    if (waitsForTurn) return
    waitsForTurn = true
    turns.resumeLater(later)
  }

  function mayBypassStream(): boolean {
    if (!isConnected || !waiting.isEmpty || stopped || waitsForTurn || isBlocked()) return false
    turns.refill(budget)
    return budget.packets > 0 && mayPublish()
  }

  /** What of `chunk` goes to aedes: empty for nothing yet, null where nothing may be read for now. */
  function portionOf(chunk: Buffer): Buffer | null {
    let bytes = chunk
    if (partial.started) {
      const taken = partial.append(chunk)
      if (connection.closed) return null
      if (!partial.isWhole) return empty
      bytes = partial.take()
      waiting.putBack(chunk, taken)
    }
    turns.refill(budget)
    allowance.messages = isConnected && mayPublish() ? messagesLeft() : 0
    allowance.packets = budget.packets
    allowance.control = Math.min(budget.control, turns.controlLeft)
    const controlBefore = allowance.control
    const end = framing.follow(bytes, allowance)
    budget.packets = allowance.packets
    budget.control -= controlBefore - allowance.control
    turns.spendControl(controlBefore - allowance.control)
    if (framing.violation !== null) {
      drop(framing.violation.reason, framing.violation.detail)
      return null
    }
    rate.expectReleases(framing.unreleased)
    if (!rate.take(framing.control, framing.releases)) {
      drop('too_many_control_packets')
      return null
    }
    if (end < bytes.length) keepRest(bytes, end)
    if (connection.closed) return null
    if (end === 0) return framing.stop === 'partial' ? empty : null
    const portion = end === bytes.length ? bytes : bytes.subarray(0, end)
    return isConnected ? bypassAedes(portion) : portion
  }

  function keepRest(bytes: Buffer, end: number): void {
    if (framing.stop === 'partial') return partial.begin(bytes.subarray(end))
    waiting.putBack(bytes, end)
    publishWaits = framing.stop === 'publish'
    if (framing.stop === 'turn') waitForTurn()
  }

  /** What the fast path leaves for aedes; null where nothing more may be read. */
  function bypassAedes(portion: Buffer): Buffer | null {
    // The framing has bounded the number of messages.
    const start = takeFast(portion, takeOne, takePing)
    if (connection.closed) return null
    return start === 0 ? portion : portion.subarray(start)
  }

  function takeFast(portion: Buffer, take: TakePublish, ping: TakePing): number {
    return takePublishes(portion, options.packetBytesMax, deps.message, take, ping)
  }

  function takeOne(messageId: number): boolean {
    share.count(deps.message.bytes.length)
    deps.publish(messageId)
    return !connection.closed
  }

  function takeWithinLimit(messageId: number): boolean {
    budget.packets -= 1
    return takeOne(messageId) && inFlight < options.inFlightMax && budget.packets > 0 && share.left() > 0
  }

  function takePing(): boolean {
    deps.ping()
    return !connection.closed
  }

  function pingWithinRate(): boolean {
    budget.packets -= 1
    if (rate.take(1, 0)) return takePing() && budget.packets > 0
    drop('too_many_control_packets')
    return false
  }

  function resumeReading(): void {
    // A stream whose end has arrived does not announce bytes that were put back.
    if (!socket.destroyed) socket.emit('readable')
  }

  return {
    startReading() {
      isConnected = true
      resumeReading()
    },
    stopReading() {
      stopped = true
    },
    resumeReading,
    countInFlight() {
      inFlight += 1
    },
    countAcked() {
      inFlight -= 1
    },
    resumeIfFull() {
      if (!full) return
      full = false
      resumeReading()
    },
    isReading: mayRead,
    sawBytes() {
      const came = bytesCame
      bytesCame = false
      return came
    },
    partial,
  }
}
