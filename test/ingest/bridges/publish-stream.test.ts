import { Duplex } from 'node:stream'
import * as fc from 'fast-check'
import { generate, type Packet } from 'mqtt-packet'
import { describe, expect, test } from 'vitest'
import type { MessageRefusal } from '../../../src/ingest/types.ts'
import {
  createPublishStream,
  positionOf,
  type StreamFault,
} from '../../../src/ingest/bridges/publish-stream.ts'

/** A socket whose other end is the test. */
const connack = Buffer.from([0x20, 2, 0, 0])

function pairOf(protocolVersion: 4 | 5, { packetBytesMax = 1e6, isGreeted = true } = {}) {
  const written: Buffer[] = []
  const socket = new Duplex({
    read() {},
    write(chunk: Buffer, _encoding, done) {
      written.push(chunk)
      done()
    },
  })
  let room = Infinity
  const taken: { topic: string; text: string; messageId: number; tenant: string | undefined }[] = []
  const refusals: (MessageRefusal | null)[] = []
  const forMqttJs: Buffer[] = []
  const faults: StreamFault[] = []
  const stream = createPublishStream(
    {
      socket,
      room: () => room - taken.length,
      greeted: () => undefined,
      publish({ topic, bytes, messageId, userProperties, refusal }) {
        taken.push({ topic, text: bytes.toString(), messageId, tenant: userProperties?.['tenant'] })
        refusals.push(refusal)
      },
      fault: (reason) => faults.push(reason),
    },
    { isVersion5: protocolVersion === 5, packetBytesMax },
  )
  stream.duplex.on('data', (chunk: Buffer) => forMqttJs.push(chunk))
  stream.duplex.on('error', () => undefined)
  if (isGreeted) socket.push(connack)
  return {
    stream,
    socket,
    written,
    taken,
    refusals,
    faults,
    others: () => Buffer.concat(forMqttJs).subarray(isGreeted ? connack.length : 0),
    setRoom: (messages: number) => (room = messages),
    async send(...chunks: Buffer[]) {
      for (const chunk of chunks) socket.push(chunk)
      await new Promise(setImmediate)
    },
  }
}

const publish = (messageId: number, payload = `m${messageId}`): Packet => ({
  cmd: 'publish',
  topic: `t/${messageId}`,
  payload,
  qos: 1,
  dup: false,
  retain: false,
  messageId,
  properties: { userProperties: { tenant: `n${messageId}` } },
})

const pingresp: Packet = { cmd: 'pingresp' }

function chunksOf(
  packets: readonly Packet[],
  protocolVersion: 4 | 5,
  sizeOf: (index: number) => number,
): Buffer[] {
  let rest = Buffer.concat(packets.map((packet) => generate(packet, { protocolVersion })))
  const chunks: Buffer[] = []
  for (let index = 0; rest.length > 0; index += 1) {
    const size = sizeOf(index)
    chunks.push(rest.subarray(0, size))
    rest = rest.subarray(size)
  }
  return chunks
}

describe('the stream between a broker and mqtt.js', () => {
  test.each([4, 5] as const)(
    'finds every packet of MQTT %i, wherever the network cuts',
    async (protocolVersion) => {
      await fc.assert(
        fc.asyncProperty(
          fc.array(fc.nat({ max: 300 }), { minLength: 1, maxLength: 12 }),
          fc.array(fc.integer({ min: 1, max: 90 }), { minLength: 1, maxLength: 60 }),
          async (sizes, cuts) => {
            const packets = sizes.flatMap((size, index) => [publish(index + 1, 'x'.repeat(size)), pingresp])
            const pair = pairOf(protocolVersion)
            await pair.send(...chunksOf(packets, protocolVersion, (index) => cuts[index % cuts.length]!))
            expect(pair.taken).toEqual(
              sizes.map((size, index) => ({
                topic: `t/${index + 1}`,
                text: 'x'.repeat(size),
                messageId: index + 1,
                tenant: protocolVersion === 5 ? `n${index + 1}` : undefined,
              })),
            )
            expect(pair.others()).toEqual(Buffer.concat(sizes.map(() => generate(pingresp))))
          },
        ),
        { numRuns: 60 },
      )
    },
  )

  test('reads nothing without room, answers PINGREQ meanwhile, and goes on where it stopped', async () => {
    const pair = pairOf(4)
    pair.setRoom(2)
    await pair.send(Buffer.concat([1, 2, 3, 4].map((id) => generate(publish(id)))), generate(pingresp))
    expect(pair.taken.map(({ messageId }) => messageId)).toEqual([1, 2])
    expect(pair.socket.isPaused()).toBe(true)
    expect(pair.others().length).toBe(0)
    pair.stream.duplex.write(generate({ cmd: 'pingreq' }))
    await new Promise(setImmediate)
    expect(pair.others()).toEqual(generate(pingresp))
    expect(Buffer.concat(pair.written)).toEqual(generate({ cmd: 'pingreq' }))
    pair.setRoom(Infinity)
    pair.stream.resume()
    await new Promise(setImmediate)
    expect(pair.taken.map(({ messageId }) => messageId)).toEqual([1, 2, 3, 4])
    expect(pair.socket.isPaused()).toBe(false)
    pair.stream.duplex.write(generate({ cmd: 'pingreq' }))
    await new Promise(setImmediate)
    // Its own, and that which the broker had sent.
    expect(pair.others()).toEqual(Buffer.concat([generate(pingresp), generate(pingresp)]))
  })

  test('acknowledges QoS 2 by PUBREC, and leaves PUBREL to mqtt.js', async () => {
    const pair = pairOf(4)
    await pair.send(generate(publish(1)), generate({ ...publish(65_535), qos: 2 } as Packet))
    expect(pair.taken).toMatchObject([{ messageId: 1 }, { messageId: 65_535, text: 'm65535' }])
    for (const packet of [
      { qos: 1, messageId: 1 },
      { qos: 2, messageId: 65_535 },
    ] as const)
      pair.stream.acknowledge(positionOf(packet)!)
    pair.stream.flush()
    const pubrel = generate({ cmd: 'pubrel', messageId: 65_535 })
    await pair.send(pubrel)
    const answers = [
      generate({ cmd: 'puback', messageId: 1 }),
      generate({ cmd: 'pubrec', messageId: 65_535 }),
    ]
    expect(pair.written).toEqual([Buffer.concat(answers)])
    expect(pair.others()).toEqual(pubrel)
  })

  test('ends at a flood of packets that are no messages, and at no PUBREL that is due', async () => {
    const pair = pairOf(4)
    const many = Array.from({ length: 60_000 }, (_, index) => index + 1)
    const pubrels = Buffer.concat(many.map((messageId) => generate({ cmd: 'pubrel', messageId })))
    for (const messageId of many) pair.stream.acknowledge(positionOf({ qos: 2, messageId })!)
    pair.stream.flush()
    // One for each PUBREC, and those of a session from before.
    await pair.send(pubrels, pubrels)
    expect(pair.faults).toEqual([])
    pair.stream.duplex.write(generate({ cmd: 'pingreq' }))
    await pair.send(generate(pingresp), pubrels)
    expect(pair.faults).toEqual([])
    await pair.send(pubrels)
    expect(pair.faults).toEqual(['TOO_MANY_PACKETS'])
    expect(pair.stream.duplex.destroyed).toBe(true)
  })

  test('takes nothing after discard, and still passes on what mqtt.js needs', async () => {
    const pair = pairOf(4)
    pair.setRoom(1)
    await pair.send(Buffer.concat([1, 2, 3].map((id) => generate(publish(id)))))
    pair.stream.discard()
    await pair.send(generate(publish(4)), generate(pingresp))
    expect(pair.taken.length).toBe(1)
    expect(pair.others()).toEqual(generate(pingresp))
  })

  test.each<[string, Buffer, StreamFault]>([
    ['QoS 3', Buffer.from([0x36, 5, 0, 1, 0x74, 0, 1]), 'malformed_packet'],
    ['QoS 0 with DUP', Buffer.from([0x38, 3, 0, 1, 0x74]), 'malformed_packet'],
    ['no topic', Buffer.from([0x30, 2, 0, 0]), 'malformed_packet'],
    ['a topic beyond the packet', Buffer.from([0x30, 3, 0, 9, 0x74]), 'malformed_packet'],
    ['packet identifier 0', Buffer.from([0x32, 5, 0, 1, 0x74, 0, 0]), 'malformed_packet'],
    ['a length of five bytes', Buffer.from([0x30, 0x80, 0x80, 0x80, 0x80, 1]), 'malformed_packet'],
    ['other packets beyond the limit', Buffer.from([0x90, 0xff, 0x7f]), 'packet_too_large'],
  ])('ends at a PUBLISH with %s', async (_name, bytes, reason) => {
    const pair = pairOf(4, { packetBytesMax: 1000 })
    await pair.send(bytes)
    expect(pair.faults).toEqual([reason])
    expect(pair.stream.duplex.destroyed).toBe(true)
    expect(pair.taken).toEqual([])
  })

  test.each([
    ['a length beyond the packet', [9]],
    ['an unknown property', [2, 0x7e, 1]],
    ['a user property that is cut', [4, 0x26, 0, 5, 0x61]],
    ['a topic alias, which was not offered', [3, 0x23, 0, 1]],
    ['a length without its end', [0xff]],
  ])('ends at a PUBLISH of MQTT 5 with %s', async (_name, properties) => {
    const pair = pairOf(5)
    const body = [0, 1, 0x74, 0, 1, ...properties]
    await pair.send(Buffer.from([0x32, body.length, ...body]))
    expect(pair.faults).toEqual(['malformed_packet'])
  })

  test.each([
    ['an HTTP server', 'HTTP/1.1 400 Bad Request\r\n'],
    ['a mail server, whose first bytes look like PUBLISH', '220 mail\r\n'],
    ['a PUBLISH before CONNACK', '\x30\x03\x00\x01t'],
  ])('takes nothing of %s', async (_name, text) => {
    const pair = pairOf(4, { isGreeted: false })
    await pair.send(Buffer.from(text, 'latin1'))
    expect(pair.faults).toEqual(['NOT_MQTT'])
    expect(pair.taken).toEqual([])
    expect(pair.others().length).toBe(0)
  })

  test.each([
    ['a/#', 'has a wildcard'],
    ['+', 'has a wildcard'],
    ['a\0b', 'has the character NUL'],
    ['\xff\xfe', 'is not UTF-8'],
    // A surrogate is no character.
    ['\xed\xa0\x80', 'is not UTF-8'],
  ])('refuses the message of the topic %j, and reads on', async (topic, why) => {
    const pair = pairOf(4)
    const bytes = Buffer.from(topic, 'latin1')
    const body = Buffer.concat([Buffer.from([0, bytes.length]), bytes, Buffer.from([0, 7, 0x78])])
    await pair.send(Buffer.concat([Buffer.from([0x32, body.length]), body, generate(publish(8))]))
    expect(pair.taken.map(({ messageId }) => messageId)).toEqual([7, 8])
    expect(pair.refusals).toEqual([
      { reason: 'BAD_TOPIC', detail: expect.stringContaining(why) as string },
      null,
    ])
  })
})

describe('a message that is larger than the limit', () => {
  const large = (messageId: number, size: number) => publish(messageId, 'y'.repeat(size))

  test.each([4, 5] as const)(
    'is handed over, beyond 80 KiB without its bytes, by MQTT %i, wherever the network cuts',
    async (protocolVersion) => {
      await fc.assert(
        fc.asyncProperty(
          fc.array(fc.constantFrom(10, 990, 1500, 90_000, 200_000), { minLength: 1, maxLength: 5 }),
          fc.array(fc.constantFrom(1, 7, 1000, 65_536, 300_000), { minLength: 1, maxLength: 6 }),
          async (sizes, cuts) => {
            const packets = sizes.flatMap((size, index) => [large(index + 1, size), pingresp])
            // Single bytes only at the beginning, or it takes long.
            const sizeOf = (index: number) => (index < 40 ? cuts[index % cuts.length]! : 100_000)
            const pair = pairOf(protocolVersion, { packetBytesMax: 1100 })
            await pair.send(...chunksOf(packets, protocolVersion, sizeOf))
            expect(pair.faults).toEqual([])
            expect(pair.taken.map(({ messageId, text }) => [messageId, text.length])).toEqual(
              sizes.map((size, index) => [index + 1, size > 80_000 ? 0 : size]),
            )
            expect(pair.refusals.map((refusal) => refusal?.reason ?? null)).toEqual(
              sizes.map((size) => (size > 1000 ? 'OVERSIZED' : null)),
            )
            expect(pair.others()).toEqual(Buffer.concat(sizes.map(() => generate(pingresp))))
          },
        ),
        { numRuns: 40 },
      )
    },
  )

  test('says topic, size and beginning; waits for room, and is not handed over before its end', async () => {
    const pair = pairOf(4, { packetBytesMax: 1100 })
    const bytes = generate(large(3, 300_000))
    pair.setRoom(0)
    await pair.send(bytes.subarray(0, 299_000))
    pair.setRoom(5)
    expect(pair.taken).toEqual([])
    pair.setRoom(0)
    await pair.send(Buffer.concat([bytes.subarray(299_000), generate(publish(4))]))
    expect(pair.taken).toEqual([])
    expect(pair.socket.isPaused()).toBe(true)
    pair.setRoom(5)
    pair.stream.resume()
    await new Promise(setImmediate)
    expect(pair.taken.map(({ messageId }) => messageId)).toEqual([3, 4])
    expect(pair.refusals[0]?.detail).toMatch(
      /^A message of 293\.0 KiB on "t\/3" is larger than max_packet_bytes \(1\.1 KiB\)\. Its bytes are lost\. It begins with "yyy/,
    )
  })

  test('does not look like a dead link: PINGREQ is answered while its bytes come, and only then', async () => {
    const pair = pairOf(4, { packetBytesMax: 1100 })
    const bytes = generate(large(3, 300_000))
    const ping = async () => {
      pair.stream.duplex.write(generate({ cmd: 'pingreq' }))
      await new Promise(setImmediate)
      return pair.others().length / 2
    }
    await pair.send(bytes.subarray(0, 200_000))
    expect(await ping()).toBe(1)
    expect(await ping()).toBe(1)
    await pair.send(bytes.subarray(200_000, 250_000))
    expect(await ping()).toBe(2)
    await pair.send(bytes.subarray(250_000))
    expect(await ping()).toBe(2)
  })
})
