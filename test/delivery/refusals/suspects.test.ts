import { describe, expect, test } from 'vitest'
import { partsOfRefused } from '../../../src/delivery/refusals/batch-parts.ts'
import { createSuspects } from '../../../src/delivery/refusals/suspects.ts'

const payload = (device: string, speed: unknown = 1) =>
  Buffer.from(JSON.stringify({ payloadId: 'p', deviceIdentifier: { id: device }, gps: { speed } }))
const policy = { refusalsToUnavailable: 12 }
const refused = { payloads: 9, status: 400, refusals: 1, suspects: [], share: null }

describe('after a payload was found at fault', () => {
  test('other payloads of its device are suspects', () => {
    const suspects = createSuspects()
    suspects.guilty(payload('truck-7'), [])
    const batch = ['truck-1', 'truck-7', 'truck-2', 'truck-7'].map((device) => payload(device))
    expect(suspects.among(4, (index) => batch[index]!)).toEqual([1, 3])
  })

  test('payloads with the same value in the field that the service named are suspects', () => {
    const suspects = createSuspects()
    suspects.guilty(payload('truck-7', 999), [{ field: 'gps.speed' }])
    const batch = [payload('truck-1', 999), payload('truck-2', 998), payload('truck-3')]
    expect(suspects.among(3, (index) => batch[index]!)).toEqual([0])
  })

  test('a batch in which most payloads are like it is cut by size instead', () => {
    const suspects = createSuspects()
    suspects.guilty(payload('truck-7'), [])
    expect(suspects.among(500, () => payload('truck-7'))).toEqual([])
  })

  test('the share of payloads at fault is known after two, and old payloads count less', () => {
    const suspects = createSuspects()
    suspects.guilty(payload('a'), [])
    expect(suspects.share()).toBeNull()
    suspects.guilty(payload('b'), [])
    suspects.accepted(198)
    expect(suspects.share()).toBeCloseTo(0.01)
    for (let batch = 0; batch < 20; batch += 1) suspects.accepted(500)
    expect(suspects.share()).toBeNull()
  })

  test('a payload that is not JSON is no suspect and no fault', () => {
    const suspects = createSuspects()
    suspects.guilty(Buffer.from('{'), [{ field: '__proto__.x' }])
    expect(suspects.among(1, () => Buffer.from('['))).toEqual([])
  })
})

describe('a refused batch is cut', () => {
  test('in halves where nothing is known', () => {
    expect(partsOfRefused(refused, policy)).toEqual([5, 4])
  })

  test('around the suspects, in the order of the batch', () => {
    expect(partsOfRefused({ ...refused, suspects: [0, 4, 5] }, policy)).toEqual([1, 3, 1, 1, 3])
    expect(partsOfRefused({ ...refused, suspects: [8] }, policy)).toEqual([8, 1])
  })

  test('in parts of which about every second one is accepted, where the share at fault is known', () => {
    expect(partsOfRefused({ ...refused, payloads: 500, share: 0.01 }, policy)).toHaveLength(8)
    expect(partsOfRefused({ ...refused, payloads: 500, share: 0.5 }, policy)).toHaveLength(16)
  })

  test('with one payload first where the service may refuse everything', () => {
    expect(partsOfRefused({ ...refused, refusals: 3, suspects: [4] }, policy)).toEqual([1, 8])
  })
})
