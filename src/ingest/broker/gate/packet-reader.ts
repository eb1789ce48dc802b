// packet-reader.ts: reads the packets of one socket, as far as gate.ts says. It replaces two functions of the
// socket: `read`, by which aedes takes bytes, and `push`, by which Node adds them.

import type { Socket } from 'node:net'
import type { ReceivedMessage } from '../../types.ts'
import type { ClientDropReason } from '../client-faults.ts'
import type { ControlRate } from './control-rate.ts'
import { createFraming, type Allowance, type FramingLimits } from './packet-framing.ts'
import { createPartialPacket, type PartialPacketOptions } from './partial-packet.ts'
import type { PartialBudget } from './partial-budget.ts'
import { takePublishes, type TakePing, type TakePublish } from './publish-fast-path.ts'
import type { TurnBudget, Turns } from './turns.ts'

export type PacketReaderOptions = FramingLimits &
  PartialPacketOptions & {
    /** Messages of one client that wait for their commit. */
    inFlightMax: number
  }

export type PacketReaderDeps = {
  socket: Socket
  connection: { readonly address: string | null }
  partialBudget: PartialBudget
  turns: Turns
  rate: ControlRate
  /** The client does not read its acks. */
  isBlocked: () => boolean
  /** True while no messages may be read; resumeReading is called at its end. */
  readingPaused: () => boolean
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
  /** The socket was read for another `elapsedMs`. True where a packet is incomplete and too slow. */
  isPartialTooSlow(elapsedMs: number): boolean
  readonly hasPartial: boolean
  discardPartial(): void
}

/** Chunks in the buffer of the socket: each costs some hundred bytes, however small it is. */
const chunksMax = 32
const empty = Buffer.alloc(0)

export function createPacketReader(deps: PacketReaderDeps, options: PacketReaderOptions): PacketReader {
  const { socket, turns, rate, isBlocked, readingPaused, drop } = deps
  const { inFlightMax } = options
  const framing = createFraming(options)
  const partial = createPartialPacket(
    deps.partialBudget,
    {
      get address() {
        return deps.connection.address
      },
      close: (detail) => drop('partial_packets_full', detail),
    },
    framing.sizeAt,
    options,
  )
  // read(null) returns everything in the buffer. @types/node lacks the null and the type of the result.
  const readOn: { read(size?: number | null): Buffer | null }['read'] = socket.read.bind(socket)
  const pushOn = socket.push.bind(socket)
  const budget: TurnBudget = { turn: 0, packets: 0, control: 0 }
  const allowance: Allowance = { messages: 0, packets: 0, control: 0 }
  const later = {
    nextTurn() {
      waitsForTurn = false
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
  let chunks = 0
  let bytesCame = false

  socket.read = read
  socket.push = push

  function read(size?: number | null): Buffer | null {
    // Only aedes calls it with null; the stream itself with a number or nothing.
    if (size !== null) return readOn(size)
    for (;;) {
      if (!mayRead()) return null
      publishWaits = false
      chunks = 0
      const chunk = readOn(null)
      const portion = chunk === null ? null : portionOf(chunk)
      // Empty: nothing is left for aedes, and the socket may have more.
      if (portion === null || portion.length > 0) return portion
    }
  }

  function mayRead(): boolean {
    if (stopped || waitsForTurn || socket.destroyed || isBlocked()) return false
    if (!isConnected) return !framing.connectEnded
    return !(publishWaits || partial.isPublish) || mayPublish()
  }

  function mayPublish(): boolean {
    if (inFlight < inFlightMax) return !readingPaused()
    full = true
    return false
  }

  /** Called with each chunk from the network, and with null at its end. */
  function push(chunk: unknown, encoding?: BufferEncoding): boolean {
    if (!(chunk instanceof Buffer)) return pushOn(chunk, encoding)
    bytesCame = true
    if (!mayBypassStream()) return pushToStream(chunk)
    let bytes = chunk
    if (partial.started) {
      const taken = partial.append(chunk)
      // True: the socket reads on. A dropped one needs no rest.
      if (socket.destroyed || !partial.isWhole) return true
      const whole = partial.take()
      bytes = chunk.subarray(taken)
      if (takeFast(whole, takeWithinLimit, pingWithinRate) === 0) {
        if (socket.destroyed) return true
        const more = pushToStream(whole)
        return bytes.length === 0 ? more : pushToStream(bytes)
      }
      if (bytes.length > 0 && !mayBypassStream()) return socket.destroyed || pushToStream(bytes)
    }
    const start = takeFast(bytes, takeWithinLimit, pingWithinRate)
    if (start === bytes.length || socket.destroyed) return true
    const rest = bytes.subarray(start)
    const size = framing.sizeAt(rest, 0)
    // After a violation, portionOf ends the connection.
    if (size >= 0 && (size === 0 || size > rest.length)) {
      partial.begin(rest)
      return true
    }
    return pushToStream(rest)
  }

  function mayBypassStream(): boolean {
    if (!isConnected || socket.readableLength > 0 || stopped || waitsForTurn || isBlocked()) return false
    turns.refill(budget)
    return budget.packets > 0 && mayPublish()
  }

  function pushToStream(chunk: Buffer): boolean {
    const more = pushOn(chunk)
    chunks += 1
    if (chunks <= chunksMax) return more
    // One chunk of them all.
    const all = readOn(null)
    chunks = 1
    if (all !== null) socket.unshift(all)
    return more
  }

  /** What of `chunk` goes to aedes: empty for nothing yet, null where nothing may be read for now. */
  function portionOf(chunk: Buffer): Buffer | null {
    let bytes = chunk
    if (partial.started) {
      const taken = partial.append(chunk)
      if (socket.destroyed) return null
      if (!partial.isWhole) return empty
      bytes = partial.take()
      putBack(chunk, taken)
      // The microtask runs after this portion was parsed: aedes' parser must not be entered twice.
      queueMicrotask(resumeReading)
    }
    turns.refill(budget)
    allowance.messages = isConnected && mayPublish() ? inFlightMax - inFlight : 0
    allowance.packets = budget.packets
    allowance.control = Math.min(budget.control, turns.controlLeft)
    const controlBefore = allowance.control
    const end = framing.follow(bytes, allowance)
    budget.packets = allowance.packets
    budget.control -= controlBefore - allowance.control
    turns.spendControl(controlBefore - allowance.control)
    if (framing.violation !== null) {
      drop(framing.violation)
      return null
    }
    rate.expectReleases(framing.unreleased)
    if (!rate.take(framing.control, framing.releases)) {
      drop('too_many_control_packets')
      return null
    }
    if (end < bytes.length) keepRest(bytes, end)
    if (socket.destroyed) return null
    if (end === 0) return framing.stop === 'partial' ? empty : null
    const portion = end === bytes.length ? bytes : bytes.subarray(0, end)
    return isConnected ? bypassAedes(portion) : portion
  }

  function keepRest(bytes: Buffer, end: number): void {
    if (framing.stop === 'partial') {
      partial.begin(bytes.subarray(end))
      return
    }
    putBack(bytes, end)
    if (framing.stop === 'publish') publishWaits = true
    else if (framing.stop === 'turn') {
      waitsForTurn = true
      turns.resumeLater(later)
    }
  }

  /** Back into the stream and not into a buffer of our own: its `end` must wait for these bytes. */
  function putBack(bytes: Buffer, start: number): void {
    if (start === bytes.length) return
    chunks += 1
    socket.unshift(bytes.subarray(start))
  }

  /** What the fast path leaves for aedes; null where nothing more may be read. */
  function bypassAedes(portion: Buffer): Buffer | null {
    // The framing has bounded the number of messages.
    const start = takeFast(portion, takeOne, takePing)
    if (socket.destroyed) return null
    return start === 0 ? portion : portion.subarray(start)
  }

  function takeFast(portion: Buffer, take: TakePublish, ping: TakePing): number {
    return takePublishes(portion, options.packetBytesMax, deps.message, take, ping)
  }

  function takeOne(messageId: number): boolean {
    deps.publish(messageId)
    return !socket.destroyed
  }

  function takeWithinLimit(messageId: number): boolean {
    budget.packets -= 1
    return takeOne(messageId) && inFlight < inFlightMax && budget.packets > 0
  }

  function takePing(): boolean {
    deps.ping()
    return !socket.destroyed
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
    isReading: () => mayRead(),
    sawBytes() {
      const came = bytesCame
      bytesCame = false
      return came
    },
    isPartialTooSlow: (elapsedMs) => partial.isTooSlow(elapsedMs),
    get hasPartial() {
      return partial.started
    },
    discardPartial: () => partial.discard(),
  }
}
