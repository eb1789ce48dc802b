// packet-framing.ts: finds the packets of MQTT 3.1.1 in a run of bytes by their fixed headers (MQTT 2.2), so
// that limits hold before anything is buffered. Knows no socket and keeps no bytes.
//
//   byte 1        packet type and flags
//   bytes 2..5    remaining length, 7 bits a byte, lowest first; the top bit says that another byte follows
//   then          that many bytes, checked by packet-rules.ts once they are all there
//
// A run starts where a packet starts, and is followed across whole packets until one may not pass:
//
//   end       every packet passed
//   connect   CONNECT goes alone: nothing may follow it before it was answered (a PUBLISH would overtake the
//             check of the password)
//   partial   the last packet is not complete
//   publish   the next packet is a PUBLISH, and no more messages may be in flight
//   fault     the next packet breaks the rules, and is a violation when it comes first
//   turn      the budget of this turn of the event loop is used up (turns.ts)

import { clientDrops } from '../client-faults.ts'
import {
  bodyFault,
  connectLevel,
  flagsFault,
  hasValidFlags,
  hasValidLength,
  lengthFault,
  secondConnect,
  type PacketFault,
} from '../packet-rules.ts'

export type FramingLimits = {
  /** Remaining length of the first packet. */
  connectBytesMax: number
  /** Remaining length of any later packet. */
  packetBytesMax: number
}

/** What may pass; `follow` subtracts what passed. Packets pass as long as their number is positive. */
export type Allowance = {
  /** Messages of QoS 1 and 2. At 0 no PUBLISH passes, since messages keep their order. */
  messages: number
  /** PUBLISH and PINGREQ. */
  packets: number
  /** All others, in the units of `controlCost`. */
  control: number
}

type HeadViolation =
  | 'not_connect'
  | 'tls_on_plain_port'
  | 'not_from_client'
  | 'connect_too_large'
  | 'packet_too_large'
  | 'malformed_length'

export type FramingStop = 'end' | 'connect' | 'partial' | 'publish' | 'turn' | 'fault'

export type Framing = {
  /** Follows `bytes` from their start. Returns how many of them may pass; -1 after a violation. */
  follow(bytes: Uint8Array, allowance: Allowance): number
  /** Bytes of the packet at `offset`; 0 while its head is not complete, -1 after a violation. */
  sizeAt(bytes: Uint8Array, offset: number): number
  /** Why the last `follow` ended, and what passed in it. */
  readonly stop: FramingStop
  /** Cost of the control packets without PUBREL. */
  readonly control: number
  /** Packets PUBREL, and PUBLISH with QoS 2. */
  readonly releases: number
  readonly unreleased: number
  /** The whole CONNECT has passed. */
  readonly connectEnded: boolean
  readonly violation: PacketFault | null
}

const connectType = 1
const publishType = 3
const pubrelType = 6
const pingreqType = 12
const connectHead = 0x10
const dupFlag = 0b1000
/** The first byte of a TLS hello (RFC 8446, 5.1). */
const tlsHandshake = 0x16
const lengthBytesMax = 4

/**
 * By packet type, whether a client sends it (MQTT 2.2.1): not CONNACK, SUBACK, UNSUBACK, PINGRESP, 0 and 15.
 */
const fromClient = [0, 1, 0, 1, 1, 1, 1, 1, 1, 0, 1, 0, 1, 0, 1, 0]

/** A SUBSCRIBE has one topic filter per few bytes, so its cost grows with its size. */
const bytesPerCost = 32
/** CONNECT has texts of any length, and one of 64 KiB is allowed. */
const connectBytesPerCost = 256

function controlCost(type: number, size: number): number {
  return Math.ceil(size / (type === connectType ? connectBytesPerCost : bytesPerCost))
}

export function createFraming(limits: FramingLimits): Framing {
  let connectEnded = false
  let stop: FramingStop = 'end'
  let control = 0
  let releases = 0
  let unreleased = 0
  let violation: PacketFault | null = null
  let isVersion31 = false

  function follow(bytes: Uint8Array, allowance: Allowance): number {
    control = 0
    releases = 0
    unreleased = 0
    stop = 'end'
    if (violation !== null) return -1
    let offset = 0
    while (offset < bytes.length) {
      const head = bytes[offset]!
      const size = sizeAt(bytes, offset)
      if (size < 0) return endAtFault(offset)
      if (!mayPass(head, allowance)) return offset
      if (size === 0 || offset + size > bytes.length) {
        stop = 'partial'
        return offset
      }
      if (!check(head, bytes, offset, size)) return endAtFault(offset)
      count(head, size, allowance)
      offset += size
      if (head >> 4 === connectType) {
        connectEnded = true
        stop = offset === bytes.length ? 'end' : 'connect'
        return offset
      }
    }
    return offset
  }

  /** The packets before it pass first: they may be messages, or DISCONNECT. */
  function endAtFault(offset: number): number {
    if (offset === 0) return -1
    violation = null
    stop = 'fault'
    return offset
  }

  /** Whether a whole packet is laid out as it must be. */
  function check(head: number, bytes: Uint8Array, offset: number, size: number): boolean {
    let start = offset + 1
    while (bytes[start]! >= 0x80) start += 1
    start += 1
    violation = bodyFault(head, bytes, start, offset + size)
    if (violation !== null) return false
    const type = head >> 4
    if (type === connectType) isVersion31 = connectLevel(bytes, start, offset + size) === 3
    // The parser of aedes does not know the flag in these packets.
    else if (isVersion31 && type !== publishType) bytes[offset] = head & ~dupFlag
    return true
  }

  function mayPass(head: number, { messages, packets, control }: Allowance): boolean {
    const type = head >> 4
    if (type === publishType && messages <= 0) stop = 'publish'
    else if (type === publishType || type === pingreqType ? packets <= 0 : control <= 0) stop = 'turn'
    else return true
    return false
  }

  function count(head: number, size: number, allowance: Allowance): void {
    const type = head >> 4
    if (type === publishType) {
      allowance.packets -= 1
      const qos = (head >> 1) & 0b11
      if (qos > 0) allowance.messages -= 1
      if (qos === 2) unreleased += 1
    } else if (type === pingreqType) {
      allowance.packets -= 1
      control += 1
    } else {
      const cost = controlCost(type, size)
      allowance.control -= cost
      if (type === pubrelType) releases += 1
      else control += cost
    }
  }

  function sizeAt(bytes: Uint8Array, offset: number): number {
    const head = bytes[offset]!
    // [MQTT-3.1.0-1]: the first packet must be CONNECT.
    if (!connectEnded && head !== connectHead)
      return violate(head === tlsHandshake ? 'tls_on_plain_port' : 'not_connect')
    if (!fromClient[head >> 4]) return violate('not_from_client')
    if (connectEnded && head === connectHead) return violateBy(secondConnect)
    if (!hasValidFlags(head, isVersion31)) return violateBy(flagsFault(head))
    const bytesMax = connectEnded ? limits.packetBytesMax : limits.connectBytesMax
    let remaining = 0
    for (let index = 1; index <= lengthBytesMax; index += 1) {
      const byte = bytes[offset + index]
      if (byte === undefined) return 0
      remaining += (byte & 0x7f) << (7 * (index - 1))
      if (byte >= 0x80 && index === lengthBytesMax) return violate('malformed_length')
      if (remaining > bytesMax) return violate(connectEnded ? 'packet_too_large' : 'connect_too_large')
      if (byte >= 0x80) continue
      return hasValidLength(head, remaining) ? 1 + index + remaining : violateBy(lengthFault(head, remaining))
    }
    return 0
  }

  function violate(reason: HeadViolation): -1 {
    return violateBy({ reason, detail: clientDrops[reason] })
  }

  function violateBy(fault: PacketFault): -1 {
    violation ??= fault
    return -1
  }

  return {
    follow,
    sizeAt,
    get stop() {
      return stop
    },
    get control() {
      return control
    },
    get releases() {
      return releases
    },
    get unreleased() {
      return unreleased
    },
    get connectEnded() {
      return connectEnded
    },
    get violation() {
      return violation
    },
  }
}
