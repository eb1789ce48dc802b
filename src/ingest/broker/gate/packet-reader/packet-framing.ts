// packet-framing.ts: finds the packets of MQTT in a run of bytes by their fixed headers (MQTT 2.2), so that
// limits hold before anything is buffered. Knows no socket and keeps no bytes.
//
//   byte 1        packet type and flags
//   bytes 2..5    remaining length, 7 bits a byte, lowest first; the top bit says that another byte follows
//   then          that many bytes, checked by packets/ once they are all there; PUBLISH where it is read
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

import { clientDrops, type PacketFault } from '../../client-faults.ts'
import { integerEnd } from '../../packets/packet-bytes.ts'
import { readConnect, type ConnectPacket } from '../../packets/connect-packet.ts'
import {
  flagsFault,
  isFromClient,
  layoutFault,
  lengthFault,
  packetTypes,
  secondConnect,
  type Version,
} from '../../packets/packets.ts'

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

type HeadViolation = 'not_connect' | 'tls_on_plain_port' | 'not_from_client' | 'malformed_length'

export type FramingStop = 'end' | 'connect' | 'partial' | 'publish' | 'turn' | 'fault'

export type Framing = {
  /** Follows `bytes` from their start. Returns how many of them may pass; -1 after a violation. */
  follow(bytes: Buffer, allowance: Allowance): number
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
  /** Of its CONNECT. */
  readonly version: Version
  /** The CONNECT that passed; null after the call. */
  takeConnect(): ConnectPacket | null
  readonly violation: PacketFault | null
}

const { connect: connectType, publish: publishType, pubrel: pubrelType, pingreq: pingreqType } = packetTypes
const connectHead = 0x10
/** The first byte of a TLS hello (RFC 8446, 5.1). */
const tlsHandshake = 0x16
/** Of a client for WebSocket, or a browser. */
const get = Buffer.from('GET ')
const httpRequest: PacketFault = {
  reason: 'not_connect',
  detail:
    'It speaks HTTP, and its first packet is not CONNECT [MQTT-3.1.0-1]. Give it the port of a listener for WebSocket ' +
    '(ws://, wss://).',
}
const lengthBytesMax = 4
/** 3.1.1 allows it, and says only what a client should do (2.2.3). */
const longLength: PacketFault = {
  reason: 'malformed_length',
  detail: 'The remaining length of a packet has more bytes than needed [MQTT-1.5.5-1].',
}

/** A SUBSCRIBE has one topic filter per few bytes, so its cost grows with its size. */
const bytesPerCost = 32
/** CONNECT has texts of any length, and one of 64 KiB is allowed. */
const connectBytesPerCost = 256

function controlCost(type: number, size: number): number {
  return Math.ceil(size / (type === connectType ? connectBytesPerCost : bytesPerCost))
}

export function createFraming(limits: FramingLimits): Framing {
  return new PacketFraming(limits)
}

class PacketFraming implements Framing {
  private readonly limits: FramingLimits
  connectEnded = false
  stop: FramingStop = 'end'
  control = 0
  releases = 0
  unreleased = 0
  violation: PacketFault | null = null
  /** Before CONNECT, that of most devices. */
  version: Version = 4
  private connect: ConnectPacket | null = null

  constructor(limits: FramingLimits) {
    this.limits = limits
  }

  follow(bytes: Buffer, allowance: Allowance): number {
    this.control = 0
    this.releases = 0
    this.unreleased = 0
    this.stop = 'end'
    if (this.violation !== null) return -1
    let offset = 0
    while (offset < bytes.length) {
      const head = bytes[offset]!
      const size = this.sizeAt(bytes, offset)
      if (size < 0) return this.endAtFault(offset)
      if (!this.mayPass(head, allowance)) return offset
      if (size === 0 || offset + size > bytes.length) {
        this.stop = 'partial'
        return offset
      }
      if (!this.check(head, bytes, offset, size)) return this.endAtFault(offset)
      this.count(head, size, allowance)
      offset += size
      if (head >> 4 === connectType) {
        this.connectEnded = true
        this.stop = offset === bytes.length ? 'end' : 'connect'
        return offset
      }
    }
    return offset
  }

  /** The packets before it pass first: they may be messages, or DISCONNECT. */
  private endAtFault(offset: number): number {
    if (offset === 0) return -1
    this.violation = null
    this.stop = 'fault'
    return offset
  }

  /** Whether a whole packet is laid out as it must be. */
  private check(head: number, bytes: Buffer, offset: number, size: number): boolean {
    const start = integerEnd(bytes, offset + 1)
    const end = offset + size
    this.violation =
      head >> 4 === connectType
        ? this.connectFault(bytes, start, end)
        : layoutFault(head, bytes, start, end, this.version)
    return this.violation === null
  }

  private connectFault(bytes: Buffer, start: number, end: number): PacketFault | null {
    const found = readConnect(bytes, start, end)
    if ('reason' in found) return found
    // No CONNECT has the length 0, so the last byte of its length is 0 only where it is not needed.
    if (found.version === 5 && bytes[start - 1] === 0) return longLength
    this.version = found.version
    this.connect = found
    return null
  }

  takeConnect(): ConnectPacket | null {
    const { connect } = this
    this.connect = null
    return connect
  }

  private mayPass(head: number, { messages, packets, control }: Allowance): boolean {
    const type = head >> 4
    if (type === publishType && messages <= 0) this.stop = 'publish'
    else if (type === publishType || type === pingreqType ? packets <= 0 : control <= 0) this.stop = 'turn'
    else return true
    return false
  }

  private count(head: number, size: number, allowance: Allowance): void {
    const type = head >> 4
    if (type === publishType) {
      allowance.packets -= 1
      const qos = (head >> 1) & 0b11
      if (qos > 0) allowance.messages -= 1
      if (qos === 2) this.unreleased += 1
    } else if (type === pingreqType) {
      allowance.packets -= 1
      this.control += 1
    } else {
      const cost = controlCost(type, size)
      allowance.control -= cost
      if (type === pubrelType) this.releases += 1
      else this.control += cost
    }
  }

  sizeAt(bytes: Uint8Array, offset: number): number {
    const head = bytes[offset]!
    // [MQTT-3.1.0-1]: the first packet must be CONNECT.
    if (!this.connectEnded && head !== connectHead) {
      if (head === tlsHandshake) return this.violate('tls_on_plain_port')
      return beginsWithGet(bytes, offset) ? this.violateBy(httpRequest) : this.violate('not_connect')
    }
    const { version } = this
    if (!isFromClient(head, version)) return this.violate('not_from_client')
    if (this.connectEnded && head === connectHead) return this.violateBy(secondConnect(version))
    const fault = flagsFault(head, version)
    if (fault !== null) return this.violateBy(fault)
    const bytesMax = this.connectEnded ? this.limits.packetBytesMax : this.limits.connectBytesMax
    let remaining = 0
    for (let index = 1; index <= lengthBytesMax; index += 1) {
      const byte = bytes[offset + index]
      if (byte === undefined) return 0
      remaining += (byte & 0x7f) << (7 * (index - 1))
      if (byte >= 0x80 && index === lengthBytesMax) return this.violate('malformed_length')
      if (remaining > bytesMax) return this.violateBySize(bytes, offset, bytesMax)
      if (byte >= 0x80) continue
      if (byte === 0 && index > 1 && version === 5) return this.violateBy(longLength)
      const fixed = lengthFault(head, remaining, version)
      return fixed === null ? 1 + index + remaining : this.violateBy(fixed)
    }
    return 0
  }

  /** Says how large the packet is, as far as that has come. */
  private violateBySize(bytes: Uint8Array, offset: number, bytesMax: number): -1 {
    const [reason, what, option] = this.connectEnded
      ? (['packet_too_large', 'A packet that it sent', 'max_packet_bytes'] as const)
      : (['connect_too_large', 'Its CONNECT', 'max_connect_bytes'] as const)
    const size = announcedBytes(bytes, offset)
    const text = size === null ? `more than ${bytesMax}` : String(size)
    return this.violateBy({ reason, detail: `${what} has ${text} bytes, and ${option} is ${bytesMax}.` })
  }

  private violate(reason: HeadViolation): -1 {
    return this.violateBy({ reason, detail: clientDrops[reason] })
  }

  private violateBy(fault: PacketFault): -1 {
    this.violation ??= fault
    return -1
  }
}

/** The remaining length of the packet at `offset`; null where its end has not come, or it has none. */
function announcedBytes(bytes: Uint8Array, offset: number): number | null {
  let remaining = 0
  for (let index = 1; index <= lengthBytesMax; index += 1) {
    const byte = bytes[offset + index]
    if (byte === undefined) return null
    remaining += (byte & 0x7f) << (7 * (index - 1))
    if (byte < 0x80) return remaining
  }
  return null
}

/** As far as it has come. */
function beginsWithGet(bytes: Uint8Array, offset: number): boolean {
  const start = bytes.subarray(offset, offset + get.length)
  return get.subarray(0, start.length).equals(start)
}
