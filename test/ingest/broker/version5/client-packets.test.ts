import { once } from 'node:events'
import { connect as connectTcp } from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'
import { ingestOptions, ingestSchema } from '../../../../src/ingest/config.ts'
import { eventually } from '../../../support/eventually.ts'
import { openIngest, textOf, type IngestWorld } from '../../../support/ingest-world.ts'
import { openMapperOf, truckSource } from '../../../support/mapping-world.ts'
import { createMemoryIntakeSpool } from '../../../support/memory-intake-spool.ts'
import { openDevice5, type Device5 } from '../../../support/mqtt5-device.ts'
import {
  connectPacket,
  disconnectPacket,
  packetOf,
  pingPacket,
  property,
  propertiesOf,
  publishPacket,
  pubrelPacket,
  subscribePacket,
  text,
  uint16,
  uint32,
  unsubscribePacket,
  type ConnectFields,
} from '../../../support/mqtt5-packets.ts'
import { readServerPacket } from '../../../support/mqtt5-reader.ts'

// Over a real socket: the packets of a client of MQTT 5 behind its CONNECT, and how its connection ends.

const auto = () => createMemoryIntakeSpool({ commits: 'auto' })
const devices: Device5[] = []

afterEach(() => {
  for (const device of devices.splice(0)) device.destroy()
})

async function open({ port }: { port: number }): Promise<Device5> {
  const device = await openDevice5({ url: `mqtt://127.0.0.1:${port}` })
  devices.push(device)
  return device
}

async function connected(world: IngestWorld, fields: ConnectFields = {}): Promise<Device5> {
  const device = await open(world)
  await device.connect({ properties: [property.sessionExpiry, uint32(0)], ...fields })
  return device
}

const rulesOf = (onViolation: 'drop' | 'close') => ({
  rules: ingestOptions(
    ingestSchema.parse({
      broker: {
        access: { anonymous: true },
        rules: { publish: [{ topics: ['own/#'] }], on_violation: onViolation },
      },
    }),
  ).rules,
})

describe('SUBSCRIBE and UNSUBSCRIBE', () => {
  test('[MQTT-3.8.4-6] [MQTT-3.9.3-1] each filter has its code, in their order', async () => {
    await using world = await openIngest(auto())
    const device = await connected(world)
    const filters = [
      ['a', 0],
      ['a/#', 1],
      ['b/+', 2],
      ['a/#/b', 0],
      ['$share/group/a', 1],
    ] as const
    device.send(subscribePacket(7, filters))
    const suback = await device.next('suback')
    expect([suback.messageId, ...suback.codes]).toEqual([7, 0, 1, 2, 0x8f, 0x9e])
    device.send(unsubscribePacket(8, ['a', 'a/#/b']))
    const unsuback = await device.next('unsuback')
    expect([unsuback.messageId, ...unsuback.codes]).toEqual([8, 0, 0x8f])
    expect(device.closed).toBe(false)
  })

  test('a subscription identifier is refused with 0xA1 for each filter', async () => {
    await using world = await openIngest(auto())
    const device = await connected(world)
    const filters = [
      ['a', 0],
      ['b', 1],
    ] as const
    device.send(subscribePacket(1, filters, [property.subscriptionId, 5]))
    expect((await device.next('suback')).codes).toEqual([0xa1, 0xa1])
  })

  test('subscriptions: refuse answers 0x87, and 0x11 to UNSUBSCRIBE', async () => {
    await using world = await openIngest(auto(), { subscriptions: 'refuse' })
    const device = await connected(world)
    device.send(subscribePacket(1, [['a', 0]]), unsubscribePacket(2, ['a']))
    expect((await device.next('suback')).codes).toEqual([0x87])
    expect((await device.next('unsuback')).codes).toEqual([0x11])
  })

  test('[MQTT-3.1.2-24] a SUBACK that is larger than the client takes is not sent', async () => {
    await using world = await openIngest(auto())
    const device = await connected(world, { properties: [property.maximumPacketSize, uint32(60)] })
    const many = Array.from({ length: 100 }, (_, index) => [`t${index}`, 0] as const)
    device.send(subscribePacket(1, many), subscribePacket(2, [['a', 0]]))
    expect((await device.next('suback')).messageId).toBe(2)
  })
})

describe('messages', () => {
  test('of all QoS are taken, and acknowledged with the bytes of 3.1.1', async () => {
    const spool = auto()
    await using world = await openIngest(spool)
    const device = await connected(world)
    device.send(
      publishPacket({ payload: 'zero', qos: 0 }),
      publishPacket({ payload: 'one', qos: 1, messageId: 1 }),
      publishPacket({ payload: 'two', qos: 2, messageId: 2 }),
      pingPacket,
    )
    expect(await device.next('puback')).toMatchObject({ messageId: 1, code: 0, bytes: 4 })
    expect(await device.next('pubrec')).toMatchObject({ messageId: 2, code: 0, bytes: 4 })
    device.send(pubrelPacket(2), pubrelPacket(99))
    expect(await device.next('pubcomp')).toMatchObject({ messageId: 2, code: 0 })
    // 0x92 would be an error of a message that the gateway has.
    expect(await device.next('pubcomp', 1)).toMatchObject({ messageId: 99, code: 0 })
    expect(spool.payloads.map(textOf)).toEqual(['zero', 'one', 'two'])
  })

  test('[MQTT-4.3.3-9] a message that a rule drops has 0x87, and its identifier is free at once', async () => {
    const spool = auto()
    await using world = await openIngest(spool, rulesOf('drop'))
    const device = await connected(world)
    device.send(
      publishPacket({ topic: 'other', payload: 'a', qos: 1, messageId: 1 }),
      publishPacket({ topic: 'other', payload: 'b', qos: 2, messageId: 2 }),
      publishPacket({ topic: 'own/x', payload: 'c', qos: 2, messageId: 2 }),
    )
    expect(await device.next('puback')).toMatchObject({ messageId: 1, code: 0x87 })
    expect(await device.next('pubrec')).toMatchObject({ messageId: 2, code: 0x87 })
    expect(await device.next('pubrec', 1)).toMatchObject({ messageId: 2, code: 0 })
    expect(spool.payloads.map(textOf)).toEqual(['c'])
  })

  test('[MQTT-4.3.3-10] one of QoS 2 that was taken is not refused when it comes again after a rule was added', async () => {
    const spool = auto()
    const restricted = { ...truckSource(), identity: 'device' }
    await using world = await openIngest(spool, { mapper: openMapperOf([truckSource()]) })
    const device = await connected(world)
    const reading = (at: number) => ({
      topic: 'telemetry/v1/truck-8',
      payload: JSON.stringify({ ts: 1_760_000_000_000 + at, lat: 52, lon: 13 }),
      qos: 2,
    })
    device.send(publishPacket({ ...reading(1), messageId: 5 }))
    expect(await device.next('pubrec')).toMatchObject({ messageId: 5, code: 0 })
    await world.ingest.swap(openMapperOf([restricted]))
    device.send(publishPacket({ ...reading(1), messageId: 5, dup: true }))
    expect(await device.next('pubrec', 1)).toMatchObject({ messageId: 5, code: 0 })
    // Another one is refused.
    device.send(publishPacket({ ...reading(2), messageId: 6 }))
    expect(await device.next('pubrec', 2)).toMatchObject({ messageId: 6, code: 0x87 })
    device.send(pubrelPacket(5))
    expect(await device.next('pubcomp')).toMatchObject({ messageId: 5, code: 0 })
    expect(spool.payloads).toHaveLength(1)
  })

  test('a dead letter is acknowledged with 0x00', async () => {
    await using world = await openIngest(auto())
    const device = await connected(world)
    device.send(publishPacket({ payload: 'bad', messageId: 1 }))
    expect(await device.next('puback')).toMatchObject({ messageId: 1, code: 0 })
  })

  test('[MQTT-3.3.4-7] as many as the receive maximum may wait, and one more is 0x93', async () => {
    const spool = createMemoryIntakeSpool({ commits: 'by hand' })
    await using world = await openIngest(spool, { inFlightMax: 5 })
    const device = await connected(world)
    const burst = (from: number, to: number) =>
      Array.from({ length: to - from + 1 }, (_, index) =>
        publishPacket({ payload: `m${from + index}`, messageId: from + index }),
      )
    device.send(...burst(1, 5), pingPacket)
    await device.next('pingresp')
    spool.commit()
    await device.next('puback', 4)
    device.send(...burst(6, 10), pingPacket)
    await device.next('pingresp', 1)
    device.send(publishPacket({ payload: 'm11', messageId: 11 }))
    expect(await device.gone()).toMatchObject({ code: 0x93 })
  })
})

describe('DISCONNECT of the client', () => {
  test.each([
    [0x00, false],
    [0x04, true],
  ])('[MQTT-3.14.4-3] with 0x%i: its will is taken: %s', async (code, isTaken) => {
    const spool = auto()
    await using world = await openIngest(spool)
    const device = await connected(world, { will: { topic: 'status', payload: 'lost' } })
    device.send(publishPacket({ payload: 'last', messageId: 1 }))
    await device.next('puback')
    device.send(disconnectPacket(code))
    expect(await device.gone()).toBe(null)
    await eventually(() => world.ingest.clients.find('truck')?.state === 'disconnected')
    expect(spool.payloads.map(textOf)).toEqual(isTaken ? ['last', 'lost'] : ['last'])
    expect(world.events.filter(({ kind }) => kind === 'client_disconnected')).toMatchObject([
      { reason: 'disconnect' },
    ])
  })

  test('may set the expiry 0 where CONNECT had none', async () => {
    const spool = auto()
    await using world = await openIngest(spool)
    const device = await connected(world)
    device.send(disconnectPacket(0, [property.sessionExpiry, uint32(0)]))
    expect(await device.gone()).toBe(null)
    expect(world.ingest.counters().droppedByReason.size).toBe(0)
  })

  test('[MQTT-3.14.2-2] must not give a session an expiry that CONNECT had not', async () => {
    await using world = await openIngest(auto())
    const device = await connected(world)
    device.send(disconnectPacket(0, [property.sessionExpiry, uint32(60)]))
    expect(await device.gone()).toMatchObject({ code: 0x82 })
  })

  test('nothing behind it is taken', async () => {
    const spool = auto()
    await using world = await openIngest(spool)
    const device = await connected(world)
    device.send(publishPacket({ payload: 'a' }), disconnectPacket(), publishPacket({ payload: 'b' }))
    await device.gone()
    expect(spool.payloads.map(textOf)).toEqual(['a'])
  })
})

type Cut = {
  name: string
  reason: string
  code: number
  sent: readonly Buffer[]
  options?: Parameters<typeof openIngest>[1]
}

const cuts: readonly Cut[] = [
  {
    name: 'a packet that is too large',
    reason: 'packet_too_large',
    code: 0x95,
    sent: [publishPacket({ payload: 'x'.repeat(5000) })],
    options: { packetBytesMax: 2000 },
  },
  {
    name: 'a remaining length of five bytes',
    reason: 'malformed_length',
    code: 0x81,
    sent: [Buffer.from([0x30, 0xff, 0xff, 0xff, 0xff, 1])],
    options: { packetBytesMax: 268_435_455 },
  },
  {
    name: '[MQTT-3.3.1-4] QoS 3',
    reason: 'protocol_error',
    code: 0x81,
    sent: [Buffer.from([0x36, 3, 0, 1, 0x74])],
  },
  { name: '[MQTT-3.1.0-2] a second CONNECT', reason: 'protocol_error', code: 0x82, sent: [connectPacket()] },
  { name: '[MQTT-4.12.0-7] AUTH', reason: 'protocol_error', code: 0x82, sent: [packetOf(0xf0)] },
  { name: 'a packet of a server', reason: 'not_from_client', code: 0x82, sent: [packetOf(0x20, 0, 0, 0)] },
  {
    name: '[MQTT-2.2.1-3] a packet identifier 0',
    reason: 'no_packet_id',
    code: 0x82,
    sent: [publishPacket({ messageId: 0 })],
  },
  {
    name: '[MQTT-3.3.2-2] a topic with a wildcard',
    reason: 'bad_topic',
    code: 0x90,
    sent: [publishPacket({ topic: 'a/#' })],
  },
  {
    name: '[MQTT-1.5.4-1] a filter that is not UTF-8',
    reason: 'bad_topic_filter',
    code: 0x81,
    sent: [packetOf(0x82, uint16(1), propertiesOf(), text([0xff, 0xfe]), 0)],
  },
  {
    name: '[MQTT-3.8.3-2] a SUBSCRIBE without a filter',
    reason: 'bad_topic_filter',
    code: 0x82,
    sent: [packetOf(0x82, uint16(1), propertiesOf())],
  },
  {
    name: '[MQTT-3.3.2-9] a topic alias above the maximum',
    reason: 'topic_alias',
    code: 0x94,
    sent: [publishPacket({ properties: [property.topicAlias, uint16(2000)] })],
  },
  {
    name: 'a topic that a rule does not allow (close)',
    reason: 'publish_refused',
    code: 0x87,
    sent: [publishPacket({ topic: 'other' })],
    options: rulesOf('close'),
  },
  {
    name: 'too many control packets',
    reason: 'too_many_control_packets',
    code: 0x96,
    sent: Array.from({ length: 50 }, () => pingPacket),
    options: { controlPacketsPerSecondMax: 2 },
  },
]

describe('[MQTT-4.13.1-1] the gateway closes with DISCONNECT', () => {
  test.each(cuts)('$name: $reason', async ({ reason, code, sent, options = {} }) => {
    await using world = await openIngest(auto(), options)
    const device = await connected(world)
    device.send(...sent)
    const disconnect = await device.gone()
    expect(disconnect).toMatchObject({ code })
    expect(disconnect?.properties.get(property.reasonString)).toBe(reason)
    // [MQTT-3.14.4-1]
    expect(device.received.at(-1)?.type).toBe('disconnect')
    await eventually(() => world.events.some(({ kind }) => kind === 'client_disconnected'))
    expect(world.events.filter(({ kind }) => kind === 'client_dropped')).toMatchObject([{ reason }])
  })

  test('acknowledgements that are due leave before it, and what follows the fault is not taken', async () => {
    const spool = auto()
    await using world = await openIngest(spool)
    const device = await connected(world)
    device.send(publishPacket({ payload: 'a', messageId: 1 }))
    await device.next('puback')
    device.send(
      publishPacket({ payload: 'b', qos: 0 }),
      publishPacket({ topic: '#', messageId: 2 }),
      publishPacket({ payload: 'c', qos: 0 }),
    )
    expect(await device.gone()).toMatchObject({ code: 0x90 })
    expect(spool.payloads.map(textOf)).toEqual(['a', 'b'])
  })

  test('[MQTT-3.14.2-3] without the reason where the client has no room or wants none', async () => {
    await using world = await openIngest(auto())
    const sections = [
      [property.maximumPacketSize, uint32(70)],
      [property.requestProblemInformation, 0],
    ]
    for (const properties of sections) {
      const device = await connected(world, { properties })
      device.send(publishPacket({ topic: '#' }))
      const disconnect = await device.gone()
      expect(disconnect?.code).toBe(0x90)
    }
  })

  test('which arrives while the client goes on sending 1 MiB', async () => {
    await using world = await openIngest(auto(), { packetBytesMax: 2000 })
    for (let round = 0; round < 20; round += 1) {
      const socket = connectTcp({ port: world.port, host: '127.0.0.1' })
      await once(socket, 'connect')
      const chunks: Buffer[] = []
      const errors: string[] = []
      socket.on('data', (chunk: Buffer) => chunks.push(chunk))
      socket.on('error', (error) => errors.push(error.message))
      const closed = new Promise((resolve) => void socket.once('close', resolve))
      socket.write(connectPacket({ clientId: `big ${round}` }))
      socket.write(packetOf(0x32, text('t'), uint16(1), propertiesOf(), Buffer.alloc(1024 * 1024)))
      await closed
      const bytes = Buffer.concat(chunks)
      const connack = readServerPacket(bytes)
      const last = readServerPacket(bytes.subarray(connack?.bytes ?? 0))
      expect([last?.type, last?.code, errors]).toEqual(['disconnect', 0x95, []])
    }
  })

  test('[MQTT-3.1.4-3] a take-over tells the earlier connection 0x8E', async () => {
    await using world = await openIngest(auto())
    let earlier = await connected(world)
    for (let round = 0; round < 50; round += 1) {
      const later = await connected(world)
      expect(await earlier.gone()).toMatchObject({ code: 0x8e })
      earlier = later
    }
    expect(world.ingest.counters().takeOvers).toBe(50)
  })

  test('the end of the gateway is 0x8B', async () => {
    const world = await openIngest(auto())
    const device = await connected(world)
    await world[Symbol.asyncDispose]()
    expect(await device.gone()).toMatchObject({ code: 0x8b })
  })
})
