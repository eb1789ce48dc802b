import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { openMapper } from '../../../src/mapping/mapping.ts'
import { messageOf, payloadsIn, verdictOf } from '../../support/mapping-world.ts'
import { loadPresetMapping } from '../../support/preset-mapping.ts'

const deps = { env: {}, readText: (path: string) => readFile(path, 'utf8') }
const first = Date.UTC(2025, 11, 30, 9)
const times = [0, 1, 2, 3, 4].map((minute) => first + minute * 60_000)

async function mapped(preset: string, own: object, topic: string, payload: object) {
  const mapper = await openMapper(await loadPresetMapping(preset, deps, { ...own }))
  return mapper.map(messageOf(payload, { topic }))
}

function utc(time: number): string {
  return new Date(time).toISOString().slice(0, 19).replace('T', ' ')
}

const parked = {
  IMEI: '356692060000001',
  Records: times.map((time) => ({
    DateUTC: utc(time),
    Fields: [{ FType: 0, GpsUTC: '2025-12-27 18:04:57', Lat: 43.7371, Long: -79.3462, GpsStat: 3 }],
  })),
}

test('records of a parked Digital Matter unit are each sent with their own time where the source keeps them', async () => {
  const kept = await mapped('digital-matter', { no_fix: 'keep' }, 'dm/1', parked)
  expect(payloadsIn(kept).map(({ deviceTime }) => deviceTime)).toEqual(times)
  expect(verdictOf(await mapped('digital-matter', {}, 'dm/1', parked))).toBe('no fix')
})

test('an old position of rFMS takes the time of the report where that has an odometer', async () => {
  const report = (odometer: object) => ({
    vin: 'YS2R4X20001234567',
    createdDateTime: new Date(first).toISOString(),
    gnssPosition: {
      latitude: 51.3,
      longitude: 9.4,
      positionDateTime: new Date(first - 3_600_000).toISOString(),
    },
    ...odometer,
  })
  const timesOf = async (odometer: object) => {
    const { topic } = (await loadPresetMapping('rfms', deps)).sources[0] ?? {}
    const on = String([topic].flat()[0]).replace('#', 'status')
    return payloadsIn(await mapped('rfms', { no_fix: 'keep' }, on, report(odometer))).map(
      (one) => one.deviceTime,
    )
  }
  expect(await timesOf({ hrTotalVehicleDistance: 512_340_000 })).toEqual([first])
  expect(await timesOf({})).toEqual([first - 3_600_000])
})
