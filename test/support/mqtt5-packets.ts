// mqtt5-packets.ts: writes the bytes of MQTT 5 packets of a client, for tests: what they are told, right or
// wrong.

/** A packet with a right remaining length. */
export function packetOf(head: number, ...parts: readonly Part[]): Buffer {
  const body = bytesOf(parts)
  return Buffer.concat([Buffer.from([head]), variableInteger(body.length), body])
}

export type Part = number | readonly number[] | Buffer

export function bytesOf(parts: readonly Part[]): Buffer {
  return Buffer.concat(
    parts.map((part) => (typeof part === 'number' ? Buffer.from([part]) : Buffer.from(part as number[]))),
  )
}

/** A text or binary data: its length in two bytes before it (MQTT 5, 1.5.4 and 1.5.6). */
export function text(value: string | readonly number[] | Buffer): Buffer {
  const bytes = Buffer.from(value as string)
  return Buffer.concat([uint16(bytes.length), bytes])
}

export function uint16(number: number): Buffer {
  return Buffer.from([number >> 8, number & 0xff])
}

export function uint32(number: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(number)
  return bytes
}

/** MQTT 5, 1.5.5. */
export function variableInteger(number: number): Buffer {
  const bytes: number[] = []
  let rest = number
  do {
    const byte = rest % 128
    rest = Math.floor(rest / 128)
    bytes.push(rest > 0 ? byte | 0x80 : byte)
  } while (rest > 0)
  return Buffer.from(bytes)
}

/** A property section: its length, then the properties. */
export function propertiesOf(...parts: readonly Part[]): Buffer {
  const body = bytesOf(parts)
  return Buffer.concat([variableInteger(body.length), body])
}

export function userProperty(name: string, value: string): Buffer {
  return Buffer.concat([Buffer.from([property.userProperty]), text(name), text(value)])
}

/** MQTT 5, 2.2.2.2. */
export const property = {
  payloadFormat: 0x01,
  messageExpiry: 0x02,
  contentType: 0x03,
  responseTopic: 0x08,
  correlationData: 0x09,
  subscriptionId: 0x0b,
  sessionExpiry: 0x11,
  assignedClientId: 0x12,
  serverKeepAlive: 0x13,
  authenticationMethod: 0x15,
  authenticationData: 0x16,
  requestProblemInformation: 0x17,
  willDelay: 0x18,
  requestResponseInformation: 0x19,
  responseInformation: 0x1a,
  serverReference: 0x1c,
  reasonString: 0x1f,
  receiveMaximum: 0x21,
  topicAliasMaximum: 0x22,
  topicAlias: 0x23,
  maximumQos: 0x24,
  retainAvailable: 0x25,
  userProperty: 0x26,
  maximumPacketSize: 0x27,
  wildcardsAvailable: 0x28,
  subscriptionIdsAvailable: 0x29,
  sharedAvailable: 0x2a,
} as const

export type ConnectFields = {
  name?: string
  level?: number
  flags?: number
  keepAliveS?: number
  /** Instead of a section with `properties`. */
  section?: Buffer
  properties?: readonly Part[]
  clientId?: string | readonly number[]
  /** What follows the client identifier, instead of the fields below. */
  rest?: readonly Part[]
  will?: { topic: string; payload: string; properties?: readonly Part[]; qos?: number; retain?: boolean }
  userName?: string
  password?: string
}

export const cleanStart = 0x02

/** Without `hasProperties` in the layout of MQTT 3.1.1. */
export function connectPacket(fields: ConnectFields = {}, hasProperties = true): Buffer {
  const { will, userName, password, name = 'MQTT', level = 5, keepAliveS = 0, clientId = 'truck' } = fields
  const flags =
    (fields.flags ?? cleanStart) |
    (will === undefined ? 0 : 0x04 | ((will.qos ?? 0) << 3) | (will.retain ? 0x20 : 0)) |
    (userName === undefined ? 0 : 0x80) |
    (password === undefined ? 0 : 0x40)
  const sectionOf = (properties: readonly Part[] = []) => (hasProperties ? propertiesOf(...properties) : [])
  const section = fields.section ?? sectionOf(fields.properties)
  const willFields =
    will === undefined ? [] : [sectionOf(will.properties), text(will.topic), text(will.payload)]
  const rest = fields.rest ?? [
    ...willFields,
    ...(userName === undefined ? [] : [text(userName)]),
    ...(password === undefined ? [] : [text(password)]),
  ]
  return packetOf(0x10, text(name), level, flags, uint16(keepAliveS), section, text(clientId), ...rest)
}

export type PublishFields = {
  topic?: string | readonly number[]
  payload?: string | Buffer
  qos?: number
  messageId?: number
  dup?: boolean
  retain?: boolean
  properties?: readonly Part[]
  /** Instead of a section with `properties`. */
  section?: Buffer
}

export function publishPacket(fields: PublishFields = {}, hasProperties = true): Buffer {
  const { topic = 't', payload = '{}', qos = 1, messageId = 1, dup = false, retain = false } = fields
  return packetOf(
    0x30 | (dup ? 8 : 0) | (qos << 1) | (retain ? 1 : 0),
    text(topic),
    ...(qos === 0 ? [] : [uint16(messageId)]),
    hasProperties ? (fields.section ?? propertiesOf(...(fields.properties ?? []))) : [],
    Buffer.from(payload),
  )
}

/** `filters`: the filter and its options (MQTT 5, 3.8.3.1). */
export function subscribePacket(
  messageId: number,
  filters: readonly (readonly [filter: string | readonly number[], options: number])[],
  properties: readonly Part[] = [],
): Buffer {
  const entries = filters.flatMap(([filter, options]) => [text(filter), Buffer.from([options])])
  return packetOf(0x82, uint16(messageId), propertiesOf(...properties), ...entries)
}

export function unsubscribePacket(
  messageId: number,
  filters: readonly (string | readonly number[])[],
): Buffer {
  return packetOf(0xa2, uint16(messageId), propertiesOf(), ...filters.map((filter) => text(filter)))
}

export const pingPacket = Buffer.from([0xc0, 0])

export function pubrelPacket(messageId: number): Buffer {
  return packetOf(0x62, uint16(messageId))
}

export function disconnectPacket(code = 0, properties: readonly Part[] | null = null): Buffer {
  if (properties !== null) return packetOf(0xe0, code, propertiesOf(...properties))
  return code === 0 ? packetOf(0xe0) : packetOf(0xe0, code)
}
