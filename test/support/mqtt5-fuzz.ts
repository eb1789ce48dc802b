// mqtt5-fuzz.ts: PUBLISH packets of MQTT 5 with random properties and bytes, right and wrong. What our reader takes
// is compared with what the parser of mqtt-packet reads. mqtt5-layout-fuzz.ts has the other packets.
// `node test/hostile/run.ts --properties 1000000` reads as many.

import { parser, type IPublishPacket, type Packet } from 'mqtt-packet'
import type { Message } from '../../src/domain/message.ts'
import { takePublishes, type PublishState } from '../../src/ingest/broker/packets/publishes.ts'
import { createReceiveQuota } from '../../src/ingest/broker/version5/receive-quota.ts'
import { createTopicAliases } from '../../src/ingest/broker/version5/topic-aliases.ts'
import { createVersion5Counts } from '../../src/ingest/broker/version5/version5.ts'
import { packetOf, propertiesOf, property, text, uint16, uint32, variableInteger } from './mqtt5-packets.ts'
import { createRandom, type Random } from './random.ts'

export type FuzzCounts = { packets: number; taken: number; faults: number; left: number; compared: number }

/** Behind each packet, to show a reader that goes past its end. */
export const behind = Buffer.from('\u0026\u0000\u0001a\u0000\u0001b'.repeat(4))
const texts = [
  '',
  'a',
  '__proto__',
  'north',
  'application/json',
  '\u00e4\u{1f69a}',
  '\ufeff',
  '\ufffd',
  'x'.repeat(200),
]
const wrongTexts = [[0xff], [0xc0, 0x80], [0xed, 0xa0, 0x80], [0x61, 0], [0xe4, 0xb8], [0x61, 0xc3]]
const kinds = Object.values(property)

/**
 * Reads `count` packets made from `seed` on. Throws where the reader throws, goes past the end of a packet, takes
 * what the parser of mqtt-packet reads in another way, or takes a packet that breaks a rule which is easily seen.
 */
export function fuzzProperties(count: number, seed: number): FuzzCounts {
  const random = createRandom(seed)
  const counts: FuzzCounts = { packets: 0, taken: 0, faults: 0, left: 0, compared: 0 }
  for (let index = 0; index < count; index += 1) {
    const packet = mutated(random, packetFrom(random))
    try {
      check(packet, counts)
    } catch (error) {
      throw new Error(`seed ${seed}, packet ${index}: ${packet.toString('hex')}`, { cause: error })
    }
    counts.packets += 1
  }
  return counts
}

function packetFrom(random: Random): Buffer {
  const qos = random.below(3)
  const properties: Buffer[] = []
  const seen = new Set<number>()
  for (let left = random.below(random.pick([2, 4, 8, 80])); left > 0; left -= 1) {
    const number = propertyNumberFrom(random)
    // Most come once, as they must.
    if (number !== property.userProperty && seen.has(number) && !random.chance(0.01)) continue
    seen.add(number)
    properties.push(Buffer.from([number]), valueFrom(random, number))
  }
  const section = propertiesOf(...properties)
  return packetOf(
    0x30 | (qos << 1) | random.below(2),
    random.chance(0.05) ? text('') : textFrom(random, 0.02),
    ...(qos === 0 ? [] : [uint16(random.chance(0.01) ? 0 : 1 + random.below(65_535))]),
    section,
    Buffer.from(random.pick(['', '{}', 'payload', '\u0000'])),
  )
}

function propertyNumberFrom(random: Random): number {
  if (random.chance(0.01)) return random.pick(kinds)
  return random.pick([0x01, 0x02, 0x03, 0x08, 0x09, 0x23, 0x26, 0x26, 0x26, 0x26])
}

export function valueFrom(random: Random, number: number): Buffer {
  switch (number) {
    case property.payloadFormat:
    case property.requestProblemInformation:
    case property.requestResponseInformation:
      return Buffer.from([random.below(random.chance(0.05) ? 256 : 2)])
    case property.messageExpiry:
    case property.sessionExpiry:
    case property.willDelay:
    case property.maximumPacketSize:
      return uint32(random.pick([1, 0xffff_ffff, random.below(2 ** 32)]))
    case property.receiveMaximum:
    case property.topicAliasMaximum:
    case property.topicAlias:
      return uint16(random.chance(0.05) ? random.below(65_536) : 1 + random.below(3))
    case property.userProperty:
      return Buffer.concat([textFrom(random, 0.01), textFrom(random, 0.01)])
    case property.subscriptionId:
      return variableInteger(random.below(268_435_456))
    default:
      return textFrom(random, 0.01)
  }
}

export function textFrom(random: Random, wrongShare: number): Buffer {
  return text(random.chance(wrongShare) ? random.pick(wrongTexts) : random.pick(texts))
}

/** Half of the packets stay as they are. */
export function mutated(random: Random, packet: Buffer): Buffer {
  if (random.chance(0.5)) return packet
  const bytes = Buffer.from(packet)
  for (let left = 1 + random.below(3); left > 0; left -= 1)
    bytes[random.below(bytes.length)] = random.pick([0, 1, 0x26, 0x7f, 0x80, 0xff, random.below(256)])
  return random.chance(0.1) ? bytes.subarray(0, 1 + random.below(bytes.length)) : bytes
}

type Read = Pick<Message, 'topic' | 'qos' | 'retain' | 'dup' | 'userProperties' | 'properties'> & {
  messageId: number
  payload: string
}

function check(packet: Buffer, counts: FuzzCounts): void {
  const state: PublishState = {
    quota: createReceiveQuota(9),
    aliases: createTopicAliases(4),
    counts: createVersion5Counts(),
  }
  for (let alias = 1; alias <= 3; alias += 1) state.aliases.set(alias, `alias/${alias}`)
  const read = readOne(packet, state)
  // What stands behind the packet must not matter.
  const longer = readOne(Buffer.concat([packet, behind]), state)
  if (read.end === packet.length && JSON.stringify(read.taken) !== JSON.stringify(longer.taken))
    throw new Error(`read ${JSON.stringify(longer.taken)} with bytes behind it`)
  if (read.isFault) counts.faults += 1
  else if (read.taken === null) counts.left += 1
  else {
    counts.taken += 1
    if (isAlike(packet, read.taken)) counts.compared += 1
  }
}

type Reading = { taken: Read | null; end: number; isFault: boolean }

function readOne(portion: Buffer, state: PublishState): Reading {
  let taken: Read | null = null
  let isFault = false
  const message = { ...emptyMessage }
  const takePublish = (messageId: number) => {
    const { topic, qos, retain, dup, bytes, userProperties = null, properties = null } = message
    taken = { topic, qos, retain, dup, messageId, payload: bytes.toString('hex'), userProperties, properties }
    return false
  }
  const end = takePublishes(portion, message, {
    version: 5,
    version5: state,
    packetBytesMax: 4096,
    takePublish,
    takePing: () => false,
    fail: () => (isFault = true),
  })
  if (end > portion.length) throw new Error(`ended at ${end} of ${portion.length} bytes`)
  return { taken, end, isFault }
}

const emptyMessage: Message = {
  topic: '',
  bytes: Buffer.alloc(0),
  qos: 0,
  retain: false,
  dup: false,
  sender: { clientId: '', userName: null, certificateName: null, identity: null },
  userProperties: null,
  properties: null,
  arrivedAt: 0,
}

/** Whether mqtt-packet accepts the packet too; throws where it reads another message. */
function isAlike(packet: Buffer, taken: Read): boolean {
  const parsed = parsedBy(packet)
  if (parsed === null) return false
  const expected = JSON.stringify(expectedOf(parsed as IPublishPacket, taken))
  const found = JSON.stringify({ ...taken, userProperties: sorted(taken.userProperties) })
  if (expected !== found) throw new Error(`took ${found}, and mqtt-packet ${expected}`)
  return true
}

/** What mqtt-packet reads; null where it refuses the packet. */
export function parsedBy(packet: Buffer): Packet | null {
  const parse = parser({ protocolVersion: 5 })
  let parsed: Packet | null = null
  parse.on('packet', (one) => (parsed ??= one))
  parse.on('error', () => {})
  try {
    parse.parse(packet)
  } catch {
    return null
  }
  return parsed
}

/** What `taken` must be. An alias stands for a topic that mqtt-packet does not know. */
function expectedOf(
  { topic, qos, retain, dup, messageId, payload, properties = {} }: IPublishPacket,
  taken: Read,
): Read {
  const { contentType, responseTopic, correlationData, payloadFormatIndicator, messageExpiryInterval } =
    properties
  const others = {
    ...(payloadFormatIndicator && { isText: true as const }),
    ...(messageExpiryInterval !== undefined && { expiryS: messageExpiryInterval }),
    ...(contentType !== undefined && { contentType }),
    ...(responseTopic !== undefined && { responseTopic }),
    ...(correlationData !== undefined && { correlation: correlationData.toString('base64') }),
  }
  const names = Object.entries(properties.userProperties ?? {})
  const user = names.map(([name, values]) => [name, Array.isArray(values) ? values.at(-1) : values] as const)
  return {
    topic: topic === '' ? `alias/${properties.topicAlias}` : topic,
    qos,
    retain,
    dup,
    messageId: messageId ?? 0,
    payload: Buffer.from(payload).toString('hex'),
    userProperties: user.length === 0 ? null : sorted(Object.fromEntries(user) as Record<string, string>),
    properties: Object.keys(others).length === 0 ? null : inOrderOf(others, taken.properties ?? {}),
  }
}

function sorted(user: Message['userProperties']): Record<string, string> | null {
  if (!user) return null
  return Object.fromEntries(Object.entries(user).toSorted(([a], [b]) => (a < b ? -1 : 1)))
}

function inOrderOf<T extends object>(values: T, order: object): T {
  const names = [...Object.keys(order), ...Object.keys(values)] as (keyof T)[]
  return Object.fromEntries(names.filter((name) => name in values).map((name) => [name, values[name]])) as T
}
