import { describe, expect, test } from 'vitest'
import { envelopeOf, type Envelope, type Message } from '../../../src/domain/message.ts'
import { messageFrom } from '../../../src/ingest/remap/kept-message.ts'
import { openMapperOf } from '../../support/mapping-world.ts'

function message(body: unknown, userProperties: Record<string, string> | null): Message {
  return {
    topic: 'a/t-1',
    bytes: Buffer.from(JSON.stringify(body)),
    qos: 1,
    retain: false,
    dup: false,
    sender: { clientId: '', userName: null, certificateName: null, identity: null },
    arrivedAt: 1_750_000_000_000,
    userProperties,
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
      deviceOf({ ...device, when: '$properties.kind == "gps"' }, message(at, { vin: 'V1', kind: 'x' })),
    ).toMatchObject({
      kind: 'ignored',
    })
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
    const [plain, marked] = [message(at, null), message(at, { vin: 'V1' })].map((sent) => mapper.map(sent))
    expect(marked).toEqual(plain)
  })

  test('are kept with the message, and with where it came from', () => {
    const sent = { ...message(at, { vin: 'V1' }), from: 'depot' }
    const stored = JSON.parse(JSON.stringify(envelopeOf(sent, 'a'))) as Envelope
    const read = messageFrom(stored)
    expect(read).toMatchObject({ from: 'depot', userProperties: { vin: 'V1' } })
    expect(deviceOf({ device: { path: '$properties.vin' }, from: ['depot'] }, read)).toEqual(['V1'])
  })
})
