// packets.ts: how the packets of a client must be laid out, in MQTT 3.1, 3.1.1 and 5 (chapters 2 and 3).
// Entry file of this folder, which knows no socket and keeps nothing:
//
//   packets.ts              flags, lengths, and the layout of all packets but CONNECT and PUBLISH
//   connect-packet.ts       reads CONNECT
//   publishes.ts            reads PUBLISH and PINGREQ: the hot path
//   message-properties.ts   what the mapping gets of the properties of a PUBLISH
//   property-rules.ts       which properties a packet may have, and whether their values are valid
//   packet-bytes.ts         numbers and texts
//
// The versions have the same packets, so `rows` has one row for each type. They differ in this:
//
//   3.1    a packet that is sent again has the DUP flag, PUBREL, SUBSCRIBE and UNSUBSCRIBE included
//   3.1.1  acknowledgements and DISCONNECT have a fixed length
//   5      they may have a reason code and properties; there is AUTH
//
// Each fault names its clause. For a client of MQTT 5 it has the reason code that the client gets. Nothing is
// sent to others.

import { isUtf8 } from 'node:buffer'
import type { ClientDropReason, PacketFault } from '../client-faults.ts'
import { binaryEnd, cutField, notUtf8, textEnd, twoBytesAt } from './packet-bytes.ts'
import { clientProperties, propertiesEnd, propertyFault, type PropertyRules } from './property-rules.ts'

/** The protocol level. MQTT 3.1 is 3, and 3.1.1 is 4. */
export type Version = 3 | 4 | 5

export const packetTypes = {
  connect: 1,
  publish: 3,
  puback: 4,
  pubrec: 5,
  pubrel: 6,
  pubcomp: 7,
  subscribe: 8,
  unsubscribe: 10,
  pingreq: 12,
  disconnect: 14,
  auth: 15,
} as const

type Row = {
  readonly name: string
  /** In the first byte. PUBLISH has its own. */
  readonly flags: number
  /** The remaining length where it is fixed, before MQTT 5; else -1. */
  readonly length: number
  /** Reason codes of MQTT 5 that a client may send (2.4), and the clause. */
  readonly codes?: readonly number[]
  readonly clause?: string
}

const ofMessage = [0x00, 0x10, 0x80, 0x83, 0x87, 0x90, 0x91, 0x97, 0x99]
const ofRelease = [0x00, 0x92]
const ofEnd = [0x00, 0x04, 0x80, 0x81, 0x82, 0x83, 0x90, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98, 0x99]

/** By packet type; those that a client sends. */
const rows: Readonly<Record<number, Row>> = {
  1: { name: 'CONNECT', flags: 0, length: -1 },
  3: { name: 'PUBLISH', flags: 0, length: -1 },
  4: { name: 'PUBACK', flags: 0, length: 2, codes: ofMessage, clause: 'MQTT-3.4.2-1' },
  5: { name: 'PUBREC', flags: 0, length: 2, codes: ofMessage, clause: 'MQTT-3.5.2-1' },
  6: { name: 'PUBREL', flags: 2, length: 2, codes: ofRelease, clause: 'MQTT-3.6.2-1' },
  7: { name: 'PUBCOMP', flags: 0, length: 2, codes: ofRelease, clause: 'MQTT-3.7.2-1' },
  8: { name: 'SUBSCRIBE', flags: 2, length: -1 },
  10: { name: 'UNSUBSCRIBE', flags: 2, length: -1 },
  12: { name: 'PINGREQ', flags: 0, length: 0 },
  14: { name: 'DISCONNECT', flags: 0, length: 0, codes: ofEnd, clause: 'MQTT-3.14.2-1' },
  15: { name: 'AUTH', flags: 0, length: -1 },
}

const dupFlag = 0b1000

/** Whether a client sends packets with this first byte (2.2.1). */
export function isFromClient(head: number, version: Version): boolean {
  const type = head >> 4
  return rows[type] !== undefined && (type !== packetTypes.auth || version === 5)
}

/** What is wrong with the flags in the first byte (2.2.2; in MQTT 5, 2.1.3); null for right ones. */
export function flagsFault(head: number, version: Version): PacketFault | null {
  const type = head >> 4
  const flags = head & 0b1111
  if (type === packetTypes.publish) {
    if ((flags & 0b0110) === 0b0110)
      return broken(version, 'It published with QoS 3, which does not exist [MQTT-3.3.1-4].')
    const isUnsentAgain = (flags & 0b1110) === dupFlag && version > 3
    return isUnsentAgain ? broken(version, 'It published with QoS 0 and the DUP flag [MQTT-3.3.1-2].') : null
  }
  const { name, flags: required } = rows[type]!
  if (flags === required) return null
  if (version === 3 && required !== 0 && flags === (required | dupFlag)) return null
  const clause = version === 5 ? 'MQTT-2.1.3-1' : 'MQTT-2.2.2-1'
  return broken(version, `Its ${name} has the flags ${flags}, and not ${required} [${clause}].`)
}

/** What is wrong with the remaining length, where the packet type has a fixed one. */
export function lengthFault(head: number, remaining: number, version: Version): PacketFault | null {
  const type = head >> 4
  const { name, length } = rows[type]!
  if (length === -1 || length === remaining) return null
  if (version === 5 && type !== packetTypes.pingreq) return null
  return broken(
    version,
    `Its ${name} has the remaining length ${remaining}, and not ${length} (MQTT 3.${type}.1).`,
  )
}

export function secondConnect(version: Version): PacketFault {
  return violation(version, 'It sent a second CONNECT [MQTT-3.1.0-2].')
}

/**
 * What is wrong with the packet whose bytes behind the fixed header are those from `start` to `end`, texts
 * and properties included. CONNECT and PUBLISH are checked where they are read.
 */
export function layoutFault(
  head: number,
  bytes: Buffer,
  start: number,
  end: number,
  version: Version,
): PacketFault | null {
  const type = head >> 4
  switch (type) {
    case packetTypes.connect:
    case packetTypes.publish:
    case packetTypes.pingreq:
      return null
    case packetTypes.auth:
      return violation(
        version,
        'It sent AUTH, and its CONNECT named no authentication method [MQTT-4.12.0-7].',
      )
    case packetTypes.disconnect:
      return reasonFault(type, bytes, start, end, clientProperties.disconnect)
    default:
  }
  if (end - start < 2 || twoBytesAt(bytes, start) === 0) return noPacketId(type, version)
  return type === packetTypes.subscribe || type === packetTypes.unsubscribe
    ? filtersFault(type, bytes, start + 2, end, version)
    : reasonFault(type, bytes, start + 2, end, clientProperties.ack)
}

/** Nothing, a reason code, or a reason code and properties. Before MQTT 5 the length allows nothing only. */
function reasonFault(
  type: number,
  bytes: Buffer,
  start: number,
  end: number,
  rules: PropertyRules,
): PacketFault | null {
  if (start === end) return null
  const { name, codes, clause } = rows[type]!
  const code = bytes[start]!
  if (codes?.includes(code) !== true)
    return violation(5, `Its ${name} has the reason code ${code} [${clause}].`)
  if (start + 1 === end) return null
  const last = propertiesEnd(bytes, start + 1, end, rules)
  if (last < 0) return propertyFault(name, last)
  return last === end
    ? null
    : broken(5, `Its ${name} has ${end - last} more bytes than its fields (MQTT 3.${type}).`)
}

// ---- SUBSCRIBE and UNSUBSCRIBE

const noLocal = 0b0000_0100
const shared = Buffer.from('$share/')

function filtersFault(
  type: number,
  bytes: Buffer,
  start: number,
  end: number,
  version: Version,
): PacketFault | null {
  const { name } = rows[type]!
  const isSubscribe = type === packetTypes.subscribe
  let at = start
  if (version === 5) {
    at = propertiesEnd(
      bytes,
      at,
      end,
      isSubscribe ? clientProperties.subscribe : clientProperties.unsubscribe,
    )
    if (at < 0) return propertyFault(name, at)
  }
  if (at === end) {
    const clause = version === 5 ? `MQTT-3.${type}.3-2` : isSubscribe ? 'MQTT-3.8.3-3' : 'MQTT-3.10.3-2'
    return violation(version, `Its ${name} has no topic filter [${clause}].`, 'bad_topic_filter')
  }
  while (at < end) {
    const filterStart = at + 2
    at = textEndOf(version, bytes, at, end)
    if (at === cutField || (isSubscribe && at === end))
      return broken(version, `Its ${name} ends within a topic filter (MQTT 3.${type}.3).`)
    if (at < 0) return badText(version, at, 'topic filter', 'bad_topic_filter')
    if (!isSubscribe) continue
    const fault =
      version === 5
        ? optionsFault(bytes[at]!, bytes.subarray(filterStart, at))
        : qosFault(bytes[at]!, version)
    if (fault !== null) return fault
    at += 1
  }
  return null
}

function qosFault(qos: number, version: Version): PacketFault | null {
  return qos > 2 ? broken(version, `Its SUBSCRIBE asks for QoS ${qos} [MQTT-3-8.3-4].`) : null
}

/**
 * Subscription options of MQTT 5 (3.8.3.1): reserved (2), retain handling (2), Retain As Published, No Local,
 * QoS (2).
 */
function optionsFault(options: number, filter: Buffer): PacketFault | null {
  if (options >> 6 !== 0)
    return broken(5, 'Its SUBSCRIBE sets reserved bits of the subscription options [MQTT-3.8.3-5].')
  if ((options & 0b11) === 3) return violation(5, 'Its SUBSCRIBE asks for QoS 3 (MQTT 3.8.3.1).')
  if (((options >> 4) & 0b11) === 3)
    return violation(5, 'Its SUBSCRIBE has the retain handling 3 (MQTT 3.8.3.1).')
  if ((options & noLocal) !== 0 && filter.subarray(0, shared.length).equals(shared))
    return violation(5, 'Its SUBSCRIBE has No Local with a shared subscription [MQTT-3.8.3-4].')
  return null
}

// ---- texts

/**
 * The end of the text at `at`, or one of the problems of packet-bytes.ts. A null character is one in MQTT 5
 * only: before it the texts are read first, and then judged by their own rules.
 */
export function textEndOf(version: Version, bytes: Buffer, at: number, end: number): number {
  if (version === 5) return textEnd(bytes, at, end)
  const last = binaryEnd(bytes, at, end)
  return last === cutField || isUtf8(bytes.subarray(at + 2, last)) ? last : notUtf8
}

export function badText(
  version: Version,
  problem: number,
  name: string,
  reason: ClientDropReason,
): PacketFault {
  const section = version === 5 ? 'MQTT-1.5.4' : 'MQTT-1.5.3'
  return broken(
    version,
    problem === notUtf8
      ? `A ${name} that it sent is not well-formed UTF-8 [${section}-1].`
      : `A ${name} that it sent contains a null character [${section}-2].`,
    reason,
  )
}

// ---- faults

const malformedPacket = 0x81
const protocolError = 0x82

export function noPacketId(type: number, version: Version): PacketFault {
  const clause = version === 5 ? 'MQTT-2.2.1-3' : 'MQTT-2.3.1-1'
  return violation(
    version,
    `Its ${rows[type]!.name} has no packet identifier, or 0 [${clause}].`,
    'no_packet_id',
  )
}

export function broken(
  version: Version,
  detail: string,
  reason: ClientDropReason = 'protocol_error',
): PacketFault {
  return version === 5 ? { reason, detail, code: malformedPacket } : { reason, detail }
}

export function violation(
  version: Version,
  detail: string,
  reason: ClientDropReason = 'protocol_error',
): PacketFault {
  return version === 5 ? { reason, detail, code: protocolError } : { reason, detail }
}
