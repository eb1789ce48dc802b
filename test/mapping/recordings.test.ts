// Real messages, read from where TELEMETRY_TEST_DATA points and never copied.

import { existsSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { loadConfig } from '../../src/config/config.ts'
import { openMapper, type Mapper } from '../../src/mapping/mapping.ts'
import { messageOf, openMapperOf, payloadsIn, truckSource, type Sent } from '../support/mapping-world.ts'

const folder = process.env['TELEMETRY_TEST_DATA'] ?? ''
const recording = join(folder, 'data', 'hsl-hfp-replay.ndjson')
const samples = join(folder, 'samples')

type Recorded = { topic: string; payload: string }
type Vehicle = {
  lat: number | null
  long: number | null
  spd: number | null
  hdg: number | null
  tst: string
}
type Expected = { expect: (Partial<Sent> & { device: string })[] }

let hsl: Mapper
beforeAll(async () => {
  const { config } = await loadConfig('config/examples/hsl.yaml', { env: {} })
  hsl = await openMapper(config)
})

describe.skipIf(!existsSync(recording))('the recorded buses (TELEMETRY_TEST_DATA)', () => {
  test('every position is mapped as sent, every other message is ignored with its reason, none becomes a dead letter', async () => {
    const lines = (await readFile(recording, 'utf8')).trim().split('\n')
    expect(lines).toHaveLength(1990)
    const ids = new Set<string>()
    let mapped = 0
    const reasons = new Map<string, number>()
    for (const line of lines) {
      const { topic, payload } = JSON.parse(line) as Recorded
      const vehicle = Object.values(JSON.parse(payload) as Record<string, Vehicle>)[0]
      const result = hsl.map(messageOf(payload, { topic }))
      if (result.kind === 'ignored') reasons.set(result.reason, (reasons.get(result.reason) ?? 0) + 1)
      const hasPosition = vehicle && vehicle.lat !== null && vehicle.long !== null
      const payloads = result.kind === 'payloads' ? payloadsIn(result) : []
      expect(payloads).toHaveLength(hasPosition ? 1 : 0)
      mapped += payloads.length
      for (const each of payloads) {
        if (vehicle) checkPosition(JSON.parse(each.json) as Sent, vehicle, topic)
        ids.add(each.payloadId)
      }
    }
    expect(Object.fromEntries(reasons)).toEqual({ 'when: lat != null && long != null': 940 })
    // 15 events (a door, an arrival) repeat the position and time of an earlier message: one payload.
    expect(mapped).toBe(1050)
    expect(ids.size).toBe(1035)
    // One bus reports -1 m/s; a negative speed is none.
    expect(Object.fromEntries(hsl.counters().omitted)).toEqual({ 'hsl|speed|negative': 1 })
  })
})

function checkPosition(
  { gps, signalTimestamp, deviceIdentifier }: Sent,
  vehicle: Vehicle,
  topic: string,
): void {
  const [, , , , , , , operator, number] = topic.split('/')
  expect(deviceIdentifier?.['id']).toBe(`${operator}/${number}`)
  expect(signalTimestamp).toBe(Date.parse(vehicle.tst))
  const known = vehicle.spd !== null && vehicle.spd >= 0
  const speed = known ? Number(((vehicle.spd ?? 0) * 3.6).toFixed(6)) : undefined
  const expected = {
    latitude: vehicle.lat,
    longitude: vehicle.long,
    ...(speed === undefined ? {} : { speed, speedUnits: 'KILOMETERS_PER_HOUR', inMotion: speed > 5 }),
    ...(vehicle.hdg === null ? {} : { heading: vehicle.hdg }),
  }
  expect(gps).toEqual(expected)
}

describe.skipIf(!existsSync(samples))('the sample messages (TELEMETRY_TEST_DATA)', () => {
  const topic = 'fleet/{device}/gps'
  const map = {
    time: { path: 'ts', format: 'auto' },
    latitude: { path: 'lat' },
    longitude: { path: 'lon' },
    speed: { path: 'speed' },
    heading: { path: 'heading' },
  }

  test('of the bus feed give the expected payloads', async () => {
    const { sent, wanted } = await samplesOf('hsl-hfp', hsl)
    expect(sent).toEqual(wanted)
  })

  test('with faults give the expected results, in every format', async () => {
    const teltonika = {
      name: 'teltonika',
      topic: 'teltonika/{device}/data',
      each: 'state.reported',
      map: { time: { path: 'ts', format: 'ms' }, latitude: { path: 'a' }, longitude: { path: 'b' } },
    }
    // 1 needs a text split, 4 and 5 need a check of the clock: the mapping does neither.
    const mapper = openMapperOf([truckSource(map, { topic }), teltonika])
    const { sent, wanted } = await samplesOf('_edge', mapper, ['2', '3', '6'])
    expect(sent).toEqual(wanted)
  })

  test('of gpsd give the expected payloads, also with bare nan and inf', async () => {
    const gpsd = {
      name: 'gpsd',
      topic: 'gpsd/{device}/TPV',
      when: 'mode >= 2',
      map: {
        time: { path: 'time', format: 'iso' },
        latitude: { path: 'lat' },
        longitude: { path: 'lon' },
        speed: { path: 'speed', unit: 'm/s' },
        heading: { path: 'track' },
        in_motion: { from: 'speed', above: 5 },
      },
    }
    const { sent, wanted } = await samplesOf('gpsd-tpv', openMapperOf([gpsd]))
    expect(sent).toEqual(wanted)
  })
})

/** Actual and expected results of the samples of a format, sample by sample. */
async function samplesOf(format: string, mapper: Mapper, only?: readonly string[]) {
  const files = await readdir(join(samples, format))
  const names = files.filter((file) => file.endsWith('.topic')).map((file) => file.replace('.topic', ''))
  const sent: [string, unknown][] = []
  const wanted: [string, unknown][] = []
  for (const name of only ?? names) {
    const read = (end: string) => readFile(join(samples, format, `${name}.${end}`))
    const expected = JSON.parse((await read('expect.json')).toString()) as Expected
    const topic = (await read('topic')).toString().trim()
    const result = mapper.map(messageOf(await read('json'), { topic }))
    const payloads = result.kind === 'payloads' ? payloadsIn(result) : []
    for (const { device, json } of payloads) {
      const { signalTimestamp, gps, signals } = JSON.parse(json) as Sent
      sent.push([name, { device, signalTimestamp, gps, signals }])
    }
    for (const { device, signalTimestamp, gps, signals } of expected.expect)
      wanted.push([name, { device, signalTimestamp, gps, signals }])
  }
  return { sent, wanted }
}
