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
import { valueIn } from '../../../src/mapping/explain/explain-record.ts'
import { configOf, messageOf, truckSource, type World } from '../../support/mapping-world.ts'

/** A preset is compiled once, and tried some hundred times. */
const compiled = new WeakMap<MappingConfig, ReturnType<typeof compileSources>>()

function explainerOf(config: MappingConfig, devices: DeviceTable = noDevices) {
  const { sources, problems } = compiled.get(config) ?? compileSources(config)
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
      const applied = mapper.apply()
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
  test.each(presets)('over the cases of $file', ({ cases, mapping }) => {
    const rows = Object.entries(cases.devices)
    const devices: DeviceTable = {
      find: (device) => rows.find(([name]) => name === device)?.[1] as ReturnType<DeviceTable['find']>,
      size: rows.length,
    }
    const both = cases.cases
      .flatMap((one) => play(explainerOf(mapping, devices), messagesOf(one)))
      .map(bothOf)
    expect(both.flatMap(({ told }) => told)).toEqual(both.flatMap(({ sent }) => sent))
    expect(both.flatMap(({ sent }) => sent)).not.toEqual([])
  })

  test.each(presets)(
    'and no value that is sent is called unread, over the cases of $file',
    ({ cases, mapping }) => {
      const told = cases.cases.flatMap((one) => play(explainerOf(mapping), messagesOf(one)))
      const wrong = told.flatMap(({ explained }) => {
        const unread = new Set(explained.unread?.keys)
        const sent = explained.records.flatMap(({ fields }) => fields.filter(isSent))
        return sent.flatMap(({ path }) =>
          path !== null && unread.has(path.replace(/^\$\./, '')) ? [path] : [],
        )
      })
      expect(wrong).toEqual([])
    },
  )

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
      { numRuns: 600 },
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

describe('the explanation of a field says', () => {
  const source = (map: Record<string, unknown> = {}, rest: Record<string, unknown> = {}) =>
    truckSource(
      {
        speed: { path: ['can.speed', 'v'], unit: 'm/s', absent: [-1] },
        heading: { path: 'cog' },
        in_motion: { from: 'speed', above: 5 },
        signals: [
          { type: 'OBD_LIFETIME_ODOMETER', path: 'odo', unit: 'm', families: ['truck'] },
          { type: 'OBD_LIFETIME_ODOMETER', path: 'dist', unit: 'km' },
          { type: 'OBD_LIFETIME_ODOMETER', path: 'gpsDist', unit: 'km', origin: 'gnss' },
          { type: 'OBD_TOTAL_ENGINE_TIME', path: 'hours', unit: 'h', part: 'ENGINE', when: 'engine == true' },
        ],
        fields: { 'gps.altitude': { path: 'alt', type: 'number' } },
        ...map,
      },
      { families: { truck: ['FMB6*'] }, ...rest },
    )
  const message = {
    ts: 1_750_000_000_000,
    lat: 48.1,
    lon: 2.2,
    v: 8.23,
    cog: 360,
    odo: 386_814_875,
    dist: 386_815,
    gpsDist: 12,
    hours: 7,
    alt: 'high',
  }

  test('which path found it, the raw value, its unit and the value sent', () => {
    const { records, topic, captures } = explainOne(source({}, { model: 'FMB640' }), message)
    expect({ topic, captures }).toEqual({ topic: 'telemetry/v1/truck-7', captures: { device: 'truck-7' } })
    expect(records[0]?.device).toEqual({
      name: 'truck-7',
      from: '{device} of the topic',
      listed: false,
      family: 'truck',
      model: 'FMB640',
      hasFamilies: true,
    })
    const fields = fieldsOf({ topic, captures, values: [], declined: [], records, unread: null })
    expect(fields['speed']).toEqual({
      option: 'speed',
      field: 'speed',
      path: 'v',
      paths: ['can.speed', 'v'],
      raw: 8.23,
      unit: 'm/s',
      value: 29.628,
      sentUnit: 'KILOMETERS_PER_HOUR',
      note: null,
    })
    expect(fields['heading']).toMatchObject({ raw: 360, value: 0 })
    expect(fields['in_motion']).toMatchObject({
      value: true,
      note: 'derived from the speed: moving above 5',
    })
    expect(fields['signals[0]']).toMatchObject({
      field: 'OBD_LIFETIME_ODOMETER',
      raw: 386_814_875,
      unit: 'm',
      value: '386814.875',
      sentUnit: 'KILOMETERS',
    })
  })

  test('why it is not sent', () => {
    const notes = Object.fromEntries(
      Object.entries(fieldsOf(explainOne(source(), { ...message, v: -1, cog: 400 }))).map(
        ([option, { value, note }]) => [option, value === undefined ? note : 'sent'],
      ),
    )
    expect(notes).toEqual({
      time: 'sent',
      latitude: 'sent',
      longitude: 'sent',
      speed: '-1 means "no value" (`absent`)',
      heading: '400 is above maximum: `plausibility.heading` is 0 to 360',
      in_motion: 'derived from the speed: moving above 5; there is no speed, or it is between the two limits',
      'signals[0]': 'only for truck; the model of the device is in no family',
      'signals[1]': 'sent',
      'signals[2]': 'its origin gnss is not in `origins` of the source',
      'signals[3]': 'when is false: engine == true',
      'fields["gps.altitude"]': 'not a number',
    })
  })

  test('what a table or an expression made of the value', () => {
    const map = {
      speed: { expr: 'u == "kn" ? v * 1.852 : null' },
      in_motion: { expr: 'bits(din, 1, 2)', values: { 2: true } },
      heading: { path: [{ path: 'can.cog', when: 'can.ok == 1' }, 'cog'] },
      signals: [{ type: 'OBD_LIFETIME_ODOMETER', expr: 'trip + dist', unit: 'km' }],
      fields: {
        'gps.altitude': { path: 'alt', type: 'number', when: 'sat > 3' },
        t: { expr: '-temp / zero', type: 'number' },
        far: { expr: 'dist - nothing', type: 'number' },
      },
    }
    const told = {
      ...message,
      v: 10,
      u: 'kn',
      din: 5,
      can: { cog: 7, ok: 0 },
      trip: 0.5,
      alt: 30,
      sat: 3,
      temp: 12,
      sign: 1,
      zero: 0,
    }
    const fields = fieldsOf(explainOne(source(map), told))
    const notes = Object.entries(fields).map(([option, { value, note }]) => [option, value, note])
    expect(notes.slice(3)).toEqual([
      ['speed', 18.52, null],
      ['heading', 0, null],
      ['in_motion', true, '`values`: true'],
      ['signals[0]', '386815.5', null],
      ['fields["gps.altitude"]', undefined, 'when is false: sat > 3'],
      ['fields["t"]', undefined, 'not a number (no value: the result is no finite number)'],
      ['fields["far"]', undefined, 'absent'],
    ])
  })

  test('which hemisphere its coordinate has, and that two contradict each other', () => {
    const map = {
      latitude: { path: 'n', unit: 'ddmm', hemisphere: { path: ['half', 'ns'] } },
      longitude: { path: 'e', hemisphere: { path: 'ew' } },
    }
    const noteOf = (told: object) => {
      const { latitude, longitude } = fieldsOf(
        explainOne(truckSource(map), { ts: 1_763_690_000_000, ...told }),
      )
      return [latitude?.value, latitude?.note, longitude?.note]
    }
    expect(noteOf({ n: '5231.002', ns: 'S', e: 13 })).toEqual([
      undefined,
      'BAD_VALUE: The hemisphere of the longitude 13 must be E or W, found nothing. (hemisphere ns: "S")',
      expect.stringContaining('(hemisphere: absent)'),
    ])
    expect(noteOf({ n: '5231.002', ns: 'S', e: 13, ew: 'E' })).toEqual([
      -52.5167,
      'hemisphere ns: "S"',
      'hemisphere ew: "E"',
    ])
    expect(noteOf({ n: '5231.002S', ns: 'N', e: 13, ew: 'E' })[1]).toMatch(
      /"5231.002S" and its hemisphere "N" contra/,
    )
  })

  test('that another signal of its type and part comes first', () => {
    const { 'signals[1]': second } = fieldsOf(explainOne(source({}, { model: 'FMB640' }), message))
    expect(second).toMatchObject({ raw: 386_815, note: 'signals[0] has a value and is sent instead' })
    expect(second).not.toHaveProperty('value')
  })

  test.each([
    ['a negative one', { v: -2 }, 'speed', 'negative'],
    ['a text', { v: 'fast' }, 'speed', 'not a number'],
    ['a placeholder', { dist: 4_294_967_295 }, 'signals[1]', 'a placeholder'],
    ['null', { v: null }, 'speed', 'absent'],
  ])('that it was %s', (_name, change, option, note) => {
    expect(fieldsOf(explainOne(source(), { ...message, ...change }))[option]).toMatchObject({ note })
  })

  test('that there is no position and why, in each field that needs one', () => {
    const withFix = source({}, { fix: { valid: 'sat > 0', time: { path: 'fixed', format: 'ms' } } })
    const invalid = fieldsOf(explainOne(withFix, { ...message, sat: 0 }))
    for (const option of ['latitude', 'speed', 'heading', 'fields["gps.altitude"]'])
      expect(invalid[option]).toMatchObject({ note: 'no fix: fix.valid is false' })
    const stale = fieldsOf(explainOne(withFix, { ...message, sat: 9, fixed: 1_749_999_000_000 }))
    expect(stale['latitude']?.note).toBe(
      'no fix: the position is older than fix.max_age, taken 2025-06-15T14:50:00.000Z',
    )
    const nowhere = fieldsOf(explainOne(source(), { ...message, lat: 0, lon: 0 }))
    expect(nowhere['speed']).toMatchObject({
      note: 'no fix: a receiver without a fix sends 0, 0, or -1, -1, or a pole',
    })
  })

  test('that the last known position is sent with its own time and without heading', () => {
    const keep = source(
      {},
      { fix: { valid: 'sat > 0', time: { path: 'fixed', format: 'ms' }, old: 'keep' }, no_fix: 'keep' },
    )
    const fields = fieldsOf(explainOne(keep, { ...message, sat: 0, fixed: 1_749_999_000_000 }))
    expect(fields['time']).toMatchObject({
      raw: 1_750_000_000_000,
      value: 1_749_999_000_000,
      note: 'the position is older and is sent with its own time',
    })
    expect(fields['heading']).toMatchObject({
      note: 'the position is a last known one, so its heading is not sent',
    })
  })

  test('that the message is refused because of it', () => {
    expect(fieldsOf(explainOne(source(), { ...message, lat: 95 }))['latitude']).toMatchObject({
      raw: 95,
      note: 'OUT_OF_RANGE: The position 95, 2.2 is out of range.',
    })
    expect(fieldsOf(explainOne(source(), { ...message, ts: 'noon' }))['time']).toMatchObject({
      raw: 'noon',
      note: 'BAD_TIME: it is not in the format ms',
    })
  })

  test('which zone its time is in, and whether a change of the clock applied', () => {
    const time = { path: 'clock', date: { path: 'day' }, format: 'dmy', zone: 'device', missing: 'arrival' }
    const table = 'device,zone\ntruck-7,Europe/Berlin\n'
    const timeIn = (day: string, clock: string, world: World = { table }) => {
      const message = { day, clock, lat: 52.5, lon: 13.4 }
      return fieldsOf(explainOne(truckSource({ time }), message, world))['time']
    }
    expect(timeIn('131024', '020000')).toMatchObject({
      path: 'day and clock',
      raw: '131024 020000',
      unit: 'dmy in Europe/Berlin, zone of the device',
      value: Date.UTC(2024, 9, 13),
      note: null,
    })
    expect(timeIn('271024', '020000')).toMatchObject({
      value: Date.UTC(2024, 9, 27),
      note: 'the clock goes back and repeats this time: the first of the two moments',
    })
    expect(timeIn('310324', '023000')?.note).toBe(
      'the clock goes forward and skips this time: moved forward by what is skipped',
    )
    expect(timeIn('310324', '023000', {})).toMatchObject({
      unit: 'dmy, no zone',
      note: 'it has no zone, and neither has the device: the arrival time is sent',
    })
    expect(timeIn('310224', '023000')?.note).toBe('BAD_TIME: it is not in the format dmy')
    const strict = truckSource({ time: { ...time, missing: 'refuse' } })
    const { records } = explainOne(strict, { day: '310324', clock: '023000', lat: 52.5, lon: 13.4 })
    expect(records.map(({ fields }) => fields[0]?.note)).toEqual([
      'NO_ZONE: it has no zone, and neither has the device',
    ])
  })

  test('that the arrival time is sent, and which time it replaces', () => {
    const lenient = source({ time: { path: 'ts', format: 'ms', missing: 'arrival' } })
    expect(fieldsOf(explainOne(lenient, { ...message, ts: null }))['time']).toMatchObject({
      value: 1_760_000_000_000,
      note: 'absent: the arrival time is sent',
    })
    const restamp = { clocks: { on_future: 'restamp' } }
    expect(fieldsOf(explainOne(source(), { ...message, ts: 4e12 }, restamp))['time']).toMatchObject({
      raw: 4e12,
      value: 1_760_000_000_000,
      note: 'the device clock is wrong: the arrival time is sent',
    })
  })

  test('that a privacy profile withholds it', () => {
    const world = {
      table: 'device,privacy\ntruck-7,driver\n',
      privacy: { profiles: { driver: { round: 0, hide: ['speed', 'odometer'] } } },
    }
    const fields = fieldsOf(explainOne(source(), message, world))
    expect(fields['latitude']).toMatchObject({
      raw: 48.1,
      value: 48,
      note: 'the privacy profile driver rounds it',
    })
    for (const option of ['speed', 'signals[1]'])
      expect(fields[option]).toMatchObject({ note: 'the privacy profile driver withholds it' })
  })
})

describe('the explanation of a record says', () => {
  test('which condition is false', () => {
    const { records } = explainOne(truckSource({}, { when: 'sat > 3' }), { ts: 1, lat: 1, lon: 2, sat: 2 })
    const parts = {
      joined: 'and',
      parts: 1,
      failed: [{ text: 'sat > 3', values: [{ path: 'sat', value: 2 }] }],
    }
    expect(records[0]?.conditions).toEqual([{ option: 'when', text: 'sat > 3', holds: false, parts }])
  })

  test('which properties of MQTT 5 are sent and name the device, and which user properties nothing reads', () => {
    const fields = {
      tenant: { path: '$properties.tenant', type: 'text' },
      type: { path: '$packet.content_type', type: 'text' },
      group: { path: '$properties.group', type: 'text' },
    }
    const mqtt5 = {
      userProperties: { tenant: 'T', vin: 'V', 'fleet id': 'F', seq: '1' },
      properties: { contentType: 'gps' },
    }
    const reading = { ts: 1_750_000_000_000, lat: 1, lon: 2, odd: 3 }
    const source = truckSource(
      { fields },
      { device: { path: '$properties.vin' }, unused: ['$properties.seq'] },
    )
    const explained = explainOne(source, reading, {}, mqtt5)
    expect(explained.records[0]?.device).toMatchObject({ name: 'V', from: 'user property vin' })
    expect(fieldsOf(explained)).toMatchObject({
      'fields["tenant"]': { raw: 'T', value: 'T', note: 'from user property tenant' },
      'fields["type"]': { raw: 'gps', value: 'gps', note: 'from property content_type' },
      'fields["group"]': { note: 'absent' },
    })
    expect(explained.unread?.keys).toEqual(['odd', '$properties."fleet id"'])
    const templated = explainOne(truckSource({}, { device: '{user.vin}' }), reading, {}, mqtt5)
    expect(templated.records[0]?.device).toMatchObject({ name: 'V', from: '{user.vin} of the message' })
    expect(templated.unread?.keys).toEqual([
      'odd',
      '$properties.tenant',
      '$properties."fleet id"',
      '$properties.seq',
    ])
  })

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
    explainer.mapper.apply()
    for (const [n, v] of [
      ['lat', 1],
      ['lon', 2],
    ]) {
      explainer.mapper.map(messageOf({ n, v, ts: 1_750_000_000_000 }))
      explainer.mapper.apply()
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

  test('which keys nothing reads, also where no record was mapped', () => {
    const position = { ts: 1_750_000_000_000, lat: 1, lon: 2 }
    expect(explainOne(truckSource(), { ...position, spd: 3 }).unread).toEqual({
      keys: ['spd'],
      more: 0,
      near: ['speed'],
    })
    const speed = { speed: { path: 'spd' } }
    const known = explainOne(truckSource(speed), { ...position, spd: 3, Speed2: 4, ODO: 1, Lat: 1 })
    expect(known.unread).toMatchObject({ keys: ['Speed2', 'ODO', 'Lat'], near: ['odometer'] })
    const inList = truckSource({}, { each: ['data', 'values'] })
    const message = { id: 7, data: [{ values: [position, { ...position, spd: 4 }] }] }
    expect(explainOne(inList, message).unread?.keys).toEqual(['data[].values[].spd', 'id'])
    const unnamed = truckSource({}, { device: { path: 'serialNo' } })
    expect(explainOne(unnamed, { ...position, serialNum: 'a' }).unread).toMatchObject({ keys: ['serialNum'] })
    expect(explainOne(truckSource(), 'no json').unread).toBeNull()
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

  test('which model was looked up', () => {
    const families = { truck: ['FMB6*'] }
    const device = (rest: object, world: World = {}) =>
      explainOne(truckSource({}, { families, ...rest }), { ts: 1_750_000_000_000, lat: 1, lon: 2 }, world)
        .records[0]?.device
    const table = 'device,model\ntruck-7,FMC130\n'
    expect(device({}, { table })).toMatchObject({ model: 'FMC130', family: null, hasFamilies: true })
    expect(device({ model: 'fmb640' })).toMatchObject({ model: 'fmb640', family: 'truck' })
    expect(device({})).toMatchObject({ model: null, family: null })
    expect(device({ families: {} })).toMatchObject({ hasFamilies: false })
  })

  test('which of several rules named its device', () => {
    const device = [{ path: ['ident', 'imei'] }, '{clientid}']
    const source = { ...truckSource({}, { device }), topic: 'up' }
    const named = (payload: object) => explainOne(source, payload, {}, { topic: 'up' }).records[0]?.device
    const position = { ts: 1_750_000_000_000, lat: 1, lon: 2 }
    expect(named({ ...position, imei: 864 })).toMatchObject({ name: '864', from: 'path imei' })
    expect(named(position)).toMatchObject({ name: 'client-1', from: '{clientid} of the sender' })
  })

  test('which values were unpacked', () => {
    const extract = [{ from: 'packed', as: 'json', into: 'inner' }]
    const source = truckSource({ speed: { path: 'inner.v' } }, { extract })
    const unpacked = (packed: string) =>
      explainOne(source, { ts: 1_750_000_000_000, lat: 1, lon: 2, packed }).records[0]?.unpacked
    expect(unpacked('{"v":3}')).toEqual([{ into: 'inner', found: true, ignored: [] }])
    expect(unpacked('none')).toEqual([{ into: 'inner', found: false, ignored: [] }])
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
