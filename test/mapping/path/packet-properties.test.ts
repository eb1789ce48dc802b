import { describe, expect, test } from 'vitest'
import {
  envelopeOf,
  type Envelope,
  type Message,
  type MessageProperties,
} from '../../../src/domain/message.ts'
import { messageFrom } from '../../../src/ingest/remap/kept-message.ts'
import { openMapperOf, payloadIn } from '../../support/mapping-world.ts'

function message(
  body: unknown,
  userProperties: Record<string, string> | null,
  properties: MessageProperties | null = null,
): Message {
  return {
    topic: 'a/t-1',
    bytes: Buffer.from(JSON.stringify(body)),
    qos: 1,
    retain: false,
    dup: false,
    sender: { clientId: '', userName: null, certificateName: null, identity: null },
    arrivedAt: 1_750_000_000_000,
    userProperties,
    properties,
  }
}

const map = { latitude: { path: 'x' }, longitude: { path: 'y' } }
const at = { x: 1, y: 2 }

function deviceOf(source: object, sent: Message): unknown {
  const result = openMapperOf([{ name: 'a', topic: 'a/{truck}', map, ...source }]).map(sent)
  return result.kind === 'payloads' ? result.payloads.map(({ device }) => device) : result
}

describe('the user properties of a message', () => {
  test('are read as $properties, from the message or from a part of it', () => {
    const device = { device: { path: '$properties.vin' } }
    expect(deviceOf(device, message(at, { vin: 'V1' }))).toEqual(['V1'])
    const each = { each: 'list', device: { path: '$.$properties.vin' } }
    expect(deviceOf(each, message({ list: [at] }, { vin: 'V2' }))).toEqual(['V2'])
    expect(
      deviceOf({ ...device, when: 'packet.user.kind == "gps"' }, message(at, { vin: 'V1', kind: 'x' })),
    ).toMatchObject({
      kind: 'ignored',
    })
  })

  test('with blanks and dots in their names are read by quoted keys', () => {
    const device = { device: { path: '$properties."fleet id.x"' } }
    expect(deviceOf(device, message(at, { 'fleet id.x': 'F1' }))).toEqual(['F1'])
  })

  test('are read by the name, the value and the device of a source that collects', () => {
    const source = {
      name: 'a',
      topic: 'a/+',
      device: '{user.vin}',
      coalesce: { name: { path: '$properties.name' }, value: 'v', complete: ['y'], window: '10s' },
      map: { latitude: { path: 'x' }, longitude: { path: 'y' } },
    }
    const mapper = openMapperOf([source])
    mapper.map(message({ v: 1 }, { vin: 'V', name: 'x' }))
    mapper.apply()
    mapper.map(message({ v: 2 }, { vin: 'V', name: 'y' }))
    const [payload] = mapper.apply().payloads
    expect(payload?.device).toBe('V')
    expect(payload?.json).toContain('"latitude":1,"longitude":2')
  })

  test('are none without MQTT 5, and replace what the message has under that key', () => {
    const device = { device: { path: '$properties.vin' } }
    expect(deviceOf(device, message(at, null))).toMatchObject({ kind: 'unmappable', reason: 'NO_DEVICE' })
    const forged = { ...at, $properties: { vin: 'forged' } }
    expect(deviceOf(device, message(forged, { vin: 'V1' }))).toEqual(['V1'])
  })

  test('with names that objects inherit are names', () => {
    const properties = Object.assign(Object.create(null) as Record<string, string>, { constructor: 'V3' })
    const sent = message(at, properties)
    expect(deviceOf({ device: { path: '$properties.constructor' } }, sent)).toEqual(['V3'])
    expect(deviceOf({ device: { path: '$properties.toString' } }, sent)).toMatchObject({
      reason: 'NO_DEVICE',
    })
  })

  test('add nothing to the payload', () => {
    const mapper = openMapperOf([{ name: 'a', topic: 'a/{device}', map }])
    const sent = [message(at, null), message(at, { vin: 'V1' }, all)]
    const [plain, marked] = sent.map((one) => payloadIn(mapper.map(one)))
    expect(marked?.json).toBe(plain?.json)
  })

  test('are kept with the message, and with where it came from', () => {
    const sent = { ...message(at, { vin: 'V1' }), from: 'depot' }
    const stored = JSON.parse(JSON.stringify(envelopeOf(sent, 'a'))) as Envelope
    const read = messageFrom(stored)
    expect(read).toMatchObject({ from: 'depot', userProperties: { vin: 'V1' } })
    expect(deviceOf({ device: { path: '$properties.vin' }, from: ['depot'] }, read)).toEqual(['V1'])
  })
})

const all: MessageProperties = {
  contentType: 'application/json',
  responseTopic: 'answers/1',
  correlation: 'AAH/',
  isText: true,
  expiryS: 60,
}

describe('the other properties of a message', () => {
  test.each([
    ['content_type', 'application/json'],
    ['response_topic', 'answers/1'],
    ['correlation_data', 'AAH/'],
    ['payload_format', '1'],
    ['message_expiry', '60'],
  ])('are read as $packet.%s, from the message or from a part of it', (name, value) => {
    const device = { device: { path: `$packet.${name}` } }
    expect(deviceOf(device, message(at, null, all))).toEqual([value])
    expect(deviceOf(device, message(at, { [name]: 'user' }, {}))).toMatchObject({ reason: 'NO_DEVICE' })
    expect(deviceOf(device, message(at, null))).toMatchObject({ reason: 'NO_DEVICE' })
    const each = { each: 'list', device: { path: `$.$packet.${name}` } }
    expect(deviceOf(each, message({ list: [at] }, null, all))).toEqual([value])
    const holds = { device: '{truck}', when: `packet.${name} == "${value}"` }
    expect(deviceOf(holds, message(at, null, all))).toEqual(['t-1'])
    expect(deviceOf(holds, message(at, null, {}))).toMatchObject({ kind: 'ignored' })
  })

  test('replace what the message has under that key', () => {
    const device = { device: { path: '$packet.content_type' } }
    const forged = { ...at, $packet: { content_type: 'forged' } }
    expect(deviceOf(device, message(forged, null, all))).toEqual(['application/json'])
    expect(deviceOf(device, message(forged, null, { expiryS: 1 }))).toMatchObject({ reason: 'NO_DEVICE' })
  })

  test('are read by conditions of `extract`, and behind it', () => {
    const source = {
      extract: [{ from: 'raw', as: 'json', into: 'pos', when: 'packet.content_type == "application/json"' }],
      device: { path: '$packet.response_topic' },
      map: { latitude: { path: 'pos.x' }, longitude: { path: 'pos.y' } },
    }
    const body = { raw: JSON.stringify(at) }
    expect(deviceOf(source, message(body, null, all))).toEqual(['answers/1'])
    expect(deviceOf(source, message(body, null, { ...all, contentType: 'x' }))).toMatchObject({
      reason: expect.any(String) as string,
    })
  })

  test.each(['$packet.content_type', '["$packet"].content_type', '$."$pack\\et"["content_type"]'])(
    'are found by the path %s',
    (path) => {
      expect(deviceOf({ device: { path } }, message(at, null, all))).toEqual(['application/json'])
    },
  )
})

describe('a template of the device', () => {
  test('reads user properties and the content type', () => {
    const device = '{truck}-{user.tenant id}-{content_type}'
    const sent = message(at, { 'tenant id': 'T' }, { contentType: 'v2' })
    expect(deviceOf({ device }, sent)).toEqual(['t-1-T-v2'])
    expect(deviceOf({ device: ['{user.vin}', '{truck}'] }, sent)).toEqual(['t-1'])
    expect(deviceOf({ device: ['{user.vin}', '{truck}'] }, message(at, { vin: 'V' }))).toEqual(['V'])
  })

  test.each([
    ['{user.vin}', null, null],
    ['{user.vin}', { other: 'x' }, null],
    ['{user.vin}', { vin: '' }, null],
    // An envelope is an object with the usual prototype.
    ['{user.constructor}', {}, null],
    ['{content_type}', { content_type: 'x' }, { expiryS: 1 }],
  ])('%s names no device where the property is missing or empty: %j', (device, user, properties) => {
    expect(deviceOf({ device }, message(at, user, properties))).toMatchObject({ reason: 'NO_DEVICE' })
  })

  test('names another device for each message of a topic', () => {
    const mapper = openMapperOf([{ name: 'a', topic: 'a/{truck}', device: '{user.vin}', map }])
    const names = ['V1', 'V2', 'V1'].map((vin) => mapper.map(message(at, { vin })))
    expect(names.map((result) => result.kind === 'payloads' && result.payloads[0]?.device)).toEqual([
      'V1',
      'V2',
      'V1',
    ])
  })

  test.each(['{user.}', '{user}', '{users.vin}', '{contenttype}'])('does not know %s', (device) => {
    expect(() => deviceOf({ device }, message(at, null))).toThrow('known are {truck}, {clientid}')
  })

  test('has the name {content_type} for itself, so no capture has it', () => {
    const source = { name: 'a', topic: 'a/{content_type}', device: '{content_type}', map }
    expect(() => openMapperOf([source])).toThrow('a property of the message')
  })

  test('cannot name the provider', () => {
    expect(() => deviceOf({ device: '{truck}', provider: '{user.tenant}' }, message(at, null))).toThrow(
      'captures of the topic',
    )
  })
})
