import { createServer, type AddressInfo } from 'node:net'
import { once } from 'node:events'
import { generate, parser, type Packet } from 'mqtt-packet'
import { expect, test } from 'vitest'
import { openDevice5 } from '../../support/mqtt5-device.ts'
import {
  connectPacket,
  disconnectPacket,
  packetOf,
  pingPacket,
  pubrelPacket,
  property,
  propertiesOf,
  publishPacket,
  subscribePacket,
  text,
  uint16,
  uint32,
  unsubscribePacket,
  userProperty,
} from '../../support/mqtt5-packets.ts'
import { readServerPacket } from '../../support/mqtt5-reader.ts'

const version5 = { protocolVersion: 5 }

const fromServer: readonly [Packet, object][] = [
  [
    {
      cmd: 'connack',
      sessionPresent: true,
      reasonCode: 0,
      properties: { receiveMaximum: 7, assignedClientIdentifier: 'a', retainAvailable: false },
    },
    {
      type: 'connack',
      sessionPresent: true,
      properties: new Map<number, unknown>([
        [property.receiveMaximum, 7],
        [property.assignedClientId, 'a'],
        [property.retainAvailable, 0],
      ]),
    },
  ],
  [
    { cmd: 'puback', messageId: 5, reasonCode: 0x87 },
    { type: 'puback', messageId: 5, code: 0x87 },
  ],
  [
    { cmd: 'suback', messageId: 6, granted: [1, 0x8f] },
    { type: 'suback', codes: [1, 0x8f] },
  ],
  [
    { cmd: 'disconnect', reasonCode: 0x8e, properties: { reasonString: 'why' } },
    { type: 'disconnect', code: 0x8e, properties: new Map([[property.reasonString, 'why']]) },
  ],
]

test.each(fromServer)('reads %o', (packet, expected) => {
  const bytes = generate(packet, version5)
  expect(readServerPacket(bytes)).toMatchObject({ ...expected, bytes: bytes.length })
  expect(readServerPacket(bytes.subarray(0, -1))).toBeNull()
})

const malformed: readonly [what: string, bytes: Buffer, problem: string][] = [
  ['a packet of a client', packetOf(0xc0), 'type 12'],
  ['flags', packetOf(0xd1), 'flags 1'],
  ['a CONNACK of 3.1.1', packetOf(0x20, 0, 0), 'ends within'],
  ['a PUBACK with a code that does not exist', packetOf(0x40, uint16(1), 0x85), 'reason code 133'],
  ['session present with a refusal', packetOf(0x20, 1, 0x86, propertiesOf()), 'session present'],
  [
    'a property of another packet',
    packetOf(0x40, uint16(1), 0, propertiesOf(0x21, uint16(1))),
    'property 33',
  ],
  [
    'a property twice',
    packetOf(0xe0, 0, propertiesOf(0x1f, text('a'), 0x1f, text('b'))),
    'property 31 comes twice',
  ],
  ['bytes behind the end', packetOf(0xd0, 1), 'longer than its fields'],
  ['a property that is longer than the section', packetOf(0x20, 0, 0, 2, 0x21, uint16(1)), 'longer than'],
  ['a text that is no UTF-8', packetOf(0xe0, 0, propertiesOf(0x1f, text([0xff]))), 'not valid'],
  ['a flag of 2', packetOf(0x20, 0, 0, propertiesOf(0x25, 2)), 'value 2'],
  ['a length with a needless byte', Buffer.from([0xd0, 0x80, 0]), 'more bytes'],
]

test.each(malformed)('refuses %s', (_what, bytes, problem) => {
  expect(() => readServerPacket(bytes)).toThrow(problem)
})

test('writes what a parser reads', () => {
  const packets: Packet[] = []
  const reader = parser(version5)
  reader.on('packet', (packet) => packets.push(packet))
  const properties = [property.topicAlias, uint16(3), userProperty('seq', '9')]
  const will = { topic: 'w', payload: 'lost', qos: 1, properties: [property.willDelay, 0, 0, 0, 9] }
  reader.parse(connectPacket({ clientId: 'van', will, userName: 'u', password: 'p', keepAliveS: 9 }))
  reader.parse(publishPacket({ topic: 'a/b', payload: 'p', messageId: 300, properties }))
  reader.parse(subscribePacket(4, [['a/#', 1]]))
  reader.parse(unsubscribePacket(5, ['a/#', 'b']))
  reader.parse(pubrelPacket(6))
  reader.parse(pingPacket)
  reader.parse(disconnectPacket(4, [property.sessionExpiry, uint32(70_000)]))
  expect(packets).toMatchObject([
    {
      cmd: 'connect',
      protocolVersion: 5,
      clean: true,
      clientId: 'van',
      keepalive: 9,
      will: { topic: 'w', qos: 1, properties: { willDelayInterval: 9 } },
    },
    {
      cmd: 'publish',
      topic: 'a/b',
      messageId: 300,
      properties: { topicAlias: 3, userProperties: { seq: '9' } },
    },
    { cmd: 'subscribe', subscriptions: [{ topic: 'a/#', qos: 1 }] },
    { cmd: 'unsubscribe', messageId: 5, unsubscriptions: ['a/#', 'b'] },
    { cmd: 'pubrel', messageId: 6 },
    { cmd: 'pingreq' },
    { cmd: 'disconnect', reasonCode: 4, properties: { sessionExpiryInterval: 70_000 } },
  ])
})

test('a device gives the packets in their order, and the DISCONNECT before the end', async () => {
  const server = createServer((socket) => {
    socket.once('data', () =>
      socket.end(Buffer.concat([packetOf(0x20, 0, 0, propertiesOf()), packetOf(0xe0, 0x8b)])),
    )
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  await using device = await openDevice5({
    url: `mqtt://127.0.0.1:${(server.address() as AddressInfo).port}`,
  })
  expect(await device.connect()).toMatchObject({ type: 'connack', code: 0 })
  expect(await device.gone()).toMatchObject({ code: 0x8b })
  expect(device.received.map(({ type }) => type)).toEqual(['connack', 'disconnect'])
  await expect(device.next('puback')).rejects.toThrow('connack 0, disconnect 139')
  server.close()
})

test('a device fails where the server sends a malformed packet', async () => {
  const server = createServer((socket) => socket.write(packetOf(0x20, 0, 0)))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  await using device = await openDevice5({
    url: `mqtt://127.0.0.1:${(server.address() as AddressInfo).port}`,
  })
  await expect(device.connect()).rejects.toThrow('ends within')
  server.close()
})
