// gate.ts: the code between one socket and the broker. It decides when and how much is read, and writes acks.
//
// aedes takes what `conn.read(null)` returns. It has no limit on packet sizes, not even before CONNECT, and
// none on messages in flight. So the gate replaces that call:
//
//   socket's buffer --read--> framing --whole packets--> publish-fast-path.ts --the rest--> aedes' parser
//        ^                       |                              |
//        '------- unshift -------'   for later                  '--> messages of QoS 0 and 1
//
// A device that publishes one message at a time costs more in the buffer and the events of the stream than in
// its message. So bytes that arrive while nothing waits before them go to the fast path at once (`push`).
//
//   stopped   until CONNECT is answered, CONNECT alone is passed on; nothing after stopReading
//   full      inFlightMax messages are in flight; continues with the next ack
//   blocked   the client does not read its acks; continues when it does, and is dropped after `ackTimeoutMs`
//   paused    the intake asks for it; continues when the intake does
//
// While any of these holds, the socket's buffer fills to its high-water mark and TCP slows the device down.
// Whatever ends one of them calls resumeReading().

import type { Socket } from 'node:net'
import type { Client } from 'aedes'
import type { CancelTimer, Clock } from '../../../std/clock.ts'
import type { Sender } from '../../../domain/message.ts'
import type { ClientLink, ReceivedMessage } from '../../types.ts'
import type { AckHead, AckWriter } from './ack-writer.ts'
import { readAtOnce, refreshKeepalive } from '../aedes-internals.ts'
import type { Connection } from '../connection-limits/connection-limits.ts'
import { clientDrops, type ClientDropReason } from '../client-faults.ts'
import type { Refusal } from '../access/connect-rules.ts'
import { createFraming, type FramingLimits } from './packet-framing.ts'
import { takePublishes, type TakePublish } from './publish-fast-path.ts'

export type GateOptions = FramingLimits & {
  /** Messages of one client that wait for their commit. */
  inFlightMax: number
  /** How long a client may leave its acks unread. */
  ackTimeoutMs: number
}

export type GateDeps = {
  socket: Socket
  client: Client
  connection: Connection
  clock: Clock
  writer: AckWriter
  /** True while no gate may be read; resumeReading is called at its end. */
  readingPaused: (gate: Gate) => boolean
  /** The fast path reads each message into `message`, which all gates share, and calls `publish`. */
  message: ReceivedMessage
  publish: (gate: Gate, messageId: number) => void
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
  /** Why its CONNECT will be refused, found before aedes authenticates it. */
  refusal: Refusal | null
  /** The connection is closed or about to close. */
  readonly closed: boolean
  /** Dropped by the gateway; the reason was reported. */
  readonly dropped: boolean
  /** CONNECT was answered: packets behind it may be read. */
  startReading(): void
  /** Nothing more is read; acks are still written. */
  stopReading(): void
  /** A message that requires an ack was accepted. */
  countInFlight(): void
  /** Its ack; written with the others of this commit. */
  queueAck(head: AckHead, messageId: number): void
  writeAcks(): void
  /** Reads on where reading had paused. */
  resumeReading(): void
  drop(reason: ClientDropReason, detail?: string): void
  /** Ends the connection once everything is written, or after `timeoutMs`. */
  end(timeoutMs: number): Promise<void>
}

const ackBytes = 4

export function createGate(deps: GateDeps, options: GateOptions): Gate {
  const { socket, client, clock, writer } = deps
  const framing = createFraming(options)
  // read(null) returns everything in the buffer. @types/node lacks the null and the type of the result.
  const readOn: { read(size?: number | null): Buffer | null }['read'] = socket.read.bind(socket)
  const pushOn = socket.push.bind(socket)
  let isConnected = false
  let stopped = false
  let full = false
  let blocked = false
  /** The end of the socket was seen. `socket.closed` is true before that, while aedes still reports why. */
  let ended = false
  let dropped = false
  let inFlight = 0
  let acks = Buffer.allocUnsafe(64 * ackBytes)
  let ackEnd = 0
  let cancelAckTimeout: CancelTimer | null = null

  socket.read = read
  socket.push = push
  // aedes reads when the number of `readable` events has caught up with the packets in flight. The gate has
  // its own bound on messages in flight, so aedes must read at every event.
  socket.prependListener('readable', () => readAtOnce(client))
  socket.once('close', () => {
    ended = true
    cancelAckTimeout?.()
  })

  function read(size?: number | null): Buffer | null {
    // Only aedes calls it with null; the stream itself with a number or nothing.
    if (size !== null) return readOn(size)
    for (;;) {
      if (stopped || blocked) return null
      if (inFlight >= options.inFlightMax) {
        full = true
        return null
      }
      if (isConnected ? deps.readingPaused(gate) : framing.connectEnded) return null
      const chunk = readOn(null)
      const portion = chunk === null ? null : portionOf(chunk)
      // Empty: the fast path took all of it, and the socket may have more.
      if (portion === null || portion.length > 0) return portion
    }
  }

  /** Called with each chunk from the network, and with null at its end. */
  function push(chunk: unknown, encoding?: BufferEncoding): boolean {
    if (!(chunk instanceof Buffer) || !mayBypassStream()) return pushOn(chunk, encoding)
    const start = takeFast(chunk, takeWithinLimit)
    // True: the socket reads on. A dropped one needs no rest.
    return start === chunk.length || socket.destroyed || pushOn(chunk.subarray(start))
  }

  function mayBypassStream(): boolean {
    return (
      isConnected &&
      framing.betweenPackets &&
      socket.readableLength === 0 &&
      !stopped &&
      !blocked &&
      inFlight < options.inFlightMax &&
      !deps.readingPaused(gate)
    )
  }

  /** What of `chunk` goes to aedes; null where nothing may be read for now. */
  function portionOf(chunk: Buffer): Buffer | null {
    // Within a packet, aedes' parser holds its first part and must get the rest.
    const mayBypass = isConnected && framing.betweenPackets
    const end = framing.follow(chunk, options.inFlightMax - inFlight)
    if (framing.violation !== null) {
      drop(framing.violation)
      return null
    }
    if (end === chunk.length) return mayBypass ? bypassAedes(chunk) : chunk
    // Back into the stream and not into a buffer of our own: its `end` must wait for these bytes.
    socket.unshift(chunk.subarray(end))
    // A stream whose end has arrived does not announce bytes that were put back. The microtask runs after
    // this portion was parsed: aedes' parser must not be entered twice.
    queueMicrotask(resumeReading)
    const portion = chunk.subarray(0, end)
    return mayBypass ? bypassAedes(portion) : portion
  }

  /** What the fast path leaves for aedes; null where nothing more may be read. */
  function bypassAedes(portion: Buffer): Buffer | null {
    // The framing has bounded the number of messages.
    const start = takeFast(portion, takeOne)
    if (socket.destroyed) return null
    return start === 0 ? portion : portion.subarray(start)
  }

  function takeFast(portion: Buffer, take: TakePublish): number {
    const start = takePublishes(portion, options.packetBytesMax, deps.message, take)
    // aedes refreshes it for each packet that it sees.
    if (start > 0) refreshKeepalive(client)
    return start
  }

  function takeOne(messageId: number): boolean {
    deps.publish(gate, messageId)
    return !socket.destroyed
  }

  function takeWithinLimit(messageId: number): boolean {
    return takeOne(messageId) && inFlight < options.inFlightMax
  }

  function resumeReading(): void {
    if (!socket.destroyed) socket.emit('readable')
  }

  function queueAck(head: AckHead, messageId: number): void {
    inFlight -= 1
    if (socket.destroyed) return
    if (ackEnd === acks.length) {
      const larger = Buffer.allocUnsafe(acks.length * 2)
      acks.copy(larger)
      acks = larger
    }
    if (ackEnd === 0) writer.add(gate)
    acks[ackEnd] = head
    acks[ackEnd + 1] = 2
    acks[ackEnd + 2] = messageId >> 8
    acks[ackEnd + 3] = messageId & 0xff
    ackEnd += ackBytes
  }

  function writeAcks(): void {
    const end = ackEnd
    ackEnd = 0
    if (end > 0 && !socket.destroyed) {
      // A copy: the socket keeps what it cannot write at once.
      const written = socket.write(Buffer.from(acks.subarray(0, end)))
      if (!written && !blocked) waitForDrain()
    }
    if (!full) return
    full = false
    resumeReading()
  }

  function waitForDrain(): void {
    blocked = true
    cancelAckTimeout = clock.after(options.ackTimeoutMs, () => drop('acks_not_read'))
    socket.once('drain', () => {
      blocked = false
      cancelAckTimeout?.()
      resumeReading()
    })
  }

  function drop(reason: ClientDropReason, detail: string = clientDrops[reason]): void {
    if (dropped || ended) return
    dropped = true
    deps.onDrop(gate, reason, detail)
    socket.destroy()
  }

  function end(timeoutMs: number): Promise<void> {
    return new Promise((resolve) => {
      if (ended) {
        resolve()
        return
      }
      const cancel = clock.after(timeoutMs, () => socket.destroy())
      socket.once('close', () => {
        cancel()
        resolve()
      })
      socket.destroySoon()
    })
  }

  const gate: Gate = {
    connection: deps.connection,
    address: deps.connection.address,
    certificateName: null,
    listener: 0,
    sender: null,
    link: null,
    refusal: null,
    get closed() {
      return socket.destroyed
    },
    get dropped() {
      return dropped
    },
    startReading() {
      isConnected = true
      resumeReading()
    },
    stopReading() {
      stopped = true
    },
    countInFlight() {
      inFlight += 1
    },
    queueAck,
    writeAcks,
    resumeReading,
    drop,
    end,
  }
  return gate
}
