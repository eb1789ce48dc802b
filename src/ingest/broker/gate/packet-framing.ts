// packet-framing.ts: follows the packets of MQTT 3.1.1 in a byte stream by their fixed headers alone (MQTT
// 2.2), so that limits hold before anything is buffered. Pure: knows no socket and keeps no bytes.
//
//   byte 1        packet type and flags
//   bytes 2..5    remaining length, 7 bits a byte, lowest first; the top bit says that another byte follows
//   then          that many bytes, skipped in one step
//
//   type -> length (1 to 4 bytes) -> body -> type ...
//
// A stream is passed on in portions that end where a packet ends. CONNECT goes alone, because nothing may
// follow it before it was answered (a PUBLISH would overtake the check of the password). A portion has no
// more messages than may be in flight.

export type FramingLimits = {
  /** Remaining length of the first packet. */
  connectBytesMax: number
  /** Remaining length of any later packet. */
  packetBytesMax: number
}

export type Violation =
  | 'not_connect'
  | 'tls_on_plain_port'
  | 'not_from_client'
  | 'connect_too_large'
  | 'packet_too_large'
  | 'malformed_length'

export type Framing = {
  /**
   * Follows `chunk` from its start, across at most `messagesMax` messages that want an ack. Returns how many
   * of its bytes may be passed on; the caller offers the rest again. -1 after a violation.
   */
  follow(chunk: Uint8Array, messagesMax: number): number
  /** The next byte starts a packet. */
  readonly betweenPackets: boolean
  /** The whole CONNECT was passed on. */
  readonly connectEnded: boolean
  readonly violation: Violation | null
}

const connectType = 1
const connectHead = 0x10
/** The first byte of a TLS hello (RFC 8446, 5.1). */
const tlsHandshake = 0x16
const publishType = 3
const lengthBytesMax = 4

/**
 * By packet type, whether a client sends it (MQTT 2.2.1): not CONNACK, SUBACK, UNSUBACK, PINGRESP, 0 and 15.
 */
const fromClient = [0, 1, 0, 1, 1, 1, 1, 1, 1, 0, 1, 0, 1, 0, 1, 0]

export function createFraming(limits: FramingLimits): Framing {
  /** The length of the first packet is known, and that it is CONNECT. */
  let connected = false
  let connectEnded = false
  /** What the next byte belongs to. */
  let state: 'type' | 'length' | 'body' = 'type'
  let type = 0
  let lengthBytes = 0
  let multiplier = 1
  /** While the length is read: its value so far. In the body: bytes still to come. */
  let remaining = 0
  let violation: Violation | null = null

  function follow(chunk: Uint8Array, messagesMax: number): number {
    if (violation !== null) return -1
    let room = messagesMax
    let offset = 0
    while (offset < chunk.length) {
      if (state === 'type') {
        const head = chunk[offset]!
        const wantsAck = head >> 4 === publishType && (head & 0b0110) !== 0
        if (wantsAck) {
          if (room === 0) return offset
          room -= 1
        }
        if (!begin(head)) return -1
        offset += 1
      } else if (state === 'length') {
        if (!takeLength(chunk[offset]!)) return -1
        offset += 1
      } else {
        const step = Math.min(remaining, chunk.length - offset)
        remaining -= step
        offset += step
      }
      if (state === 'body' && remaining === 0) {
        state = 'type'
        if (type === connectType) {
          connectEnded = true
          return offset
        }
      }
    }
    return offset
  }

  function begin(head: number): boolean {
    type = head >> 4
    // [MQTT-3.1.0-1]: the first packet must be CONNECT. A second one is for the broker to refuse.
    if (!connected && head !== connectHead)
      return violate(head === tlsHandshake ? 'tls_on_plain_port' : 'not_connect')
    if (!fromClient[type]) return violate('not_from_client')
    state = 'length'
    remaining = 0
    multiplier = 1
    lengthBytes = 0
    return true
  }

  function takeLength(byte: number): boolean {
    remaining += (byte & 0x7f) * multiplier
    multiplier *= 128
    lengthBytes += 1
    const more = (byte & 0x80) !== 0
    if (more && lengthBytes === lengthBytesMax) return violate('malformed_length')
    if (!connected) {
      if (remaining > limits.connectBytesMax) return violate('connect_too_large')
    } else if (remaining > limits.packetBytesMax) return violate('packet_too_large')
    if (more) return true
    connected = true
    state = 'body'
    return true
  }

  function violate(what: Violation): false {
    violation = what
    return false
  }

  return {
    follow,
    get betweenPackets() {
      return state === 'type'
    },
    get connectEnded() {
      return connectEnded
    },
    get violation() {
      return violation
    },
  }
}
