import { hash } from 'node:crypto'
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { envelopeOf, type Envelope, type Message } from '../../src/domain/message.ts'
import { messageFrom } from '../../src/ingest/remap/kept-message.ts'
import { messageKeyOf } from '../../src/mapping/mapping.ts'
import {
  messageOf,
  openMapperOf,
  payloadIn,
  payloadsIn,
  sentIn,
  truckSource,
} from '../support/mapping-world.ts'

const signals = [
  { type: 'OBD_LIFETIME_ODOMETER', path: 'odo', unit: 'm' },
  { type: 'OBD_TOTAL_ENGINE_TIME', path: 'hours', unit: 'h', part: 'ENGINE' },
]
const reading = { ts: 1_750_000_000_000, lat: 48.1, lon: 2.2, speed: 50, odo: 386_814_875, hours: 4371 }
const fields = { fuel: { path: 'fuel', type: 'number' } }
const source = truckSource({ speed: { path: 'speed' }, signals, fields })
const uuid8 = /^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

const idOf = (payload: unknown, rest = {}, world = {}, used: unknown = source) =>
  payloadIn(openMapperOf([used], world).map(messageOf(payload, rest))).payloadId

describe('a payloadId', () => {
  test('is a UUID of version 8, the first field of the JSON and, without hyphens, the key of the dedup window', () => {
    const payload = payloadIn(openMapperOf([source]).map(messageOf(reading)))
    expect(payload.payloadId).toMatch(uuid8)
    expect(payload.json.startsWith(`{"payloadId":"${payload.payloadId}"`)).toBe(true)
    expect(payload.windowKey).toBe(payload.payloadId.replaceAll('-', ''))
    expect(payload).toMatchObject({ duplicateRule: 'always', deviceTime: reading.ts, provider: 'default' })
  })

  test('is the same after a restart, and does not depend on connection, arrival time or spelling of numbers', () => {
    const id = idOf(reading)
    expect(id).toBe('27c676fd-5940-8d39-95be-dc7319de7d5e')
    expect(idOf(reading, { arrivedAt: 1 })).toBe(id)
    expect(
      idOf(reading, {
        dup: true,
        sender: { clientId: 'other', userName: 'u', certificateName: null, identity: null },
      }),
    ).toBe(id)
    expect(
      idOf({
        hours: '4371.0',
        odo: '386814875',
        extra: 1,
        ts: reading.ts,
        lon: '2.20',
        lat: 48.1,
        speed: 50,
      }),
    ).toBe(id)
  })

  test('does not change when the device table corrects a carrier or asset', () => {
    const id = idOf(reading)
    expect(idOf(reading, {}, { defaults: { carrier: 'ACME', operator: 'OP1' } })).toBe(id)
    expect(idOf(reading, {}, { table: 'device,asset_id,carrier\ntruck-7,TRK-1,ACME\n' })).toBe(id)
    expect(idOf(reading, {}, { devices: { identify: 'asset' } })).toBe(id)
    expect(idOf(reading, {}, {}, { ...source, name: 'renamed' })).toBe(id)
  })

  test.each([
    ['the time', { ts: reading.ts + 1 }],
    ['the latitude', { lat: 48.2 }],
    ['the longitude', { lon: 2.3 }],
    ['the speed', { speed: 51 }],
    ['a missing speed', { speed: null }],
    ['the odometer', { odo: 386_814_876 }],
    ['a missing odometer', { odo: null }],
    ['the hours', { hours: 4372 }],
    ['an extra field', { fuel: 1 }],
  ])('is another one when %s differs', (_, change) => {
    expect(idOf({ ...reading, ...change })).not.toBe(idOf(reading))
  })

  test('does not depend on motion that was derived with the speed before', () => {
    const map = { speed: { path: 'speed' }, in_motion: { from: 'speed', above: 5, below: 2 } }
    const mapper = openMapperOf([truckSource(map)])
    mapper.map(messageOf({ ...reading, ts: reading.ts - 1, speed: 6 }))
    const [moving, fresh] = [mapper, openMapperOf([truckSource(map)])].map((one) =>
      sentIn(one.map(messageOf({ ...reading, speed: 3 }))),
    )
    expect([moving?.gps?.['inMotion'], fresh?.gps?.['inMotion']]).toEqual([true, false])
    expect(moving?.payloadId).toBe(fresh?.payloadId)
  })

  test('does not depend on properties of MQTT 5, which add nothing to the payload', () => {
    const mqtt5 = { userProperties: { vin: 'V' }, properties: { contentType: 'a', expiryS: 60 } }
    const [plain, marked] = [{}, mqtt5].map((rest) =>
      payloadIn(openMapperOf([source]).map(messageOf(reading, rest))),
    )
    expect(marked?.json).toBe(plain?.json)
  })

  test('is different for another device', () => {
    expect(idOf(reading, { topic: 'telemetry/v1/truck-8' })).not.toBe(idOf(reading))
  })

  test('differs when text moves from one field to the next', () => {
    const ids = new Set<string>()
    const odd = ['a', 'a"', '"a', 'a","b', 'a,1', '1', '1,"arrival"', ']', '\\', '\\"']
    for (const device of odd)
      ids.add(idOf({ ...reading, id: device }, {}, {}, { ...source, device: { path: 'id' } }))
    expect(ids.size).toBe(odd.length)
  })

  test('determines the ids of its signals', () => {
    const [first, second] = [reading, reading].map((each) =>
      sentIn(openMapperOf([source]).map(messageOf(each))),
    )
    const ids = first?.signals?.map(({ id }) => id) ?? []
    expect(ids).toHaveLength(2)
    for (const id of ids) expect(id).toMatch(uuid8)
    expect(new Set([first?.payloadId, ...ids]).size).toBe(3)
    expect(second?.signals?.map(({ id }) => id)).toEqual(ids)
    const later = sentIn(openMapperOf([source]).map(messageOf({ ...reading, ts: 1 })))
    expect(later.signals?.[0]?.id.slice(0, 30)).not.toBe(ids[0]?.slice(0, 30))
  })

  test('differs for any two readings that differ', () => {
    const mapper = openMapperOf([source])
    const field = fc.record({
      ts: fc.integer({ min: 2 ** 40, max: 2 ** 41 }),
      lat: fc.double({ min: -90, max: 90, noNaN: true }),
      odo: fc.maxSafeNat(),
    })
    fc.assert(
      fc.property(field, field, (a, b) => {
        const one = payloadIn(mapper.map(messageOf({ ...reading, ...a }))).payloadId
        const other = payloadIn(mapper.map(messageOf({ ...reading, ...b }))).payloadId
        // The content is the JSON text, in which -0 and 0 are equal.
        expect(one === other).toBe(JSON.stringify(a) === JSON.stringify(b))
      }),
    )
  })
})

describe('without a device time', () => {
  const timeless = { ...source, map: { ...source.map, time: { format: 'arrival' } } }

  test('the arrival time is sent and marked, and only a resend of the same message is a duplicate', () => {
    const mapper = openMapperOf([timeless])
    const first = payloadIn(mapper.map(messageOf(reading)))
    const resent = payloadIn(mapper.map(messageOf(reading, { arrivedAt: 1_760_000_009_000, dup: true })))
    expect(first).toMatchObject({ duplicateRule: 'resend', deviceTime: null })
    expect(first.json).toContain('"signalTimestamp":1760000000000')
    expect(resent.payloadId).not.toBe(first.payloadId)
    expect(resent.windowKey).toBe(first.windowKey)
    expect(first.windowKey).toMatch(/^[0-9a-f]{32}$/)
  })

  test('equal messages that arrive in one millisecond have different payloadIds', () => {
    const mapper = openMapperOf([timeless])
    const ids = [0, 1, 2].map((serial) => payloadIn(mapper.map(messageOf(reading, { serial }))).payloadId)
    expect(new Set(ids).size).toBe(3)
    expect(ids[0]).toBe(payloadIn(mapper.map(messageOf(reading))).payloadId)
  })

  test('another client, topic or content makes no duplicate', () => {
    const mapper = openMapperOf([timeless])
    const messages = [
      messageOf(reading),
      messageOf({ ...reading, speed: 51 }),
      messageOf(reading, { topic: 'telemetry/v1/truck-8' }),
      messageOf(reading, {
        sender: { clientId: 'client-2', userName: null, certificateName: null, identity: null },
      }),
    ]
    expect(new Set(messages.map((each) => payloadIn(mapper.map(each)).windowKey)).size).toBe(4)
  })

  test('another property of MQTT 5 makes another message, except the expiry', () => {
    const mapper = openMapperOf([timeless])
    const keyOf = (rest: Partial<Message>) => payloadIn(mapper.map(messageOf(reading, rest))).windowKey
    const keys = [
      keyOf({}),
      keyOf({ userProperties: { seq: '1' } }),
      keyOf({ userProperties: { seq: '2' } }),
      keyOf({ properties: { contentType: 'a' } }),
      keyOf({ properties: { responseTopic: 'a' } }),
      keyOf({ properties: { correlation: 'a' } }),
      keyOf({ properties: { isText: true } }),
      keyOf({ userProperties: { seq: '1' }, properties: { contentType: 'a' } }),
    ]
    expect(new Set(keys).size).toBe(keys.length)
    expect(keyOf({ properties: { expiryS: 5 } })).toBe(keys[0])
    expect(keyOf({ userProperties: { seq: '1' }, properties: { contentType: 'a', expiryS: 5 } })).toBe(
      keys.at(-1),
    )
  })

  test('a message without properties has the key that it always had', () => {
    const message = messageOf('10', { topic: 't' })
    const name = '8:client-11:t10'
    expect(messageKeyOf(message)).toBe(hash('sha256', name, 'hex').slice(0, 32))
    expect(messageKeyOf({ ...message, userProperties: null, properties: null })).toBe(messageKeyOf(message))
  })

  test('an envelope gives back the key of its message, its properties and where it came from', () => {
    const userProperties = Object.assign(Object.create(null) as Record<string, string>, { b: '1', 2: 'x' })
    const properties = { contentType: 'a', isText: true } as const
    const message = messageOf('10', { topic: 't', userProperties, properties, from: 'depot' })
    const read = messageFrom(JSON.parse(JSON.stringify(envelopeOf(message, null))) as Envelope)
    expect(messageKeyOf(read)).toBe(messageKeyOf(message))
    expect(read).toMatchObject({ from: 'depot', userProperties, properties })
  })

  test('an arrival time differs from an equal device time', () => {
    const arrivedAt = reading.ts
    const named = payloadIn(openMapperOf([timeless]).map(messageOf(reading, { arrivedAt })))
    expect(named.payloadId).not.toBe(idOf(reading))
  })

  test('the records of one message have different keys', () => {
    const mapper = openMapperOf([{ ...timeless, each: 'all' }])
    const keys = payloadsIn(mapper.map(messageOf({ all: [reading, reading, reading] }))).map(
      (each) => each.windowKey,
    )
    expect(new Set(keys).size).toBe(3)
  })
})

describe('records of one message', () => {
  test('that are equal get different payloadIds by their position, the same at every redelivery', () => {
    const mapper = openMapperOf([{ ...source, each: 'all' }])
    const all = [reading, { ...reading, ts: reading.ts + 1 }, reading]
    const ids = payloadsIn(mapper.map(messageOf({ all }))).map(({ payloadId }) => payloadId)
    expect(new Set(ids).size).toBe(3)
    expect(ids[0]).toBe(idOf(reading))
    expect(payloadsIn(mapper.map(messageOf({ all }))).map(({ payloadId }) => payloadId)).toEqual(ids)
  })
})
