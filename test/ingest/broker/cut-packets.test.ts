// The packets of both versions have the same result however the network cuts and joins them, although aedes reads some
// of them and the gateway the others: what is taken, what is answered, the will, and the session that stays.

import * as fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { ReceivedMessage } from '../../../src/ingest/types.ts'
import { eventually } from '../../support/eventually.ts'
import { openIngest, wordMapper, type IngestWorld } from '../../support/ingest-world.ts'
import { auto } from '../../support/memory-intake-spool.ts'
import { openVersion, packetsOf, type Version } from '../../support/mqtt-versions.ts'
import {
  disconnectPacket,
  packetOf,
  pingPacket,
  property,
  pubrelPacket,
  subscribePacket,
  text,
  uint16,
  uint32,
  userProperty,
  type Part,
} from '../../support/mqtt5-packets.ts'

type Taken = Pick<ReceivedMessage, 'topic' | 'qos' | 'dup' | 'userProperties' | 'properties'> & {
  will: boolean
  bytes: string
}

/** A packet, and what it must give where everything before it was taken. */
type Step = { packet: Buffer; answer: string | null; taken: Taken | null }

type End = {
  packet: Buffer
  /** It is sent when everything is answered. */
  isLate?: boolean
  hasWill: boolean
  /** Of the DISCONNECT of the gateway; null where none comes. */
  code: number | null
  isSessionKept: boolean
}

/** By client id. */
const taken = new Map<string, Taken[]>()
const recordingMapper = {
  ...wordMapper,
  map(message: ReceivedMessage) {
    const { topic, qos, dup, will = false, userProperties = null, properties = null } = message
    const bytes = message.bytes.toString()
    const list = taken.get(message.sender.clientId) ?? []
    list.push({
      topic,
      qos,
      dup,
      will,
      bytes,
      userProperties: userProperties && { ...userProperties },
      properties,
    })
    taken.set(message.sender.clientId, list)
    return wordMapper.map(message)
  },
}

let world: IngestWorld
beforeAll(async () => {
  const fast = { connectsPerS: 1e6, connectsPerAddressPerS: 1e6, controlPacketsPerSecondMax: 1e6 }
  const spool = auto()
  world = await openIngest(spool, { ...fast, mapper: recordingMapper })
})
afterAll(() => world[Symbol.asyncDispose]())

const open = (version: Version) => openVersion(version, { url: `mqtt://127.0.0.1:${world.port}` })

const expiring = [property.sessionExpiry, uint32(3600)] as const
const willProperties = [property.contentType, text('text/will'), userProperty('why', 'lost')]
const will = { topic: 'w', payload: 'gone', qos: 1, properties: willProperties }
const takenWill = (version: Version): Taken => ({
  topic: 'w',
  qos: 0,
  dup: false,
  will: true,
  bytes: 'gone',
  userProperties: version === 5 ? { why: 'lost' } : null,
  properties: version === 5 ? { contentType: 'text/will' } : null,
})

/** Of a fixed length, so that a cut is at the same place in each CONNECT. */
let clients = 0
function newClientId(): string {
  clients += 1
  return `client-${String(clients).padStart(8, '0')}`
}

function helloOf(version: Version, clientId: string): Buffer {
  return packetsOf[version].connect({
    clientId,
    flags: 0,
    properties: [...expiring, property.receiveMaximum, uint16(9), userProperty('firmware', '4.2')],
    will,
  })
}

type Expected = { version: Version; steps: readonly Step[]; end: End }

type Result = {
  code: number | null
  answers: readonly string[]
  taken: readonly Taken[]
  isSessionKept: boolean
}

/** Sends the packets cut at `cuts`: what came of them, and what must. */
async function resultOf(
  { version, steps, end }: Expected,
  cuts: readonly number[],
): Promise<{ actual: Result; due: Result }> {
  const clientId = newClientId()
  const packets = [helloOf(version, clientId), ...steps.map(({ packet }) => packet)]
  const bytes = Buffer.concat(end.isLate ? packets : [...packets, end.packet])
  const answersDue = steps.flatMap(({ answer }) => answer ?? [])
  const messagesDue = [
    ...steps.flatMap((step) => step.taken ?? []),
    ...(end.hasWill ? [takenWill(version)] : []),
  ]
  await using device = await open(version)
  let start = 0
  for (const cut of [...cuts, bytes.length]) {
    device.send(bytes.subarray(start, cut))
    start = cut
    // In this turn of the event loop the gateway reads what was written.
    await new Promise(setImmediate)
  }
  if (end.isLate) {
    await device.until(() => device.received.length > answersDue.length)
    device.send(end.packet)
  }
  const disconnect = await device.gone()
  await eventually(() => (taken.get(clientId)?.length ?? 0) >= messagesDue.length)
  await using again = await open(version)
  const { sessionPresent } = await again.connect({ clientId, flags: 0, properties: expiring })
  const answers = device.received
    .filter(({ type }) => type !== 'connack' && type !== 'disconnect')
    .map(({ type, messageId, codes, code }) => `${type} ${messageId} ${[code, ...codes].join()}`)
  const actual = {
    code: disconnect?.code ?? null,
    answers: byType(answers, answers),
    taken: taken.get(clientId) ?? [],
    isSessionKept: sessionPresent,
  }
  const { code, isSessionKept } = end
  taken.delete(clientId)
  // Where the end came with the packets, the last answers are left out.
  const counted = end.isLate ? answersDue : answers
  return { actual, due: { code, answers: byType(answersDue, counted), taken: messagesDue, isSessionKept } }
}

/** Each type has the order of its packets; as many of each as `counted` has. */
function byType(answers: readonly string[], counted: readonly string[]): string[] {
  return ['puback', 'pubrec', 'pubcomp', 'suback', 'unsuback', 'pingresp'].flatMap((type) => {
    const count = counted.filter((answer) => answer.startsWith(type)).length
    return answers.filter((answer) => answer.startsWith(type)).slice(0, count)
  })
}

// ---- packets

type Published = { qos: 0 | 1 | 2; dup: boolean; size: number; alias: number | null; isTagged: boolean }

/** Makes the steps of a connection; identifiers and payloads are distinct. */
function createSteps(version: Version) {
  const packets = packetsOf[version]
  const aliases = new Map<number, string>()
  let id = 0

  function publish({ qos, dup, size, alias: asked, isTagged }: Published): Step {
    id += 1
    const alias = version === 5 ? asked : null
    const known = alias === null ? undefined : aliases.get(alias)
    const hasProperties = isTagged && version === 5
    const topic = known ?? `t/${id}`
    if (alias !== null) aliases.set(alias, topic)
    const payload = `m${id}${'.'.repeat(size)}`
    const properties: Part[] = [
      ...(alias === null ? [] : [property.topicAlias, uint16(alias)]),
      ...(isTagged ? [property.contentType, text('text/x'), userProperty('n', `${id}`)] : []),
    ]
    const sent = known === undefined ? topic : ''
    return {
      packet: packets.publish({ topic: sent, payload, qos, dup: dup && qos > 0, messageId: id, properties }),
      answer: qos === 0 ? null : `${qos === 1 ? 'puback' : 'pubrec'} ${id} 0`,
      taken: {
        topic,
        qos,
        dup: dup && qos > 0,
        will: false,
        bytes: payload,
        userProperties: hasProperties ? { n: `${id}` } : null,
        properties: hasProperties ? { contentType: 'text/x' } : null,
      },
    }
  }

  function other(kind: 'pubrel' | 'subscribe' | 'unsubscribe' | 'ping'): Step {
    id += 1
    const subscribe = (messageId: number, all: typeof filters) =>
      version === 5
        ? subscribePacket(messageId, all, [userProperty('s', 'v')])
        : packets.subscribe(messageId, all)
    const filters = [
      ['a/b', 1],
      ['c/+', 2],
    ] as const
    const [packet, answer] = {
      pubrel: [pubrelPacket(id), `pubcomp ${id} 0`] as const,
      subscribe: [subscribe(id, filters), `suback ${id} 0,1,2`] as const,
      unsubscribe: [
        packets.unsubscribe(id, ['a/b']),
        `unsuback ${id} ${version === 5 ? '0,0' : '0'}`,
      ] as const,
      ping: [pingPacket, 'pingresp 0 0'] as const,
    }[kind]
    return { packet, answer, taken: null }
  }

  return { publish, other }
}

const ends3: readonly End[] = [
  { packet: packetsOf[3].disconnect, isLate: true, hasWill: false, code: null, isSessionKept: true },
  { packet: packetOf(0xf0), hasWill: true, code: null, isSessionKept: true },
]

const ends5: readonly End[] = [
  { packet: disconnectPacket(), isLate: true, hasWill: false, code: null, isSessionKept: true },
  { packet: disconnectPacket(), hasWill: false, code: null, isSessionKept: true },
  {
    packet: disconnectPacket(0, [property.sessionExpiry, uint32(0), userProperty('b', 'ye')]),
    hasWill: false,
    code: null,
    isSessionKept: false,
  },
  {
    packet: disconnectPacket(4, [property.reasonString, text('off'), ...expiring]),
    hasWill: true,
    code: null,
    isSessionKept: true,
  },
  { packet: packetOf(0xf0, 0x18, 0), hasWill: true, code: 0x82, isSessionKept: true },
  { packet: packetOf(0xc1), hasWill: true, code: 0x81, isSessionKept: true },
]

function eachPacket(version: Version): Step[] {
  const { publish, other } = createSteps(version)
  const plain = { dup: false, size: 3, alias: null, isTagged: false }
  return [
    publish({ ...plain, qos: 0 }),
    publish({ ...plain, qos: 1, alias: 3, isTagged: true }),
    other('subscribe'),
    publish({ ...plain, qos: 2, alias: 3, dup: true }),
    other('pubrel'),
    other('ping'),
    // The length has two bytes.
    publish({ ...plain, qos: 1, size: 130, isTagged: true }),
    other('unsubscribe'),
    publish({ ...plain, qos: 2, isTagged: true }),
  ]
}

function lengthOf({ version, steps, end }: Expected): number {
  const packets = [helloOf(version, 'client-00000000'), ...steps.map(({ packet }) => packet), end.packet]
  return packets.reduce((sum, packet) => sum + packet.length, 0)
}

const endsOf: readonly (readonly [Version, string, End])[] = [
  ...ends3.map((end) => [3, end] as const),
  ...ends5.map((end) => [5, end] as const),
].map(([version, end]) => [version, `${end.packet.toString('hex')}${end.isLate ? ' after all' : ''}`, end])

/** `npm run test:all` tries each byte. */
const cutEvery = process.env['PROPERTY_RUNS'] === undefined ? 3 : 1

test.each(endsOf)('MQTT %d cut at any byte, or at all, and end with %s', async (version, _name, end) => {
  const expected = { version, steps: eachPacket(version), end }
  const length = lengthOf(expected)
  const each = Array.from({ length: length - 1 }, (_, index) => index + 1)
  // The packets before are the same for all ends.
  const first = end.isLate ? 1 : length - end.packet.length - 4
  const single = each
    .filter((cut) => cut >= first && (!end.isLate || cut % cutEvery === 0))
    .map((cut) => [cut])
  for (const cuts of [[], each, ...single]) {
    const { actual, due } = await resultOf(expected, cuts)
    expect(actual).toEqual(due)
  }
})

test.each([3, 5] as const)('MQTT %d in groups of any size', async (version) => {
  const published = fc.record({
    qos: fc.constantFrom(0, 1, 2),
    dup: fc.boolean(),
    size: fc.oneof(fc.integer({ min: 0, max: 300 }), fc.constant(20_000)),
    alias: fc.option(fc.integer({ min: 1, max: 10 })),
    isTagged: fc.boolean(),
  })
  const kind = fc.constantFrom('pubrel', 'subscribe', 'unsubscribe', 'ping')
  const packets = fc.array(fc.oneof({ weight: 3, arbitrary: published }, kind), { maxLength: 30 })
  const sizes = fc.array(fc.oneof(fc.integer({ min: 1, max: 8 }), fc.integer({ min: 1, max: 5000 })), {
    maxLength: 60,
  })
  await fc.assert(
    fc.asyncProperty(
      packets,
      sizes,
      fc.constantFrom(...(version === 3 ? ends3 : ends5)),
      async (some, groups, end) => {
        const { publish, other } = createSteps(version)
        const steps = some.map((one) => (typeof one === 'string' ? other(one) : publish(one)))
        const expected = { version, steps, end }
        const cuts: number[] = []
        for (const size of groups) cuts.push((cuts.at(-1) ?? 0) + size)
        const { actual, due } = await resultOf(
          expected,
          cuts.filter((cut) => cut < lengthOf(expected)),
        )
        expect(actual).toEqual(due)
      },
    ),
    { numRuns: 25 },
  )
})
