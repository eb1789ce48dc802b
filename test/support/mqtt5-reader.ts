// mqtt5-reader.ts: reads the MQTT 5 packets of a server, strictly: it throws at anything that a server may not
// send (MQTT 5, 2.1.3, 2.2.2 and 3.x), so a test that receives a packet has checked its layout.

import { property } from './mqtt5-packets.ts'

export type Properties = ReadonlyMap<number, PropertyValue>

export type PropertyValue = number | string | Buffer | readonly (readonly [name: string, value: string])[]

export type ServerPacket = {
  type: keyof typeof serverTypes
  /** Of the fixed header. */
  flags: number
  /** The first reason code; 0 where the packet has none. */
  code: number
  /** SUBACK and UNSUBACK: one for each filter. */
  codes: readonly number[]
  messageId: number
  /** CONNACK. */
  sessionPresent: boolean
  properties: Properties
  topic: string
  payload: Buffer
  /** Of the whole packet. */
  bytes: number
}

const serverTypes = {
  connack: 2,
  publish: 3,
  puback: 4,
  pubrec: 5,
  pubcomp: 7,
  suback: 9,
  unsuback: 11,
  pingresp: 13,
  disconnect: 14,
} as const

const nameOf = new Map<number, keyof typeof serverTypes>(
  Object.entries(serverTypes).map(([name, number]) => [number, name as keyof typeof serverTypes]),
)

type Kind = 'byte' | 'flag' | 'two' | 'four' | 'text' | 'binary' | 'pair' | 'variable'

/** Properties that a server may send, by packet (MQTT 5, table 2-4). */
const kinds: Readonly<Record<number, Kind>> = {
  [property.payloadFormat]: 'flag',
  [property.messageExpiry]: 'four',
  [property.contentType]: 'text',
  [property.responseTopic]: 'text',
  [property.correlationData]: 'binary',
  [property.subscriptionId]: 'variable',
  [property.sessionExpiry]: 'four',
  [property.assignedClientId]: 'text',
  [property.serverKeepAlive]: 'two',
  [property.responseInformation]: 'text',
  [property.serverReference]: 'text',
  [property.reasonString]: 'text',
  [property.receiveMaximum]: 'two',
  [property.topicAliasMaximum]: 'two',
  [property.topicAlias]: 'two',
  [property.maximumQos]: 'flag',
  [property.retainAvailable]: 'flag',
  [property.userProperty]: 'pair',
  [property.maximumPacketSize]: 'four',
  [property.wildcardsAvailable]: 'flag',
  [property.subscriptionIdsAvailable]: 'flag',
  [property.sharedAvailable]: 'flag',
}

const ackProperties: readonly number[] = [property.reasonString, property.userProperty]

const allowed: Readonly<Record<ServerPacket['type'], readonly number[]>> = {
  connack: [
    ...ackProperties,
    property.sessionExpiry,
    property.assignedClientId,
    property.serverKeepAlive,
    property.responseInformation,
    property.serverReference,
    property.receiveMaximum,
    property.topicAliasMaximum,
    property.maximumQos,
    property.retainAvailable,
    property.maximumPacketSize,
    property.wildcardsAvailable,
    property.subscriptionIdsAvailable,
    property.sharedAvailable,
  ],
  publish: [
    property.payloadFormat,
    property.messageExpiry,
    property.contentType,
    property.responseTopic,
    property.correlationData,
    property.subscriptionId,
    property.topicAlias,
    property.userProperty,
  ],
  puback: ackProperties,
  pubrec: ackProperties,
  pubcomp: ackProperties,
  suback: ackProperties,
  unsuback: ackProperties,
  pingresp: [],
  disconnect: [...ackProperties, property.serverReference],
}

/** Reason codes that a server may send (MQTT 5, 3.x.2). */
const codesOf: Partial<Readonly<Record<ServerPacket['type'], readonly number[]>>> = {
  connack: [
    0, 0x80, 0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8a, 0x8c, 0x90, 0x95, 0x97, 0x99, 0x9a,
    0x9b, 0x9c, 0x9d, 0x9f,
  ],
  puback: [0, 0x10, 0x80, 0x83, 0x87, 0x90, 0x91, 0x97, 0x99],
  pubrec: [0, 0x10, 0x80, 0x83, 0x87, 0x90, 0x91, 0x97, 0x99],
  pubcomp: [0, 0x92],
  suback: [0, 1, 2, 0x80, 0x83, 0x87, 0x8f, 0x91, 0x97, 0x9e, 0xa1, 0xa2],
  unsuback: [0, 0x11, 0x80, 0x83, 0x87, 0x8f, 0x91],
  disconnect: [
    0, 0x80, 0x81, 0x82, 0x83, 0x87, 0x89, 0x8b, 0x8d, 0x8e, 0x8f, 0x90, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98,
    0x99, 0x9a, 0x9b, 0x9c, 0x9d, 0x9e, 0x9f, 0xa0, 0xa1, 0xa2,
  ],
}

/** The packet at the start of `bytes`; null while it is not whole. Throws where a server may not send it. */
export function readServerPacket(bytes: Buffer): ServerPacket | null {
  const head = bytes[0]
  if (head === undefined) return null
  const type = nameOf.get(head >> 4)
  if (type === undefined) throw new Error(`a server does not send packets of type ${head >> 4}`)
  const flags = head & 0b1111
  if (type !== 'publish' && flags !== 0) throw new Error(`${type} with the flags ${flags}`)
  const length = readVariable(bytes, 1)
  if (length === null || bytes.length < length.next + length.value) return null
  const end = length.next + length.value
  const packet: ServerPacket = {
    type,
    flags,
    code: 0,
    codes: [],
    messageId: 0,
    sessionPresent: false,
    properties: new Map(),
    topic: '',
    payload: Buffer.alloc(0),
    bytes: end,
  }
  readBody(packet, createReader(bytes.subarray(0, end), length.next))
  for (const code of [packet.code, ...packet.codes])
    if (codesOf[type]?.includes(code) === false) throw new Error(`${type} with the reason code ${code}`)
  return packet
}

type Reader = ReturnType<typeof createReader>

function readBody(packet: ServerPacket, reader: Reader): void {
  const { type } = packet
  switch (type) {
    case 'connack': {
      const flags = reader.byte()
      if (flags > 1) throw new Error(`CONNACK with the flags ${flags}`)
      packet.sessionPresent = flags === 1
      packet.code = reader.byte()
      if (packet.code !== 0 && packet.sessionPresent) throw new Error('session present with a refusal')
      packet.properties = reader.section(type)
      break
    }
    case 'publish':
      packet.topic = reader.text()
      if (((packet.flags >> 1) & 0b11) > 0) packet.messageId = reader.two()
      packet.properties = reader.section(type)
      packet.payload = reader.rest()
      break
    case 'puback':
    case 'pubrec':
    case 'pubcomp':
      packet.messageId = reader.two()
      if (packet.messageId === 0) throw new Error(`${type} with packet identifier 0`)
      if (!reader.isAtEnd()) packet.code = reader.byte()
      if (!reader.isAtEnd()) packet.properties = reader.section(type)
      break
    case 'suback':
    case 'unsuback':
      packet.messageId = reader.two()
      packet.properties = reader.section(type)
      packet.codes = [...reader.rest()]
      if (packet.codes.length === 0) throw new Error(`${type} without a code`)
      break
    case 'disconnect':
      if (!reader.isAtEnd()) packet.code = reader.byte()
      if (!reader.isAtEnd()) packet.properties = reader.section(type)
      break
    case 'pingresp':
  }
  if (!reader.isAtEnd()) throw new Error(`${type} is longer than its fields`)
}

function createReader(bytes: Buffer, start: number) {
  let at = start
  const next = (length: number): number => {
    if (at + length > bytes.length) throw new Error('the packet ends within a field')
    at += length
    return at - length
  }
  const reader = {
    byte: () => bytes.readUInt8(next(1)),
    two: () => bytes.readUInt16BE(next(2)),
    four: () => bytes.readUInt32BE(next(4)),
    binary: () => Buffer.from(bytes.subarray(next(reader.two()), at)),
    text: () => new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(reader.binary()),
    rest: () => Buffer.from(bytes.subarray(at, (at = bytes.length))),
    at: () => at,
    isAtEnd: () => at === bytes.length,
    variable() {
      const read = readVariable(bytes, at)
      if (read === null) throw new Error('the packet ends within a number')
      at = read.next
      return read.value
    },
    section(type: ServerPacket['type']): Properties {
      const end = reader.variable() + at
      if (end > bytes.length) throw new Error('the properties are longer than the packet')
      const found = new Map<number, PropertyValue>()
      for (; reader.at() < end;) {
        const id = reader.variable()
        const kind = kinds[id]
        if (kind === undefined || !allowed[type].includes(id))
          throw new Error(`${type} with the property ${id}`)
        const value = valueOf(reader, kind)
        const before = found.get(id)
        if (before !== undefined && kind !== 'pair') throw new Error(`the property ${id} comes twice`)
        found.set(id, Array.isArray(before) ? [...before, ...(value as [])] : value)
      }
      if (at !== end) throw new Error('a property is longer than the section')
      return found
    },
  }
  return reader
}

function valueOf(reader: Reader, kind: Kind): PropertyValue {
  if (kind === 'pair') return [[reader.text(), reader.text()]]
  if (kind !== 'flag') return reader[kind]()
  const byte = reader.byte()
  if (byte > 1) throw new Error(`a flag has the value ${byte}`)
  return byte
}

/** Null where `bytes` end within it. */
function readVariable(bytes: Buffer, start: number): { value: number; next: number } | null {
  let value = 0
  for (let index = 0; index < 4; index += 1) {
    const byte = bytes[start + index]
    if (byte === undefined) return null
    value += (byte & 0x7f) * 128 ** index
    if (byte < 0x80) {
      if (index > 0 && byte === 0) throw new Error('a number has more bytes than it needs')
      return { value, next: start + index + 1 }
    }
  }
  throw new Error('a number has five bytes')
}
