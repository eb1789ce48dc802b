// packet-layout.ts: how the packets of a client of MQTT 5 must be laid out (chapters 2 and 3), as
// packet-rules.ts says it for 3.1 and 3.1.1. Pure. Checks texts and properties too: nothing else reads
// these packets before they are used. Each fault names its clause and has the reason code that the client
// gets.
//
// PUBLISH is checked where it is read (publish-packets.ts).

import type { ClientDropReason } from '../client-faults.ts'
import type { PacketFault } from '../packet-rules.ts'
import { binaryEnd, cutField, notUtf8, textEnd, twoBytesAt } from './packet-bytes.ts'
import { clientProperties, propertiesEnd, propertyFault, type PropertyRules } from './property-rules.ts'

const malformed = 0x81
const protocolError = 0x82

const types = {
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

const names: Readonly<Record<number, string>> = {
  [types.connect]: 'CONNECT',
  [types.publish]: 'PUBLISH',
  [types.puback]: 'PUBACK',
  [types.pubrec]: 'PUBREC',
  [types.pubrel]: 'PUBREL',
  [types.pubcomp]: 'PUBCOMP',
  [types.subscribe]: 'SUBSCRIBE',
  [types.unsubscribe]: 'UNSUBSCRIBE',
  [types.pingreq]: 'PINGREQ',
  [types.disconnect]: 'DISCONNECT',
  [types.auth]: 'AUTH',
}

/** What is wrong with the flags in the first byte; null for right ones (2.1.3). PUBLISH has its own. */
export function flagsFault5(head: number): PacketFault | null {
  const type = head >> 4
  const flags = head & 0b1111
  if (type === types.publish) {
    if ((flags & 0b0110) === 0b0110)
      return broken('It published with QoS 3, which does not exist [MQTT-3.3.1-4].')
    return (flags & 0b1110) === 0b1000
      ? broken('It published with QoS 0 and the DUP flag [MQTT-3.3.1-2].')
      : null
  }
  const required = type === types.pubrel || type === types.subscribe || type === types.unsubscribe ? 2 : 0
  if (flags === required) return null
  return broken(`Its ${names[type]} has the flags ${flags}, and not ${required} [MQTT-2.1.3-1].`)
}

/** What is wrong with the packet whose bytes behind the fixed header are those from `start` to `end`. */
export function layoutFault5(head: number, bytes: Buffer, start: number, end: number): PacketFault | null {
  const type = head >> 4
  switch (type) {
    case types.publish:
      return null
    case types.pingreq:
      return end === start
        ? null
        : broken(`Its PINGREQ has the remaining length ${end - start}, and not 0 (MQTT 3.12.1).`)
    case types.connect:
      return connectFault(bytes, start, end)
    case types.subscribe:
    case types.unsubscribe:
      return filtersFault(type, bytes, start, end)
    case types.disconnect:
      return reasonFault(type, bytes, start, end, clientProperties.disconnect)
    case types.auth:
      return violation('It sent AUTH, and its CONNECT named no authentication method [MQTT-4.12.0-7].')
    default:
      if (end - start < 2 || twoBytesAt(bytes, start) === 0) return noPacketId(type)
      return reasonFault(type, bytes, start + 2, end, clientProperties.ack)
  }
}

// ---- DISCONNECT and acknowledgements

const ofMessage = [0x00, 0x10, 0x80, 0x83, 0x87, 0x90, 0x91, 0x97, 0x99]
const ofRelease = [0x00, 0x92]
/** Reason codes that a client may send, by packet type (2.4). */
const reasonCodes: Readonly<Record<number, readonly number[]>> = {
  [types.puback]: ofMessage,
  [types.pubrec]: ofMessage,
  [types.pubrel]: ofRelease,
  [types.pubcomp]: ofRelease,
  [types.disconnect]: [0x00, 0x04, 0x80, 0x81, 0x82, 0x83, 0x90, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98, 0x99],
}
const clauses: Readonly<Record<number, string>> = {
  [types.puback]: 'MQTT-3.4.2-1',
  [types.pubrec]: 'MQTT-3.5.2-1',
  [types.pubrel]: 'MQTT-3.6.2-1',
  [types.pubcomp]: 'MQTT-3.7.2-1',
  [types.disconnect]: 'MQTT-3.14.2-1',
}

/** Nothing, a reason code, or a reason code and properties. */
function reasonFault(
  type: number,
  bytes: Buffer,
  start: number,
  end: number,
  rules: PropertyRules,
): PacketFault | null {
  if (start === end) return null
  const code = bytes[start]!
  if (!reasonCodes[type]!.includes(code))
    return violation(`Its ${names[type]} has the reason code ${code} [${clauses[type]}].`)
  if (start + 1 === end) return null
  const last = propertiesEnd(bytes, start + 1, end, rules)
  if (last < 0) return propertyFault(names[type]!, last)
  return last === end ? null : surplus(type, end - last)
}

// ---- SUBSCRIBE and UNSUBSCRIBE

const noLocal = 0b0000_0100
const shared = Buffer.from('$share/')

function filtersFault(type: number, bytes: Buffer, start: number, end: number): PacketFault | null {
  if (end - start < 2 || twoBytesAt(bytes, start) === 0) return noPacketId(type)
  const isSubscribe = type === types.subscribe
  const name = names[type]!
  const rules = isSubscribe ? clientProperties.subscribe : clientProperties.unsubscribe
  let at = propertiesEnd(bytes, start + 2, end, rules)
  if (at < 0) return propertyFault(name, at)
  if (at === end)
    return violation(`Its ${name} has no topic filter [MQTT-3.${type}.3-2].`, 'bad_topic_filter')
  while (at < end) {
    const filterStart = at + 2
    at = textEnd(bytes, at, end)
    if (at === cutField || (isSubscribe && at === end))
      return broken(`Its ${name} ends within a topic filter (MQTT 3.${type}.3).`)
    if (at < 0) return badText(at, 'topic filter', 'bad_topic_filter')
    if (!isSubscribe) continue
    const fault = optionsFault(bytes[at]!, bytes.subarray(filterStart, at))
    if (fault !== null) return fault
    at += 1
  }
  return null
}

/**
 * Subscription options (3.8.3.1): reserved (2), retain handling (2), Retain As Published, No Local, QoS
 * (2).
 */
function optionsFault(options: number, filter: Buffer): PacketFault | null {
  if (options >> 6 !== 0)
    return broken('Its SUBSCRIBE sets reserved bits of the subscription options [MQTT-3.8.3-5].')
  if ((options & 0b11) === 3) return violation('Its SUBSCRIBE asks for QoS 3 (MQTT 3.8.3.1).')
  if (((options >> 4) & 0b11) === 3)
    return violation('Its SUBSCRIBE has the retain handling 3 (MQTT 3.8.3.1).')
  if ((options & noLocal) !== 0 && filter.subarray(0, shared.length).equals(shared))
    return violation('Its SUBSCRIBE has No Local with a shared subscription [MQTT-3.8.3-4].')
  return null
}

// ---- CONNECT

const flagReserved = 0x01
const flagWill = 0x04
const flagWillRetain = 0x20
const flagPassword = 0x40
const flagUserName = 0x80

/** packet-rules.ts has checked protocol name and level, which say that the layout is this one. */
function connectFault(bytes: Buffer, start: number, end: number): PacketFault | null {
  const nameEnd = binaryEnd(bytes, start, end)
  // Level, flags and keepalive.
  if (nameEnd === cutField || nameEnd + 4 > end)
    return broken('Its CONNECT ends within the variable header (MQTT 3.1.2).')
  const flags = bytes[nameEnd + 1]!
  const fault = connectFlagsFault(flags)
  if (fault !== null) return fault
  const payload = propertiesEnd(bytes, nameEnd + 4, end, clientProperties.connect)
  return payload < 0 ? propertyFault('CONNECT', payload) : payloadFault(flags, bytes, payload, end)
}

function connectFlagsFault(flags: number): PacketFault | null {
  const willQos = (flags >> 3) & 0b11
  if ((flags & flagReserved) !== 0) return broken('Its CONNECT has the reserved flag [MQTT-3.1.2-3].')
  if ((flags & flagWill) === 0) {
    if (willQos > 0) return broken('Its CONNECT has a will QoS and no will [MQTT-3.1.2-11].')
    if ((flags & flagWillRetain) !== 0)
      return broken('Its CONNECT has the will retain flag and no will [MQTT-3.1.2-13].')
  } else if (willQos === 3)
    return broken('Its will has QoS 3, which does not exist [MQTT-3.1.2-12].', 'bad_will_qos')
  return null
}

/**
 * Client id, will properties, will topic, will message, user name, password, in this order [MQTT-3.1.3-1].
 */
function payloadFault(flags: number, bytes: Buffer, start: number, end: number): PacketFault | null {
  let at = textEnd(bytes, start, end)
  if (at < 0) return fieldFault(at, 'client id', 'bad_client_id')
  if ((flags & flagWill) !== 0) {
    at = propertiesEnd(bytes, at, end, clientProperties.will)
    if (at < 0) return propertyFault('will', at)
    at = textEnd(bytes, at, end)
    if (at < 0) return fieldFault(at, 'will topic', 'bad_will_topic')
    at = binaryEnd(bytes, at, end)
    if (at < 0) return fieldFault(at, 'will message', 'protocol_error')
  }
  if ((flags & flagUserName) !== 0) {
    at = textEnd(bytes, at, end)
    if (at < 0) return fieldFault(at, 'user name', 'bad_user_name')
  }
  if ((flags & flagPassword) !== 0) {
    at = binaryEnd(bytes, at, end)
    if (at < 0) return fieldFault(at, 'password', 'protocol_error')
  }
  return at === end ? null : surplus(types.connect, end - at)
}

// ---- faults

function fieldFault(problem: number, name: string, reason: ClientDropReason): PacketFault {
  return problem === cutField
    ? broken(`Its CONNECT ends before the end of its ${name} [MQTT-3.1.3-1].`)
    : badText(problem, name, reason)
}

function badText(problem: number, name: string, reason: ClientDropReason): PacketFault {
  return broken(
    problem === notUtf8
      ? `A ${name} that it sent is not well-formed UTF-8 [MQTT-1.5.4-1].`
      : `A ${name} that it sent contains a null character [MQTT-1.5.4-2].`,
    reason,
  )
}

function noPacketId(type: number): PacketFault {
  return violation(`Its ${names[type]} has no packet identifier, or 0 [MQTT-2.2.1-3].`, 'no_packet_id')
}

function surplus(type: number, count: number): PacketFault {
  return broken(`Its ${names[type]} has ${count} more bytes than its fields (MQTT 3.${type}).`)
}

function broken(detail: string, reason: ClientDropReason = 'protocol_error'): PacketFault {
  return { reason, detail, code: malformed }
}

function violation(detail: string, reason: ClientDropReason = 'protocol_error'): PacketFault {
  return { reason, detail, code: protocolError }
}
