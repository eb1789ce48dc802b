import { describe, expect, test } from 'vitest'
import { openIngest, textOf } from '../../support/ingest-world.ts'
import { createMemoryIntakeSpool } from '../../support/memory-intake-spool.ts'
import { connectBytes, publishBytes } from '../../support/mqtt-device.ts'

const auto = () => createMemoryIntakeSpool({ commits: 'auto' })

/** A packet with a right remaining length. */
function packet(head: number, ...body: readonly (number | string | readonly number[] | Buffer)[]): Buffer {
  const bytes = Buffer.concat(
    body.map((part) => (typeof part === 'number' ? Buffer.from([part]) : Buffer.from(part as string))),
  )
  if (bytes.length > 127) throw new Error('too long for one byte of length')
  return Buffer.concat([Buffer.from([head, bytes.length]), bytes])
}

function text(value: string | readonly number[]): Buffer {
  const bytes = Buffer.from(value as string)
  return Buffer.concat([Buffer.from([bytes.length >> 8, bytes.length & 0xff]), bytes])
}

const cleanSession = 0x02

function connect({
  name = 'MQTT',
  level = 4,
  flags = cleanSession,
  payload = [text('truck')],
  head = 0x10,
}: {
  name?: string
  level?: number
  flags?: number
  payload?: readonly (Buffer | number)[]
  head?: number
}): Buffer {
  return packet(head, text(name), level, flags, [0, 60], ...payload)
}

const topicT = text('t')
const id1 = [0, 1]
const message = publishBytes({ topic: 't', payload: 'before', messageId: 7 })
const ping = Buffer.from([0xc0, 0])

type Malformed = readonly [what: string, bytes: Buffer, reason: string, clause: string]

const malformedConnects: readonly Malformed[] = [
  ['no CONNECT but a PINGREQ', ping, 'not_connect', 'MQTT-3.1.0-1'],
  ['no CONNECT but a DISCONNECT', Buffer.from([0xe0, 0]), 'not_connect', 'MQTT-3.1.0-1'],
  ['no CONNECT but a SUBSCRIBE', packet(0x82, id1, topicT, 0), 'not_connect', 'MQTT-3.1.0-1'],
  ['CONNECT with flags', connect({ head: 0x11 }), 'not_connect', 'MQTT-3.1.0-1'],
  ['CONNECT with DUP', connect({ head: 0x18 }), 'not_connect', 'MQTT-3.1.0-1'],
  [
    'a length of five bytes',
    Buffer.from([0x10, 0x8c, 0x80, 0x80, 0x80, 0]),
    'malformed_length',
    'MQTT 2.2.3',
  ],
  ['no byte at all in CONNECT', packet(0x10), 'protocol_error', 'MQTT 3.1.2'],
  ['CONNECT that ends in its name', packet(0x10, [0, 4], 'MQT'), 'protocol_error', 'MQTT 3.1.2'],
  ['CONNECT that ends before its flags', packet(0x10, text('MQTT'), 4), 'protocol_error', 'MQTT 3.1.2'],
  [
    'CONNECT that ends within its keepalive',
    packet(0x10, text('MQTT'), 4, cleanSession, 0),
    'protocol_error',
    'MQTT 3.1.2',
  ],
  ['CONNECT without a client id', connect({ payload: [] }), 'protocol_error', 'MQTT-3.1.3-1'],
  ['a byte behind CONNECT', connect({ payload: [text('truck'), 0] }), 'protocol_error', 'MQTT-3.1.3-1'],
  [
    'a password that no flag announces',
    connect({ flags: 0x82, payload: [text('truck'), text('user'), text('password')] }),
    'protocol_error',
    'MQTT-3.1.3-1',
  ],
  ['a user name that is announced and missing', connect({ flags: 0x82 }), 'protocol_error', 'MQTT-3.1.3-1'],
  [
    'a password longer than its CONNECT',
    connect({ flags: 0xc2, payload: [text('truck'), text('user'), 0, 9, 0x70] }),
    'protocol_error',
    'MQTT-3.1.3-1',
  ],
  ['a will that is missing', connect({ flags: 0x06 }), 'protocol_error', 'MQTT-3.1.3-1'],
  ['another protocol name', connect({ name: 'HTTP' }), 'protocol_error', 'MQTT-3.1.2-1'],
  ['a protocol name in small letters', connect({ name: 'mqtt' }), 'protocol_error', 'MQTT-3.1.2-1'],
  ['the reserved flag', connect({ flags: 0x03 }), 'protocol_error', 'MQTT-3.1.2-3'],
  ['a will QoS without a will', connect({ flags: 0x0a }), 'protocol_error', 'MQTT-3.1.2-13'],
  ['will retain without a will', connect({ flags: 0x22 }), 'protocol_error', 'MQTT-3.1.2-15'],
  [
    'a will with QoS 3',
    connect({ flags: 0x1e, payload: [text('truck'), topicT, text('x')] }),
    'bad_will_qos',
    'MQTT-3.1.2-14',
  ],
  [
    'a password without a user name',
    connect({ flags: 0x42, payload: [text('truck'), text('password')] }),
    'password_without_user',
    'MQTT-3.1.2-22',
  ],
  [
    'a client id with a null character',
    connect({ payload: [text('tr\0ck')] }),
    'bad_client_id',
    'MQTT-1.5.3-2',
  ],
  [
    'a client id with a surrogate',
    connect({ payload: [text([0xed, 0xa0, 0x80])] }),
    'bad_client_id',
    'MQTT-1.5.3-1',
  ],
  [
    'a user name with a null character',
    connect({ flags: 0x82, payload: [text('truck'), text('us\0er')] }),
    'bad_user_name',
    'MQTT-1.5.3-2',
  ],
  [
    'a user name with half a character',
    connect({ flags: 0x82, payload: [text('truck'), text([0x61, 0xc3])] }),
    'bad_user_name',
    'MQTT-1.5.3-1',
  ],
  [
    'a will topic with an overlong character',
    connect({ flags: 0x06, payload: [text('truck'), text([0xc0, 0x80]), text('x')] }),
    'bad_will_topic',
    'MQTT-1.5.3-1',
  ],
  [
    'a will topic with a wildcard',
    connect({ flags: 0x06, payload: [text('truck'), text('a/+'), text('x')] }),
    'bad_will_topic',
    'MQTT-3.3.2-2',
  ],
]

const malformed: readonly Malformed[] = [
  ['a second CONNECT', connectBytes('truck'), 'protocol_error', 'MQTT-3.1.0-2'],
  ['packet type 0', Buffer.from([0x00, 0]), 'not_from_client', 'MQTT 2.2.1'],
  ['packet type 15', Buffer.from([0xf0, 0]), 'not_from_client', 'MQTT 2.2.1'],
  ['CONNACK', Buffer.from([0x20, 2, 0, 0]), 'not_from_client', 'MQTT 2.2.1'],
  ['PINGREQ with a byte', packet(0xc0, 0), 'protocol_error', 'MQTT 3.12.1'],
  ['PINGREQ that announces 1,000 bytes', Buffer.from([0xc0, 0xe8, 0x07]), 'protocol_error', 'MQTT 3.12.1'],
  ['DISCONNECT with a byte', packet(0xe0, 0), 'protocol_error', 'MQTT 3.14.1'],
  ['PUBACK without identifier', packet(0x40), 'protocol_error', 'MQTT 3.4.1'],
  ['PUBACK with three bytes', packet(0x40, id1, 0), 'protocol_error', 'MQTT 3.4.1'],
  ['PUBREC with one byte', packet(0x50, 1), 'protocol_error', 'MQTT 3.5.1'],
  ['PUBREL with three bytes', packet(0x62, id1, 0), 'protocol_error', 'MQTT 3.6.1'],
  ['PUBREL with one byte', packet(0x62, 1), 'protocol_error', 'MQTT 3.6.1'],
  ['PUBCOMP with four bytes', packet(0x70, id1, id1), 'protocol_error', 'MQTT 3.7.1'],
  ['PUBACK with identifier 0', packet(0x40, 0, 0), 'no_packet_id', 'MQTT-2.3.1-1'],
  ['PUBREC with identifier 0', packet(0x50, 0, 0), 'no_packet_id', 'MQTT-2.3.1-1'],
  ['PUBREL with identifier 0', packet(0x62, 0, 0), 'no_packet_id', 'MQTT-2.3.1-1'],
  ['PUBCOMP with identifier 0', packet(0x70, 0, 0), 'no_packet_id', 'MQTT-2.3.1-1'],
  ['PUBACK with flags', packet(0x42, id1), 'protocol_error', 'MQTT-2.2.2-1'],
  ['PUBREL without its flag', packet(0x60, id1), 'protocol_error', 'MQTT-2.2.2-1'],
  ['PUBREL with DUP', packet(0x6a, id1), 'protocol_error', 'MQTT-2.2.2-1'],
  ['SUBSCRIBE without its flag', packet(0x80, id1, topicT, 0), 'protocol_error', 'MQTT-2.2.2-1'],
  ['UNSUBSCRIBE with another flag', packet(0xa4, id1, topicT), 'protocol_error', 'MQTT-2.2.2-1'],
  ['PINGREQ with a flag', Buffer.from([0xc1, 0]), 'protocol_error', 'MQTT-2.2.2-1'],
  ['DISCONNECT with a flag', Buffer.from([0xe8, 0]), 'protocol_error', 'MQTT-2.2.2-1'],
  ['PUBLISH with QoS 3', packet(0x36, topicT, id1, 'x'), 'protocol_error', 'MQTT-3.3.1-4'],
  ['PUBLISH with QoS 3 and DUP', packet(0x3e, topicT, id1, 'x'), 'protocol_error', 'MQTT-3.3.1-4'],
  ['PUBLISH with QoS 0 and DUP', packet(0x38, topicT, 'x'), 'protocol_error', 'MQTT-3.3.1-2'],
  ['PUBLISH without bytes', packet(0x30), 'protocol_error', 'MQTT 3.3.2.1'],
  ['PUBLISH with half of a topic length', packet(0x30, 0), 'protocol_error', 'MQTT 3.3.2.1'],
  ['a topic longer than its packet', packet(0x34, [0, 9], 't'), 'protocol_error', 'MQTT 3.3.2.1'],
  ['QoS 1 with identifier 0', packet(0x32, topicT, 0, 0, 'x'), 'no_packet_id', 'MQTT-2.3.1-1'],
  ['QoS 2 with identifier 0', packet(0x34, topicT, 0, 0, 'x'), 'no_packet_id', 'MQTT-2.3.1-1'],
  ['QoS 2 with half of an identifier', packet(0x34, topicT, 0), 'no_packet_id', 'MQTT-2.3.1-1'],
  ['an empty topic', packet(0x30, text(''), 'x'), 'bad_topic', 'MQTT-4.7.3-1'],
  ['an empty topic with QoS 2', packet(0x34, text(''), id1), 'bad_topic', 'MQTT-4.7.3-1'],
  ['a topic with +', packet(0x32, text('a/+/b'), id1), 'bad_topic', 'MQTT-3.3.2-2'],
  ['a topic with # and QoS 2', packet(0x34, text('a/#'), id1), 'bad_topic', 'MQTT-3.3.2-2'],
  ['a topic with a null character', packet(0x30, text('a\0b')), 'bad_topic', 'MQTT-4.7.3-2'],
  ['a topic with a surrogate', packet(0x32, text([0xed, 0xbf, 0xbf]), id1), 'bad_topic', 'MQTT-1.5.3-1'],
  ['a topic beyond U+10FFFF', packet(0x32, text([0xf4, 0x90, 0x80, 0x80]), id1), 'bad_topic', 'MQTT-1.5.3-1'],
  ['SUBSCRIBE with identifier 0', packet(0x82, 0, 0, topicT, 0), 'no_packet_id', 'MQTT-2.3.1-1'],
  ['SUBSCRIBE without an identifier', packet(0x82), 'no_packet_id', 'MQTT-2.3.1-1'],
  ['UNSUBSCRIBE with identifier 0', packet(0xa2, 0, 0, topicT), 'no_packet_id', 'MQTT-2.3.1-1'],
  ['SUBSCRIBE without filters', packet(0x82, id1), 'bad_topic_filter', 'MQTT-3.8.3-3'],
  ['UNSUBSCRIBE without filters', packet(0xa2, id1), 'bad_topic_filter', 'MQTT-3.10.3-2'],
  ['SUBSCRIBE without a QoS', packet(0x82, id1, topicT), 'protocol_error', 'MQTT 3.8.3'],
  ['a byte behind SUBSCRIBE', packet(0x82, id1, topicT, 0, 0), 'protocol_error', 'MQTT 3.8.3'],
  ['a byte behind UNSUBSCRIBE', packet(0xa2, id1, topicT, 0), 'protocol_error', 'MQTT 3.10.3'],
  ['a filter longer than SUBSCRIBE', packet(0x82, id1, [0, 9], 't', 0), 'protocol_error', 'MQTT 3.8.3'],
  ['SUBSCRIBE with QoS 3', packet(0x82, id1, topicT, 3), 'protocol_error', 'MQTT-3-8.3-4'],
  ['SUBSCRIBE with reserved bits', packet(0x82, id1, topicT, 0x04), 'protocol_error', 'MQTT-3-8.3-4'],
  ['an empty filter', packet(0x82, id1, text(''), 0), 'bad_topic_filter', 'MQTT-4.7.3-1'],
  ['a filter with a null character', packet(0xa2, id1, text('\0')), 'bad_topic_filter', 'MQTT-4.7.3-2'],
  ['the filter a#', packet(0x82, id1, text('a#'), 0), 'bad_topic_filter', 'MQTT-4.7.1-2'],
  ['the filter #/a', packet(0xa2, id1, text('#/a')), 'bad_topic_filter', 'MQTT-4.7.1-2'],
  [
    'a filter with a surrogate',
    packet(0x82, id1, text([0xed, 0xa0, 0x80]), 0),
    'bad_topic_filter',
    'MQTT-1.5.3-1',
  ],
  [
    'a length of five bytes',
    Buffer.from([0x30, 0x84, 0x80, 0x80, 0x80, 0]),
    'malformed_length',
    'MQTT 2.2.3',
  ],
  [
    'a length of five bytes, and the packet behind it',
    Buffer.from([0x30, 0x84, 0x80, 0x80, 0x80, 0, 0, 1, 0x74, 0x78]),
    'malformed_length',
    'MQTT 2.2.3',
  ],
]

describe('a CONNECT that MQTT 3.1.1 forbids', () => {
  test.each(malformedConnects)('%s closes the connection', async (_what, bytes, reason, clause) => {
    await using world = await openIngest(auto())
    const device = await world.connection('truck')
    device.sendBytes(bytes)
    await device.gone()
    expect(device.received).toEqual([])
    const dropped = world.events.filter(({ kind }) => kind === 'client_dropped')
    expect(dropped).toEqual([expect.objectContaining({ reason, detail: expect.stringContaining(clause) })])
  })

  test.each([
    ['MQTT 3.1.1 with level 6', 'MQTT', 6],
    ['level 0', 'MQTT', 0],
    ['level 2', 'MQTT', 2],
    ['the name of MQTT 3.1 with level 4', 'MQIsdp', 4],
    ['level 6 of a bridge', 'MQTT', 0x86],
  ])('%s gets CONNACK 1, and the end', async (_what, name, level) => {
    await using world = await openIngest(auto())
    const device = await world.connection('truck')
    device.sendBytes(Buffer.concat([connect({ name, level }), message]))
    await device.gone()
    expect(device.received).toEqual([expect.objectContaining({ cmd: 'connack', returnCode: 1 })])
    expect(world.events).toContainEqual(
      expect.objectContaining({
        reason: 'unsupported_level',
        detail: expect.stringContaining('MQTT-3.1.2-2'),
      }),
    )
    expect(world.ingest.counters().received).toBe(0)
  })
})

describe('a packet that MQTT 3.1.1 forbids', () => {
  test.each(malformed)('%s closes the connection', async (_what, bytes, reason, clause) => {
    const spool = auto()
    await using world = await openIngest(spool)
    const device = await world.connection('truck')
    await device.connect()
    // The message behind it is not taken.
    device.sendBytes(Buffer.concat([bytes, message]))
    await device.gone()
    expect(device.received.map(({ cmd }) => cmd)).toEqual(['connack'])
    const dropped = world.events.filter(({ kind }) => kind === 'client_dropped')
    expect(dropped).toEqual([expect.objectContaining({ reason, detail: expect.stringContaining(clause) })])
    expect(spool.payloads).toEqual([])
  })

  test.each(malformed)('the messages before it are taken: %s', async (_what, bytes) => {
    const spool = auto()
    await using world = await openIngest(spool)
    const device = await world.connection('truck')
    device.sendBytes(Buffer.concat([connectBytes('truck'), message, bytes]))
    await device.gone()
    expect(world.ingest.counters().received).toBe(1)
  })

  test('what follows DISCONNECT is no fault', async () => {
    await using world = await openIngest(auto())
    const device = await world.connection('truck')
    device.sendBytes(Buffer.concat([connectBytes('truck'), Buffer.from([0xe0, 0, 0xc0, 1, 0])]))
    await device.gone()
    expect(world.events.filter(({ kind }) => kind === 'client_dropped')).toEqual([])
  })
})

describe('what is allowed although it is rare', () => {
  test.each([
    ['level 0x84 of bridges', connect({ level: 0x84 })],
    ['MQTT 3.1', connect({ name: 'MQIsdp', level: 3 })],
    ['MQTT 3.1 of a bridge', connect({ name: 'MQIsdp', level: 0x83 })],
    [
      'MQTT 3.1 with a client id of 40 characters',
      connect({ name: 'MQIsdp', level: 3, payload: [text('x'.repeat(40))] }),
    ],
    ['an empty client id and a clean session', connect({ payload: [text('')] })],
    ['a user name without a password', connect({ flags: 0x82, payload: [text('truck'), text('user')] })],
    ['an empty user name', connect({ flags: 0x82, payload: [text('truck'), text('')] })],
    ['an empty password', connect({ flags: 0xc2, payload: [text('truck'), text('user'), text('')] })],
    ['an empty will message', connect({ flags: 0x06, payload: [text('truck'), topicT, text('')] })],
    ['a will with retain', connect({ flags: 0x26, payload: [text('truck'), topicT, text('x')] })],
    ['a client id with U+FFFD', connect({ payload: [text('\ufffd')] })],
    [
      'a length in more bytes than it needs',
      Buffer.from([0x10, 0x8d, 0x80, 0, ...connect({ payload: [text('x')] }).subarray(2)]),
    ],
  ])('%s connects', async (_what, bytes) => {
    await using world = await openIngest(auto())
    const device = await world.connection('truck')
    device.sendBytes(Buffer.concat([bytes, message]))
    await device.acked(1)
    expect(device.received[0]).toMatchObject({ cmd: 'connack', returnCode: 0 })
  })

  test.each([
    ['a topic with U+FFFD', packet(0x32, text('a/\ufffd'), [0, 9], 'x'), 'puback'],
    ['a topic with a byte order mark', packet(0x32, text('\ufefft'), [0, 9], 'x'), 'puback'],
    ['an empty payload', packet(0x32, topicT, [0, 9]), 'puback'],
    ['a topic that begins with /', packet(0x34, text('/a//'), [0, 9], 'x'), 'pubrec'],
    ['a topic with a space and a control character', packet(0x32, text('a b\u0001'), [0, 9], 'x'), 'puback'],
    ['PUBLISH with DUP and QoS 1', packet(0x3a, topicT, [0, 9], 'x'), 'puback'],
    ['PUBLISH with RETAIN', packet(0x33, topicT, [0, 9], 'x'), 'puback'],
    ['a length in four bytes', Buffer.from([0x32, 0x85, 0x80, 0x80, 0, 0, 1, 0x74, 0, 9]), 'puback'],
  ])('%s is acknowledged', async (_what, bytes, cmd) => {
    const spool = auto()
    await using world = await openIngest(spool)
    const device = await world.device('truck')
    device.sendBytes(bytes)
    await device.acked(1)
    expect(device.acks[0]).toEqual({ cmd, messageId: 9 })
    expect(spool.payloads).toHaveLength(1)
  })

  test.each([
    ['PINGREQ with a length in two bytes', Buffer.from([0xc0, 0x80, 0])],
    ['PUBACK for a message that nobody sent', packet(0x40, 0, 5)],
    ['PUBCOMP for a message that nobody sent', packet(0x70, 0, 5)],
    ['a topic filter with U+FFFD', packet(0x82, id1, text('\ufffd'), 2)],
    ['the same filter twice', packet(0x82, id1, topicT, 0, topicT, 1)],
    ['UNSUBSCRIBE of what was never subscribed', packet(0xa2, id1, text('never'))],
  ])('%s ends nothing', async (_what, bytes) => {
    const spool = auto()
    await using world = await openIngest(spool)
    const device = await world.device('truck')
    device.sendBytes(Buffer.concat([bytes, message]))
    await device.acked(1)
    expect(spool.payloads.map(textOf)).toEqual(['before'])
    expect(world.events.filter(({ kind }) => kind === 'client_dropped')).toEqual([])
  })

  test('MQTT 3.1 sends PUBREL, SUBSCRIBE and UNSUBSCRIBE with DUP, and QoS 0 with DUP', async () => {
    const spool = auto()
    await using world = await openIngest(spool)
    const device = await world.connection('old')
    device.sendBytes(connect({ name: 'MQIsdp', level: 3, payload: [text('old')] }))
    device.sendBytes(packet(0x8a, id1, topicT, 1))
    await device.until((received) => received.some(({ cmd }) => cmd === 'suback'))
    device.sendBytes(packet(0xaa, id1, topicT))
    await device.until((received) => received.some(({ cmd }) => cmd === 'unsuback'))
    device.sendBytes(packet(0x6a, 0, 9))
    await device.until((received) => received.some(({ cmd }) => cmd === 'pubcomp'))
    device.sendBytes(Buffer.concat([packet(0x38, topicT, 'again'), message]))
    await device.acked(2)
    expect(spool.payloads.map(textOf)).toEqual(['again', 'before'])
  })
})
