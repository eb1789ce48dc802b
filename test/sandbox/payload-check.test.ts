import { describe, expect, test } from 'vitest'
import { createPayloadCheck, defaultRequirements, requirements } from '../../src/sandbox/payload-check.ts'
import { telemetry } from '../support/sandbox-world.ts'

const check = createPayloadCheck(new Set(defaultRequirements))
const strict = createPayloadCheck(new Set(requirements))
const fieldsOf = (changes: Record<string, unknown>) =>
  check(telemetry(changes), true).map(({ field }) => field)

const gps = (changes: Record<string, unknown>) => ({ gps: { latitude: 1, longitude: 2, ...changes } })
const signal = (changes: Record<string, unknown>) => ({
  signals: [
    { type: 'A', value: '1' },
    { type: 'A', value: '1', ...changes },
  ],
})
const id = 'a2f9c5de-1d5d-4c3b-9a43-0c6a4a8b9f10'

describe('valid payloads', () => {
  test.each<[string, Record<string, unknown>]>([
    ['every field that the specification shows', {}],
    ['gps alone', { signals: undefined }],
    ['signals alone', { gps: undefined }],
    ['an empty list of signals beside a gps', { signals: [] }],
    ['a device without an asset', { assetIdentifier: undefined }],
    ['an asset without a device', { deviceIdentifier: undefined }],
    [
      'no carrier and no timestamp, as nothing says that they are required',
      { carrier: undefined, signalTimestamp: undefined },
    ],
    [
      'unknown words in every enumeration',
      { assetIdentifier: { id: 'x', type: 'HOVERCRAFT' }, ...gps({ speedUnits: 'KNOTS' }) },
    ],
    ['unknown words in a signal', signal({ type: 'NEW', valueUnit: 'FURLONGS', assetPart: 'SAIL' })],
    ['fields that the specification does not show', { cargo: { fish: [1] }, ...gps({ altitude: null }) }],
    ['the edges of every range', gps({ latitude: -90, longitude: 180, heading: 360, speed: 0 })],
    ['a UUID in upper case', { payloadId: id.toUpperCase() }],
    ['negative and whole values', signal({ value: '-40' })],
  ])('%s', (_, changes) => {
    expect(fieldsOf(changes)).toEqual([])
  })
})

describe('invalid payloads, with the path of the field', () => {
  test.each<[string, string, Record<string, unknown>]>([
    ['no payloadId', 'payloadId', { payloadId: undefined }],
    ['payloadId of another form', 'payloadId', { payloadId: 'truck-7' }],
    ['payloadId with a letter beyond f', 'payloadId', { payloadId: id.replace('a', 'g') }],
    ['payloadId with dashes elsewhere', 'payloadId', { payloadId: id.replace('-', '').concat('-') }],
    ['payloadId beyond ASCII', 'payloadId', { payloadId: id.replace('a', 'ä') }],
    ['payloadId of a number', 'payloadId', { payloadId: 7 }],
    ['carrier of a number', 'carrier', { carrier: 7 }],
    ['carrier of null', 'carrier', { carrier: null }],
    ['empty carrier', 'carrier', { carrier: '' }],
    ['a timestamp as text', 'signalTimestamp', { signalTimestamp: '2025-01-01T00:00:00Z' }],
    ['a timestamp with a fraction', 'signalTimestamp', { signalTimestamp: 1.5 }],
    ['a timestamp before 1970', 'signalTimestamp', { signalTimestamp: -1 }],
    ['a timestamp beyond every date', 'signalTimestamp', { signalTimestamp: 1e18 }],
    ['an asset that is text', 'assetIdentifier', { assetIdentifier: 'asset-7' }],
    ['an asset that is a list', 'assetIdentifier', { assetIdentifier: [] }],
    ['an asset id of a number', 'assetIdentifier.id', { assetIdentifier: { id: 7 } }],
    ['an asset type of a number', 'assetIdentifier.type', { assetIdentifier: { id: 'x', type: 1 } }],
    ['an operator of a number', 'assetIdentifier.operator', { assetIdentifier: { id: 'x', operator: 1 } }],
    ['an empty device id', 'deviceIdentifier.id', { deviceIdentifier: { id: '' } }],
    [
      'a manufacturer of null',
      'deviceIdentifier.manufacturer',
      { deviceIdentifier: { id: 'x', manufacturer: null } },
    ],
    ['a model of a number', 'deviceIdentifier.model', { deviceIdentifier: { id: 'x', model: 3 } }],
    [
      'neither asset nor device',
      'assetIdentifier',
      { assetIdentifier: undefined, deviceIdentifier: undefined },
    ],
    ['neither with an id', 'assetIdentifier.id', { assetIdentifier: {}, deviceIdentifier: {} }],
    [
      'a device without an id',
      'deviceIdentifier.id',
      { assetIdentifier: undefined, deviceIdentifier: { model: 'x' } },
    ],
    ['neither gps nor signals', 'gps', { gps: undefined, signals: undefined }],
    ['an empty list of signals alone', 'gps', { gps: undefined, signals: [] }],
    ['gps of null', 'gps', { gps: null }],
    ['no latitude', 'gps.latitude', gps({ latitude: undefined })],
    ['latitude of null', 'gps.latitude', gps({ latitude: null })],
    ['empty latitude', 'gps.latitude', gps({ latitude: '' })],
    ['latitude as text', 'gps.latitude', gps({ latitude: '52.5' })],
    ['latitude beyond the pole', 'gps.latitude', gps({ latitude: 90.0001 })],
    ['latitude below the pole', 'gps.latitude', gps({ latitude: -90.0001 })],
    ['no longitude', 'gps.longitude', gps({ longitude: undefined })],
    ['longitude beyond the date line', 'gps.longitude', gps({ longitude: 180.0001 })],
    ['longitude beyond the date line to the west', 'gps.longitude', gps({ longitude: -180.0001 })],
    ['negative speed', 'gps.speed', gps({ speed: -0.1 })],
    ['speed beyond the doubles', 'gps.speed', gps({ speed: JSON.parse('1e400') })],
    ['speed units of a number', 'gps.speedUnits', gps({ speedUnits: 1 })],
    ['heading beyond 360', 'gps.heading', gps({ heading: 360.1 })],
    ['negative heading', 'gps.heading', gps({ heading: -1 })],
    ['heading that is true', 'gps.heading', gps({ heading: true })],
    ['inMotion as a number', 'gps.inMotion', gps({ inMotion: 1 })],
    ['inMotion as text', 'gps.inMotion', gps({ inMotion: 'true' })],
    ['signals that are no list', 'signals', { signals: { 0: {} } }],
    ['a signal that is text', 'signals[0]', { signals: ['odometer'] }],
    ['a signal id that is no UUID', 'signals[1].id', signal({ id: '7' })],
    ['a signal without type', 'signals[1].type', signal({ type: undefined })],
    ['a signal without value', 'signals[1].value', signal({ value: undefined })],
    ['a value as a number', 'signals[1].value', signal({ value: 152_340.7 })],
    ['a value that is no number', 'signals[1].value', signal({ value: '12,5' })],
    ['a value with an exponent', 'signals[1].value', signal({ value: '1e5' })],
    ['a value with a bare point', 'signals[1].value', signal({ value: '1.' })],
    ['an empty value', 'signals[1].value', signal({ value: '' })],
    ['a value unit of null', 'signals[1].valueUnit', signal({ valueUnit: null })],
    ['an asset part of a number', 'signals[1].assetPart', signal({ assetPart: 1 })],
  ])('%s: %s', (_, field, changes) => {
    expect(fieldsOf(changes)).toEqual([field])
  })

  test('all problems of a payload are reported at once', () => {
    expect(fieldsOf({ carrier: 1, ...gps({ latitude: null, heading: 400 }) })).toEqual([
      'carrier',
      'gps.latitude',
      'gps.heading',
    ])
  })

  test('of a thousand wrong signals the first hundred problems are reported', () => {
    expect(fieldsOf({ signals: Array.from({ length: 1000 }, () => 7) })).toHaveLength(100)
  })

  test('a message names the field, the rule and the value found', () => {
    expect(check(telemetry(gps({ heading: 400 })), true)).toEqual([
      { field: 'gps.heading', message: 'gps.heading must be 0 to 360, found 400' },
    ])
  })
})

describe('which fields are required is a setting', () => {
  test('a single payload needs no payloadId unless the setting requires it', () => {
    const nameless = telemetry({ payloadId: undefined })
    expect(check(nameless, false)).toEqual([])
    expect(strict(nameless, false).map(({ field }) => field)).toEqual(['payloadId'])
  })

  test('every field can be required', () => {
    const fields = strict({ gps: {}, signals: [{}] }, false).map(({ field }) => field)
    const asked = [
      'payloadId',
      'carrier',
      'signalTimestamp',
      'assetIdentifier',
      'gps.latitude',
      'gps.longitude',
    ]
    expect(fields).toEqual([...asked, 'signals[0].type', 'signals[0].value'])
  })

  test('no field can be required', () => {
    const lenient = createPayloadCheck(new Set())
    expect(lenient({}, false)).toEqual([])
    expect(lenient({}, true).map(({ field }) => field)).toEqual(['payloadId'])
  })
})
