// property-rules.ts: which properties a packet of MQTT 5 may have, and whether they are laid out as they
// must be (2.2.2). Pure; reads nothing behind the end that it is given.
//
//   property length        variable byte integer: 7 bits a byte, lowest first, in as few bytes as possible
//   then, to that length   identifier (1 byte), value
//
//   value    byte, two bytes, four bytes, variable byte integer, text or binary data with a length of two,
//            two texts
//
// A check gives an offset, or a negative number that stands for a problem (`propertyFault`).

import type { PacketFault } from '../client-faults.ts'
import {
  binaryEnd,
  cutField,
  integerAt,
  integerEnd,
  integerSize,
  notUtf8,
  textEnd,
  twoBytesAt,
  withNull,
} from './packet-bytes.ts'

/** One bit for each property, see `bits`. */
export type PropertyRules = Readonly<{
  once: number
  repeated: number
  /** Of this packet type, and not from a client. */
  serverOnly: number
}>

export const propertyIds = {
  payloadFormat: 0x01,
  messageExpiry: 0x02,
  contentType: 0x03,
  responseTopic: 0x08,
  correlationData: 0x09,
  subscriptionIdentifier: 0x0b,
  sessionExpiry: 0x11,
  authenticationMethod: 0x15,
  authenticationData: 0x16,
  requestProblemInformation: 0x17,
  willDelay: 0x18,
  requestResponseInformation: 0x19,
  serverReference: 0x1c,
  reasonString: 0x1f,
  receiveMaximum: 0x21,
  topicAliasMaximum: 0x22,
  topicAlias: 0x23,
  userProperty: 0x26,
  maximumPacketSize: 0x27,
} as const

const ids = propertyIds
const byteKind = 1
const twoBytesKind = 2
const fourBytesKind = 4
const integerKind = 5
const textKind = 6
const binaryKind = 7
const pairKind = 8

/** By identifier. */
const kinds = new Uint8Array(256)
/** By identifier: its bit in `PropertyRules`. */
const bits = new Int32Array(256)
const kindsById: readonly (readonly [kind: number, ids: readonly number[]])[] = [
  [byteKind, [ids.payloadFormat, ids.requestProblemInformation, ids.requestResponseInformation]],
  [twoBytesKind, [ids.receiveMaximum, ids.topicAliasMaximum, ids.topicAlias]],
  [fourBytesKind, [ids.messageExpiry, ids.sessionExpiry, ids.willDelay, ids.maximumPacketSize]],
  [integerKind, [ids.subscriptionIdentifier]],
  [
    textKind,
    [ids.contentType, ids.responseTopic, ids.authenticationMethod, ids.serverReference, ids.reasonString],
  ],
  [binaryKind, [ids.correlationData, ids.authenticationData]],
  [pairKind, [ids.userProperty]],
]
for (const [kind, group] of kindsById) for (const id of group) kinds[id] = kind
for (const [index, id] of Object.values(ids).entries()) bits[id] = 1 << index

function rulesOf(once: readonly number[], serverOnly: readonly number[] = []): PropertyRules {
  const maskOf = (group: readonly number[]) => group.reduce((mask, id) => mask | bits[id]!, 0)
  return { once: maskOf(once), repeated: maskOf([ids.userProperty]), serverOnly: maskOf(serverOnly) }
}

const messageIds = [
  ids.payloadFormat,
  ids.messageExpiry,
  ids.contentType,
  ids.responseTopic,
  ids.correlationData,
] as const

/** Of the packets that a client sends. */
export const clientProperties = {
  connect: rulesOf([
    ids.sessionExpiry,
    ids.receiveMaximum,
    ids.maximumPacketSize,
    ids.topicAliasMaximum,
    ids.requestResponseInformation,
    ids.requestProblemInformation,
    ids.authenticationMethod,
    ids.authenticationData,
  ]),
  will: rulesOf([...messageIds, ids.willDelay]),
  publish: rulesOf([...messageIds, ids.topicAlias], [ids.subscriptionIdentifier]),
  /** PUBACK, PUBREC, PUBREL, PUBCOMP. */
  ack: rulesOf([ids.reasonString]),
  subscribe: rulesOf([ids.subscriptionIdentifier]),
  unsubscribe: rulesOf([]),
  disconnect: rulesOf([ids.sessionExpiry, ids.reasonString], [ids.serverReference]),
} as const

const malformed = 0x81
const protocolError = 0x82

/** Besides those of packet-bytes.ts. */
const badLength = -4
const foreign = -5
const fromServer = -6
const badInteger = -7
const twice = -8
const outOfRange = -9
const withWildcard = -10
const withoutMethod = -11

const problems: Readonly<Record<number, readonly [code: number, text: string]>> = {
  [cutField]: [malformed, 'has a property that does not end with its properties (MQTT 2.2.2)'],
  [notUtf8]: [malformed, 'has a property that is not well-formed UTF-8 [MQTT-1.5.4-1]'],
  [withNull]: [malformed, 'has a property with a null character [MQTT-1.5.4-2]'],
  [badLength]: [malformed, 'has no valid property length (MQTT 2.2.2.1) [MQTT-1.5.5-1]'],
  [foreign]: [malformed, 'has a property that this packet type does not have (MQTT 2.2.2.2)'],
  [fromServer]: [protocolError, 'has a property that only a server sends [MQTT-3.3.4-6]'],
  [badInteger]: [malformed, 'has a property with a number that is not valid [MQTT-1.5.5-1]'],
  [twice]: [protocolError, 'has a property twice that may come once (MQTT 2.2.2.2)'],
  [outOfRange]: [protocolError, 'has a property with a value that is not allowed (MQTT 2.2.2.2)'],
  [withWildcard]: [protocolError, 'has a response topic with a wildcard [MQTT-3.3.2-14]'],
  [withoutMethod]: [protocolError, 'has authentication data and no authentication method (MQTT 3.1.2.11.10)'],
}

/** `problem`: a negative number that one of the checks has given. */
export function propertyFault(packetName: string, problem: number): PacketFault {
  const [code, text] = problems[problem]!
  return { reason: 'protocol_error', detail: `Its ${packetName} ${text}.`, code }
}

/** Checks the properties whose length is at `at`, in a packet that ends at `end`. Gives their end. */
export function propertiesEnd(bytes: Buffer, at: number, end: number, rules: PropertyRules): number {
  return readProperties(bytes, at, end, rules, nothing)
}

/** Gets the value of a property, from `start` to `end`. */
export type PropertyVisitor = (identifier: number, start: number, end: number) => void

function nothing(): void {}

/** Checks them, and calls `visit` for each in their order. Gives their end. */
export function readProperties(
  bytes: Buffer,
  at: number,
  end: number,
  rules: PropertyRules,
  visit: PropertyVisitor,
): number {
  const last = sectionEnd(bytes, at, end)
  if (last < 0) return last
  let seen = 0
  for (let offset = integerEnd(bytes, at); offset < last;) {
    const next = propertyEnd(bytes, offset, last, rules, seen)
    if (next < 0) return next
    const identifier = bytes[offset]!
    seen |= bits[identifier]!
    visit(identifier, offset + 1, next)
    offset = next
  }
  const hasData = (seen & bits[ids.authenticationData]!) !== 0
  return hasData && (seen & bits[ids.authenticationMethod]!) === 0 ? withoutMethod : last
}

/** Where the properties end whose length is at `at`. */
export function sectionEnd(bytes: Buffer, at: number, end: number): number {
  const size = integerSize(bytes, at, end)
  if (size === 0) return badLength
  const last = at + size + integerAt(bytes, at)
  return last > end ? badLength : last
}

/**
 * Where the property ends whose identifier is at `at`, in properties that end at `end`. `seen`: the bits of
 * those before it.
 */
function propertyEnd(
  bytes: Buffer,
  at: number,
  end: number,
  { once, repeated, serverOnly }: PropertyRules,
  seen: number,
): number {
  const identifier = bytes[at]!
  const bit = bits[identifier]!
  if ((bit & (once | repeated)) === 0) return (bit & serverOnly) === 0 ? foreign : fromServer
  if ((bit & once & seen) !== 0) return twice
  const start = at + 1
  switch (kinds[identifier]!) {
    case pairKind: {
      const middle = textEnd(bytes, start, end)
      return middle < 0 ? middle : textEnd(bytes, middle, end)
    }
    case textKind:
      return identifier === ids.responseTopic
        ? responseTopicEnd(bytes, start, end)
        : textEnd(bytes, start, end)
    case binaryKind:
      return binaryEnd(bytes, start, end)
    case integerKind: {
      const size = integerSize(bytes, start, end)
      if (size === 0) return badInteger
      return integerAt(bytes, start) === 0 ? outOfRange : start + size
    }
    default:
      return fixedEnd(bytes, start, end, identifier)
  }
}

function fixedEnd(bytes: Buffer, start: number, end: number, identifier: number): number {
  const size = kinds[identifier]!
  if (start + size > end) return cutField
  if (size === byteKind) return bytes[start]! > 1 ? outOfRange : start + size
  if (identifier === ids.receiveMaximum && twoBytesAt(bytes, start) === 0) return outOfRange
  if (identifier === ids.maximumPacketSize && bytes.readUInt32BE(start) === 0) return outOfRange
  return start + size
}

const plus = 0x2b
const hash = 0x23

function responseTopicEnd(bytes: Buffer, start: number, end: number): number {
  const last = textEnd(bytes, start, end)
  for (let index = start + 2; index < last; index += 1)
    if (bytes[index] === plus || bytes[index] === hash) return withWildcard
  return last
}

/** Where the value of a property begins, in properties that are valid; -1 where it is not there. */
export function propertyValueAt(
  bytes: Buffer,
  at: number,
  end: number,
  identifier: number,
  rules: PropertyRules,
): number {
  let found = -1
  readProperties(bytes, at, end, rules, (id, start) => {
    if (id === identifier) found = start
  })
  return found
}
