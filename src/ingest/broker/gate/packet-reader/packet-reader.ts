// packet-reader.ts: reads the packets of one socket, as far as gate.ts says. Entry file of this folder.
//
//   packet-framing.ts       finds packets by their fixed headers
//   packet-taking.ts        which code takes the packets, by the version of MQTT
//   publish-fast-path.ts    reads most messages, and PINGREQ, without aedes' parser
//   socket-buffer.ts        the buffer of the socket's stream, for bytes that cannot be read at once
//   shared-read-buffer.ts   has Node read all sockets into one buffer
//
// Packets keep their order, buffers their bounds (gate.ts). What breaks the rules ends the connection.

import type { DeviceSocket } from '../device-socket.ts'
import { createPartialPacket, type PartialPacket } from '../partial-packet/partial-packet.ts'
import type { TurnBudget, Turns } from '../turns.ts'
import { createFraming, type Framing, type Allowance } from './packet-framing.ts'
import { MessageWindow } from './message-window.ts'
import { takeMessages, takeOthers } from './packet-taking.ts'
import type { PacketTaker } from './publish-fast-path.ts'
import { createSocketBuffer, type SocketBuffer, type SocketBufferCalls } from './socket-buffer.ts'
import type { PacketReader, PacketReaderDeps, PacketReaderOptions, ReaderOwner } from './types.ts'

/** What is read from the buffer of the socket in one piece. */
const portionBytesMax = 16 * 1024
/** Where no more than some messages may be read. */
const fewMessages = 64
const fewBytes = 4096
const empty = Buffer.alloc(0)

export function createPacketReader(deps: PacketReaderDeps, options: PacketReaderOptions): PacketReader {
  return new SocketReader(deps, options)
}

class SocketReader implements PacketReader, SocketBufferCalls, PacketTaker {
  private readonly socket: DeviceSocket
  private readonly owner: ReaderOwner
  private readonly deps: PacketReaderDeps
  private readonly options: PacketReaderOptions
  private readonly framing: Framing
  private readonly waiting: SocketBuffer
  private readonly budget: TurnBudget = { turn: 0, packets: 0, control: 0, bytes: 0 }
  /** Created with the first packet that does not come whole. */
  private kept: PartialPacket | null = null
  private isConnected = false
  private stopped = false
  /** The buffer of the socket starts with a PUBLISH that had to wait. */
  private publishWaits = false
  private waitsForTurn = false
  /** The fast path takes what the framing has not counted. */
  private takesWithinLimits = false
  private readonly window: MessageWindow
  private unread: UnreadBytes | null = null
  private bytesCame = false

  constructor(deps: PacketReaderDeps, options: PacketReaderOptions) {
    this.socket = deps.socket
    this.owner = deps.owner
    this.deps = deps
    this.options = options
    this.window = new MessageWindow(options.inFlightMax)
    this.framing = createFraming(options)
    this.waiting = createSocketBuffer(deps.socket, this)
  }

  get partial(): PartialPacket | null {
    return this.kept?.started ? this.kept : null
  }

  discardPartial(): void {
    this.kept?.discard()
  }

  /** For the first part of a packet. */
  close(detail: string): void {
    this.owner.drop('partial_packets_full', detail)
  }

  get address(): string | null {
    return this.owner.address
  }

  read(): Buffer | null {
    for (;;) {
      if (!this.isReading()) return this.unread?.dropWaiting() ?? null
      this.publishWaits = false
      const chunk = this.waiting.take(this.messagesLeft() < fewMessages ? fewBytes : portionBytesMax)
      const portion = chunk === null ? null : this.portionOf(chunk)
      // Empty: nothing is left for aedes, and the socket may have more.
      if (portion?.length === 0) continue
      // The microtask runs after this portion was parsed: aedes' parser must not be entered twice.
      if (portion !== null && !this.waiting.isEmpty) queueMicrotask(() => this.resumeReading())
      return portion
    }
  }

  isReading(): boolean {
    if (this.stopped || this.waitsForTurn || this.waiting.isLost || this.owner.isBlocked()) return false
    if (!this.isConnected) return !this.framing.connectEnded
    return !(this.publishWaits || this.partial?.isPublish) || this.mayPublish()
  }

  private mayPublish(): boolean {
    if (this.window.isFull()) return false
    if (this.deps.share.left() > 0) return !this.owner.readingPaused()
    this.owner.pauseReading()
    return false
  }

  private messagesLeft(): number {
    return Math.min(this.window.left, this.deps.share.left(), this.owner.messagesAtOnce())
  }

  takeChunk(chunk: Buffer, isShared: boolean): boolean {
    const more = this.readChunk(chunk)
    if (!isShared || !this.deps.turns.spendBytes(this.budget, chunk.length) || this.owner.closed) return more
    this.waitForTurn()
    return false
  }

  private waitForTurn(): void {
    if (this.waitsForTurn) return
    this.waitsForTurn = true
    this.deps.turns.resumeLater(this)
  }

  nextTurn(): void {
    this.waitsForTurn = false
    this.waiting.readNetwork()
    this.resumeReading()
  }

  private readChunk(chunk: Buffer): boolean {
    this.bytesCame = true
    if (this.waiting.isLost) return true
    if (this.unread !== null) return this.unread.drop(chunk.length)
    if (!this.mayBypassStream())
      return this.waiting.isEmpty && this.isReading() ? this.keepPartial(chunk) : this.waiting.add(chunk)
    let bytes = chunk
    const { partial } = this
    if (partial !== null) {
      const taken = partial.append(chunk)
      // A dropped socket needs no rest.
      if (this.owner.closed || !partial.isWhole) return true
      const whole = partial.take()
      bytes = chunk.subarray(taken)
      if (this.takeFast(whole, true) === 0) {
        if (this.owner.closed) return true
        const more = this.waiting.add(whole)
        return bytes.length === 0 ? more : this.waiting.add(bytes)
      }
      if (bytes.length > 0 && !this.mayBypassStream()) return this.owner.closed || this.waiting.add(bytes)
    }
    const start = this.takeFast(bytes, true)
    if (start === bytes.length || this.owner.closed) return true
    const rest = bytes.subarray(start)
    const size = this.framing.sizeAt(rest, 0)
    // After a violation, portionOf ends the connection.
    if (size >= 0 && (size === 0 || size > rest.length)) {
      this.begin(rest)
      return true
    }
    return this.waiting.add(rest)
  }

  /** A packet that is not complete waits here and not in the stream, which keeps each chunk of it. */
  private keepPartial(chunk: Buffer): boolean {
    const { partial } = this
    if (partial !== null) {
      const taken = partial.append(chunk)
      if (this.owner.closed || !partial.isWhole) return true
      const more = this.waiting.add(partial.take())
      return taken === chunk.length ? more : this.waiting.add(chunk.subarray(taken))
    }
    const size = this.framing.sizeAt(chunk, 0)
    if (size !== 0 && size <= chunk.length) return this.waiting.add(chunk)
    this.begin(chunk)
    return true
  }

  private begin(first: Buffer): void {
    this.kept ??= createPartialPacket(this.deps.partial, this, this.framing, this.options)
    this.kept.begin(first)
  }

  private mayBypassStream(): boolean {
    if (!this.isConnected || this.stopped || this.waitsForTurn) return false
    if (!this.waiting.isEmpty || this.owner.isBlocked()) return false
    this.deps.turns.refill(this.budget)
    return this.budget.packets > 0 && this.mayPublish()
  }

  /** What of `chunk` goes to aedes: empty for nothing yet, null where nothing may be read for now. */
  private portionOf(chunk: Buffer): Buffer | null {
    let bytes = chunk
    const { partial } = this
    if (partial !== null) {
      const taken = partial.append(chunk)
      if (this.owner.closed) return null
      if (!partial.isWhole) return empty
      bytes = partial.take()
      this.waiting.putBack(chunk, taken)
    }
    const messages = this.isConnected && this.mayPublish() ? this.messagesLeft() : 0
    const end = followInTurn(bytes, messages, this.framing, this.budget, this.deps.turns)
    const { violation } = this.framing
    if (violation !== null) {
      this.owner.drop(violation.reason, violation.detail, violation.code)
      return null
    }
    this.deps.rate.expectReleases(this.framing.unreleased)
    if (!this.deps.rate.take(this.framing.control, this.framing.releases)) {
      this.owner.drop('too_many_control_packets')
      return null
    }
    if (end < bytes.length) this.keepRest(bytes, end)
    if (this.owner.closed) return null
    if (end === 0) return this.framing.stop === 'partial' ? empty : null
    const portion = end === bytes.length ? bytes : bytes.subarray(0, end)
    return this.isConnected ? this.bypassAedes(portion) : portion
  }

  private keepRest(bytes: Buffer, end: number): void {
    if (this.framing.stop === 'partial') return this.begin(bytes.subarray(end))
    this.waiting.putBack(bytes, end)
    this.publishWaits = this.framing.stop === 'publish'
    if (this.framing.stop === 'turn') this.waitForTurn()
  }

  /** What the fast path leaves for aedes; null where nothing more may be read. */
  private bypassAedes(portion: Buffer): Buffer | null {
    // The framing has bounded the number of messages, and counted the control packets.
    const start = this.takeFast(portion, false)
    const end = takeOthers(portion, start, this.owner, (rest) => this.takeFast(rest, false))
    return this.owner.closed ? null : portion.subarray(end)
  }

  private takeFast(portion: Buffer, isWithinLimits: boolean): number {
    const before = this.takesWithinLimits
    this.takesWithinLimits = isWithinLimits
    const end = takeMessages(portion, this.deps, this, this.options.packetBytesMax)
    this.takesWithinLimits = before
    return end
  }

  takePublish(messageId: number): boolean {
    const { message, share } = this.deps
    if (this.takesWithinLimits) this.budget.packets -= 1
    share.count(message.bytes.length)
    this.owner.publish(messageId)
    if (this.owner.closed) return false
    if (!this.takesWithinLimits) return true
    // The framing counts the others. With 3.1.1 all of them pass it.
    if (message.qos === 2) this.deps.rate.expectReleases(1)
    const isFree = this.window.left > 0 && this.budget.packets > 0 && share.left() > 0
    return isFree && !this.owner.isTimeSpent()
  }

  takePing(): boolean {
    if (this.takesWithinLimits) {
      this.budget.packets -= 1
      if (!this.deps.rate.take(1, 0)) {
        this.owner.drop('too_many_control_packets')
        return false
      }
    }
    this.owner.ping()
    return !this.owner.closed && !(this.takesWithinLimits && this.budget.packets <= 0)
  }

  resumeReading(): void {
    // A stream whose end has arrived does not announce bytes that were put back.
    if (!this.socket.destroyed) this.socket.emit('readable')
  }

  startReading(): void {
    this.isConnected = true
    if (this.owner.version5 !== null) this.window.widen()
    this.resumeReading()
  }

  stopReading(): void {
    this.stopped = true
  }

  discardAll(): void {
    this.stopped = true
    this.unread ??= createUnreadBytes(this.socket, this.waiting)
    this.unread.dropWaiting()
  }

  countInFlight(): void {
    this.window.enter()
  }

  countAcked(): void {
    this.window.leave()
  }

  resumeIfFull(): void {
    if (this.window.takeWaiting()) this.resumeReading()
  }

  sawBytes(): boolean {
    const came = this.bytesCame
    this.bytesCame = false
    return came
  }
}

// Follows what was read of one connection in one turn, within the budgets of the turn.

/** Of the portion that is being followed. */
const allowance: Allowance = { messages: 0, packets: 0, control: 0 }

/** Returns how many of `bytes` may pass, with at most `messages` messages; -1 after a violation. */
function followInTurn(
  bytes: Buffer,
  messages: number,
  framing: Framing,
  budget: TurnBudget,
  turns: Pick<Turns, 'refill' | 'controlLeft' | 'spendControl'>,
): number {
  turns.refill(budget)
  allowance.messages = messages
  allowance.packets = budget.packets
  const control = Math.min(budget.control, turns.controlLeft())
  allowance.control = control
  const end = framing.follow(bytes, allowance)
  budget.packets = allowance.packets
  budget.control -= control - allowance.control
  turns.spendControl(control - allowance.control)
  return end
}

// What a client still sends while its connection is leaving (farewell.ts). It is read, so
// that the end is no reset, and dropped. Bound: `bytesMax`; at the bound the socket is destroyed.

type UnreadBytes = {
  /** Bytes came; false at the bound. */
  drop(count: number): boolean
  /** What waits in the buffer of the socket. */
  dropWaiting(): null
}

/** More than a client has on its way when it reads the last packet. */
const bytesMax = 4 * 1024 ** 2
const chunkBytesMax = 64 * 1024

function createUnreadBytes(socket: DeviceSocket, waiting: Pick<SocketBuffer, 'take'>): UnreadBytes {
  let bytesLeft = bytesMax
  return { drop, dropWaiting }

  function drop(count: number): boolean {
    bytesLeft -= count
    if (bytesLeft < 0) socket.destroy()
    return bytesLeft >= 0
  }

  function dropWaiting(): null {
    let bytes = socket.destroyed ? null : waiting.take(chunkBytesMax)
    while (bytes !== null && drop(bytes.length)) bytes = waiting.take(chunkBytesMax)
    return null
  }
}
