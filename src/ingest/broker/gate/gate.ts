// gate.ts: the code between one socket and the broker. It decides when and how much is read, and writes acks.
//
// aedes takes what `conn.read(null)` returns. It has no limit on packet sizes, not even before CONNECT, and
// none on messages in flight. So the gate replaces that call:
//
//   socket's buffer --read--> framing --whole packets--> publish-fast-path.ts --the rest--> aedes' parser
//        ^                       |                              |
//        '------- unshift -------'   for later                  '--> messages of QoS 0 and 1, PINGREQ
//                                '---> partial-packet.ts, until the rest of the packet comes
//
// A device that publishes one message at a time costs more in the buffer and the events of the stream than in
// its message. So bytes that arrive while nothing waits before them go to the fast path at once (`push`).
//
//   stopped     until CONNECT is answered, CONNECT alone is passed on; nothing after stopReading
//   blocked     the client does not read what it is sent; continues when it does, and is dropped after
//               `ackTimeoutMs` (acks/ack-output.ts)
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

import type { Client } from 'aedes'
import type { CancelTimer, Clock } from '../../../std/clock.ts'
import type { Sender } from '../../../domain/message.ts'
import type { Intake } from '../../intake/intake.ts'
import type { ClientLink, ReceivedMessage } from '../../types.ts'
import type { AckHead, AckWriter } from './acks/ack-writer.ts'
import { createAcks } from './acks/acks.ts'
import { readAtOnce, stayOpenAtEnd } from '../aedes-internals.ts'
import type { Connection } from '../connection-limits/connection-limits.ts'
import { clientDrops, type ClientDropReason } from '../client-faults.ts'
import type { TlsUse } from '../listeners/handshake-failures.ts'
import type { Decisions } from '../publish-rules/publish-rules.ts'
import type { Refusal } from '../access/connect-rules.ts'
import { createFarewell } from './farewell.ts'
import { createMessageShare } from './message-share.ts'
import { createControlRate } from './control-rate.ts'
import { createPacketReader, type PacketReaderDeps, type PacketReaderOptions } from './packet-reader.ts'
import { createSilence, keepTcpAlive, type SilenceOptions } from './silence.ts'
import type { Turns } from './turns.ts'
import type { DeviceSocket } from './device-socket.ts'

export type GateOptions = PacketReaderOptions &
  SilenceOptions & {
    /** How long a client may leave its acks unread. */
    ackTimeoutMs: number
    controlPacketsPerSecondMax: number
  }

export type GateDeps = {
  socket: DeviceSocket
  client: Client
  connection: Connection
  clock: Clock
  writer: AckWriter
  /** Shared by all gates. */
  turns: Turns
  partial: PacketReaderDeps['partial']
  /** True while no gate may read messages; resumeReading is called at its end. */
  readingPaused: (gate: Gate) => boolean
  load: Intake['load']
  /** Has read its share while the intake is busy; resumeReading is called when it is not. */
  pause: (gate: Gate) => void
  /** The fast path reads each message into `message`, which all gates share, and calls `publish`. */
  message: ReceivedMessage
  publish: (gate: Gate, messageId: number) => void
  /** A PINGREQ; its answer and all acks before it are about to be written. */
  onPing: (gate: Gate) => void
  /** The client has closed its side. */
  onHalfClosed: (gate: Gate) => void
  onDrop: (gate: Gate, reason: ClientDropReason, detail: string) => void
}

export type Gate = {
  readonly connection: Connection
  readonly address: string | null
  /** Name in the client's certificate. */
  certificateName: string | null
  /** The number of its listener. */
  listener: number
  /** Known once the client's CONNECT was accepted. */
  sender: Sender | null
  link: ClientLink | null
  /** What it may publish to (publish-rules.ts). */
  decisions: Decisions | null
  /** Why its CONNECT will be refused, found before aedes authenticates it. */
  refusal: Refusal | null
  /** For TLS, until its CONNECT comes. */
  tls: TlsUse | null
  /** The connection is closed or about to close: nothing of it is taken any more. */
  readonly closed: boolean
  /** Dropped by the gateway; the reason was reported. */
  readonly dropped: boolean
  readonly dropReason: ClientDropReason | null
  /** The client has closed its side, and everything before was read. Nobody knows whether it reads on. */
  readonly halfClosed: boolean
  /** When its CONNECT was accepted, monotonic; 0 before. */
  acceptedAtMs: number
  /** From its CONNECT; 0 for none. */
  keepaliveMs: number
  /** Further PUBREL packets of an earlier connection that do not count as control packets. */
  expectReleases(count: number): void
  /** CONNECT was answered: packets behind it may be read. */
  startReading(): void
  /** Nothing more is read; acks are still written. */
  stopReading(): void
  /** A message that requires an ack was accepted. */
  countInFlight(): void
  /** Its ack with a reason code (0: taken); written with the others of this commit. */
  queueAck(head: AckHead, messageId: number, code: number): void
  /** A PUBREL came; PUBCOMP follows `released`, if it is one, in the order of the packets. */
  release(messageId: number, released: Promise<unknown> | null): void
  /** A PINGREQ came. */
  ping(): void
  /** SUBACK or UNSUBACK. */
  write(answer: Buffer): void
  writeAcks(): void
  /** Reads on where reading had paused. */
  resumeReading(): void
  /** Ends the connection where the client was silent for too long. */
  passTime(elapsedMs: number): void
  drop(reason: ClientDropReason, detail?: string): void
  /** Ends the connection once everything is written, or after `timeoutMs`. */
  end(timeoutMs: number): Promise<void>
}

/**
 * A commit takes milliseconds. Where acks are held for longer, they are held until a store has room, and most
 * clients that have closed their side are gone.
 */
const lastAcksMs = 5000
/** CONNACK 1 (MQTT 3.2.2.3). */
const connackLevel = Buffer.from([0x20, 2, 0, 1])

export function createGate(deps: GateDeps, options: GateOptions): Gate {
  const { socket, client, clock, writer, turns, partial, message } = deps
  let dropReason: ClientDropReason | null = null
  let halfClosed = false
  let cancelEnd: CancelTimer | null = null

  const gate: Gate = {
    connection: deps.connection,
    address: deps.connection.address,
    certificateName: null,
    listener: 0,
    sender: null,
    link: null,
    decisions: null,
    refusal: null,
    tls: null,
    acceptedAtMs: 0,
    keepaliveMs: 0,
    get closed() {
      return farewell.leaving || socket.destroyed
    },
    get dropped() {
      return dropReason !== null
    },
    get dropReason() {
      return dropReason
    },
    get halfClosed() {
      return halfClosed
    },
    expectReleases: (count) => rate.expectReleases(count),
    startReading,
    stopReading: () => reader.stopReading(),
    countInFlight() {
      reader.countInFlight()
      acks.expectAck()
    },
    queueAck,
    release,
    ping,
    write(answer) {
      acks.write()
      socket.write(answer)
    },
    writeAcks,
    resumeReading: () => reader.resumeReading(),
    passTime(elapsedMs) {
      if (!halfClosed) silence.pass(elapsedMs)
    },
    drop,
    end: (timeoutMs) => farewell.end(timeoutMs),
  }
  const rate = createControlRate(clock, options)
  const acks = createAcks(
    {
      socket,
      clock,
      writer,
      gate,
      resume: () => reader.resumeReading(),
      timedOut: () => drop('acks_not_read'),
    },
    options,
  )
  const reader = createPacketReader(
    {
      socket,
      connection: gate,
      partial,
      turns,
      rate,
      isBlocked: acks.isBlocked,
      readingPaused: () => deps.readingPaused(gate),
      share: createMessageShare(deps.load),
      pause: () => deps.pause(gate),
      message,
      publish: (messageId) => deps.publish(gate, messageId),
      ping,
      drop,
    },
    options,
  )
  const farewell = createFarewell({ socket, clock, stopReading: reader.stopReading })
  const silence = createSilence({ connection: gate, reader, drop }, options)
  // aedes reads when the number of `readable` events has caught up with the packets in flight. The gate has
  // its own bound on messages in flight, so aedes must read at every event.
  socket.prependListener('readable', () => readAtOnce(client))
  stayOpenAtEnd(client)
  socket.allowHalfOpen = true
  socket.once('end', onEnd)
  socket.once('close', () => {
    cancelEnd?.()
    reader.partial.discard()
  })
  return gate

  function startReading(): void {
    // Nothing else tells a peer that is gone from one that is silent, where the client promises no packets.
    if (gate.keepaliveMs === 0) keepTcpAlive(socket, options)
    reader.startReading()
  }

  function ping(): void {
    if (acks.addPingResponse()) deps.onPing(gate)
  }

  function queueAck(head: AckHead, messageId: number, code: number): void {
    reader.countAcked()
    acks.ack(head, messageId, code)
  }

  function release(messageId: number, released: Promise<unknown> | null): void {
    const answer = acks.expectRelease(messageId)
    if (released === null) answer.released()
    // The client sends PUBREL again on its next connection.
    else released.then(answer.released, () => drop('spool_write_failed'))
  }

  function writeAcks(): void {
    acks.write()
    reader.resumeIfFull()
    if (halfClosed && acks.isIdle) socket.destroySoon()
  }

  function onEnd(): void {
    halfClosed = true
    cancelEnd = clock.after(lastAcksMs, () => drop('half_closed'))
    if (!acks.isIdle) deps.onHalfClosed(gate)
    writeAcks()
  }

  function drop(reason: ClientDropReason, detail: string = clientDrops[reason]): void {
    if (dropReason !== null || farewell.ended) return
    dropReason = reason
    deps.onDrop(gate, reason, detail)
    reader.partial.discard()
    // [MQTT-3.1.2-2]; aedes' parser does not read such a CONNECT.
    farewell.leave(reason === 'unsupported_level' ? connackLevel : null)
  }
}
