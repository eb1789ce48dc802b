import { readdirSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { assert, constantFrom, nat, property } from 'fast-check'
import { describe, expect, test } from 'vitest'
import { loadPresetCases } from '../../../src/config/case-files.ts'
import type { Message } from '../../../src/domain/message.ts'
import type { MappedPayload } from '../../../src/domain/payload.ts'
import { compileSources } from '../../../src/mapping/compile/compile.ts'
import type { MappingConfig } from '../../../src/mapping/config.ts'
import { noDevices, parseDevices, type DeviceTable } from '../../../src/mapping/devices/device-table.ts'
import { decodeJson } from '../../../src/mapping/encodings/lenient-json.ts'
import { createExplainer, type Explained, type ExplainedField } from '../../../src/mapping/explain/explain.ts'
import { valueIn } from '../../../src/mapping/explain/explain-fields.ts'
import { rowsBeside } from '../../support/case-rows.ts'
import { appliedOf, configOf, messageOf, truckSource, type World } from '../../support/mapping-world.ts'

/** A preset is compiled once, and tried some hundred times. */
const compiled = new WeakMap<MappingConfig, ReturnType<typeof compileSources>>()

function explainerOf(config: MappingConfig, devices: DeviceTable = noDevices) {
  const { sources, problems } = compiled.get(config) ?? compileSources(config, true)
  compiled.set(config, { sources, problems })
  if (problems.length > 0) throw new Error(JSON.stringify(problems))
  const { future_max: futureMaxMs, on_future: onFuture } = config.clocks
  return createExplainer(
    { devices, clockOffsetMs: () => 0 },
    { sources, clocks: { futureMaxMs, onFuture } },
    config,
  )
}

type Told = { explained: Explained; payloads: readonly MappedPayload[] }

/** The explanation of each step, with its payloads. */
function play(explainer: ReturnType<typeof explainerOf>, messages: readonly Message[]): Told[] {
  const { mapper, explain, explainApplied } = explainer
  const told: Told[] = []
  for (const message of messages) {
    const result = mapper.map(message)
    const payloads = result.kind === 'payloads' ? result.payloads : []
    told.push({ explained: explain(message, result), payloads })
    if (result.kind === 'part') {
      const applied = result.apply()
      told.push({ explained: explainApplied(applied), payloads: applied.payloads })
    }
  }
  for (;;) {
    const applied = mapper.tick(Number.POSITIVE_INFINITY)
    if (applied === null) return told
    told.push({ explained: explainApplied(applied), payloads: applied.payloads })
  }
}

function fieldsOf(explained: Explained, record = 0): Record<string, ExplainedField> {
  const fields = explained.records[record]?.fields ?? []
  return Object.fromEntries(fields.map((field) => [field.option, field]))
}

function explainOne(source: object, payload: unknown, world: World = {}, rest: Partial<Message> = {}) {
  const table = parseDevices(Buffer.from(world.table ?? 'device\n')).table
  const explainer = explainerOf(configOf([source], world), table)
  const message = messageOf(payload, rest)
  return explainer.explain(message, explainer.mapper.map(message))
}

const folder = resolve(import.meta.dirname, '../../../config/presets')
const deps = { env: {}, readText: (path: string) => readFile(path, 'utf8') }

const presets = await Promise.all(
  readdirSync(folder)
    .filter((file) => file.endsWith('.cases.yaml'))
    .map(async (file) => ({ file, ...(await loadPresetCases(join(folder, file), deps)) })),
)

type Preset = (typeof presets)[number]

function messagesOf(one: Preset['cases']['cases'][number]): Message[] {
  const steps = one.messages ?? [{ ...one, after: 0 }]
  let arrivedAt = Date.parse(one.at ?? '2026-01-28T15:00:00Z')
  return steps.map(({ topic = '', message, hex, retain, dup, after = 0 }) => {
    arrivedAt += after
    const bytes = hex === undefined ? Buffer.from(message ?? '') : Buffer.from(hex, 'hex')
    const sender = { clientId: one.client, userName: one.user ?? null, certificateName: null, identity: null }
    return { topic, bytes, qos: 1, retain, dup, sender, arrivedAt }
  })
}

/** The explanation of each payload equals its content. Each missing value has a reason. */
function bothOf({ explained, payloads }: Told): { told: unknown[]; sent: unknown[] } {
  const records = explained.records.filter(({ payloadId }) => payloadId !== null)
  return {
    told: records.map(({ payloadId, device, fields }) => ({
      payloadId,
      device: device.name,
      says: leavesOf(rebuilt(fields)),
      values: fields.filter(isSent).map(({ option, value }) => [option, value]),
      withoutReason: fields.filter((field) => !isSent(field) && field.note === null),
    })),
    sent: payloads.map(({ payloadId, device, json }, index) => {
      const body = JSON.parse(json) as Record<string, unknown>
      const fields = (records[index]?.fields ?? []).filter(isSent)
      const values = fields.map((field) => [field.option, valueIn(body, field)])
      return { payloadId, device, says: leavesOf(body), values, withoutReason: [] }
    }),
  }
}

function isSent({ value }: ExplainedField): boolean {
  return value !== undefined
}

/** Time, gps and signals as the explanation has them. */
function rebuilt(fields: readonly ExplainedField[]): Record<string, unknown> {
  const gps: Record<string, unknown> = {}
  const signals: unknown[] = []
  let time: unknown
  for (const { option, field, value } of fields) {
    if (value === undefined) continue
    if (option === 'time') time = value
    else if (option.startsWith('signals[')) signals.push(value)
    else if (!option.startsWith('fields[')) gps[field] = value
  }
  return {
    signalTimestamp: time,
    ...(Object.keys(gps).length > 0 ? { gps } : {}),
    ...(signals.length > 0 ? { signals: signals.map((value) => ({ value })) } : {}),
  }
}

const known = ['latitude', 'longitude', 'speed', 'heading', 'inMotion'] as const

function leavesOf(payload: Record<string, unknown>) {
  const gps = payload['gps'] as Record<string, unknown> | undefined
  const signals = payload['signals'] as { value: string }[] | undefined
  return {
    time: payload['signalTimestamp'],
    gps: gps && known.filter((name) => gps[name] !== undefined).map((name) => [name, gps[name]]),
    signals: signals?.map(({ value }) => value),
  }
}

describe('explained values are the values in the payload', () => {
  test.each(presets)('over the cases of $file; none that is sent is called unread', ({ cases, mapping }) => {
    const rows = Object.entries(cases.devices)
    const devices: DeviceTable = {
      find: (device) => rows.find(([name]) => name === device)?.[1] as ReturnType<DeviceTable['find']>,
      size: rows.length,
    }
    const played = cases.cases.flatMap((one) => play(explainerOf(mapping, devices), messagesOf(one)))
    const both = played.map(bothOf)
    expect(both.flatMap(({ told }) => told)).toEqual(both.flatMap(({ sent }) => sent))
    expect(both.flatMap(({ sent }) => sent)).not.toEqual([])
    const wrong = played.flatMap(({ explained }) => {
      const unread = new Set(explained.unread?.keys)
      const sent = explained.records.flatMap(({ fields }) => fields.filter(isSent))
      return sent.flatMap(({ path }) =>
        path !== null && unread.has(path.replace(/^\$\./, '')) ? [path] : [],
      )
    })
    expect(wrong).toEqual([])
  })

  test('for messages with changed, missing or broken values', () => {
    const odd = constantFrom<unknown>(null, '', 0, -1, '12,5', 'x', true, 4_294_967_295, [], {})
    const textual = presets.flatMap((preset) =>
      preset.cases.cases
        .filter(({ message }) => message?.startsWith('{'))
        .map((one) => ({ preset, one, decoded: decodeJson(Buffer.from(one.message ?? '')) })),
    )
    assert(
      property(constantFrom(...textual), nat(), odd, ({ preset, one, decoded }, at, value) => {
        const changed: unknown = decoded.kind === 'value' ? structuredClone(decoded.value) : {}
        const places = placesIn(changed)
        const place = places[at % places.length]
        if (place) place.holder[place.key] = value
        const [message] = messagesOf({ ...one, message: JSON.stringify(changed) })
        for (const step of play(explainerOf(preset.mapping), message ? [message] : [])) {
          const { told, sent } = bothOf(step)
          expect(told).toEqual(sent)
        }
      }),
      { numRuns: 150 },
    )
  })
})

type Holder = Record<string, unknown>

/** Every position of a value in a message. */
function placesIn(value: unknown): { holder: Holder; key: string }[] {
  if (typeof value !== 'object' || value === null) return []
  const holder = value as Holder
  return Object.keys(holder).flatMap((key) => [{ holder, key }, ...placesIn(holder[key])])
}

type Row = {
  name: string
  map?: Record<string, unknown>
  source?: Record<string, unknown>
  world?: World
  message: unknown
  packet?: Partial<Message>
  record?: object
  fields?: Record<string, object>
  unread?: object | null
}
const tables = rowsBeside(import.meta.filename) as Record<string, Row[]>

describe.each(Object.entries(tables))('the explanation says of %s', (_of, rows) => {
  test.each(rows)('$name', ({ map, source, world, message, packet, record, fields, unread }) => {
    const explained = explainOne(truckSource(map, source), message, world, packet)
    const found = Object.entries(fieldsOf(explained)).map(([option, field]) => [
      option,
      { ...field, value: field.value ?? 'not sent' },
    ])
    expect(Object.fromEntries(found)).toMatchObject(fields ?? {})
    expect(explained.records[0] ?? {}).toMatchObject(record ?? {})
    expect({ unread: explained.unread }).toMatchObject(unread === undefined ? {} : { unread })
  })
})

describe('the explanation of a record says', () => {
  test('which keys of single values nothing reads, and which collected ones', () => {
    const coalesce = {
      name: { path: 'n' },
      value: 'v',
      names: ['lat', 'lon', 'spd'],
      time: { path: 'ts', format: 'ms' },
      window: '1s',
    }
    const source = truckSource({ time: { format: 'arrival' } }, { coalesce, unused: ['seq'] })
    const explainer = explainerOf(configOf([source]))
    const message = messageOf({ n: 'spd', v: 5, ts: 1_750_000_000_000, unit: 'km/h', seq: 1 })
    const result = explainer.mapper.map(message)
    expect(explainer.explain(message, result).unread?.keys).toEqual(['unit'])
    appliedOf(result)
    for (const [n, v] of [
      ['lat', 1],
      ['lon', 2],
    ]) {
      appliedOf(explainer.mapper.map(messageOf({ n, v, ts: 1_750_000_000_000 })))
    }
    const closed = explainer.mapper.tick(Number.POSITIVE_INFINITY)
    expect(closed && explainer.explainApplied(closed).unread).toMatchObject({
      keys: ['spd'],
      near: ['speed'],
    })
  })

  test('of how many values the unread keys are, where there are more', () => {
    const record = { ts: 1_750_000_000_000, lat: 1, lon: 2 }
    for (const each of ['$', ['data', 'values']]) {
      const listed = (list: object[]) => (each === '$' ? list : { data: [{ values: list }] })
      const unreadOf = (list: object[]) => explainOne(truckSource({}, { each }), listed(list)).unread
      // More records than a message may have: what reads the others is known nevertheless.
      const many = Array.from({ length: 1200 }, () => record)
      expect(unreadOf([...many, { ...record, spd: 3 }])).toMatchObject({ near: ['speed'], more: 0 })
      expect(unreadOf([...many, { ...record, spd: 3 }])?.partOf).toBeUndefined()
      const most = Array.from({ length: 6000 }, () => record)
      expect(unreadOf(most)).toEqual({ keys: [], more: 0, near: [], partOf: 'its first 5000 values' })
    }
  })

  test('of a list that is thinned, which record became which payload', () => {
    const source = truckSource({}, { each: 'data', thin: { every: '60s' } })
    const start = 1_750_000_000_000
    const data = [0, 10, 20, 70, 80, 140].map((s) => ({ ts: start + s * 1000, lat: 1, lon: 2 }))
    const [told] = play(explainerOf(configOf([source])), [messageOf({ data })])
    const [first, second, third] = told!.payloads.map(({ payloadId }) => payloadId)
    const ids = told!.explained.records.map(({ payloadId }) => payloadId)
    expect(ids).toEqual([first, null, null, second, null, third])
  })

  test('the same for each record of a list', () => {
    const source = truckSource({ speed: { path: 'v' } }, { each: 'records' })
    const records = [1, 2].map((v) => ({ ts: 1_750_000_000_000 + v, lat: 1, lon: 2, v }))
    const explained = explainOne(source, { records })
    expect([0, 1].map((index) => fieldsOf(explained, index)['speed']?.value)).toEqual([1, 2])
  })

  test('for collected values, each value and then the whole record', () => {
    const source = {
      name: 'vans',
      topic: 'vans/{device}/{name}',
      encoding: 'scalar',
      coalesce: { name: '{name}' },
      map: { latitude: { path: 'lat' }, longitude: { path: 'lon' } },
    }
    const explainer = explainerOf(configOf([source]))
    const told = play(
      explainer,
      ['lat', 'lon'].map((name) => messageOf('12.5', { topic: `vans/v1/${name}` })),
    )
    expect(told.flatMap(({ explained }) => explained.values)).toEqual([
      { source: 'vans', name: 'lat', wanted: true, value: '12.5' },
      { source: 'vans', name: 'lon', wanted: true, value: '12.5' },
    ])
    const closed = told.at(-1)?.explained
    expect(closed?.records[0]?.device).toMatchObject({ name: 'v1', from: 'the collected values' })
    expect(closed && fieldsOf(closed)['latitude']).toMatchObject({ raw: '12.5', value: 12.5 })
  })
})

test('a previous value is shown with its time, and what was computed with it', () => {
  const config = configOf([
    truckSource({ signals: [{ type: 'DISTANCE', expr: 'odo - previous.odo', unit: 'km' }] }),
  ])
  const at = (ts: number, odo: number) => messageOf({ ts, lat: 48.8, lon: 2.2, odo })
  const [first, second] = play(explainerOf(config), [
    at(1_750_000_000_000, 100),
    at(1_750_000_060_000, 100.5),
  ])
  expect(first?.explained.records[0]?.previous).toEqual([])
  expect(first && fieldsOf(first.explained)['signals[0]']).toMatchObject({
    note: 'absent',
  })
  expect(second?.explained.records[0]?.previous).toEqual([
    { path: '$previous.odo', value: 100, time: 1_750_000_000_000 },
  ])
  expect(second && fieldsOf(second.explained)['signals[0]']).toMatchObject({ raw: 0.5, value: '0.5' })
  expect(second?.explained.unread?.keys).toEqual([])
})

test('a message of several sources is explained by its own, and by what the others said', () => {
  const point = (name: string, own: object) => truckSource({}, { name, ...own })
  const sources = [
    point('trucks', { when: 'kind == "truck" && lat != null' }),
    point('lists', { when: 'kind == "truck"', each: 'list' }),
    point('rest', { topic: 'telemetry/{version}/{device}' }),
  ]
  const explainer = explainerOf(configOf(sources))
  const message = messageOf({ ts: 1_750_000_000_000, lat: 48.1, lon: 2.2, kind: 'van', list: [] })
  const { declined, records, captures } = explainer.explain(message, explainer.mapper.map(message))
  expect(declined).toEqual([
    {
      source: 'trucks',
      records: 1,
      unread: null,
      text: 'kind == "truck" && lat != null',
      parts: {
        joined: 'and',
        parts: 2,
        failed: [{ text: 'kind == "truck"', values: [{ path: 'kind', value: 'van' }] }],
      },
    },
    { source: 'lists', records: 0, unread: null, text: 'kind == "truck"', parts: null },
  ])
  expect(records).toHaveLength(1)
  expect(captures).toEqual({ version: 'v1', device: 'truck-7' })
})
