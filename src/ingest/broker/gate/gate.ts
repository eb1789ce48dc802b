// gate.ts: the code between one socket and the broker. It decides when and how much is read, and writes acks.
//
//   socket's buffer --read--> framing --whole packets--> CONNECT -> connect-handler.ts, and a port for aedes
//        ^                       |                   '--> PUBLISH, PINGREQ -> packets/publishes.ts
//        '------- unshift -------'   for later       '--> the others -> control-packets.ts
//                                '---> partial-packet.ts, until the rest of the packet comes
//
// A device that publishes one message at a time costs more in the buffer and the events of the stream than in
// its message. So messages that arrive while nothing waits before them are read at once (`push`).
//
//   stopped     until CONNECT is answered, CONNECT alone is passed on; nothing after stopReading
//   blocked     the client does not read what it is sent; continues when it does, and is dropped after
//               `ackTimeoutMs` (ack-output.ts)
//   turn        the budget of this turn of the event loop is used up; continues in the next (turns.ts)
//   publish     a PUBLISH is next, and inFlightMax messages are in flight, or the intake asks for a pause, or
//               it is busy and this connection has read its share (message-share.ts); continues with the
//               next ack, or when the intake does. Packets before it are still read, so PINGREQ is answered
//               while acks are held
//
// While any of these holds, the socket's buffer fills to its high-water mark and TCP slows the device down.
// Whatever ends one of them calls resumeReading(). The time does not count for the keepalive (silence.ts).
//
// A client may close its side and wait for its acks. What it sent before is read and acknowledged; then, or
// after `lastAcksMs`, the connection is closed.

import type { X509Certificate } from 'node:crypto'
import type { CancelTimer } from '../../../std/clock.ts'
import type { Sender } from '../../../domain/message.ts'
import type { ClientLink } from '../../types.ts'
import type { AckHead } from './acks/ack-writer.ts'
import { createAcks, type Acks } from './acks/acks.ts'
import type { AedesPort } from '../aedes-port.ts'
import type { Connection } from '../connection-limits/connection-limits.ts'
import { clientDrops, type ClientDropReason } from '../client-faults.ts'
import type { ProtocolUse, Transport } from '../clients/protocol-uses.ts'
import type { ClientTraffic } from '../clients/types.ts'
import type { TlsUse } from '../listeners/handshake-failures.ts'
import type { Decisions } from '../publish-rules/publish-rules.ts'
import type { AdmittedBy } from '../access/withdrawal.ts'
import { plainConnack } from '../connack-packet.ts'
import type { ConnectPacket } from '../packets/connect-packet.ts'
import type { Version } from '../packets/packets.ts'
import { disconnectOf, lastPacketOf } from '../version5/last-packet.ts'
import type { Version5 } from '../version5/version5.ts'
import { createMessageShare } from './message-share.ts'
import { createControlRate, type ControlRate } from './control-rate.ts'
import { createPacketReader } from './packet-reader/packet-reader.ts'
import type { PacketReader, ReaderOwner } from './packet-reader/types.ts'
import { createSilence, keepTcpAlive, type Silence } from './silence.ts'
import type { DeviceSocket, FrameWatcher } from './device-socket.ts'
import { createFarewell, type Farewell } from './farewell.ts'
import type { Gate, GateDeps, GateOptions, GateOwn } from './types.ts'

export type { Gate, GateDeps, GateOptions } from './types.ts'

/**
 * A commit takes milliseconds. Where acks are held for longer, they are held until a store has room, and most
 * clients that have closed their side are gone.
 */
const lastAcksMs = 5000
/** CONNACK 1 (MQTT 3.2.2.3). */
const unacceptableLevel = 1

/** `deps` and `options` are kept, and are the same objects for all gates. */
export function createGate(own: GateOwn, deps: GateDeps, options: GateOptions): Gate {
  return new SocketGate(own, deps, options)
}

/**
 * A class, like all that each connection has: an object literal with functions or getters takes ten times its
 * memory, and a gateway has thousands of connections.
 */
class SocketGate implements Gate, ReaderOwner, FrameWatcher {
  readonly connection: Connection
  port: AedesPort<Gate> | null = null
  asked: Gate['asked'] = null
  connack: Gate['connack'] = null
  readonly address: string | null
  certificateName: string | null = null
  listener = 0
  transport: Transport = 'TCP'
  use: ProtocolUse | null = null
  traffic: ClientTraffic | null = null
  sender: Sender | null = null
  admittedBy: AdmittedBy | null = null
  willBytes = 0
  peerCertificate: (() => X509Certificate | undefined) | null = null
  link: ClientLink | null = null
  decisions: Decisions | null = null
  version5: Version5 | null = null
  tls: TlsUse | null = null
  acceptedAtMs = 0
  keepaliveMs = 0
  disconnect: Gate['disconnect'] = null
  halfClosed = false
  private hasLeft = false
  dropReason: ClientDropReason | null = null
  private cancelEnd: CancelTimer | null = null
  private readonly cancelConnect: CancelTimer
  private readonly deps: GateDeps
  private readonly options: GateOptions
  private readonly socket: DeviceSocket
  private readonly rate: ControlRate
  private readonly acks: Acks
  private readonly reader: PacketReader
  private readonly silence: Silence
  private readonly farewell: Farewell

  constructor({ socket, connection }: GateOwn, deps: GateDeps, options: GateOptions) {
    const { clock, writer, turns, partial, message, load } = deps
    this.deps = deps
    this.options = options
    this.socket = socket
    this.connection = connection
    this.address = connection.address
    this.rate = createControlRate(clock, options)
    this.acks = createAcks({ socket, clock, writer, gate: this }, options)
    const { rate } = this
    this.reader = createPacketReader(
      { socket, owner: this, partial, turns, rate, share: createMessageShare(load), message },
      options,
    )
    this.farewell = createFarewell({ socket, clock, reader: this.reader })
    this.silence = createSilence({ connection: this, reader: this.reader }, options)
    this.cancelConnect = clock.after(options.connectTimeoutMs, () => this.drop('connect_timeout'))
    socket.allowHalfOpen = true
    socket.webSocket?.watch(this)
    // Both come once. `once` would take four times the memory.
    socket.on('end', () => this.onEnd())
    socket.on('close', () => this.onClose())
    // `close` follows.
    socket.on('error', nothing)
  }

  get version(): Version {
    return this.reader.version
  }

  get closed(): boolean {
    return this.hasLeft || !this.answers
  }

  get answers(): boolean {
    return !this.farewell.leaving && !this.socket.destroyed
  }

  get dropped(): boolean {
    return this.dropReason !== null
  }

  expectReleases(count: number): void {
    this.rate.expectReleases(count)
  }

  startReading(): void {
    const { connack } = this
    this.connack = null
    if (connack === null || this.closed) return
    this.write(connack())
    // Nothing else tells a peer that is gone from one that is silent, where the client promises no packets.
    if (this.keepaliveMs === 0) keepTcpAlive(this.socket, this.options)
    this.reader.startReading()
  }

  stopReading(): void {
    this.reader.stopReading()
  }

  countInFlight(): void {
    this.reader.countInFlight()
    this.acks.expectAck()
  }

  queueAck(head: AckHead, messageId: number, code: number): void {
    this.reader.countAcked()
    this.acks.ack(head, messageId, code)
  }

  release(messageId: number, released: Promise<unknown> | null): void {
    const answer = this.acks.expectRelease(messageId)
    if (released === null) answer.released()
    // The client sends PUBREL again on its next connection.
    else released.then(answer.released, () => this.drop('spool_write_failed'))
  }

  ping(): void {
    if (this.acks.addPingResponse()) this.deps.onPing(this)
  }

  write(answer: Buffer): void {
    if (this.farewell.leaving) return
    this.acks.write()
    this.socket.write(answer)
  }

  writeAcks(): void {
    // [MQTT-3.14.4-1]: nothing follows DISCONNECT.
    if (this.farewell.leaving) return
    this.acks.write()
    this.reader.resumeIfFull()
    if (this.halfClosed && this.acks.isIdle) this.socket.destroySoon()
  }

  resumeReading(): void {
    this.reader.resumeReading()
  }

  passTime(elapsedMs: number): void {
    if (!this.halfClosed) this.silence.pass(elapsedMs)
  }

  // ---- for the reader and the output

  isBlocked(): boolean {
    return this.acks.isBlocked()
  }

  readingPaused(): boolean {
    return this.deps.readingPaused(this)
  }

  isTimeSpent(): boolean {
    return this.connection.budget?.isTimeSpent() === true
  }

  messagesAtOnce(): number {
    return this.connection.budget?.messagesAtOnce() ?? Number.POSITIVE_INFINITY
  }

  pauseReading(): void {
    this.deps.pause(this)
  }

  connectCame(packet: ConnectPacket): void {
    this.cancelConnect()
    this.deps.connectCame(this, packet)
  }

  publish(messageId: number): void {
    this.deps.publish(this, messageId)
  }

  takePacket(bytes: Buffer, start: number): number {
    return this.deps.takePacket(this, bytes, start)
  }

  acksNotRead(): void {
    this.drop('acks_not_read')
  }

  countControlFrame(): void {
    if (!this.rate.take(1, 0)) this.drop('too_many_control_packets')
  }

  // ---- its end

  disconnected(): void {
    if (this.closed) return
    this.hasLeft = true
    this.reader.discardAll()
    this.onEnd()
  }

  private onEnd(): void {
    if (this.farewell.leaving) {
      this.socket.destroySoon()
      return
    }
    if (this.halfClosed) return
    this.halfClosed = true
    this.cancelEnd = this.deps.clock.after(lastAcksMs, () => this.drop('half_closed'))
    if (!this.acks.isIdle) this.deps.onHalfClosed(this)
    this.writeAcks()
  }

  private onClose(): void {
    // Takes the will, and forgets the client.
    this.port?.close()
    this.farewell.closed()
    this.cancelConnect()
    this.cancelEnd?.()
    this.acks.close()
    this.reader.discardPartial()
    this.deps.onClose(this)
  }

  drop(reason: ClientDropReason, detail: string = clientDrops[reason], code?: number): void {
    if (this.dropReason !== null || this.farewell.leaving || this.farewell.ended) return
    this.dropReason = reason
    this.deps.onDrop(this, reason, detail)
    this.reader.discardPartial()
    if (this.socket.webSocket) this.socket.webSocket.closeReason = reason
    // [MQTT-3.1.2-2]
    const isUnknown = reason === 'unsupported_level'
    const last = isUnknown ? plainConnack(unacceptableLevel) : lastPacketOf(this.version5, { reason, code })
    // The socket stays open for a moment, in which the client may come back.
    if (last !== null) this.deps.onHalfClosed(this)
    this.leave(last)
  }

  refuse(answer: Buffer | null): void {
    this.leave(answer)
  }

  portEnded(): void {
    this.leave(disconnectOf(this.version5, 'taken_over'))
  }

  private leave(last: Buffer | null): void {
    if (this.farewell.leaving) return
    if (last !== null) this.acks.write()
    this.farewell.leave(last)
  }

  end(timeoutMs: number): Promise<void> {
    const last = disconnectOf(this.version5, 'gateway_stopping')
    if (last !== null) this.leave(last)
    return this.farewell.end(timeoutMs)
  }
}

function nothing(): void {}
