// A field that the devices of a source had, and that is in none of their messages any more, is noticed: after a
// change of the mapping, and after an update of the devices. What they send meanwhile is kept, and gives the
// missing values later, once.

import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { newFolder } from '../support/folders.ts'
import { send } from '../support/ops-world.ts'
import { startPipeline, type Pipeline } from '../support/pipeline-world.ts'

type Body = Record<string, unknown>

type Edit = [from: string, to: string] | [from: RegExp, to: (word: string) => string]

type Fleet = {
  pipeline: Pipeline
  /** One message of each of these trucks; `n` makes its time. */
  send(names: readonly string[], n: number, body?: (n: number) => Body): Promise<void>
  edit(...change: Edit): Promise<void>
  condition(): { what: string; why: string; key: string } | undefined
  deadLetters(): number
  /** What the service has: for each payload its device, time, and which values. */
  got(): { device: string; at: number; values: string }[]
}

const start = Date.now() - 3_600_000
const trucks = (count: number) => Array.from({ length: count }, (_, index) => `truck-${index + 1}`)
const usual = (n: number): Body => ({
  ts: start + n * 1000,
  gps: { lat: 52.5 + n / 1000, lon: 13.4, spd: 50 },
  odo: 1000 + n / 100,
})

async function startFleet(
  count: number,
  { folder = '', edit = ['', ''] as readonly [string, string], options = '', sections = '' } = {},
): Promise<Fleet> {
  const place = folder === '' ? await newFolder() : folder
  const config = (baseUrl: string) =>
    `
ingest: { broker: { listeners: [{ url: "mqtt://127.0.0.1:0" }], access: { anonymous: true } } }
sources:
  - name: fleet
    topic: fleet/{device}
    ${options}
    map:
      time: { path: ts, format: ms }
      latitude: { path: gps.lat }
      longitude: { path: gps.lon }
      speed: { path: gps.spd, unit: km/h }
      signals: [{ type: OBD_LIFETIME_ODOMETER, path: odo }]
clocks: { trust_local: true }
spool: { path: ./spool, allow_in_memory: true, max_bytes: 1GiB, min_free_bytes: 1MiB }
delivery: { base_url: "${baseUrl}", batch: { linger: 20ms } }
ops: { listen: "127.0.0.1:0", stop_deadline: 5s }
${sections}
`.replace(...edit)
  const pipeline = await startPipeline({ folder: place, config })
  const devices = new Map(
    await Promise.all(trucks(count).map(async (name) => [name, await pipeline.device(name)] as const)),
  )
  const sent = new Map<string, number>()
  return {
    pipeline,
    async send(names, n, body = usual) {
      for (const name of names) {
        const messageId = (sent.get(name) ?? 0) + 1
        sent.set(name, messageId)
        devices.get(name)!.publish({ topic: `fleet/${name}`, payload: JSON.stringify(body(n)), messageId })
      }
      await Promise.all(names.map((name) => devices.get(name)!.acked(sent.get(name)!)))
    },
    async edit(...change) {
      const path = join(place, 'gateway.yaml')
      const text = await readFile(path, 'utf8')
      const edited = text.replace(...(change as [string, string]))
      expect(edited).not.toBe(text)
      await writeFile(path, edited)
      expect(await pipeline.gateway.reload('test')).toMatchObject({ kind: 'reloaded' })
    },
    condition: () => pipeline.status().conditions.find(({ code }) => code === 'FIELD_LOST') as never,
    deadLetters: () => pipeline.status().spool.deadLetters,
    got: () =>
      pipeline.sandbox.received({ limit: 10_000 }).map(({ payload }) => ({
        device: (payload['deviceIdentifier'] as { id: string }).id,
        at: (Number(payload['signalTimestamp']) - start) / 1000,
        values: ['gps', 'signals'].filter((key) => key in payload).join(' '),
      })),
  }
}

/** The fleet after `count` healthy messages of each truck. */
async function healthy(fleet: Fleet, names: readonly string[], count = 3): Promise<void> {
  for (let n = 0; n < count; n += 1) await fleet.send(names, n)
}

/** Messages of all of them until the condition is open; the timeout of the test bounds it. */
async function untilLost(fleet: Fleet, names: readonly string[], body = usual): Promise<void> {
  for (let n = 3; fleet.condition() === undefined; n += 1) await fleet.send(names, n, body)
}

async function remap({ pipeline }: Fleet): Promise<unknown> {
  const path = '/control/dead-letters/remap?reason=FIELD_LOST'
  const response = await send(pipeline.gateway.addresses.control, path, { method: 'POST' })
  return response.json()
}

/** Everything arrived, and each message is accounted for. */
async function settled({ pipeline, got }: Fleet, payloads: number): Promise<void> {
  // The service has a payload before the answer for it is written.
  await pipeline.until(() => {
    const { messages, payloads: ofPayloads } = pipeline.status().internals.conservation
    return got().length >= payloads && messages.difference === 0 && ofPayloads.difference === 0
  })
  expect(got()).toHaveLength(payloads)
}

describe('a path that the mapping renames', () => {
  const wrong = ['gps.lat }', 'gps.latitude }'] as const
  const right = ['gps.latitude }', 'gps.lat }'] as const

  test('for 13 devices: it is said, what they send is kept, and its position is sent later, once', async () => {
    const names = trucks(13)
    const fleet = await startFleet(13)
    await healthy(fleet, names)
    await fleet.edit(...wrong)
    await fleet.send(names, 3)
    await fleet.pipeline.until(() => fleet.condition() !== undefined)
    expect(fleet.condition()).toMatchObject({ key: 'fleet|position' })
    expect(fleet.condition()!.what).toMatch(
      /^(8|9|1\d) of 13 devices that sent positions .* the mapping was changed at/,
    )
    expect(fleet.condition()!.why).toContain('"gps.lat"')
    await fleet.send(names, 4)
    await fleet.pipeline.until(() => fleet.deadLetters() >= 13)
    const kept = fleet.deadLetters()
    await settled(fleet, 5 * 13)
    expect(fleet.got().filter(({ values }) => values === 'signals')).toHaveLength(26)

    // Still wrong: nothing is made of them.
    expect(await remap(fleet)).toMatchObject({ remapped: 0, payloads: 0 })
    await fleet.edit(...right)
    expect(await remap(fleet)).toMatchObject({ remapped: kept, payloads: kept })
    expect(await remap(fleet)).toMatchObject({ deadLetters: 0 })
    await settled(fleet, 5 * 13 + kept)
    for (const device of names)
      expect(fleet.got().filter((one) => one.device === device && one.at === 4)).toEqual(
        expect.arrayContaining([
          { device, at: 4, values: 'signals' },
          { device, at: 4, values: 'gps' },
        ]),
      )
    expect(fleet.condition()).toBeDefined()
    await fleet.send(['truck-3'], 5)
    await fleet.pipeline.until(() => fleet.condition() === undefined)
    await fleet.send(['truck-4'], 5)
    await settled(fleet, 5 * 13 + kept + 2)
    expect(fleet.deadLetters()).toBe(0)
  })

  test('for the only device: after a few of its messages', async () => {
    const fleet = await startFleet(1)
    await healthy(fleet, ['truck-1'])
    await fleet.edit(...wrong)
    for (let n = 3; n < 8; n += 1) await fleet.send(['truck-1'], n)
    await fleet.pipeline.until(() => fleet.condition() !== undefined)
    expect(fleet.condition()!.what).toMatch(/^1 of 1 device/)
  })

  test('of a signal: the signal is sent later, without the position', async () => {
    const names = trucks(9)
    const fleet = await startFleet(9)
    await healthy(fleet, names)
    await fleet.edit('path: odo', 'path: odometer')
    await fleet.send(names, 3)
    await fleet.pipeline.until(() => fleet.condition() !== undefined)
    expect(fleet.condition()!.key).toBe('fleet|signal OBD_LIFETIME_ODOMETER')
    await fleet.send(names, 4)
    await fleet.edit('path: odometer', 'path: odo')
    expect(await remap(fleet)).not.toMatchObject({ payloads: 0 })
    const laterOnes = () => fleet.got().filter(({ at, values }) => at === 4 && values === 'signals')
    await fleet.pipeline.until(() => laterOnes().length >= 9)
    const later = laterOnes()
    expect(new Set(later.map(({ device }) => device)).size).toBe(9)
    expect(later).toHaveLength(9)
  })

  test('of a part of the position: it is said, and nothing is kept, since it has no payload of its own', async () => {
    const names = trucks(9)
    const fleet = await startFleet(9)
    await healthy(fleet, names)
    await fleet.edit('gps.spd', 'gps.speed')
    for (const n of [3, 4]) await fleet.send(names, n)
    await fleet.pipeline.until(() => fleet.condition() !== undefined)
    expect(fleet.condition()).toMatchObject({ key: 'fleet|speed' })
    expect(fleet.condition()!.why).toContain('nothing is kept')
    await settled(fleet, 5 * 9)
    expect(fleet.deadLetters()).toBe(0)
  })

  test('while the gateway is stopped', async () => {
    const names = trucks(9)
    const folder = await newFolder()
    const first = await startFleet(9, { folder })
    await healthy(first, names)
    await settled(first, 27)
    await first.pipeline.gateway.stop('test')
    const second = await startFleet(9, { folder, edit: wrong })
    await untilLost(second, names)
    expect(second.condition()).toMatchObject({ key: 'fleet|position' })
  })

  test('whose field is then removed from the mapping is lost no more', async () => {
    const names = trucks(9)
    const fleet = await startFleet(9)
    await healthy(fleet, names)
    await fleet.edit('path: odo', 'path: odometer')
    for (const n of [3, 4]) await fleet.send(names, n)
    await fleet.pipeline.until(() => fleet.condition() !== undefined)
    await fleet.edit('      signals: [{ type: OBD_LIFETIME_ODOMETER, path: odometer }]\n', '')
    await fleet.send(names, 5)
    await fleet.pipeline.until(() => fleet.condition() === undefined)
    expect(fleet.pipeline.events.filter(({ kind }) => kind === 'field_found')).toHaveLength(1)
  })
})

describe('a change of the mapping that takes away', () => {
  const difference = ['signals: [', 'signals: [{ type: DRIVEN, expr: odo - previous.odo }, '] as const

  test('what reads previous values', async () => {
    const names = trucks(9)
    const fleet = await startFleet(9, { edit: difference })
    await healthy(fleet, names)
    await fleet.edit('odo - previous.odo', 'odometer - previous.odometer')
    await untilLost(fleet, names)
    expect(fleet.condition()).toMatchObject({ key: 'fleet|signal DRIVEN' })
    expect(fleet.deadLetters()).toBe(0)
  })

  test('the values that were previous ones, for the first message of each device, is no alarm', async () => {
    const names = trucks(12)
    const both = (n: number) => ({ ...usual(n), total: 500 + n })
    const fleet = await startFleet(12, { edit: difference })
    for (let n = 0; n < 30; n += 1) await fleet.send(names, n, both)
    await fleet.edit('odo - previous.odo', 'total - previous.total')
    for (let n = 30; n < 34; n += 1) await fleet.send(names, n, both)
    expect(fleet.pipeline.events.filter(({ kind }) => kind === 'field_lost')).toEqual([])
  })

  test('a value that was remembered', async () => {
    const names = trucks(9)
    const options = 'fix: { valid: lock == 1 }\n    remember: { names: [lock], for: 1d }'
    const fleet = await startFleet(9, {
      options,
      edit: ['speed:', 'in_motion: { path: moving }\n      speed:'],
    })
    await fleet.send(names, 0, (n) => ({ ...usual(n), lock: 1 }))
    for (const n of [1, 2]) await fleet.send(names, n)
    await fleet.edit('[lock]', '[moving]')
    await untilLost(fleet, names)
    expect(fleet.condition()).toMatchObject({ key: 'fleet|position' })
  })

  test('a field, with another name of the source', async () => {
    const names = trucks(9)
    const fleet = await startFleet(9)
    await healthy(fleet, names)
    await fleet.edit(/fleet\n|path: odo/g, (word) => (word === 'path: odo' ? 'path: odometer' : 'trucks\n'))
    await untilLost(fleet, names)
    expect(fleet.condition()).toMatchObject({ key: 'trucks|signal OBD_LIFETIME_ODOMETER' })
  })

  test.each([
    ['with another name of each device', 1, 'gps.latitude', true],
    ['with another name of each device, and without a change of the field, is no alarm', 1, 'gps.lat', false],
    ['with other names of devices that lacked it for long, is no alarm', 12, 'gps.latitude', false],
  ])('a field, %s', async (_what, parked, latitude, lost) => {
    const names = trucks(9)
    const fleet = await startFleet(9, { options: 'device: { path: id }' })
    const next = async (from: number, to: number, body: (n: number) => Body) => {
      for (let n = from; n < to; n += 1)
        for (const name of names)
          await fleet.send([name], n, (at) => ({ id: `${name}-old`, vin: `${name}-new`, ...body(at) }))
    }
    await next(0, 3, usual)
    if (parked > 1) await next(3, 3 + parked, withoutFix)
    await fleet.edit(/path: id|path: gps.lat /g, (word) =>
      word === 'path: id' ? 'path: vin' : `path: ${latitude} `,
    )
    await next(20, 24, parked > 1 ? withoutFix : usual)
    const said = { key: 'fleet|position', what: expect.stringMatching(/^[89] of [89] devices/) }
    expect([fleet.condition()].filter((one) => one !== undefined)).toMatchObject(lost ? [said] : [])
  })

  test('the family of the devices, in the device table', async () => {
    const names = trucks(9)
    const folder = await newFolder()
    const list = (model: string) =>
      writeFile(
        join(folder, 'devices.csv'),
        ['device,model', ...names.map((name) => `${name},${model}`), ''].join('\n'),
      )
    await list('FMB120')
    const fleet = await startFleet(9, {
      folder,
      options: 'families: { fm: [FM*] }',
      edit: ['path: odo }', 'path: odo, families: [fm] }'],
      sections: 'devices: { file: devices.csv }',
    })
    await healthy(fleet, names)
    await list('FMC130')
    expect(await fleet.pipeline.gateway.reload('test')).toMatchObject({ kind: 'reloaded' })
    await healthy(fleet, names)
    expect(fleet.condition()).toBeUndefined()
    await list('T-100')
    await fleet.pipeline.gateway.reload('test')
    await untilLost(fleet, names)
    expect(fleet.condition()).toMatchObject({ key: 'fleet|signal OBD_LIFETIME_ODOMETER' })
  })

  test('the times of the devices, whose messages are sent with their arrival', async () => {
    const names = trucks(9)
    const fleet = await startFleet(9, { edit: ['format: ms', 'format: ms, missing: arrival'] })
    await healthy(fleet, names)
    await fleet.edit('path: ts', 'path: timestamp')
    await untilLost(fleet, names)
    expect(fleet.condition()).toMatchObject({ key: 'fleet|time' })
    expect(fleet.condition()!.what).toContain('that sent their own times')
    expect(fleet.deadLetters()).toBe(0)
  })
})

describe('an update of the devices', () => {
  const renamed = (n: number) => {
    const { gps, ...body } = usual(n) as { gps: Body }
    return { ...body, gps: { latitude: gps['lat'], longitude: gps['lon'], spd: 50 } }
  }

  test('that renames a key of all of them is said with the key', async () => {
    const names = trucks(6)
    const fleet = await startFleet(6)
    await healthy(fleet, names)
    for (let n = 3; n < 9; n += 1) await fleet.send(names, n, renamed)
    await fleet.pipeline.until(() => fleet.condition() !== undefined)
    expect(fleet.condition()!.what).toContain('the last one came at')
    expect(fleet.condition()!.why).toContain('"gps.latitude"')
    await fleet.send(names, 9, renamed)
    await fleet.edit('{ path: gps.lat }', '{ path: gps.latitude }')
    await fleet.edit('{ path: gps.lon }', '{ path: gps.longitude }')
    expect(await remap(fleet)).not.toMatchObject({ payloads: 0 })
    await fleet.pipeline.until(
      () => fleet.got().filter(({ at, values }) => at === 9 && values === 'gps').length === 6,
    )
  })

  test('is said when most of those that have sent within the hour lack the field, and not before', async () => {
    const names = trucks(10)
    const fleet = await startFleet(10)
    await healthy(fleet, names)
    for (let n = 3; n < 12; n += 1) await fleet.send(names.slice(0, 6), n, renamed)
    expect(fleet.condition()).toBeUndefined()
    expect(fleet.deadLetters()).toBe(0)
  })

  test.each([
    ['of a part of them', (name: string) => (name === 'truck-1' ? usual : renamed)],
    ['of fewer than five', (name: string) => (Number(name.slice(6)) > 4 ? null : renamed)],
    ['that leaves nothing unread, as in a hall without GPS', () => withoutFix],
  ])('%s is no alarm', async (_what, bodyOf) => {
    const names = trucks(6)
    const fleet = await startFleet(6)
    await healthy(fleet, names)
    for (let n = 3; n < 12; n += 1)
      for (const name of names) {
        const body = bodyOf(name)
        if (body !== null) await fleet.send([name], n, body)
      }
    expect(fleet.condition()).toBeUndefined()
    expect(fleet.deadLetters()).toBe(0)
  })
})

const withoutFix = (n: number) => ({ ...usual(n), gps: { lat: null, lon: null, spd: 0 } })

test('a change of another field is no reason: vehicles that have just parked lack what they have on the road', async () => {
  const fleet = await startFleet(1)
  await healthy(fleet, ['truck-1'])
  await fleet.edit('path: odo', 'path: odo, scale: 2')
  for (let n = 3; n < 12; n += 1) await fleet.send(['truck-1'], n, withoutFix)
  expect(fleet.condition()).toBeUndefined()
  expect(fleet.deadLetters()).toBe(0)
})

test('a fleet that stands in a hall while the mapping is changed is no alarm', async () => {
  const names = trucks(6)
  const fleet = await startFleet(6)
  await healthy(fleet, names)
  for (let n = 3; n < 14; n += 1) await fleet.send(names, n, withoutFix)
  await fleet.edit('unit: km/h', 'unit: m/s')
  for (let n = 14; n < 20; n += 1) await fleet.send(names, n, withoutFix)
  expect(fleet.condition()).toBeUndefined()
  expect(fleet.deadLetters()).toBe(0)
})

describe('what is kept', () => {
  const values = (fleet: Fleet, at: number) =>
    fleet
      .got()
      .filter((one) => one.at === at)
      .map((one) => one.values)
      .sort()

  test('stays until it has given all fields that were lost', async () => {
    const names = trucks(5)
    const fleet = await startFleet(5, {
      edit: ['signals: [', 'signals: [{ type: FUEL_LEVEL, path: fuel, value_unit: PERCENT }, '],
    })
    const withFuel = (n: number) => ({ ...usual(n), fuel: 50 })
    for (let n = 0; n < 3; n += 1) await fleet.send(names, n, withFuel)
    await fleet.edit('gps.lat }', 'gps.latitude }')
    await fleet.edit('path: odo', 'path: odometer')
    for (let n = 3; n < 8; n += 1) await fleet.send(names, n, withFuel)
    const conditions = () => fleet.pipeline.status().conditions.filter(({ code }) => code === 'FIELD_LOST')
    await fleet.pipeline.until(() => conditions().length === 2)
    await fleet.send(['truck-1'], 9, withFuel)
    await fleet.edit('path: odometer', 'path: odo')
    expect(await remap(fleet)).not.toMatchObject({ payloads: 0 })
    await fleet.pipeline.until(() => values(fleet, 9).length === 2)
    expect(fleet.deadLetters()).toBeGreaterThan(0)
    await fleet.edit('gps.latitude }', 'gps.lat }')
    await remap(fleet)
    await fleet.pipeline.until(() => values(fleet, 9).length === 3)
    expect(values(fleet, 9)).toEqual(['gps', 'signals', 'signals'])
    expect(await remap(fleet)).toMatchObject({ payloads: 0 })
  })

  test('and never had the field goes when devices have sent it again', async () => {
    const names = trucks(3)
    const fleet = await startFleet(3)
    await healthy(fleet, names)
    await fleet.edit('gps.lat }', 'gps.latitude }')
    await untilLost(fleet, names)
    await fleet.send(names, 50, withoutFix)
    await fleet.edit('gps.latitude }', 'gps.lat }')
    await remap(fleet)
    expect(fleet.deadLetters()).toBe(3)
    await fleet.send(['truck-1'], 60)
    await fleet.pipeline.until(() => fleet.condition() === undefined)
    expect(await remap(fleet)).toMatchObject({ payloads: 0, remapped: 3 })
    expect(fleet.deadLetters()).toBe(0)
    await fleet.pipeline.until(() => values(fleet, 50).length === 3)
    expect(values(fleet, 50)).toEqual(['signals', 'signals', 'signals'])
  })

  test('stays while it cannot be read at all, also when devices have sent the field again', async () => {
    const names = trucks(3)
    const fleet = await startFleet(3)
    await healthy(fleet, names)
    await fleet.edit('gps.lat }', 'gps.latitude }')
    await untilLost(fleet, names)
    await fleet.edit('gps.latitude }', 'gps.lat }')
    await fleet.send(['truck-1'], 60)
    await fleet.pipeline.until(() => fleet.condition() === undefined)
    const kept = fleet.deadLetters()
    expect(kept).toBeGreaterThan(0)
    await fleet.edit('format: ms', 'format: iso')
    expect(await remap(fleet)).toMatchObject({ payloads: 0, remapped: 0 })
    expect(fleet.deadLetters()).toBe(kept)
    await fleet.edit('format: iso', 'format: ms')
    expect(await remap(fleet)).toMatchObject({ payloads: kept, remapped: kept })
  })

  test('is kept once, also where its device sends it again under another identifier', async () => {
    const names = trucks(3)
    const fleet = await startFleet(3)
    await healthy(fleet, names)
    await fleet.edit('gps.lat }', 'gps.latitude }')
    await untilLost(fleet, names)
    const before = fleet.deadLetters()
    for (let times = 0; times < 3; times += 1) await fleet.send(['truck-1'], 70)
    await fleet.pipeline.until(() => values(fleet, 70).length === 1)
    expect(fleet.deadLetters()).toBe(before + 1)
    expect(fleet.pipeline.status().internals.conservation.messages.difference).toBe(0)
  })

  test('is not thinned again', async () => {
    const names = trucks(3)
    const fleet = await startFleet(3, { options: 'thin: { every: 1h, signal: true }' })
    await healthy(fleet, names)
    await fleet.edit('gps.lat }', 'gps.latitude }')
    await untilLost(fleet, names)
    for (const n of [80, 81, 82]) await fleet.send(names, n)
    await fleet.pipeline.until(() => values(fleet, 82).length === 3)
    const kept = fleet.deadLetters()
    await fleet.edit('gps.latitude }', 'gps.lat }')
    expect(await remap(fleet)).toMatchObject({ payloads: kept, remapped: kept })
  })
})

describe('a message that waited while a field was lost', () => {
  test('is kept for the field, too, when it is mapped', async () => {
    const names = trucks(3)
    const fleet = await startFleet(3)
    await healthy(fleet, names)
    await fleet.send(['truck-1'], 40, (n) => ({ ...usual(n), ts: 'soon' }))
    await fleet.edit('gps.lat }', 'gps.latitude }')
    await untilLost(fleet, names)
    const before = fleet.deadLetters()
    await fleet.edit('format: ms', 'format: [ms, iso], missing: arrival')
    const path = '/control/dead-letters/remap?reason=BAD_TIME'
    await (await send(fleet.pipeline.gateway.addresses.control, path, { method: 'POST' })).json()
    expect(fleet.deadLetters()).toBe(before)
  })
})

describe('an update that changes the kind of a value', () => {
  test.each([
    [
      'a position of texts',
      (n: number) => ({ ...usual(n), gps: { lat: 'N52.1', lon: 'E13.4', spd: 5 } }),
      'gps.lat',
    ],
    [
      'an odometer with its unit',
      (n: number) => ({ ...usual(n), odo: { value: 1000 + n, unit: 'km' } }),
      'odo',
    ],
    ['an odometer as a text', (n: number) => ({ ...usual(n), odo: '1000 km' }), 'odo'],
  ])('%s is said with the path', async (_what, body, path) => {
    const names = trucks(6)
    const fleet = await startFleet(6)
    await healthy(fleet, names)
    await untilLost(fleet, names, body)
    expect(fleet.condition()!.why).toContain(`"${path}"`)
  })
})

describe('the night', () => {
  const parked = (n: number) => ({ ts: start + n * 1000, odo: 1000 + n })
  test.each([
    [
      'new keys of a parked vehicle',
      (n: number) => ({ ...parked(n), vbat: 12.4, rssi: -70, state: 'parked' }),
    ],
    ['an event without a position', (n: number) => ({ ...parked(n), event: 'door', door: 1 })],
  ])('with %s is no alarm', async (_what, body) => {
    const names = trucks(8)
    const fleet = await startFleet(8)
    await healthy(fleet, names, 5)
    for (let n = 5; n < 15; n += 1) await fleet.send(names, n, body)
    expect(fleet.condition()).toBeUndefined()
    expect(fleet.deadLetters()).toBe(0)
  })

  test.each([
    [
      'plausibility',
      'topic: fleet/{device}',
      'topic: fleet/{device}\n    plausibility: { speed: { max: 200 } }',
    ],
    ['a default', 'topic: fleet/{device}', 'topic: fleet/{device}\n    defaults: { carrier: ACME }'],
    ['max_records', 'topic: fleet/{device}', 'topic: fleet/{device}\n    max_records: 50'],
    ['absent', 'path: gps.lat }', 'path: gps.lat, absent: [0] }'],
    ['a quantity', 'path: odo', 'path: odo, quantity: odometer'],
  ])('after a change of %s is no alarm', async (_what, from, to) => {
    const names = trucks(4)
    const fleet = await startFleet(4)
    await healthy(fleet, names)
    await fleet.edit(from, to)
    for (let n = 3; n < 12; n += 1)
      await fleet.send(names, n, (at) => (_what === 'a quantity' ? { ...usual(at), odo: null } : parked(at)))
    expect(fleet.condition()).toBeUndefined()
  })
})

describe('a field that is in some messages only', () => {
  const withPosition = (is: boolean) => (n: number) =>
    is ? { ...usual(n), odo: undefined } : { ...usual(n), gps: undefined }
  const rhythms: [what: string, has: (n: number) => boolean][] = [
    ['ten messages with a position, ten of the bus', (n) => n % 20 < 10],
    ['thirty messages with a position, ten of the bus', (n) => n % 40 < 30],
    ['a position in every sixth message', (n) => n % 6 === 0],
    ['a position in every tenth message', (n) => n % 10 === 9],
  ]

  test.each(rhythms)(
    'is not lost after a change of its options: %s',
    async (_what, has) => {
      const names = trucks(12)
      const fleet = await startFleet(12)
      const next = async (from: number, to: number) => {
        for (let n = from; n < to; n += 1) await fleet.send(names, n, withPosition(has(n)))
      }
      await next(0, 80)
      await fleet.edit('gps.lat }', '[gps.lat, gps.latitude] }')
      await next(80, 110)
      await fleet.edit('[gps.lat, gps.latitude] }', '[gps.lat, gps.y] }')
      await next(110, 150)
      expect(fleet.pipeline.events.filter(({ kind }) => kind === 'field_lost')).toEqual([])
    },
    60_000,
  )

  test.each(rhythms)(
    'is lost where all lack it for much longer: %s',
    async (_what, has) => {
      const names = trucks(3)
      const fleet = await startFleet(3)
      for (let n = 0; n < 60; n += 1) await fleet.send(names, n, withPosition(has(n)))
      await fleet.edit('gps.lat }', 'gps.latitude }')
      let n = 60
      for (; fleet.condition() === undefined && n < 150; n += 1)
        await fleet.send(names, n, withPosition(has(n)))
      expect(fleet.condition()).toMatchObject({ key: 'fleet|position' })
    },
    60_000,
  )
})
