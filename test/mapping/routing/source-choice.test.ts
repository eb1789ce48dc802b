// Sources that share a topic: `when` decides which of them has a message.

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
  test('goes to the first one whose `when` holds, and to one without `when` after all others', () => {
    const mapper = openMapperOf([trucks, vans, rest])
    expect(outcomeOf(mapper, { ...reading, kind: 'truck' })).toBe('trucks payloads')
    expect(outcomeOf(mapper, { ...reading, kind: 'van' })).toBe('vans payloads')
    expect(outcomeOf(mapper, reading)).toBe('rest payloads')
  })

  test('is ignored by the last one where none takes it, and counts for that one', () => {
    expect(outcomeOf(openMapperOf([trucks, vans]), { ...reading, kind: 'bus' })).toBe(
      'vans ignored when: kind == "van"',
    )
  })

  test('may have it through patterns that overlap in any way', () => {
    const all = source('all', { topic: 'telemetry/{part}/#', device: '{clientid}' })
    const two = source('two', { topic: ['x/{device}', 'telemetry/+/{device}'] })
    const mapper = openMapperOf([trucks, two, all])
    expect(outcomeOf(mapper, reading)).toBe('two payloads')
    expect(outcomeOf(mapper, { ...reading, kind: 'truck' })).toBe('trucks payloads')
    const below = openMapperOf([trucks, all])
    const deeper = { topic: 'telemetry/v1/truck-7/gps' }
    expect(outcomeOf(below, { ...reading, kind: 'truck' }, deeper)).toBe('all payloads')
    expect(outcomeOf(below, reading)).toBe('all payloads')
  })

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

  test('is taken whole by the source that takes one of its records', () => {
    const each = 'list'
    const mapper = openMapperOf([
      { ...trucks, each },
      { ...vans, each },
    ])
    const list = [
      { ...reading, kind: 'bus' },
      { ...reading, kind: 'van' },
      { ...reading, ts: at + 1, kind: 'truck' },
    ]
    const result = mapper.map(messageOf({ list }))
    expect([result.source, payloadsIn(result).length]).toEqual(['trucks', 1])
    expect(outcomeOf(mapper, { list: list.slice(0, 2) })).toBe('vans payloads')
    expect(outcomeOf(mapper, { list: [] })).toBe('vans ignored no records')
  })

  test('stays with the source that refuses it by a rule', () => {
    const refuse = [{ when: 'code == 7', reason: 'ENCRYPTED', detail: 'Encrypted.' }]
    const mapper = openMapperOf([{ ...trucks, refuse }, rest])
    expect(outcomeOf(mapper, { ...reading, code: 7 })).toBe('trucks unmappable ENCRYPTED')
    expect(outcomeOf(mapper, reading)).toBe('rest payloads')
  })

  test('is mapped as the source maps it that has it alone', () => {
    const [one] = payloadsIn(openMapperOf([trucks, rest]).map(messageOf(reading)))
    const [alone] = payloadsIn(openMapperOf([rest]).map(messageOf(reading)))
    expect(one).toEqual(alone)
  })

  test('goes on where it comes from a message source that the first one does not read', () => {
    const mapper = openMapperOf([{ ...trucks, from: ['depot'] }, vans])
    const truck = { ...reading, kind: 'truck' }
    expect(outcomeOf(mapper, truck, { from: 'depot' })).toBe('trucks payloads')
    expect(outcomeOf(mapper, truck, { from: 'other' })).toBe('vans ignored when: kind == "van"')
  })
})

describe('a source that cannot read a message', () => {
  const texts = {
    name: 'texts',
    topic: 'telemetry/v1/{device}',
    encoding: 'text',
    when: 'value == "hello"',
    map: { signals: [{ type: 'NOTE', path: 'value' }] },
  }

  test('leaves it to the next one, whatever its encoding', () => {
    const mapper = openMapperOf([trucks, { ...texts, when: undefined }])
    expect(outcomeOf(mapper, '17')).toBe('texts payloads')
    expect(outcomeOf(mapper, '{"kind":')).toMatch(/^texts /)
    expect(outcomeOf(mapper, { ...reading, kind: 'truck' })).toBe('trucks payloads')
  })

  test('refuses it where no other one takes it, so nothing damaged is ignored', () => {
    const mapper = openMapperOf([trucks, texts])
    expect(outcomeOf(mapper, '{"kind":')).toBe('trucks unmappable NOT_JSON')
    expect(outcomeOf(openMapperOf([trucks, vans]), '{"kind":')).toBe('vans unmappable NOT_JSON')
    expect(outcomeOf(mapper, '[1]')).toBe('trucks unmappable NOT_AN_OBJECT')
    expect(outcomeOf(mapper, '{"kind":"bus"}')).toMatch(/^texts ignored when: /)
  })
})

describe('all else that a source says about its messages counts once it has them', () => {
  test.each([
    ['retained', { retain: true }, 'retained'],
    ['wills', { will: true }, 'will'],
  ])('%s', (option, own, reason) => {
    const mapper = openMapperOf([
      { ...trucks, [option]: 'ignore' },
      { ...rest, [option]: 'take' },
    ])
    expect(outcomeOf(mapper, { ...reading, kind: 'truck' }, own)).toBe(`trucks ignored ${reason}`)
    expect(outcomeOf(mapper, reading, own)).toBe('rest payloads')
  })

  test('excluded topics', () => {
    const mapper = openMapperOf([{ ...trucks, exclude: ['telemetry/v1/truck-7'] }, rest])
    expect(outcomeOf(mapper, { ...reading, kind: 'truck' })).toBe('trucks ignored excluded topic')
    expect(outcomeOf(mapper, reading)).toBe('rest payloads')
  })

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

  test('records that are thinned or merged', () => {
    const thinned = { ...rest, thin: { every: '1m' } }
    const mapper = openMapperOf([trucks, thinned])
    const first = mapper.map(messageOf(reading))
    expect(first.source).toBe('rest')
    expect(outcomeOf(mapper, { ...reading, ts: at + 1000, kind: 'truck' })).toBe('trucks payloads')
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

  test('not where `when` leaves messages to the sources below', () => {
    expect(problemsOf(trucks, vans, rest)).toEqual([])
  })

  test.each([
    ['without `when`', source('first'), 'With `when` it would take only some of the messages.'],
    [
      'that collects values',
      { ...trucks, name: 'first', topic: 'telemetry/v1/{device}', coalesce: { name: { path: 'n' } } },
      'Its `when` leaves none to others, because it has coalesce.',
    ],
  ])('where a source %s takes all that another one reads', (_what, first, sentence) => {
    expect(problemsOf(first, rest)).toEqual([
      `sources.1.topic is never reached: the source "first" above takes every topic that it matches. ${sentence}`,
    ])
  })

  test('where two sources take the same messages', () => {
    expect(problemsOf(trucks, { ...trucks, name: 'again' })).toEqual([
      'sources.1.topic is never reached: the source "trucks" above takes the same messages, by the same `when`.',
    ])
    expect(problemsOf(trucks, { ...trucks, name: 'text', encoding: 'text' })).toEqual([])
  })

  test('where more than 16 sources share a topic', () => {
    const many = Array.from({ length: 17 }, (_, index) => source(`s${index}`, { when: `kind == ${index}` }))
    expect(problemsOf(...many.slice(1))).toEqual([])
    expect(problemsOf(...many)).toEqual([
      'sources.16.topic has messages of 16 sources above. At most 16 sources may share a topic.',
    ])
  })

  test('where a topic would have two owners', () => {
    const topic = 'f/{group}/{device}'
    const first = { ...trucks, topic, identity: 'group' }
    expect(problemsOf(first, { ...rest, topic, identity: 'device' })).toEqual([
      'sources.1.identity must be the same level of the topic as in the source "trucks" above, which shares ' +
        'topics with it: a topic has one owner.',
    ])
    expect(problemsOf(first, { ...rest, topic: 'f/{org}/{device}', identity: 'org' })).toEqual([])
    expect(problemsOf(first, { ...rest, topic })).toEqual([])
  })
})
