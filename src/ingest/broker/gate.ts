// gate.ts: stands between one socket and the broker. Decides when and how much is read, and writes the acks.
//
// aedes takes what `conn.read(null)` gives it; it has no limit on packet sizes, not even before CONNECT, and
// none on messages in flight. So the gate replaces that one call:
//
//   socket's buffer --read--> framing --portion that ends with a packet--> publish-fast-path.ts --the rest--> aedes' parser
//        ^                       |                                             |
//        '------- unshift -------'   for later                                 '--> messages of QoS 0 and 1
//
// A device that publishes one message at a time costs more in the stream's buffer and events than in its message. So what
// the socket brings goes the straight way at once where nothing stands before it (tookAtOnce); the rest goes as drawn.
//
//   shut      until CONNECT was answered, CONNECT alone is passed on; nothing after the doors are closed
//   full      as many messages are in flight as may be; goes on with the next ack
//   choked    the client does not read its acks; goes on when it does, and is dropped after `ackTimeoutMs`
//   paused    the intake asks for it; goes on when the intake does
//
// While any of these holds, the socket's own buffer fills to its high-water mark and TCP slows the device
// down. Whatever ends one of them calls poke().

import type { Socket } from 'node:net'
import type { Client } from 'aedes'
import type { CancelTimer, Clock } from '../../std/clock.ts'
import type { Sender } from '../../domain/message.ts'
import type { AckHead, AckWriter } from './ack-writer.ts'
import type { Refusal } from './connect-rules.ts'
import { createFraming, type FramingLimits, type Violation } from './packet-framing.ts'
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
  certificateName: string | null
  clock: Clock
  writer: AckWriter
  /** True while no gate should be read; the gate then asks to be poked. */
  readingPaused: (gate: Gate) => boolean
  /** A message of QoS 0 or 1 that came the straight way. */
  publish: (gate: Gate, ...message: Parameters<TakePublish>) => void
  onDrop: (gate: Gate, reason: string) => void
}

export type Gate = {
  readonly address: string | null
  /** Common name of the client's certificate. */
  readonly certificateName: string | null
  /** Known once the client's CONNECT was accepted. */
  sender: Sender | null
  /** Why its CONNECT will be refused, found before the broker asks for it. */
  refusal: Refusal | null
  /** The connection is gone or about to go. */
  readonly closed: boolean
  /** Dropped by us; the reason was told. */
  readonly dropped: boolean
  /** CONNECT was answered: what follows may be read. */
  startReading(): void
  /** Nothing is read any more; acks go on. */
  stopReading(): void
  /** A message that wants an ack was taken in. */
  countInFlight(): void
  /** Its ack; written with the others of this commit. */
  queueAck(head: AckHead, messageId: number): void
  writeAcks(): void
  /** Reads on where reading had stopped. */
  resumeReading(): void
  drop(reason: string): void
  /** Ends the connection after what is written, or after `timeoutMs`. */
  end(timeoutMs: number): Promise<void>
}

const violations: Record<Violation, string> = {
  NOT_CONNECT: 'the first packet was not CONNECT',
  NOT_FROM_CLIENT: 'it sent a packet that only servers send',
  CONNECT_TOO_LARGE: 'its CONNECT is larger than max_connect_bytes',
  PACKET_TOO_LARGE: 'a packet is larger than max_packet_bytes',
  LENGTH_MALFORMED: 'a packet has a malformed remaining length',
}

const ackBytes = 4

/** Private to aedes 1.2; test/ingest/broker/aedes-facts.test.ts fails when it changes. */
type Internals = Client & {
  _parsingBatch: number
  _keepaliveInterval: number
  _keepaliveTimer: NodeJS.Timeout | null
}

export function createGate(deps: GateDeps, options: GateOptions): Gate {
  const { socket, client, clock, writer } = deps
  const internals = client as Internals
  const framing = createFraming(options)
  const readOn = socket.read.bind(socket)
  const pushOn = socket.push.bind(socket)
  let connected = false
  let shut = false
  let full = false
  let choked = false
  /** Its end was seen. `socket.closed` is true before that, while aedes still reports why. */
  let gone = false
  let told = false
  let inFlight = 0
  let acks = Buffer.allocUnsafe(64 * ackBytes)
  let ackEnd = 0
  let cancelChoke: CancelTimer | null = null

  socket.read = read
  socket.push = push
  // aedes reads when the number of `readable` events has caught up with the packets in flight; with our own
  // bound on messages in flight it shall read whenever there is something.
  socket.prependListener('readable', () => {
    internals._parsingBatch = 0
  })
  socket.once('close', () => {
    gone = true
    cancelChoke?.()
  })

  function read(size?: number | null): Buffer | null {
    // Only aedes asks with null; the stream's own machinery asks with numbers or nothing.
    if (size !== null) return readOn(size) as Buffer | null
    for (;;) {
      if (shut || choked) return null
      if (inFlight >= options.inFlightMax) {
        full = true
        return null
      }
      if (connected ? deps.readingPaused(gate) : framing.connectEnded) return null
      // @types/node does not know that null means "what there is".
      const chunk = readOn(null as unknown as number) as Buffer | null
      const portion = chunk === null ? null : pass(chunk)
      // Where everything went the straight way, there may be more in the socket.
      if (portion === null || portion.length > 0) return portion
    }
  }

  /** Called with what came from the network, and with null at its end. */
  function push(chunk: unknown, encoding?: BufferEncoding): boolean {
    if (!(chunk instanceof Buffer) || !mayTakeAtOnce()) return pushOn(chunk, encoding)
    const start = takeStraight(chunk, takeWithin)
    // True: the socket goes on reading. A dropped one has no use for the rest.
    return start === chunk.length || socket.destroyed || pushOn(chunk.subarray(start))
  }

  function mayTakeAtOnce(): boolean {
    return (
      connected &&
      framing.betweenPackets &&
      socket.readableLength === 0 &&
      !shut &&
      !choked &&
      inFlight < options.inFlightMax &&
      !deps.readingPaused(gate)
    )
  }

  function pass(chunk: Buffer): Buffer | null {
    // Otherwise aedes' parser holds the first part of a packet, and must get the rest of it.
    const mayGoStraight = connected && framing.betweenPackets
    const end = framing.follow(chunk, options.inFlightMax - inFlight)
    if (framing.violation !== null) {
      drop(violations[framing.violation])
      return null
    }
    if (end === chunk.length) return mayGoStraight ? goStraight(chunk) : chunk
    // Back into the stream and not into a pocket of our own: its `end` must wait for these bytes.
    socket.unshift(chunk.subarray(end))
    // A stream whose end has arrived does not tell of bytes that were put back. And not before this portion
    // was parsed: aedes' parser must not be entered twice.
    queueMicrotask(poke)
    const portion = chunk.subarray(0, end)
    return mayGoStraight ? goStraight(portion) : portion
  }

  /** What is left for aedes; null where nothing may be read any more. */
  function goStraight(portion: Buffer): Buffer | null {
    // The framing has counted them.
    const start = takeStraight(portion, takeOne)
    if (socket.destroyed) return null
    return start === 0 ? portion : portion.subarray(start)
  }

  function takeStraight(portion: Buffer, take: TakePublish): number {
    const start = takePublishes(portion, options.packetBytesMax, take)
    // aedes counts any packet of the client as a sign of life [MQTT-3.1.2-24]; these it does not see.
    if (start > 0 && internals._keepaliveInterval > 0) internals._keepaliveTimer?.refresh()
    return start
  }

  const takeOne: TakePublish = (topic, bytes, qos, retain, dup, messageId) => {
    deps.publish(gate, topic, bytes, qos, retain, dup, messageId)
    return !socket.destroyed
  }

  const takeWithin: TakePublish = (topic, bytes, qos, retain, dup, messageId) =>
    takeOne(topic, bytes, qos, retain, dup, messageId) && inFlight < options.inFlightMax

  function poke(): void {
    if (!socket.destroyed) socket.emit('readable')
  }

  function give(head: AckHead, messageId: number): void {
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

  function flush(): void {
    const end = ackEnd
    ackEnd = 0
    if (end > 0 && !socket.destroyed) {
      // A copy: the socket keeps what it cannot write at once.
      const written = socket.write(Buffer.from(acks.subarray(0, end)))
      if (!written && !choked) choke()
    }
    if (!full) return
    full = false
    poke()
  }

  function choke(): void {
    choked = true
    cancelChoke = clock.after(options.ackTimeoutMs, () => drop('it does not read its acks'))
    socket.once('drain', () => {
      choked = false
      cancelChoke?.()
      poke()
    })
  }

  function drop(reason: string): void {
    if (told || gone) return
    told = true
    deps.onDrop(gate, reason)
    socket.destroy()
  }

  function end(timeoutMs: number): Promise<void> {
    return new Promise((resolve) => {
      if (gone) {
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
    address: socket.remoteAddress ?? null,
    certificateName: deps.certificateName,
    sender: null,
    refusal: null,
    get closed() {
      return socket.destroyed
    },
    get dropped() {
      return told
    },
    startReading() {
      connected = true
      poke()
    },
    stopReading() {
      shut = true
    },
    countInFlight() {
      inFlight += 1
    },
    queueAck: give,
    writeAcks: flush,
    resumeReading: poke,
    drop,
    end,
  }
  return gate
}
