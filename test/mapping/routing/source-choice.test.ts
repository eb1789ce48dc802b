// Sources that share a topic: what source-choice.mapping.yaml cannot say.

import { describe, expect, test } from 'vitest'
import type { Message } from '../../../src/domain/message.ts'
import { compileSources } from '../../../src/mapping/compile/compile.ts'
import type { Mapper, NotedDevice } from '../../../src/mapping/mapping.ts'
import { configOf, messageOf, openMapperOf, payloadsIn, truckSource } from '../../support/mapping-world.ts'
import { sparkplugPayload, types } from '../../support/sparkplug-payload.ts'

const at = 1_750_000_000_000
const reading = { ts: at, lat: 48.1, lon: 2.2 }

const source = (name: string, rest: Record<string, unknown> = {}) => truckSource({}, { name, ...rest })
const trucks = source('trucks', { when: 'kind == "truck"' })
const vans = source('vans', { when: 'kind == "van"' })
const rest = source('rest')

/** `trucks payloads`, `vans ignored when: ...`. */
function outcomeOf(mapper: Mapper, payload: unknown, own: Partial<Message> = {}): string {
  const result = mapper.map(messageOf(payload, own))
  return [result.source, result.kind, 'reason' in result ? result.reason : ''].join(' ').trim()
}

describe('a message on a topic of several sources', () => {
  test('is parsed once, also where several sources are asked', () => {
    const mapper = openMapperOf([trucks, vans])
    outcomeOf(mapper, { ...reading, kind: 'van' })
    const { parse } = JSON
    let parsed = 0
    JSON.parse = (text: string) => {
      parsed += 1
      return parse(text) as unknown
    }
    try {
      expect(outcomeOf(mapper, { ...reading, kind: 'van' })).toBe('vans payloads')
    } finally {
      JSON.parse = parse
    }
    expect(parsed).toBe(1)
  })

  test('is mapped as the source maps it that has it alone', () => {
    const [one] = payloadsIn(openMapperOf([trucks, rest]).map(messageOf(reading)))
    const [alone] = payloadsIn(openMapperOf([rest]).map(messageOf(reading)))
    expect(one).toEqual(alone)
  })
})

describe('all else that a source says about its messages counts once it has them', () => {
  test('unlisted devices, where sources name their devices in other ways', () => {
    const heard: string[] = []
    const notes = {
      begin: () => undefined,
      heard: ({ device }: NotedDevice) => void heard.push(device),
      read: () => undefined,
      readPosition: () => undefined,
      ended: () => undefined,
      lost: () => undefined,
      unnamed: () => undefined,
    }
    const byImei = source('by-imei', { device: { path: 'imei' } })
    const world = { table: 'device\n356307042441013\n', devices: { unknown: 'quarantine' }, notes }
    const mapper = openMapperOf([trucks, byImei], world)
    const imei = '356307042441013'
    expect(outcomeOf(mapper, { ...reading, imei })).toBe('by-imei payloads')
    expect([...new Set(heard)]).toEqual([imei])
    expect(outcomeOf(mapper, { ...reading, kind: 'truck', imei })).toBe('trucks quarantined UNKNOWN_DEVICE')
    expect(heard.at(-1)).toBe('truck-7')
  })
})

describe('decoders with memory', () => {
  const sparkplug = (name: string, own: Record<string, unknown>) => ({
    name,
    topic: 'spBv1.0/{group}/{type}/{node}/{device}',
    encoding: 'sparkplug',
    each: 'records',
    map: {
      time: { path: 'time', format: 'ms' },
      latitude: { path: 'metrics.Lat' },
      longitude: { path: 'metrics.Lon' },
    },
    ...own,
  })
  const metrics = (lat: number, ids: boolean) =>
    [
      { name: 'Lat', alias: 1, double: lat },
      { name: 'Lon', alias: 2, double: 9.4 },
    ].map(({ name, alias, double }) => ({
      ...(ids ? { name } : {}),
      alias,
      type: types.double,
      double,
    }))

  test('see the births that another source takes, and keep them durably', () => {
    const north = sparkplug('north', { when: 'metrics.Lat > 50' })
    const mapper = openMapperOf([north, sparkplug('south', {})])
    const map = (type: string, payload: Parameters<typeof sparkplugPayload>[0]) =>
      mapper.map(
        messageOf(sparkplugPayload({ ts: at, ...payload }), {
          topic: `spBv1.0/d/${type}/GW/truck-1`,
          arrivedAt: at,
        }),
      )
    const born = map('DBIRTH', { seq: 1, metrics: metrics(51, true) })
    expect(born.source).toBe('north')
    const keys = (born.writes ?? []).map(({ key }) => key).join(' ')
    expect(keys).toContain('north')
    expect(keys).toContain('south')
    const data = map('DDATA', { ts: at + 1000, seq: 2, metrics: metrics(47, false) })
    expect([data.source, payloadsIn(data)[0]?.json]).toEqual(['south', expect.stringContaining('47')])
    expect(map('DDATA', { ts: at + 2000, seq: 3, metrics: metrics(52, false) }).source).toBe('north')
  })
})

describe('the owner of a topic', () => {
  test('owns it for all sources that have the topic', () => {
    const mapper = openMapperOf([trucks, { ...rest, identity: 'device' }])
    expect(mapper.ownerOf?.('telemetry/v1/truck-7')).toBe('truck-7')
  })
})

describe('the config is refused', () => {
  const problemsOf = (...sources: readonly unknown[]) =>
    compileSources(configOf(sources)).problems.map(({ path, message }) => `${path.join('.')} ${message}`)

  test('where more than 16 sources share a topic', () => {
    const many = Array.from({ length: 17 }, (_, index) => source(`s${index}`, { when: `kind == ${index}` }))
    expect(problemsOf(...many.slice(1))).toEqual([])
    expect(problemsOf(...many)).toEqual([
      'sources.16.topic has messages of 16 sources above. At most 16 sources may share a topic.',
    ])
  })
})
