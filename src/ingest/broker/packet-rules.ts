// packet-rules.ts: how the packets of a client must be laid out (MQTT 3.1.1, chapters 2 and 3), checked
// before aedes sees them: its parser accepts some that are malformed. Each fault names its clause. Pure. What
// texts contain (UTF-8, null characters, topics) is checked where they are read.
//
// MQTT 3.1 differs in one thing: a packet that is sent again has the DUP flag, PUBREL, SUBSCRIBE and
// UNSUBSCRIBE included.

import { quote } from '../../std/quote.ts'
import type { ClientDropReason } from './client-faults.ts'

/** `code`: the reason code for a client of MQTT 5, where another than that of `reason` says it better. */
export type PacketFault = { reason: ClientDropReason; detail: string; code?: number }

const connectType = 1
const publishType = 3
const subscribeType = 8

const names = [
  '',
  'CONNECT',
  '',
  'PUBLISH',
  'PUBACK',
  'PUBREC',
  'PUBREL',
  'PUBCOMP',
  'SUBSCRIBE',
  '',
  'UNSUBSCRIBE',
  '',
  'PINGREQ',
  '',
  'DISCONNECT',
  '',
] as const

/** The flags of a packet type (MQTT 2.2.2). PUBLISH has its own. */
const requiredFlags = [0, 0, 0, 0, 0, 0, 2, 0, 2, 0, 2, 0, 0, 0, 0, 0]
/** The remaining length of a packet type where it is fixed (MQTT 3.4 to 3.7, 3.12, 3.14); else -1. */
const fixedLengths = [-1, -1, -1, -1, 2, 2, 2, 2, -1, -1, -1, -1, 0, -1, 0, -1]

const dupFlag = 0b1000

/** Whether the flags in the first byte may be sent. */
export function hasValidFlags(head: number, isVersion31: boolean): boolean {
  const type = head >> 4
  const flags = head & 0b1111
  if (type === publishType) {
    const qos = (flags >> 1) & 0b11
    return qos < 3 && (qos > 0 || (flags & dupFlag) === 0 || isVersion31)
  }
  if (flags === requiredFlags[type]) return true
  return isVersion31 && requiredFlags[type] !== 0 && flags === (requiredFlags[type]! | dupFlag)
}

export function hasValidLength(head: number, remaining: number): boolean {
  const fixed = fixedLengths[head >> 4]!
  return fixed === -1 || fixed === remaining
}

export function flagsFault(head: number): PacketFault {
  const type = head >> 4
  if (type !== publishType)
    return broken(
      `Its ${names[type]} has the flags ${head & 0b1111}, and not ${requiredFlags[type]} [MQTT-2.2.2-1].`,
    )
  return broken(
    ((head >> 1) & 0b11) === 3
      ? 'It published with QoS 3, which does not exist [MQTT-3.3.1-4].'
      : 'It published with QoS 0 and the DUP flag [MQTT-3.3.1-2].',
  )
}

export function lengthFault(head: number, remaining: number): PacketFault {
  const type = head >> 4
  const name = names[type]
  return broken(
    `Its ${name} has the remaining length ${remaining}, and not ${fixedLengths[type]} (MQTT 3.${type}.1).`,
  )
}

export const secondConnect: PacketFault = broken('It sent a second CONNECT [MQTT-3.1.0-2].')
/** Of MQTT 5. Faults of other versions have no code: nothing is sent for them. */
export const secondConnect5: PacketFault = { ...secondConnect, code: 0x82 }

/** What is wrong with the packet whose bytes behind the fixed header are those from `start` to `end`. */
export function bodyFault(head: number, bytes: Uint8Array, start: number, end: number): PacketFault | null {
  const type = head >> 4
  if (type === connectType) return connectLayoutFault(bytes, start, end)
  if (type === publishType) return publishFault(((head >> 1) & 0b11) > 0, bytes, start, end)
  // PINGREQ and DISCONNECT.
  if (fixedLengths[type] === 0) return null
  if (end - start < 2 || numberAt(bytes, start) === 0) return noPacketId(type)
  return fixedLengths[type] === 2 ? null : filtersFault(type, bytes, start + 2, end)
}

function publishFault(
  isIdentified: boolean,
  bytes: Uint8Array,
  start: number,
  end: number,
): PacketFault | null {
  const topicEnd = textEnd(bytes, start, end)
  if (topicEnd === -1) return broken('Its PUBLISH ends within the topic name (MQTT 3.3.2.1).')
  if (!isIdentified) return null
  return topicEnd + 2 > end || numberAt(bytes, topicEnd) === 0 ? noPacketId(publishType) : null
}

function filtersFault(type: number, bytes: Uint8Array, start: number, end: number): PacketFault | null {
  const name = names[type]
  const hasQos = type === subscribeType
  const clause = hasQos ? 'MQTT-3.8.3-3' : 'MQTT-3.10.3-2'
  if (start === end)
    return { reason: 'bad_topic_filter', detail: `Its ${name} has no topic filter [${clause}].` }
  for (let at = start; at < end;) {
    at = textEnd(bytes, at, end)
    if (at === -1 || (hasQos && at === end))
      return broken(`Its ${name} ends within a topic filter (MQTT 3.${type}.3).`)
    if (!hasQos) continue
    if (bytes[at]! > 2) return broken(`Its SUBSCRIBE asks for QoS ${bytes[at]} [MQTT-3-8.3-4].`)
    at += 1
  }
  return null
}

function noPacketId(type: number): PacketFault {
  return {
    reason: 'no_packet_id',
    detail: `Its ${names[type]} has no packet identifier, or 0 [MQTT-2.3.1-1].`,
  }
}

// ---- CONNECT

const flagReserved = 0x01
const flagWill = 0x04
const flagWillRetain = 0x20
const flagPassword = 0x40
const flagUserName = 0x80
/** Bridges of Mosquitto set it in the protocol level. */
const bridgeBit = 0x80

/** The protocol level of a CONNECT without fault. */
export function connectLevel(bytes: Uint8Array, start: number, end: number): number {
  return bytes[textEnd(bytes, start, end)]! & ~bridgeBit
}

function connectLayoutFault(bytes: Uint8Array, start: number, end: number): PacketFault | null {
  const nameEnd = textEnd(bytes, start, end)
  if (nameEnd === -1 || nameEnd + 4 > end)
    return broken('Its CONNECT ends within the variable header (MQTT 3.1.2).')
  const name = Buffer.from(bytes.subarray(start + 2, nameEnd)).toString('latin1')
  if (name !== 'MQTT' && name !== 'MQIsdp')
    return broken(`Its CONNECT names the protocol ${quote(name, 20)} [MQTT-3.1.2-1].`)
  const level = bytes[nameEnd]! & ~bridgeBit
  // Its packets have another layout; it is refused as what it is.
  if (level === 5 && name === 'MQTT') return null
  if (level !== 3 && (level !== 4 || name === 'MQIsdp'))
    return {
      reason: 'unsupported_level',
      detail: `It asks for protocol level ${bytes[nameEnd]} of ${name}, and gets CONNACK 1 [MQTT-3.1.2-2].`,
    }
  const flags = bytes[nameEnd + 1]!
  return connectFlagsFault(flags) ?? connectPayloadFault(flags, bytes, nameEnd + 4, end)
}

function connectFlagsFault(flags: number): PacketFault | null {
  const willQos = (flags >> 3) & 0b11
  if ((flags & flagReserved) !== 0) return broken('Its CONNECT has the reserved flag [MQTT-3.1.2-3].')
  if ((flags & flagWill) === 0) {
    if (willQos > 0) return broken('Its CONNECT has a will QoS and no will [MQTT-3.1.2-13].')
    if ((flags & flagWillRetain) !== 0)
      return broken('Its CONNECT has the will retain flag and no will [MQTT-3.1.2-15].')
  } else if (willQos === 3)
    return { reason: 'bad_will_qos', detail: 'Its will has QoS 3, which does not exist [MQTT-3.1.2-14].' }
  if ((flags & flagPassword) !== 0 && (flags & flagUserName) === 0)
    return {
      reason: 'password_without_user',
      detail: 'Its CONNECT has a password and no user name [MQTT-3.1.2-22].',
    }
  return null
}

function connectPayloadFault(
  flags: number,
  bytes: Uint8Array,
  start: number,
  end: number,
): PacketFault | null {
  const hasWill = (flags & flagWill) !== 0
  const fields: readonly (readonly [isSent: boolean, name: string])[] = [
    [true, 'client id'],
    [hasWill, 'will topic'],
    [hasWill, 'will message'],
    [(flags & flagUserName) !== 0, 'user name'],
    [(flags & flagPassword) !== 0, 'password'],
  ]
  let at = start
  for (const [isSent, name] of fields) {
    if (!isSent) continue
    at = textEnd(bytes, at, end)
    if (at === -1) return broken(`Its CONNECT ends before the end of its ${name} [MQTT-3.1.3-1].`)
  }
  if (at === end) return null
  return broken(`Its CONNECT has ${end - at} more bytes than its fields [MQTT-3.1.3-1].`)
}

// ---- bytes

/** Where the text ends that begins at `start` with its length; -1 where it does not end before `end`. */
function textEnd(bytes: Uint8Array, start: number, end: number): number {
  if (start + 2 > end) return -1
  const at = start + 2 + numberAt(bytes, start)
  return at > end ? -1 : at
}

function numberAt(bytes: Uint8Array, at: number): number {
  return (bytes[at]! << 8) | bytes[at + 1]!
}

function broken(detail: string): PacketFault {
  return { reason: 'protocol_error', detail }
}
