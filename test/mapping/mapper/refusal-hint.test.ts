import { describe, expect, test } from 'vitest'
import { messageOf, openMapperOf, truckSource, type World } from '../../support/mapping-world.ts'

const ts = 1_750_000_000_000

function detailOf(payload: unknown, rest: Record<string, unknown> = {}, world: World = {}) {
  const result = openMapperOf([truckSource({}, rest)], world).map(messageOf(payload))
  return result.kind === 'unmappable' ? result : null
}

describe('a message that is refused because something is missing', () => {
  test.each<[string, object, Record<string, unknown>, string]>([
    [
      'HALF_POSITION',
      { ts, lat: 1, Longitud: 2 },
      {},
      'There is a latitude but no longitude. The message has `Longitud`, which nothing reads; near: longitude.',
    ],
    [
      'NO_TIME',
      { tst: ts, lat: 1, lon: 2 },
      {},
      'The message has no time. The message has `tst`, which nothing reads; near: time.',
    ],
    [
      'NO_DEVICE',
      { ts, IMEI: 'a', lat: 1, lon: 2 },
      { device: { path: 'imei' } },
      'The device name is missing, empty, or a word that means none, such as null. The message has `IMEI`, which nothing reads; near: device.',
    ],
    [
      'NOTHING_TO_SEND',
      { ts, gps: { Lat: 1 } },
      {},
      'Neither a position nor a signal was found in the message. The message has `gps.Lat`, which nothing ' +
        'reads; near: latitude.',
    ],
  ])('%s names the keys that nothing reads', (reason, payload, rest, detail) => {
    expect(detailOf(payload, rest)).toMatchObject({ reason, detail })
  })

  test('says the same of a record in a list', () => {
    const list = [
      { ts, lat: 1, lon: 2, first: 1 },
      { ts, lat: 1, lng: 2 },
    ]
    const result = openMapperOf([truckSource({}, { each: '$' })]).map(messageOf(list))
    expect(result.rest?.[0]?.detail).toBe(
      'Record 2 of the message: There is a latitude but no longitude. The message has `lng`, which nothing ' +
        'reads; near: longitude.',
    )
  })

  test('names the model that was looked up, where values depend on it', () => {
    const families = { truck: ['FMB6*'] }
    const table = 'device,model\ntruck-7,FMC130\n'
    expect(detailOf({ ts }, { families }, { table })?.detail).toBe(
      'Neither a position nor a signal was found in the message. The model "FMC130" of the device is in no ' +
        'family of the source.',
    )
    expect(detailOf({ ts }, { families })?.detail).toMatch(/The device has no model, and values/)
    expect(detailOf({ ts }, { families, model: 'FMB640' })?.detail).toMatch(/in the message\.$/)
  })

  test('says nothing more where a value is wrong', () => {
    expect(detailOf({ ts, lat: 95, lon: 2, spd: 1 })?.detail).toBe('The position 95, 2 is out of range.')
  })

  test('has a short sentence, whatever the message holds', () => {
    const wide = Object.fromEntries(Array.from({ length: 5000 }, (_, at) => [`${at}`.repeat(60), at]))
    expect(detailOf({ ts, ...wide })?.detail.length).toBeLessThan(1000)
  })
})
