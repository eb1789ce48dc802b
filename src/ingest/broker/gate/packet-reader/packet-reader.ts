// packet-reader.ts: reads the packets of one socket, as far as gate.ts says. Entry file of this folder.
//
//   packet-framing.ts       finds packets by their fixed headers
//   socket-buffer.ts        the buffer of the socket's stream, for bytes that cannot be read at once
//   shared-read-buffer.ts   has Node read all sockets into one buffer
//
// Packets keep their order, buffers their bounds (gate.ts). What breaks the rules ends the connection.

import type { PacketFault } from '../../client-faults.ts'
import type { DeviceSocket } from '../device-socket.ts'
import { createPartialPacket, type PartialPacket } from '../partial-packet/partial-packet.ts'
import type { TurnBudget, Turns } from '../turns.ts'
import type { Version } from '../../packets/packets.ts'
import { takePublishes, type PacketTaker } from '../../packets/publishes.ts'
import type { Version5 } from '../../version5/version5.ts'
import { createFraming, type Framing, type Allowance } from './packet-framing.ts'
import { MessageWindow } from './message-window.ts'
import { createSocketBuffer, type SocketBuffer, type SocketBufferCalls } from './socket-buffer.ts'
import type { PacketReader, PacketReaderDeps, PacketReaderOptions, ReaderOwner } from './types.ts'

/** What is read from the buffer of the socket in one piece. */
const portionBytesMax = 16 * 1024
/** Where no more than some messages may be read. */
const fewMessages = 64
const fewBytes = 4096

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
  /** Takes what the framing has not counted. */
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

  get version(): Version {
    return this.framing.version
  }

  get version5(): Version5 | null {
    return this.owner.version5
  }

  get packetBytesMax(): number {
    return this.options.packetBytesMax
  }

  readWaiting(): void {
    while (this.isReading()) {
      this.publishWaits = false
      const chunk = this.waiting.take(this.messagesLeft() < fewMessages ? fewBytes : portionBytesMax)
      if (chunk === null || !this.takePortion(chunk)) return
    }
    this.unread?.dropWaiting()
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
      if (this.takePublishes(whole, true) === 0) {
        if (this.owner.closed) return true
        const more = this.waiting.add(whole)
        return bytes.length === 0 ? more : this.waiting.add(bytes)
      }
      if (bytes.length > 0 && !this.mayBypassStream()) return this.owner.closed || this.waiting.add(bytes)
    }
    const start = this.takePublishes(bytes, true)
    if (start === bytes.length || this.owner.closed) return true
    const rest = bytes.subarray(start)
    const size = this.framing.sizeAt(rest, 0)
    // After a violation, takePortion ends the connection.
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

  /** False where nothing more may be read for now. */
  private takePortion(chunk: Buffer): boolean {
    let bytes = chunk
    const { partial } = this
    if (partial !== null) {
      const taken = partial.append(chunk)
      if (this.owner.closed) return false
      if (!partial.isWhole) return true
      bytes = partial.take()
      this.waiting.putBack(chunk, taken)
    }
    const messages = this.isConnected && this.mayPublish() ? this.messagesLeft() : 0
    const end = followInTurn(bytes, messages, this.framing, this.budget, this.deps.turns)
    const { violation } = this.framing
    if (violation !== null) {
      this.fail(violation)
      return false
    }
    this.deps.rate.expectReleases(this.framing.unreleased)
    if (!this.deps.rate.take(this.framing.control, this.framing.releases)) {
      this.owner.drop('too_many_control_packets')
      return false
    }
    if (end < bytes.length) this.keepRest(bytes, end)
    if (this.owner.closed) return false
    if (end === 0) return this.framing.stop === 'partial'
    const connect = this.framing.takeConnect()
    if (connect === null) this.takeAll(bytes.subarray(0, end))
    else this.owner.connectCame(connect)
    return !this.owner.closed
  }

  private keepRest(bytes: Buffer, end: number): void {
    if (this.framing.stop === 'partial') return this.begin(bytes.subarray(end))
    this.waiting.putBack(bytes, end)
    this.publishWaits = this.framing.stop === 'publish'
    if (this.framing.stop === 'turn') this.waitForTurn()
  }

  /** The framing has bounded the number of messages, and counted the control packets. */
  private takeAll(portion: Buffer): void {
    let at = this.takePublishes(portion, false)
    while (at < portion.length && !this.owner.closed) {
      at = this.owner.takePacket(portion, at)
      if (!this.owner.closed) at += this.takePublishes(portion.subarray(at), false)
    }
  }

  private takePublishes(portion: Buffer, isWithinLimits: boolean): number {
    const before = this.takesWithinLimits
    this.takesWithinLimits = isWithinLimits
    const end = takePublishes(portion, this.deps.message, this)
    this.takesWithinLimits = before
    return end
  }

  fail({ reason, detail, code }: PacketFault): void {
    this.owner.drop(reason, detail, code)
  }

  takePublish(messageId: number): boolean {
    const { message, share } = this.deps
    if (this.takesWithinLimits) this.budget.packets -= 1
    share.count(message.bytes.length)
    this.owner.publish(messageId)
    if (this.owner.closed) return false
    if (!this.takesWithinLimits) return true
    // The framing counts the others.
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
    if (!this.socket.destroyed) this.readWaiting()
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
