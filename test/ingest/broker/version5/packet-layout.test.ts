import { describe, expect, test } from 'vitest'
import { createFraming } from '../../../../src/ingest/broker/gate/packet-reader/packet-framing.ts'
import type { PacketFault } from '../../../../src/ingest/broker/packet-rules.ts'
import {
  connectPacket,
  disconnectPacket,
  packetOf,
  pingPacket,
  propertiesOf,
  property,
  publishPacket,
  subscribePacket,
  text,
  uint16,
  uint32,
  unsubscribePacket,
  userProperty,
  type ConnectFields,
  type Part,
} from '../../../support/mqtt5-packets.ts'

const limits = { connectBytesMax: 10_000, packetBytesMax: 100_000 }
const allowance = () => ({ messages: 100, packets: 100, control: 10_000 })

/** What the framing finds in `packets` behind a CONNECT; null where all pass. */
function faultOf(...packets: readonly Buffer[]): PacketFault | null {
  const framing = createFraming(limits)
  const hello = connectPacket()
  expect(framing.follow(hello, allowance())).toBe(hello.length)
  const bytes = Buffer.concat(packets)
  for (let at = 0; at < bytes.length;) {
    const passed = framing.follow(bytes.subarray(at), allowance())
    if (framing.violation !== null) return framing.violation
    expect(passed).toBeGreaterThan(0)
    at += passed
  }
  return null
}

function connectFaultOf(bytes: Buffer): PacketFault | null {
  const framing = createFraming(limits)
  const passed = framing.follow(bytes, allowance())
  if (framing.violation === null && passed !== bytes.length) throw new Error(`only ${passed} bytes passed`)
  return framing.violation
}

/** Code and clause of a fault; its whole sentence where that does not name the clause. */
function briefOf(fault: PacketFault | null, clause: string) {
  const code = fault?.reason === 'malformed_length' ? malformedPacket : fault?.code
  return { code, clause: fault?.detail.includes(clause) ? clause : fault?.detail }
}

const malformedPacket = 0x81

const surrogate = [0xed, 0xa0, 0x80]
const overlong = [0xc0, 0x80]
const id = uint16(7)
const [publishHead, subscribeHead, unsubscribeHead] = [0x30, 0x82, 0xa2]
const none = propertiesOf()

describe('CONNECT', () => {
  const will = { topic: 'w', payload: 'gone' }
  const right: readonly (readonly [what: string, fields: ConnectFields])[] = [
    ['no field', {}],
    ['an empty client id', { clientId: '' }],
    ['[MQTT-3.1.2-16] a user name and a password', { userName: 'u', password: 'p' }],
    ['a password alone', { password: 'p' }],
    ['[MQTT-3.1.2-12] a will of QoS 2', { will: { ...will, qos: 2, retain: true } }],
    [
      'all properties',
      {
        properties: [
          property.sessionExpiry,
          uint32(0xffff_ffff),
          property.receiveMaximum,
          uint16(1),
          property.maximumPacketSize,
          uint32(1),
          property.topicAliasMaximum,
          uint16(0),
          property.requestResponseInformation,
          1,
          property.requestProblemInformation,
          0,
          property.authenticationMethod,
          text('SCRAM'),
          property.authenticationData,
          text([0, 255]),
          userProperty('a', ''),
          userProperty('a', '\u{1f69a}'),
        ],
        will: {
          ...will,
          properties: [
            property.willDelay,
            uint32(5),
            property.payloadFormat,
            1,
            property.messageExpiry,
            uint32(0),
            property.contentType,
            text('json'),
            property.responseTopic,
            text('a/b'),
            property.correlationData,
            text([0]),
            userProperty('', 'x'),
          ],
        },
      },
    ],
  ]
  test.each(right)('passes with %s', (_what, fields) => {
    expect(connectFaultOf(connectPacket(fields))).toBe(null)
  })

  const wrong: readonly (readonly [what: string, fields: ConnectFields, code: number, clause: string])[] = [
    ['the reserved flag', { flags: 0x03 }, 0x81, 'MQTT-3.1.2-3'],
    ['a will QoS and no will', { flags: 0x0a }, 0x81, 'MQTT-3.1.2-11'],
    ['a will of QoS 3', { will: { ...will, qos: 3 } }, 0x81, 'MQTT-3.1.2-12'],
    ['will retain and no will', { flags: 0x22 }, 0x81, 'MQTT-3.1.2-13'],
    ['no property length', { section: Buffer.alloc(0), clientId: '' }, 0x81, 'MQTT-3.1.3-1'],
    ['a property length of two bytes for 0', { section: Buffer.from([0x80, 0]) }, 0x81, 'MQTT-1.5.5-1'],
    [
      'a property length of five bytes',
      { section: Buffer.from([0x80, 0x80, 0x80, 0x80, 1]) },
      0x81,
      'MQTT-1.5.5-1',
    ],
    ['a property length behind the end', { section: Buffer.from([0x7f]) }, 0x81, 'MQTT-1.5.5-1'],
    ['a receive maximum of 0', { properties: [property.receiveMaximum, uint16(0)] }, 0x82, '2.2.2.2'],
    ['a maximum packet size of 0', { properties: [property.maximumPacketSize, uint32(0)] }, 0x82, '2.2.2.2'],
    ['problem information 2', { properties: [property.requestProblemInformation, 2] }, 0x82, '2.2.2.2'],
    [
      'a property twice',
      { properties: [property.sessionExpiry, uint32(1), property.sessionExpiry, uint32(1)] },
      0x82,
      'twice',
    ],
    ['a topic alias', { properties: [property.topicAlias, uint16(1)] }, 0x81, '2.2.2.2'],
    ['an unknown property', { properties: [0x7f, 0] }, 0x81, '2.2.2.2'],
    [
      'authentication data without method',
      { properties: [property.authenticationData, text('x')] },
      0x82,
      '3.1.2.11.10',
    ],
    ['a property that is cut', { properties: [property.sessionExpiry, 0, 0, 1] }, 0x81, '2.2.2'],
    ['a client id that is not UTF-8', { clientId: surrogate }, 0x81, 'MQTT-1.5.4-1'],
    ['a null in the client id', { clientId: [0x61, 0] }, 0x81, 'MQTT-1.5.4-2'],
    [
      'a will property of CONNECT',
      { will: { ...will, properties: [property.receiveMaximum, uint16(1)] } },
      0x81,
      'will',
    ],
    ['a will without its fields', { flags: 0x06, rest: [] }, 0x81, 'MQTT-1.5.5-1'],
    ['a will without topic', { flags: 0x06, rest: [none] }, 0x81, 'MQTT-3.1.3-1'],
    ['a will without message', { flags: 0x06, rest: [none, text('w')] }, 0x81, 'MQTT-3.1.3-1'],
    [
      'a will topic that is not UTF-8',
      { flags: 0x06, rest: [none, text(overlong), text('')] },
      0x81,
      'MQTT-1.5.4-1',
    ],
    ['a null in the user name', { userName: '\0' }, 0x81, 'MQTT-1.5.4-2'],
    ['the flag of a user name and none', { flags: 0x82, rest: [] }, 0x81, 'MQTT-3.1.3-1'],
    ['the flag of a password and none', { flags: 0x42, rest: [] }, 0x81, 'MQTT-3.1.3-1'],
    ['a user name and not its flag', { flags: 0x02, rest: [text('u')] }, 0x81, '3 more bytes'],
  ]
  test.each(wrong)('[MQTT-3.1.4-1] does not pass with %s', (_what, fields, code, clause) => {
    expect(briefOf(connectFaultOf(connectPacket(fields)), clause)).toEqual({ code, clause })
  })

  test('names the field with the text that is not valid', () => {
    expect(connectFaultOf(connectPacket({ clientId: surrogate }))?.reason).toBe('bad_client_id')
    expect(connectFaultOf(connectPacket({ userName: '\0' }))?.reason).toBe('bad_user_name')
    expect(connectFaultOf(connectPacket({ will: { ...will, topic: '\0' } }))?.reason).toBe('bad_will_topic')
  })

  test('[MQTT-1.5.5-1] does not pass with a remaining length of more bytes than needed', () => {
    const bytes = connectPacket()
    const long = Buffer.concat([Buffer.from([0x10, bytes[1]! | 0x80, 0]), bytes.subarray(2)])
    expect(briefOf(connectFaultOf(long), 'MQTT-1.5.5-1')).toEqual({ code: 0x81, clause: 'MQTT-1.5.5-1' })
  })

  test('passes nowhere where a byte is missing, and never with one more', () => {
    const whole = connectPacket({ properties: [userProperty('a', 'b')], will, userName: 'u', password: 'p' })
    const body = whole.subarray(2)
    for (let size = 0; size < body.length; size += 1)
      expect(connectFaultOf(packetOf(0x10, body.subarray(0, size))), `${size} bytes`).not.toBe(null)
    expect(briefOf(connectFaultOf(packetOf(0x10, body, 0)), 'more bytes')).toEqual({
      code: 0x81,
      clause: 'more bytes',
    })
  })

  test('of level 6 has no layout that is known', () => {
    expect(connectFaultOf(connectPacket({ level: 6 }))?.reason).toBe('unsupported_level')
  })
})

describe('packets behind CONNECT', () => {
  const right: readonly (readonly [what: string, packet: Buffer])[] = [
    ['PINGREQ', pingPacket],
    ['PUBLISH', publishPacket({ properties: [property.topicAlias, uint16(1)] })],
    ['PUBACK without code', packetOf(0x40, id)],
    ['PUBACK with code', packetOf(0x40, id, 0x10)],
    ['PUBREC with code and properties', packetOf(0x50, id, 0x97, propertiesOf(userProperty('a', 'b')))],
    ['PUBREL without code', packetOf(0x62, id)],
    ['[MQTT-3.6.2-1] PUBREL with 0x92', packetOf(0x62, id, 0x92)],
    ['PUBREL with a reason', packetOf(0x62, id, 0, propertiesOf(property.reasonString, text('ok')))],
    ['PUBCOMP', packetOf(0x70, id, 0x00, none)],
    [
      'SUBSCRIBE with all options',
      subscribePacket(7, [
        ['a/#', 0b0010_1110],
        ['$share/g/a', 0b0001_1001],
      ]),
    ],
    ['SUBSCRIBE with an identifier', subscribePacket(7, [['a', 0]], [property.subscriptionId, 0xff, 0x7f])],
    ['UNSUBSCRIBE', unsubscribePacket(7, ['a', 'b/#'])],
    ['DISCONNECT without code', disconnectPacket()],
    ['DISCONNECT with code', disconnectPacket(0x04)],
    ['DISCONNECT with expiry', disconnectPacket(0, [property.sessionExpiry, uint32(0)])],
  ]
  test.each(right)('pass: %s', (_what, packet) => {
    expect(faultOf(packet)).toBe(null)
  })

  const filter = (name: string | readonly number[], options: number): Part[] => [text(name), options]
  const wrong: readonly (readonly [what: string, packet: Buffer, code: number, clause: string])[] = [
    ['a second CONNECT', connectPacket(), 0x82, 'MQTT-3.1.0-2'],
    ['AUTH', packetOf(0xf0), 0x82, 'MQTT-4.12.0-7'],
    ['AUTH with flags', packetOf(0xf1), 0x81, 'MQTT-2.1.3-1'],
    ['PUBLISH of QoS 3', packetOf(publishHead | 0b110, text('t'), id, none), 0x81, 'MQTT-3.3.1-4'],
    ['PUBLISH of QoS 0 with DUP', packetOf(publishHead | 0b1000, text('t'), none), 0x81, 'MQTT-3.3.1-2'],
    ['PINGREQ with a body', packetOf(0xc0, 0), 0x81, '3.12.1'],
    ['PINGREQ with flags', packetOf(0xc1), 0x81, 'MQTT-2.1.3-1'],
    ['a remaining length of more bytes than needed', Buffer.from([0xc0, 0x80, 0]), 0x81, 'MQTT-1.5.5-1'],
    ['PUBACK without identifier', packetOf(0x40, 1), 0x82, 'MQTT-2.2.1-3'],
    ['PUBACK with identifier 0', packetOf(0x40, 0, 0), 0x82, 'MQTT-2.2.1-3'],
    ['PUBACK with the code of another packet', packetOf(0x40, id, 0x92), 0x82, 'MQTT-3.4.2-1'],
    ['PUBREC with an unknown code', packetOf(0x50, id, 0x01), 0x82, 'MQTT-3.5.2-1'],
    ['PUBREL with another code', packetOf(0x62, id, 0x80), 0x82, 'MQTT-3.6.2-1'],
    ['PUBREL with the flags of 3.1', packetOf(0x6a, id), 0x81, 'MQTT-2.1.3-1'],
    [
      'PUBREL with a foreign property',
      packetOf(0x62, id, 0, propertiesOf(property.payloadFormat, 1)),
      0x81,
      '2.2.2.2',
    ],
    [
      'PUBREL with a reason twice',
      packetOf(0x62, id, 0, propertiesOf(property.reasonString, text(''), property.reasonString, text(''))),
      0x82,
      'twice',
    ],
    ['PUBREL with a byte behind it', packetOf(0x62, id, 0, none, 0), 0x81, 'more bytes'],
    ['PUBCOMP with another code', packetOf(0x70, id, 0x10), 0x82, 'MQTT-3.7.2-1'],
    [
      'SUBSCRIBE with identifier 0',
      packetOf(subscribeHead, 0, 0, none, ...filter('a', 0)),
      0x82,
      'MQTT-2.2.1-3',
    ],
    ['SUBSCRIBE without property length', packetOf(subscribeHead, id), 0x81, 'MQTT-1.5.5-1'],
    ['SUBSCRIBE without filter', packetOf(subscribeHead, id, none), 0x82, 'MQTT-3.8.3-2'],
    ['SUBSCRIBE that ends within a filter', packetOf(subscribeHead, id, none, 0, 5, 0x61), 0x81, '3.8.3'],
    ['SUBSCRIBE without options', packetOf(subscribeHead, id, none, text('a')), 0x81, '3.8.3'],
    [
      'SUBSCRIBE to no UTF-8',
      packetOf(subscribeHead, id, none, ...filter(surrogate, 0)),
      0x81,
      'MQTT-1.5.4-1',
    ],
    ['SUBSCRIBE to a null', packetOf(subscribeHead, id, none, ...filter([0x61, 0], 0)), 0x81, 'MQTT-1.5.4-2'],
    ['SUBSCRIBE with QoS 3', subscribePacket(7, [['a', 3]]), 0x82, '3.8.3.1'],
    ['SUBSCRIBE with retain handling 3', subscribePacket(7, [['a', 0x30]]), 0x82, '3.8.3.1'],
    [
      'SUBSCRIBE with a reserved bit',
      subscribePacket(7, [
        ['a', 0],
        ['b', 0x40],
      ]),
      0x81,
      'MQTT-3.8.3-5',
    ],
    [
      'SUBSCRIBE with No Local and a shared filter',
      subscribePacket(7, [['$share/g/a', 4]]),
      0x82,
      'MQTT-3.8.3-4',
    ],
    [
      'SUBSCRIBE with identifier property 0',
      subscribePacket(7, [['a', 0]], [property.subscriptionId, 0]),
      0x82,
      'not allowed',
    ],
    [
      'SUBSCRIBE with two identifiers',
      subscribePacket(7, [['a', 0]], [property.subscriptionId, 1, property.subscriptionId, 2]),
      0x82,
      'twice',
    ],
    [
      'SUBSCRIBE with a long identifier',
      subscribePacket(7, [['a', 0]], [property.subscriptionId, 0x81, 0]),
      0x81,
      'MQTT-1.5.5-1',
    ],
    ['UNSUBSCRIBE without filter', packetOf(unsubscribeHead, id, none), 0x82, 'MQTT-3.10.3-2'],
    ['UNSUBSCRIBE of no UTF-8', packetOf(unsubscribeHead, id, none, text(overlong)), 0x81, 'MQTT-1.5.4-1'],
    [
      'UNSUBSCRIBE with an identifier property',
      packetOf(unsubscribeHead, id, propertiesOf(property.subscriptionId, 1), text('a')),
      0x81,
      '2.2.2.2',
    ],
    ['DISCONNECT with flags', packetOf(0xe1), 0x81, 'MQTT-2.1.3-1'],
    ['DISCONNECT with a code of a server', disconnectPacket(0x8b), 0x82, 'MQTT-3.14.2-1'],
    [
      'DISCONNECT with a server reference',
      disconnectPacket(0, [property.serverReference, text('x')]),
      0x82,
      'only a server',
    ],
    ['DISCONNECT with a byte behind it', packetOf(0xe0, 0, none, 0), 0x81, 'more bytes'],
    [
      '[MQTT-1.5.7-1] a user property whose name is not UTF-8',
      disconnectPacket(0, [property.userProperty, text(surrogate), text('')]),
      0x81,
      'MQTT-1.5.4-1',
    ],
    [
      '[MQTT-1.5.7-1] a user property whose value has a null',
      disconnectPacket(0, [property.userProperty, text('a'), text('\0')]),
      0x81,
      'MQTT-1.5.4-2',
    ],
    ['a user property without value', disconnectPacket(0, [property.userProperty, text('a')]), 0x81, '2.2.2'],
  ]
  test.each(wrong)('[MQTT-4.13.1-1] do not pass: %s', (_what, packet, code, clause) => {
    expect(briefOf(faultOf(pingPacket, packet), clause)).toEqual({ code, clause })
  })

  test('[MQTT-2.1.3-1] pass with one value of the flags only', () => {
    const bodies: readonly (readonly [type: number, flags: number, parts: readonly Part[]])[] = [
      [4, 0, [id]],
      [5, 0, [id]],
      [6, 2, [id]],
      [7, 0, [id]],
      [8, 2, [id, none, ...filter('a', 0)]],
      [10, 2, [id, none, text('a')]],
      [12, 0, []],
      [14, 0, []],
    ]
    for (const [type, required, parts] of bodies)
      for (let flags = 0; flags < 16; flags += 1)
        expect(faultOf(packetOf((type << 4) | flags, ...parts)) === null, `${type} ${flags}`).toBe(
          flags === required,
        )
  })

  test.each([2, 9, 11, 13])('packets of a server do not pass: type %i', (type) => {
    expect(faultOf(packetOf(type << 4, id, 0))?.reason).toBe('not_from_client')
  })
})
