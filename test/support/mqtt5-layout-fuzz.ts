// mqtt5-layout-fuzz.ts: packets of MQTT 5 other than PUBLISH, with random fields, properties and bytes, right and
// wrong. What our check lets pass the parser of mqtt-packet reads.

import { readConnect } from '../../src/ingest/broker/packets/connect-packet.ts'
import { layoutFault } from '../../src/ingest/broker/packets/packets.ts'
import { behind, mutated, parsedBy, textFrom, valueFrom } from './mqtt5-fuzz.ts'
import { bytesOf, packetOf, property, propertiesOf, text, uint16, type Part } from './mqtt5-packets.ts'
import { createRandom, type Random } from './random.ts'

/** `compared`: valid packets, which mqtt-packet reads as the same kind. */
export type LayoutCounts = { valid: number; faults: number; compared: Record<string, number> }

/** One for short fields, one for a length of 0x0101. */
const tails = [behind, Buffer.alloc(300, 0x01)]

const heads = {
  connect: 0x10,
  pubrel: 0x62,
  puback: 0x40,
  subscribe: 0x82,
  unsubscribe: 0xa2,
  disconnect: 0xe0,
}

type Kind = keyof typeof heads

const kinds = Object.keys(heads) as Kind[]

/**
 * Checks `count` packets. Throws where the check throws, where its result depends on bytes behind the packet, or
 * where mqtt-packet refuses what it lets pass.
 */
export function fuzzLayouts(count: number, seed: number): LayoutCounts {
  const random = createRandom(seed)
  const counts: LayoutCounts = { valid: 0, faults: 0, compared: {} }
  for (let index = 0; index < count; index += 1) {
    const kind = random.pick(kinds)
    const body = mutated(random, bodyFrom[kind](random))
    try {
      check(kind, body, counts)
    } catch (error) {
      throw new Error(`seed ${seed}, packet ${index}, ${kind}: ${body.toString('hex')}`, { cause: error })
    }
  }
  return counts
}

function check(kind: Kind, body: Buffer, counts: LayoutCounts): void {
  const head = heads[kind]
  const found = faultOf(head, body, body.length)
  for (const tail of tails) {
    const again = faultOf(head, Buffer.concat([body, tail]), body.length)
    if (again !== found) throw new Error(`${found}, then ${again}`)
  }
  counts[found === null ? 'valid' : 'faults'] += 1
  if (found !== null) return
  const packet = packetOf(head, body)
  const parsed = parsedBy(packet)
  if (parsed?.cmd !== kind) throw new Error(`mqtt-packet reads ${parsed?.cmd ?? 'nothing'}`)
  counts.compared[kind] = (counts.compared[kind] ?? 0) + 1
}

function faultOf(head: number, bytes: Buffer, end: number): string | null {
  if (head !== heads.connect) return layoutFault(head, bytes, 0, end, 5)?.detail ?? null
  const found = readConnect(bytes, 0, end)
  if ('reason' in found) return found.detail
  return found.version === 5 ? null : 'It is not of MQTT 5.'
}

// ---- random packets

const ofMessage = [
  property.payloadFormat,
  property.messageExpiry,
  property.contentType,
  property.responseTopic,
  property.correlationData,
]
const ofConnect = [
  property.sessionExpiry,
  property.receiveMaximum,
  property.maximumPacketSize,
  property.topicAliasMaximum,
  property.requestResponseInformation,
  property.requestProblemInformation,
  property.authenticationMethod,
]

const bodyFrom: Readonly<Record<Kind, (random: Random) => Buffer>> = {
  connect(random) {
    const [hasWill, hasName, hasPassword] = [random.chance(0.5), random.chance(0.5), random.chance(0.5)]
    const flags =
      (random.chance(0.5) ? 0x02 : 0) |
      (hasWill ? 0x04 | (random.below(3) << 3) | (random.below(2) << 5) : 0) |
      (hasPassword ? 0x40 : 0) |
      (hasName ? 0x80 : 0)
    return bytesOf([
      text('MQTT'),
      5,
      flags,
      uint16(random.below(65_536)),
      sectionFrom(random, ofConnect),
      textFrom(random, 0.02),
      ...(hasWill
        ? [sectionFrom(random, [...ofMessage, property.willDelay]), textFrom(random, 0.02), text('gone')]
        : []),
      ...(hasName ? [textFrom(random, 0.02)] : []),
      ...(hasPassword ? [text([0, 0xff])] : []),
    ])
  },
  subscribe: (random) =>
    filtersFrom(random, [property.subscriptionId], () => [
      random.pick([0, 1, 2, 0x08, 0x15, 0x2a, random.below(256)]),
    ]),
  unsubscribe: (random) => filtersFrom(random, [], () => []),
  puback: (random) =>
    bytesOf([identifierFrom(random), ...reasonFrom(random, [0, 0x10, 0x87], [property.reasonString])]),
  pubrel: (random) =>
    bytesOf([identifierFrom(random), ...reasonFrom(random, [0, 0x92], [property.reasonString])]),
  disconnect: (random) =>
    bytesOf(reasonFrom(random, [0, 4, 0x81], [property.reasonString, property.sessionExpiry])),
}

function sectionFrom(random: Random, numbers: readonly number[]): Buffer {
  const some = numbers.filter(() => random.chance(0.3))
  const users = Array.from({ length: random.below(3) }, () => property.userProperty)
  const all = [...some, ...users, ...(random.chance(0.02) ? [random.pick(Object.values(property))] : [])]
  return propertiesOf(...all.flatMap((number) => [Buffer.from([number]), valueFrom(random, number)]))
}

function identifierFrom(random: Random): Buffer {
  return uint16(random.chance(0.02) ? 0 : 1 + random.below(65_535))
}

const filters = ['a', 'a/#', '+/b', '$share/g/a', 'a#', 'spBv1.0/+/NCMD/#']

function filtersFrom(
  random: Random,
  numbers: readonly number[],
  optionsFrom: () => readonly number[],
): Buffer {
  const entries = Array.from({ length: random.below(4) }, () => [
    random.chance(0.8) ? text(random.pick(filters)) : textFrom(random, 0.1),
    ...optionsFrom(),
  ])
  return bytesOf([identifierFrom(random), sectionFrom(random, numbers), ...entries.flat()])
}

function reasonFrom(random: Random, codes: readonly number[], numbers: readonly number[]): Part[] {
  const parts = [random.pick([...codes, ...codes, random.below(256)]), sectionFrom(random, numbers)]
  return parts.slice(0, random.below(3))
}
