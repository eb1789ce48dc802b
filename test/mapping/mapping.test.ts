// What becomes of a message. The rows are in mapping.cases.yaml.

import { describe, expect, test } from 'vitest'
import type { MappedPayload } from '../../src/domain/payload.ts'
import type { MapResult } from '../../src/mapping/mapping.ts'
import { rowsBeside } from '../support/case-rows.ts'
import {
  appliedOf,
  messageOf,
  openMapperOf,
  payloadsIn,
  sender,
  type Sent,
  truckSource,
  verdictOf,
  type World,
} from '../support/mapping-world.ts'

type Given = { with?: object; message?: unknown; packet?: { sender?: object } }
type Partly = { sent?: object[]; result?: object; detail?: string }
type Exactly = {
  is?: string
  gps?: object | 'none'
  signals?: object[] | 'none'
  devices?: string[]
  keys?: string
}
type Options = Record<string, unknown>
type Case = {
  name: string
  map?: Options
  source?: Options
  world?: World
  messages: (Given & Partly & Exactly)[]
  omitted?: object
}

const reading = { ts: 1_750_000_000_000, lat: 48.8566, lon: 2.3522 }

const tables = rowsBeside(import.meta.filename) as Record<string, Case[]>
describe.each(Object.entries(tables))('%s', (_of, cases) => {
  test.each(cases)('$name', ({ map, source, world, messages, omitted }) => {
    const mapper = openMapperOf([truckSource(map, source)], world)
    for (const { with: fields, message, packet, sent, result: parts, detail = '', ...exactly } of messages) {
      const body = message ?? { ...reading, ...fields }
      const result = mapper.map(messageOf(body, { ...packet, sender: { ...sender, ...packet?.sender } }))
      const bodies = result.kind === 'payloads' ? result.payloads.map(bodyOf) : []
      const found = foundIn(result, bodies)
      expect(found).toEqual({ ...found, ...exactly })
      expect({ ...result, rest: result.rest ?? 'none' }).toMatchObject(parts ?? {})
      expect('detail' in result ? result.detail : '').toContain(detail)
      expect(bodies).toMatchObject(sent ?? bodies)
    }
    const counted = Object.fromEntries(mapper.counters().omitted)
    expect(counted).toEqual(omitted ?? counted)
  })
})

function bodyOf({ json, device, deviceTime, provider }: MappedPayload) {
  return { device, deviceTime, provider, ...(JSON.parse(json) as Sent) }
}

/** What is compared as a whole: gps, signals and keys of the only payload. */
function foundIn(result: MapResult, bodies: readonly ReturnType<typeof bodyOf>[]): Required<Exactly> {
  const [body] = bodies.length === 1 ? bodies : []
  return {
    is: verdictOf(result),
    devices: bodies.map(({ device }) => device),
    gps: body?.gps ?? 'none',
    signals: body?.signals?.map(({ id: _id, ...rest }) => rest) ?? 'none',
    keys: Object.keys(body ?? {}).join(' '),
  }
}

test('notes who sent it, with its device', () => {
  const mapper = openMapperOf([truckSource()])
  mapper.map(messageOf(reading))
  expect(mapper.deviceClock('truck-7')?.sender).toBe(sender)
})

test('a position of 0.01 degrees is refused with the unit to use instead, also with a negative sign', () => {
  for (const scale of [0.01, -0.01])
    expect(() => openMapperOf([truckSource({ latitude: { path: 'lat', scale } })])).toThrow(
      'Use `unit: ddmm` without a scale',
    )
})

test.each([{ topic: 'a/{device}' }, { topic: 'a/x', device: { path: 'id' } }])(
  'a name of a device has at most 256 characters: %j',
  (rest) => {
    const verdict = (length: number) => {
      const id = 'x'.repeat(length)
      const topic = rest.topic.replace('{device}', id)
      return verdictOf(openMapperOf([truckSource({}, rest)]).map(messageOf({ ...reading, id }, { topic })))
    }
    expect([verdict(256), verdict(257)]).toEqual(['payloads', 'BAD_DEVICE'])
  },
)

describe('records', () => {
  test('maps the named records of a kept message only, and none that is another one now', () => {
    const bad = { ...reading, lat: null }
    const message = messageOf({ records: [reading, bad, { ...bad, ts: 2 }], others: [bad, reading] })
    const kept = openMapperOf([truckSource({}, { each: 'records' })]).map(message).rest?.[0]
    const again = { ...message, records: kept?.records ?? [] }
    const cured = { latitude: { path: 'lon' } }
    const mended = openMapperOf([truckSource(cured, { each: 'records' })]).map(again)
    expect(payloadsIn(mended).map(({ deviceTime }) => deviceTime)).toEqual([reading.ts, 2])
    const elsewhere = openMapperOf([truckSource(cured, { each: 'others' })]).map(again)
    expect(elsewhere).toMatchObject({ reason: 'RECORD_CHANGED', records: [{ index: 1 }, { index: 2 }] })
  })

  test('are as many as `max_records` says, in a list and in a chain', () => {
    const list = Array.from({ length: 1500 }, (_, step) => ({ ...reading, ts: reading.ts + step }))
    for (const each of ['list', ['$', 'list'], ['$', '$entries()', 'value']]) {
      const map = (rest: object) =>
        openMapperOf([truckSource({}, { each, ...rest })]).map(messageOf({ list }))
      expect(payloadsIn(map({ max_records: 1500 }))).toHaveLength(1500)
      for (const [rest, most] of [
        [{ max_records: 1499 }, 1499],
        [{}, 1000],
      ] as const)
        expect(map(rest)).toMatchObject({
          reason: 'TOO_MANY',
          detail: `The list has more than ${most} records (max_records of the source).`,
        })
    }
  })
})

describe('the cache of topics and devices', () => {
  test('is bounded, and evictions change no result', () => {
    // All of them have a share of the memory.
    const others = Array.from({ length: 7 }, (_, index) => ({
      ...truckSource(),
      name: `other-${index}`,
      topic: `other-${index}/{device}`,
      from: [`other-${index}`],
    }))
    const mapper = openMapperOf([truckSource(), ...others])
    const first = mapper.map(messageOf(reading))
    for (let number = 0; number < 70_000; number += 1)
      mapper.map(messageOf('', { topic: `telemetry/v1/flood-${number}` }))
    const { topics, devices } = mapper.counters()
    for (const { entries, evictions } of [topics, devices]) {
      expect(entries).toBeLessThanOrEqual(25_000)
      expect(evictions).toBeGreaterThan(0)
    }
    expect(mapper.map(messageOf(reading))).toEqual(first)
  })

  test.each(['quarantine', 'ignore'] as const)(
    'invented names take little of it, and nothing of listed devices (unknown: %s)',
    (unknown) => {
      const mapper = openMapperOf([truckSource()], { table: 'device\ntruck-7\n', devices: { unknown } })
      const topic = 'telemetry/v1/truck-7'
      const first = mapper.map(messageOf(reading, { topic }))
      for (let number = 0; number < 10_000; number += 1)
        for (const topic of [`telemetry/v1/flood-${number}`, `elsewhere/${number}`])
          mapper.map(messageOf(reading, { topic }))
      const before = mapper.counters()
      expect(before.topics.entries).toBeLessThanOrEqual(4097)
      expect(before.devices.entries).toBeLessThanOrEqual(4097)
      expect(mapper.map(messageOf(reading, { topic }))).toEqual(first)
      expect(mapper.counters().topics.misses).toBe(before.topics.misses)
    },
  )
})

test('devices without a known model are counted once for a source that warns of them', () => {
  const rest = { families: { truck: ['FMC6*'] }, warn_without_model: 'odometer and engine hours' }
  const mapper = openMapperOf([truckSource({}, rest)])
  for (const ts of [1, 2]) mapper.map(messageOf({ ...reading, ts }))
  expect(Object.fromEntries(mapper.counters().withoutModel)).toEqual({
    trucks: { devices: 1, what: 'odometer and engine hours' },
  })
})

test('MQTT 5 properties of a source that collects name the device and the value', () => {
  const coalesce = { name: { path: '$properties.name' }, value: 'v', complete: ['lon'], window: '10s' }
  const mapper = openMapperOf([
    truckSource({ time: { format: 'arrival' } }, { device: '{user.vin}', coalesce }),
  ])
  const payloads = ['lat', 'lon'].flatMap((name, v) => {
    return appliedOf(mapper.map(messageOf({ v: v + 1 }, { userProperties: { vin: 'V', name } }))).payloads
  })
  expect(payloads).toMatchObject([
    { device: 'V', json: expect.stringContaining('"latitude":1,"longitude":2') },
  ])
})

test('user properties are read from an object without a prototype, as a broker makes it', () => {
  const userProperties = Object.assign(Object.create(null) as Record<string, string>, { vin: 'V' })
  const mapper = openMapperOf([truckSource({}, { device: { path: '$properties.vin' } })])
  expect(payloadsIn(mapper.map(messageOf(reading, { userProperties })))).toMatchObject([{ device: 'V' }])
})
