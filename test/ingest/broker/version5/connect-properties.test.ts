import { parser, type IConnectPacket } from 'mqtt-packet'
import { describe, expect, test } from 'vitest'
import type { ConnectPacket } from '../../../../src/ingest/broker/aedes-internals.ts'
import {
  connectRefusalOf,
  connectRequestOf,
  grantedKeepaliveMs,
} from '../../../../src/ingest/broker/version5/connect-properties.ts'
import {
  connectPacket,
  property,
  text,
  uint16,
  uint32,
  userProperty,
  type ConnectFields,
} from '../../../support/mqtt5-packets.ts'

describe('what a CONNECT asks for', () => {
  test('nothing: no session, no keepalive, no bound of packets', () => {
    expect(connectRequestOf(read({}))).toEqual({
      cleanStart: true,
      needsClientId: false,
      sessionExpiryMs: 0,
      keepaliveMs: 0,
      receiveMaximum: 65_535,
      topicAliasMaximum: 0,
      packetBytesMax: Infinity,
      wantsReasons: true,
      userProperties: null,
      will: null,
    })
  })

  test('each of its properties', () => {
    const properties = [
      property.sessionExpiry,
      uint32(3600),
      property.receiveMaximum,
      uint16(20),
      property.maximumPacketSize,
      uint32(4000),
      property.topicAliasMaximum,
      uint16(7),
      property.requestProblemInformation,
      0,
      userProperty('model', 'FMC130'),
      userProperty('model', 'FMC230'),
      userProperty('fw', '03.28'),
    ]
    expect(connectRequestOf(read({ properties, clientId: '', flags: 0, keepAliveS: 60 }))).toMatchObject({
      cleanStart: false,
      needsClientId: true,
      sessionExpiryMs: 3_600_000,
      keepaliveMs: 60_000,
      receiveMaximum: 20,
      packetBytesMax: 4000,
      topicAliasMaximum: 7,
      wantsReasons: false,
      // The last of a name.
      userProperties: { model: 'FMC230', fw: '03.28' },
    })
  })

  test('a session that never expires', () => {
    const properties = [property.sessionExpiry, uint32(0xffff_ffff)]
    expect(connectRequestOf(read({ properties })).sessionExpiryMs).toBe(Infinity)
  })

  test('16 user properties are kept for the device view, each with 128 characters', () => {
    const names = Array.from({ length: 40 }, (_, index) => `name ${index}`)
    const properties = names.map((name, index) => userProperty(name, 'x'.repeat(index === 3 ? 300 : 30)))
    const { userProperties } = connectRequestOf(read({ properties }))
    expect(Object.keys(userProperties ?? {})).toEqual(names.slice(0, 16))
    expect(userProperties?.['name 3']).toBe(`${'x'.repeat(128)}…`)
  })

  test('the values of user properties that may be secrets are not kept; those of the will are', () => {
    const names = ['token', 'Password', 'pwd', 'Authorization', 'client_secret', 'api-key', 'model']
    const userProperties = names.map((name) => userProperty(name, 'xyz'))
    const request = connectRequestOf(
      read({
        properties: userProperties,
        will: { topic: 'status', payload: 'lost', properties: userProperties },
      }),
    )
    const kept = Object.entries(request.userProperties ?? {})
    expect(kept).toEqual(names.map((name) => [name, name === 'model' ? 'xyz' : '***']))
    expect(Object.values(request.will?.userProperties ?? {})).toEqual(names.map(() => 'xyz'))
  })

  test('user properties that are kept have 1 KiB together', () => {
    const names = Array.from({ length: 16 }, (_, index) => `name ${index}`)
    const properties = names.map((name) => userProperty(name, 'x'.repeat(128)))
    const { userProperties } = connectRequestOf(read({ properties }))
    expect(Object.keys(userProperties ?? {})).toEqual(names.slice(0, 7))
  })

  test('names that every object has are names like others', () => {
    const properties = [userProperty('__proto__', 'a'), userProperty('constructor', 'b')]
    const { userProperties } = connectRequestOf(read({ properties }))
    expect(Object.entries(userProperties ?? {})).toEqual([
      ['__proto__', 'a'],
      ['constructor', 'b'],
    ])
  })

  test('the properties of its will', () => {
    const properties = [
      property.willDelay,
      uint32(30),
      property.payloadFormat,
      1,
      property.messageExpiry,
      uint32(9),
      property.contentType,
      text('json'),
      property.responseTopic,
      text('answers'),
      property.correlationData,
      text([0, 255]),
      userProperty('seq', '7'),
    ]
    expect(connectRequestOf(read({ will: { topic: 'status', payload: 'lost', properties } })).will).toEqual({
      delayMs: 30_000,
      userProperties: { seq: '7' },
      properties: {
        contentType: 'json',
        responseTopic: 'answers',
        correlation: Buffer.from([0, 255]).toString('base64'),
        isText: true,
        expiryS: 9,
      },
      skipped: 0,
    })
  })

  test('a will without properties has none, and one with too many has 64', () => {
    const plain = connectRequestOf(read({ will: { topic: 'status', payload: 'lost' } }))
    expect(plain.will).toEqual({ delayMs: 0, userProperties: null, properties: null, skipped: 0 })
    const properties = Array.from({ length: 70 }, (_, index) => userProperty(`name ${index}`, ''))
    const { will } = connectRequestOf(read({ will: { topic: 'status', payload: 'lost', properties } }))
    expect(Object.keys(will?.userProperties ?? {})).toHaveLength(64)
    expect(will?.skipped).toBe(6)
  })
})

describe('what a CONNECT is refused for', () => {
  const retained: ConnectFields = { will: { topic: 'status', payload: 'lost', retain: true } }

  test('[MQTT-4.12.0-1] enhanced authentication', () => {
    const properties = [property.authenticationMethod, text('SCRAM-SHA-1')]
    expect(connectRefusalOf(read({ properties }), { retain: 'accept' })).toBe('authentication_method')
    const withData = [...properties, property.authenticationData, text('client-first-data')]
    expect(connectRefusalOf(read({ properties: withData }), { retain: 'accept' })).toBe(
      'authentication_method',
    )
  })

  test('[MQTT-3.2.2-13] a will with the retain flag where Retain Available 0 is announced', () => {
    expect(connectRefusalOf(read(retained), { retain: 'refuse' })).toBe('will_retain')
    expect(connectRefusalOf(read(retained), { retain: 'accept' })).toBeNull()
  })

  test('nothing else', () => {
    const will = { topic: 'status', payload: 'lost' }
    expect(connectRefusalOf(read({ will }), { retain: 'refuse' })).toBeNull()
    expect(connectRefusalOf(read({}), { retain: 'refuse' })).toBeNull()
  })
})

describe('[MQTT-3.2.2-21] what a client gets of its keepalive', () => {
  test.each([
    { asked: 60_000, longest: null, granted: 60_000 },
    { asked: 0, longest: null, granted: 0 },
    { asked: 60_000, longest: 300_000, granted: 60_000 },
    { asked: 600_000, longest: 300_000, granted: 300_000 },
    { asked: 0, longest: 300_000, granted: 300_000 },
    // CONNACK has whole seconds.
    { asked: 0, longest: 1999, granted: 1000 },
    { asked: 60_000, longest: 1500, granted: 1000 },
  ])('$asked ms with a bound of $longest ms: $granted ms', ({ asked, longest, granted }) => {
    expect(grantedKeepaliveMs(asked, { keepaliveMsMax: longest })).toBe(granted)
  })
})

/** As mqtt-packet reads it for aedes. */
function read(fields: ConnectFields): ConnectPacket {
  let found: unknown
  const connectParser = parser({ protocolVersion: 5 })
  connectParser.on('packet', (packet) => (found = packet))
  connectParser.on('error', (error) => {
    throw error
  })
  connectParser.parse(connectPacket(fields))
  return found as IConnectPacket & ConnectPacket
}
