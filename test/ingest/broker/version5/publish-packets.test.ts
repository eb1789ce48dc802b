import { describe, expect, test } from 'vitest'
import type { Message } from '../../../../src/domain/message.ts'
import { takePublishes5, type PublishState } from '../../../../src/ingest/broker/version5/publish-packets.ts'
import { createReceiveQuota } from '../../../../src/ingest/broker/version5/receive-quota.ts'
import { createTopicAliases } from '../../../../src/ingest/broker/version5/topic-aliases.ts'
import { createVersion5Counts } from '../../../../src/ingest/broker/version5/version5.ts'
import { messageOf } from '../../../support/mapping-world.ts'
import {
  packetOf,
  pingPacket,
  propertiesOf,
  property,
  publishPacket,
  pubrelPacket,
  text,
  uint16,
  uint32,
  userProperty,
  type Part,
  type PublishFields,
} from '../../../support/mqtt5-packets.ts'

type Taken = Pick<Message, 'topic' | 'qos' | 'retain' | 'dup' | 'properties' | 'userProperties'> & {
  payload: string
  messageId: number
}

type StateOptions = { inFlightMax?: number; topicAliasesMax?: number; receivedBytesMax?: number }

function stateOf(options: StateOptions = {}): PublishState {
  const { inFlightMax = 100, topicAliasesMax = 10, receivedBytesMax = 100_000 } = options
  return {
    receivedBytesMax,
    quota: createReceiveQuota(inFlightMax),
    aliases: createTopicAliases(topicAliasesMax),
    counts: createVersion5Counts(),
    fault: null,
  }
}

function takeAll(portion: Buffer, state = stateOf()): { taken: Taken[]; end: number; pings: number } {
  const taken: Taken[] = []
  let pings = 0
  const message: Message = { ...messageOf(''), userProperties: null, properties: null }
  const takePublish = (messageId: number) => {
    const { topic, bytes, qos, retain, dup, userProperties = null, properties = null } = message
    const payload = bytes.toString()
    return taken.push({ topic, payload, qos, retain, dup, messageId, userProperties, properties }) > 0
  }
  const end = takePublishes5(portion, state, message, { takePublish, takePing: () => (pings += 1) > 0 })
  // What the next message of another connection would get.
  expect([message.userProperties, message.properties]).toEqual([null, null])
  return { taken, end, pings }
}

/** The message in one packet. */
function taken(fields: PublishFields, state = stateOf()): Taken | undefined {
  const packet = publishPacket(fields)
  const result = takeAll(packet, state)
  expect(state.fault).toBe(null)
  expect(result.end).toBe(packet.length)
  return result.taken[0]
}

describe('a message of MQTT 5', () => {
  test('[MQTT-2.2.1-2] of QoS 0 has no packet identifier', () => {
    const payload = '\u0000\u0001payload'
    expect(taken({ topic: 'a/b', qos: 0, payload })).toMatchObject({
      topic: 'a/b',
      qos: 0,
      messageId: 0,
      payload,
    })
  })

  test.each([1, 2])('of QoS %i has a packet identifier, flags and an empty payload', (qos) => {
    expect(taken({ topic: 't', qos, messageId: 65_535, payload: '', dup: true, retain: true })).toEqual({
      topic: 't',
      payload: '',
      qos,
      messageId: 65_535,
      dup: true,
      retain: true,
      userProperties: null,
      properties: null,
    })
  })

  test('has the properties that its sender set', () => {
    const properties: Part[] = [
      property.payloadFormat,
      1,
      property.messageExpiry,
      uint32(60),
      property.contentType,
      text('application/json'),
      property.responseTopic,
      text('a/\u00e4'),
      property.correlationData,
      text([0, 255]),
      userProperty('site', 'north'),
      userProperty('__proto__', 'x'),
      userProperty('site', '\ufeffsouth'),
    ]
    const message = taken({ properties, payload: '{"speed":1}' })
    expect(message?.payload).toBe('{"speed":1}')
    expect(message?.properties).toEqual({
      isText: true,
      expiryS: 60,
      contentType: 'application/json',
      responseTopic: 'a/\u00e4',
      correlation: 'AP8=',
    })
    // Of two with one name the last counts, and a byte order mark stays [MQTT-1.5.4-3].
    expect(Object.entries(message?.userProperties ?? {})).toEqual([
      ['site', '\ufeffsouth'],
      ['__proto__', 'x'],
    ])
  })

  test('has no properties where the one before it had some', () => {
    const portion = Buffer.concat([
      publishPacket({ properties: [userProperty('a', 'b'), property.contentType, text('x')] }),
      publishPacket({ messageId: 2 }),
      publishPacket({ messageId: 3, properties: [property.payloadFormat, 0] }),
    ])
    expect(takeAll(portion).taken.map((one) => [one.userProperties === null, one.properties])).toEqual([
      [false, { contentType: 'x' }],
      [true, null],
      [true, null],
    ])
  })

  test('keeps a U+FFFD that was sent in its topic, and the bytes of a byte order mark', () => {
    expect(taken({ topic: 'a/\ufffd' })?.topic).toBe('a/\ufffd')
    expect(taken({ topic: '\ufeffa' })?.topic).toBe('\ufeffa')
  })

  test('is counted where its sender says that it is UTF-8 and it is not, and is taken', () => {
    const state = stateOf()
    const bytes = Buffer.from([0x7b, 0xff])
    taken({ payload: bytes, properties: [property.payloadFormat, 1] }, state)
    taken({ payload: '\u00e4', properties: [property.payloadFormat, 1] }, state)
    taken({ payload: bytes, properties: [property.payloadFormat, 0] }, state)
    taken({ payload: bytes }, state)
    expect(state.counts.payloadFormatMismatches).toBe(1)
  })

  test('has 64 user properties at most, and the others are counted', () => {
    const state = stateOf()
    const properties = Array.from({ length: 70 }, (_, index) => userProperty(`p${index}`, 'x'))
    const message = taken({ properties, payload: 'whole' }, state)
    expect(Object.keys(message?.userProperties ?? {})).toHaveLength(64)
    expect(message?.payload).toBe('whole')
    expect(state.counts.propertiesSkipped).toBe(6)
  })

  test('has 16 KiB of properties at most', () => {
    const state = stateOf()
    const long = 'x'.repeat(16_000)
    const properties = [
      userProperty('a', long),
      userProperty('b', long),
      property.contentType,
      text(long),
      property.correlationData,
      text('c'),
      userProperty('d', 'e'),
    ]
    const message = taken({ properties }, state)
    expect(Object.keys(message?.userProperties ?? {})).toEqual(['a', 'd'])
    expect(message?.properties).toEqual({ correlation: 'Yw==' })
    expect(state.counts.propertiesSkipped).toBe(2)
  })
})

describe('topic aliases', () => {
  const alias = (number: number) => [property.topicAlias, uint16(number)]

  test('[MQTT-3.3.2-12] each alias from 1 to the maximum stands for its last topic', () => {
    const state = stateOf()
    for (let number = 1; number <= 10; number += 1)
      expect(taken({ topic: `t/${number}`, properties: alias(number) }, state)?.topic).toBe(`t/${number}`)
    taken({ topic: 'other', properties: alias(4) }, state)
    const topics = Array.from({ length: 10 }, (_, index) =>
      taken({ topic: '', properties: alias(index + 1) }, state),
    )
    expect(topics.map((one) => one?.topic)).toEqual([
      't/1',
      't/2',
      't/3',
      'other',
      't/5',
      't/6',
      't/7',
      't/8',
      't/9',
      't/10',
    ])
  })

  test.each([
    ['[MQTT-3.3.2-8] 0', 0, 't', 0x94],
    ['[MQTT-3.3.2-9] above the maximum', 11, 't', 0x94],
    ['[MQTT-3.3.2-7] that was not set', 3, '', 0x94],
  ])('an alias %s ends the connection', (_what, number, topic, code) => {
    const state = stateOf()
    const first = publishPacket()
    const { taken: messages, end } = takeAll(
      Buffer.concat([first, publishPacket({ topic, properties: alias(number) }), first]),
      state,
    )
    expect([messages.length, end]).toEqual([1, first.length])
    expect(state.fault).toMatchObject({ reason: 'topic_alias', code })
  })

  test('where none is allowed, each one ends the connection', () => {
    const state = stateOf({ topicAliasesMax: 0 })
    takeAll(publishPacket({ properties: alias(1) }), state)
    expect(state.fault).toMatchObject({ reason: 'topic_alias', code: 0x94 })
  })

  test('a topic beyond the room for topics is used once, and its alias is answered with 0x97', () => {
    const state = stateOf()
    const long = 't'.repeat(5000)
    expect(taken({ topic: long, properties: alias(1) }, state)?.topic).toBe(long)
    expect(taken({ topic: `${long}2`, properties: alias(2) }, state)?.topic).toBe(`${long}2`)
    expect(taken({ topic: '', properties: alias(1) }, state)?.topic).toBe(long)
    takeAll(publishPacket({ topic: '', properties: alias(2) }), state)
    expect(state.fault).toMatchObject({ reason: 'topic_alias', code: 0x97 })
  })
})

describe('[MQTT-3.3.4-7] the receive maximum', () => {
  test('allows as many messages as announced, of QoS 1 and 2 together, and any of QoS 0', () => {
    const state = stateOf({ inFlightMax: 3 })
    const three = [1, 2, 1].map((qos, index) => publishPacket({ qos, messageId: index + 1 }))
    const none = publishPacket({ qos: 0 })
    expect(takeAll(Buffer.concat([...three, none, none]), state).taken).toHaveLength(5)
    expect(state.fault).toBe(null)
    expect(takeAll(publishPacket({ messageId: 4 }), state).taken).toHaveLength(0)
    expect(state.fault?.reason).toBe('receive_maximum')
  })

  test('has room for another message after an acknowledgement', () => {
    const state = stateOf({ inFlightMax: 1 })
    for (let count = 0; count < 5; count += 1) {
      expect(takeAll(publishPacket(), state).taken).toHaveLength(1)
      state.quota.free()
    }
    expect(state.fault).toBe(null)
  })
})

describe('a PUBLISH that breaks a rule ends the connection, and what stands before it is taken', () => {
  const topic = text('t')
  const id = uint16(1)
  const none = propertiesOf()
  const twice = (number: number, value: Part) => [number, value, number, value]
  const wrong: readonly (readonly [what: string, bytes: Buffer, reason: string, code: number])[] = [
    ['[MQTT-3.3.2-1] no topic', packetOf(0x30), 'protocol_error', 0x81],
    ['[MQTT-3.3.2-1] half of a topic length', packetOf(0x30, 0), 'protocol_error', 0x81],
    ['[MQTT-3.3.2-1] a topic behind the end', packetOf(0x30, 0, 9, 0x74), 'protocol_error', 0x81],
    ['no room for the packet identifier', packetOf(0x32, topic, 1), 'protocol_error', 0x81],
    ['[MQTT-2.2.2-1] no property length', packetOf(0x32, topic, id), 'protocol_error', 0x81],
    ['[MQTT-2.2.2-1] no property length with QoS 0', packetOf(0x30, topic), 'protocol_error', 0x81],
    ['[MQTT-2.2.1-3] identifier 0', publishPacket({ messageId: 0 }), 'no_packet_id', 0x82],
    ['[MQTT-1.5.4-1] a topic that is no UTF-8', publishPacket({ topic: [0x61, 0xff] }), 'bad_topic', 0x81],
    ['[MQTT-1.5.4-1] a surrogate', publishPacket({ topic: [0xed, 0xa0, 0x80] }), 'bad_topic', 0x81],
    ['[MQTT-4.7.3-2] a null', publishPacket({ topic: 'a\0' }), 'bad_topic', 0x81],
    ['[MQTT-4.7.3-1] an empty topic without alias', publishPacket({ topic: '' }), 'bad_topic', 0x82],
    [
      'an empty topic and another property',
      publishPacket({ topic: '', properties: [property.payloadFormat, 0] }),
      'bad_topic',
      0x82,
    ],
    [
      '[MQTT-1.5.5-1] a property length of more bytes than needed',
      publishPacket({ section: Buffer.from([0x80, 0]) }),
      'protocol_error',
      0x81,
    ],
    ['a property length behind the end', packetOf(0x30, topic, 1), 'protocol_error', 0x81],
    [
      '[MQTT-3.3.2-14] a response topic with a wildcard',
      publishPacket({ properties: [property.responseTopic, text('a/+')] }),
      'protocol_error',
      0x82,
    ],
    [
      '[MQTT-3.3.2-13] a response topic that is no UTF-8',
      publishPacket({ properties: [property.responseTopic, text([0xff])] }),
      'protocol_error',
      0x81,
    ],
    [
      '[MQTT-3.3.2-19] a content type that is no UTF-8',
      publishPacket({ properties: [property.contentType, text([0xc0, 0x80])] }),
      'protocol_error',
      0x81,
    ],
    [
      '[MQTT-1.5.4-2] a null in a property',
      publishPacket({ properties: [property.contentType, text('\0')] }),
      'protocol_error',
      0x81,
    ],
    [
      'a null behind other characters',
      publishPacket({ properties: [property.contentType, text('\u00e4a\0b')] }),
      'protocol_error',
      0x81,
    ],
    [
      '[MQTT-3.3.4-6] a subscription identifier',
      publishPacket({ properties: [property.subscriptionId, 1] }),
      'protocol_error',
      0x82,
    ],
    [
      'a property of CONNECT',
      publishPacket({ properties: [property.receiveMaximum, id] }),
      'protocol_error',
      0x81,
    ],
    ['payload format 2', publishPacket({ properties: [property.payloadFormat, 2] }), 'protocol_error', 0x82],
    [
      'an expiry that is cut',
      publishPacket({ properties: [property.messageExpiry, 0, 0, 0] }),
      'protocol_error',
      0x81,
    ],
    [
      'a value that ends behind the properties',
      packetOf(0x30, topic, 4, property.contentType, 0, 2, 0x61, 0x61),
      'protocol_error',
      0x81,
    ],
    [
      'a user property without value',
      publishPacket({ properties: [property.userProperty, text('a')] }),
      'protocol_error',
      0x81,
    ],
    ...(
      [
        [property.payloadFormat, 0],
        [property.messageExpiry, uint32(1)],
        [property.contentType, text('a')],
        [property.responseTopic, text('a')],
        [property.correlationData, text('a')],
        [property.topicAlias, id],
      ] as const
    ).map(
      ([number, value]) =>
        [
          `property ${number} twice`,
          publishPacket({ properties: twice(number, value) }),
          'protocol_error',
          0x82,
        ] as const,
    ),
    [
      'a text of more bytes than are there',
      packetOf(0x30, topic, 3, property.contentType, 0xff, 0xff),
      'protocol_error',
      0x81,
    ],
    ['nothing but a property length', packetOf(0x30, text(''), none), 'bad_topic', 0x82],
  ]
  test.each(wrong)('%s', (_what, bytes, reason, code) => {
    const first = publishPacket({ messageId: 5, properties: [userProperty('a', 'b')] })
    const state = stateOf()
    const { taken: messages, end } = takeAll(Buffer.concat([first, bytes, first]), state)
    expect(state.fault).toMatchObject({ reason, code })
    expect([messages.length, end]).toEqual([1, first.length])
  })
})

describe('what is left', () => {
  const first = publishPacket()
  test.each([
    ['a PINGREQ with a length', Buffer.from([0xc0, 1, 0])],
    ['half of a PINGREQ', Buffer.from([0xc0])],
    ['a PUBREL', pubrelPacket(1)],
    ['QoS 3', packetOf(0x36, text('t'), uint16(1), 0)],
    ['QoS 0 with DUP', packetOf(0x38, text('t'), 0)],
    ['half of a message', publishPacket({ payload: 'whole' }).subarray(0, 8)],
    ['a length that is not all there', Buffer.from([0x30, 0x80])],
    ['a length of five bytes', Buffer.from([0x30, 0x80, 0x80, 0x80, 0x80, 0])],
    ['a length of more bytes than needed', Buffer.from([0x30, 0x84, 0, 0, 1, 0x74, 0])],
    ['a packet beyond the limit', publishPacket({ payload: 'x'.repeat(1001) })],
  ])('for the framing: %s', (_what, bytes) => {
    const state = stateOf({ receivedBytesMax: 1000 })
    const { taken: messages, end } = takeAll(Buffer.concat([first, bytes]), state)
    expect([messages.length, end, state.fault]).toEqual([1, first.length, null])
  })

  test('nothing of PINGREQ between messages', () => {
    const portion = Buffer.concat([first, pingPacket, first])
    expect(takeAll(portion)).toMatchObject({ end: portion.length, pings: 1 })
  })

  test('what follows where the caller stops', () => {
    const message = messageOf('')
    const packet = publishPacket({ properties: [userProperty('a', 'b')] })
    const portion = Buffer.concat([packet, packet])
    const taker = { takePublish: () => false, takePing: () => false }
    expect(takePublishes5(portion, stateOf(), message, taker)).toBe(packet.length)
    expect(message.userProperties).toBe(null)
    expect(takePublishes5(pingPacket, stateOf(), message, taker)).toBe(2)
  })
})
