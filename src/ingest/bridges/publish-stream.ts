// publish-stream.ts: stands between the socket to a broker and mqtt.js. It takes the PUBLISH packets out, and
// writes their PUBACKs, for QoS 2 PUBRECs; everything else (CONNACK, SUBACK, PUBREL, PINGRESP, DISCONNECT)
// goes to mqtt.js as it is. It answers PUBREL with PUBCOMP.
//
//   socket -> frames -> PUBLISH -> publish()              mqtt.js -> CONNECT, SUBSCRIBE, PINGREQ -> socket
//                    -> others  -> mqtt.js        acknowledge() ... flush() -> PUBACKs, PUBRECs -> socket
//
// mqtt.js handles one message at a time and writes each PUBACK by itself. Here all messages of a read are
// handed over at once, and the acknowledgements of a commit are one write (docs/decisions/0048).
//
// While there is no room, nothing is read: the broker's window, then TCP hold the rest. mqtt.js would then
// miss PINGRESP, so its PINGREQ is answered here as long as reading is paused; the broker gets it, too.
//
// A packet is collected in full before it is read, at most `packetBytesMax`. Of a larger PUBLISH the head is
// kept and the rest is skipped: it is handed over as refused, without its bytes where they are more than the
// head, so that it becomes a dead letter and is acknowledged. If the connection were closed instead, the
// broker would send it again without end, and the messages behind it would never come. Announcing the bound
// to the broker (MQTT 5, Maximum Packet Size) is no way: it would drop the message without a word.
//
// The first packet must be CONNACK: else it is no broker. A broker sends few packets that are no messages:
// one PINGRESP for a PINGREQ, one PUBREL for a PUBREC, and after CONNACK a PUBREL for each message that is
// open. mqtt.js takes one at a time, so more than `othersMax` since the last PINGREQ would keep the process
// busy with nothing else: the connection is closed.

import { Duplex } from 'node:stream'
import { oversizedKeptMax, refuseOversized } from '../message-sources/source-message.ts'
import { frameAt, publishType, readPublish, type PublishPacket } from './publish-frames.ts'

export type PublishStream = {
  /** For mqtt.js. */
  readonly duplex: Duplex
  /** The PUBACK or PUBREC of this message is due; written by flush(). `position`: of positionOf(). */
  acknowledge(position: number): void
  flush(): void
  /** There may be room again. */
  resume(): void
  /** From here on PUBLISH packets are neither handed over nor acknowledged. */
  discard(): void
}

export type PublishStreamDeps = {
  socket: Duplex
  /** How many messages may be handed over now. */
  room: () => number
  /**
   * CONNACK came; said before any message, which mqtt.js is not: messages of a kept session may be in the
   * same segment.
   */
  greeted: (sessionPresent: boolean) => void
  /** Takes a message; the object is used again. */
  publish: (packet: PublishPacket) => void
  /** The broker broke the protocol or the limit. The stream is destroyed. */
  fault: (reason: StreamFault, start: string) => void
}

/** `NOT_MQTT`: with the first bytes of what answers. */
export type StreamFault = 'malformed_packet' | 'packet_too_large' | 'NOT_MQTT' | 'TOO_MANY_PACKETS'

/** Of an oversized PUBLISH: a smaller one is kept whole; topic, identifier and properties must be within. */
const headBytesMax = oversizedKeptMax
/** First bytes of CONNACK and AUTH. */
const connack = 0x20
const auth = 0xf0

/** Packets that are no messages, between two PINGREQs: more than there are packet identifiers. */
const othersMax = 70_000

const puback = 0x40
const pubrec = 0x50
const pubrel = 6
/** Bit of a position: the message has QoS 2. */
const qos2Bit = 0x1_0000
const pingreq = 0xc0
const pingresp = Buffer.from([0xd0, 0])

/** What `acknowledge` needs of a message; null for QoS 0. */
export function positionOf({ qos, messageId }: Pick<PublishPacket, 'qos' | 'messageId'>): number | null {
  return qos === 0 ? null : qos === 1 ? messageId : messageId + qos2Bit
}

export function createPublishStream(
  { socket, room, greeted, publish, fault }: PublishStreamDeps,
  { isVersion5, packetBytesMax }: { isVersion5: boolean; packetBytesMax: number },
): PublishStream {
  /** What was read and not yet used, in order. */
  let chunks: Buffer[] = []
  let chunkBytes = 0
  /** So many bytes are needed for the next packet. */
  let need = 2
  let blocked = false
  let discarding = false
  let isGreeted = false
  /** The head of an oversized PUBLISH, its size, and how much of it is to come. */
  let oversized: { head: Buffer; body: number; size: number } | null = null
  let skipBytes = 0
  /** Bytes came since the last PINGREQ. */
  let hasProgress = false
  let acks: number[] = []
  /** Packets that are no messages since the last PINGREQ; PUBRECs that PUBREL may answer. */
  let others = 0
  let toRelease = 0
  const packet: PublishPacket = {
    topic: '',
    bytes: Buffer.alloc(0),
    qos: 0,
    retain: false,
    dup: false,
    messageId: 0,
    userProperties: null,
    properties: null,
    refusal: null,
  }

  const duplex = new Duplex({
    read() {},
    write(chunk: Buffer, _encoding, done) {
      if (chunk.length === 2 && chunk[0] === pingreq) {
        // Also in the middle of a long packet, which the broker must end before it can answer.
        if (blocked || (hasProgress && (chunkBytes > 0 || skipBytes > 0))) duplex.push(pingresp)
        hasProgress = false
        others = 0
      }
      socket.write(chunk, done)
    },
    writev(parts: { chunk: Buffer }[], done) {
      socket.write(Buffer.concat(parts.map(({ chunk }) => chunk)), done)
    },
    final(done) {
      socket.end(done)
    },
    destroy(error, done) {
      socket.destroy()
      done(error)
    },
  })
  socket.on('data', (chunk: Buffer) => {
    hasProgress = true
    const skipped = Math.min(skipBytes, chunk.length)
    skipBytes -= skipped
    if (skipBytes > 0) return
    chunks.push(skipped === 0 ? chunk : chunk.subarray(skipped))
    chunkBytes += chunk.length - skipped
    if (!blocked && (chunkBytes >= need || oversized !== null)) read()
  })
  socket.on('error', (error) => duplex.destroy(error))
  socket.on('close', () => duplex.destroy())

  return { duplex, acknowledge, flush, resume, discard }

  /** Ends at the end of what is there, or where there is no room. */
  function read(): void {
    const bytes = chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)
    let offset = 0
    blocked = false
    need = 2
    if (!isGreeted && bytes[0] !== connack && bytes[0] !== auth)
      return fail('NOT_MQTT', bytes.toString('latin1', 0, 16))
    isGreeted = true
    if (!takeOversized()) return
    while (offset < bytes.length && !duplex.destroyed) {
      const frame = frameAt(bytes, offset)
      if (frame.kind === 'malformed') return fail('malformed_packet')
      if (frame.kind === 'part') {
        need = frame.need
        if (need <= packetBytesMax) break
        if (bytes[offset]! >> 4 !== publishType) return fail('packet_too_large')
        const there = bytes.length - offset
        const wanted = Math.min(need, headBytesMax)
        if (there < wanted) {
          need = wanted
          break
        }
        skipBytes = need - there
        keepHead(bytes.subarray(offset), need)
        offset = bytes.length
        need = 2
        break
      }
      if (frame.end - offset > packetBytesMax) {
        if (frame.type !== publishType) return fail('packet_too_large')
        keepHead(bytes.subarray(offset, frame.end), frame.end - offset)
        offset = frame.end
        if (takeOversized()) continue
        break
      }
      if (frame.type !== publishType) {
        if (!isExpected(frame.type)) return fail('TOO_MANY_PACKETS')
        // MQTT 3.1.1 and 5, 3.2.2.1: bit 0 of the first byte.
        if (bytes[offset] === connack) greeted((bytes[frame.body]! & 1) === 1)
        duplex.push(bytes.subarray(offset, frame.end))
      } else if (!discarding) {
        if (room() <= 0) {
          blocked = true
          break
        }
        const { body, end } = frame
        if (!readPublish(bytes, { head: bytes[offset]!, body, end }, isVersion5, packet))
          return fail('malformed_packet')
        publish(packet)
      }
      offset = frame.end
    }
    keep(bytes, offset)
    if (blocked) socket.pause()
    else if (socket.isPaused()) socket.resume()
  }

  function isExpected(type: number): boolean {
    if (type === pubrel && toRelease > 0) toRelease -= 1
    else others += 1
    return others <= othersMax
  }

  function keepHead(bytes: Buffer, size: number): void {
    let body = 1
    while (bytes[body]! >= 0x80) body += 1
    oversized = { head: Buffer.from(bytes.subarray(0, headBytesMax)), body: body + 1, size }
  }

  /** False where there is no room for it, or it cannot be read. */
  function takeOversized(): boolean {
    if (oversized === null || skipBytes > 0) return true
    if (!discarding && room() <= 0) {
      blocked = true
      socket.pause()
      return false
    }
    const { head, body, size } = oversized
    oversized = null
    if (discarding) return true
    if (!readPublish(head, { head: head[0]!, body, end: head.length }, isVersion5, packet)) {
      fail('packet_too_large')
      return false
    }
    refuseOversized(packet, { size, option: 'max_packet_bytes', bytesMax: packetBytesMax })
    publish(packet)
    return true
  }

  function keep(bytes: Buffer, offset: number): void {
    const rest = bytes.subarray(offset)
    chunks = rest.length === 0 ? [] : [rest]
    chunkBytes = rest.length
  }

  function fail(reason: StreamFault, start = ''): void {
    fault(reason, start)
    duplex.destroy()
  }

  function resume(): void {
    if (!blocked || duplex.destroyed || (room() <= 0 && !discarding)) return
    read()
  }

  function discard(): void {
    discarding = true
    resume()
  }

  function acknowledge(position: number): void {
    acks.push(position)
  }

  function flush(): void {
    if (acks.length === 0 || socket.destroyed) return
    const bytes = Buffer.allocUnsafe(acks.length * 4)
    let end = 0
    for (const position of acks) {
      const isQos2 = position >= qos2Bit
      if (isQos2) toRelease += 1
      bytes[end] = isQos2 ? pubrec : puback
      bytes[end + 1] = 2
      bytes.writeUInt16BE(position % qos2Bit, end + 2)
      end += 4
    }
    acks = []
    socket.write(bytes)
  }
}
