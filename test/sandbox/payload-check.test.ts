import { describe, expect, test } from 'vitest'
import { createPayloadCheck, defaultRequirements, requirements } from '../../src/sandbox/payload-check.ts'
import { telemetry } from '../support/sandbox-world.ts'

const check = createPayloadCheck(new Set(defaultRequirements))
const strict = createPayloadCheck(new Set(requirements))

const gps = { latitude: 1, longitude: 2 }

describe('problems of a payload', () => {
  test('are the first hundred of a thousand wrong signals', () => {
    const signals = Array.from({ length: 1000 }, () => 7)
    expect(check(telemetry({ signals }), true)).toHaveLength(100)
  })

  test('name the field, the rule and the value found', () => {
    expect(check(telemetry({ gps: { ...gps, heading: 400 } }), true)).toEqual([
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
