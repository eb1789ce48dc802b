// A field that the devices of a source had, and that is in none of their messages any more, is noticed: after a
// change of the mapping, and after an update of the devices. What they send meanwhile is kept, and gives the
// missing values later, once.

import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { configText } from '../support/config-text.ts'
import { newFolder } from '../support/folders.ts'
import { send } from '../support/ops-world.ts'
import { startPipeline, type Pipeline } from '../support/pipeline-world.ts'

type Body = Record<string, unknown>

type Edit = [from: string, to: string] | [from: RegExp, to: (word: string) => string]

type Fleet = {
  pipeline: Pipeline
  /** One message of each of these trucks; `n` makes its time. */
  send(names: readonly string[], n: number, body?: (n: number, name: string) => Body): Promise<void>
  /** The messages `from` to `to` of each of them, some rounds at once. */
  sendMany(names: readonly string[], from: number, to: number, body: (n: number) => Body): Promise<void>
  edit(...change: Edit): Promise<void>
  condition(): { what: string; why: string; act: string; key: string } | undefined
  deadLetters(): number
  /** What the service has: for each payload its device, time, and which values. */
  got(): { device: string; at: number; values: string }[]
}

const start = Date.now() - 3_600_000
const roundsAtOnce = 5
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
  const text = configText({
    sources: `
  - name: fleet
    topic: fleet/{device}
    ${options}
    map:
      time: { path: ts, format: ms }
      latitude: { path: gps.lat }
      longitude: { path: gps.lon }
      speed: { path: gps.spd, unit: km/h }
      signals: [{ type: OBD_LIFETIME_ODOMETER, path: odo }]`,
    more: `clocks: { trust_local: true }
${sections}`,
  })
  const config = (baseUrl: string) => text(baseUrl).replace(...edit)
  const pipeline = await startPipeline({ folder: place, config })
  const devices = new Map(
    await Promise.all(trucks(count).map(async (name) => [name, await pipeline.device(name)] as const)),
  )
  const sent = new Map<string, number>()
  const publish = (name: string, body: Body) => {
    const messageId = (sent.get(name) ?? 0) + 1
    sent.set(name, messageId)
    devices.get(name)!.publish({ topic: `fleet/${name}`, payload: JSON.stringify(body), messageId })
  }
  const acked = (names: readonly string[]) =>
    Promise.all(names.map((name) => devices.get(name)!.acked(sent.get(name)!)))
  return {
    pipeline,
    async send(names, n, body = usual) {
      for (const name of names) publish(name, body(n, name))
      await acked(names)
    },
    async sendMany(names, from, to, body) {
      for (let n = from; n < to; n += 1) {
        for (const name of names) publish(name, body(n))
        if (n % roundsAtOnce === 0) await acked(names)
      }
      await acked(names)
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

/** A receiver that finds no satellites. */
const withoutFix = (n: number) => ({ ...usual(n), gps: { lat: null, lon: null, spd: 0 } })
const parked = (n: number) => ({ ts: start + n * 1000, odo: 1000 + n })
const renamed = (n: number) => {
  const { gps, ...body } = usual(n) as { gps: Body }
  return { ...body, gps: { latitude: gps['lat'], longitude: gps['lon'], spd: 50 } }
}
const wrong = ['gps.lat }', 'gps.latitude }'] as const
const right = ['gps.latitude }', 'gps.lat }'] as const
const difference = ['signals: [', 'signals: [{ type: DRIVEN, expr: odo - previous.odo }, '] as const

type Change = [from: string, to: string][]
type Row = { what: string; count?: number; change?: Change }
type Lost = Row & {
  edit?: [from: string, to: string]
  options?: string
  first?: Body
  then?: Body
  key: string
  says?: string
  why?: string
  keepsNothing?: boolean
  silent?: string[]
  usual?: string[]
}
type Quiet = Row & {
  before?: number
  body: keyof typeof bodies
  more?: Body
  usual?: string[]
}

const bodies = { usual, parked, renamed, withoutFix }
const cases = parse(await readFile(join(import.meta.dirname, 'lost-fields.cases.yaml'), 'utf8')) as {
  lost: Lost[]
  quiet: Quiet[]
}

const changeAll = (fleet: Fleet, change: Change) =>
  fleet.edit(/^[^]*$/, (text) => change.reduce((changed, pair) => changed.replace(...pair), text))

test.each(cases.lost)('$what is said to be lost', async (row) => {
  const { count = 9, edit, options, first, then, change, key, says = '', why = '' } = row
  const { silent = [], usual: unchanged = [] } = row
  const names = trucks(count)
  const fleet = await startFleet(count, { ...(edit && { edit }), ...(options && { options }) })
  await fleet.send(names, 0, (n) => ({ ...usual(n), ...first }))
  for (const n of [1, 2]) await fleet.send(names, n)
  if (change !== undefined) await changeAll(fleet, change)
  const changed = names.filter((name) => ![...silent, ...unchanged].includes(name))
  for (let n = 3; fleet.condition() === undefined; n += 1) {
    await fleet.send(unchanged, n)
    await fleet.send(changed, n, (at) => ({ ...usual(at), ...then }))
  }
  expect(fleet.condition()).toMatchObject({ key, what: expect.stringMatching(says) })
  expect(fleet.condition()!.why).toContain(why)
  const mayKeep = row.keepsNothing !== true
  expect(fleet.condition()!.act.includes('dead-letters remap')).toBe(mayKeep)
  expect(mayKeep || fleet.deadLetters() === 0, 'what is kept').toBe(true)
})

test.each(cases.quiet)('$what is no alarm', async (row) => {
  const { count = 9, change = [], before = 0, body, more, usual: unchanged = [] } = row
  const names = trucks(count)
  const fleet = await startFleet(count)
  await healthy(fleet, names, 5)
  for (let sent = 0; sent < before + 10; sent += 1) {
    if (sent === before && change.length > 0) await changeAll(fleet, change)
    await fleet.send(names, 5 + sent, (n, name) => {
      const bodyOf = unchanged.includes(name) ? usual : bodies[body]
      return { ...bodyOf(n), ...more }
    })
  }
  expect(fleet.condition()).toBeUndefined()
  expect(fleet.deadLetters()).toBe(0)
})

describe('a path that the mapping renames', () => {
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
    expect(fleet.condition()!.what).toMatch(/^13 of 13 devices/)
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

  test('that was read for a while: the devices that need it are said to lack the field', async () => {
    const names = trucks(7)
    const fleet = await startFleet(7)
    const both = (n: number) => ({ ...usual(n), gps: { ...Object(usual(n)['gps']), velocity: 50 } })
    for (const n of [0, 1, 2]) await fleet.send(names, n, both)
    await fleet.edit('path: gps.spd', 'path: [gps.spd, gps.velocity]')
    const renamedSpeed = (n: number) => ({ ...usual(n), gps: { ...Object(both(n).gps), spd: undefined } })
    const others = names.slice(2)
    const two = names.slice(0, 2)
    await fleet.send(others, 3)
    await fleet.send(two, 3, renamedSpeed)
    await fleet.edit('path: [gps.spd, gps.velocity]', 'path: gps.spd')
    for (let n = 4; fleet.condition()?.what.startsWith('2 of 7') !== true; n += 1) {
      await fleet.send(others, n)
      await fleet.send(two, n, renamedSpeed)
    }
    expect(fleet.condition()).toMatchObject({
      key: 'fleet|speed',
      why: expect.stringContaining('gps.velocity'),
    })
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
    expect(fleet.condition()).toBeUndefined()
  })
})

describe('a change of the mapping that takes away', () => {
  test('the values that were previous ones, for the first message of each device, is no alarm', async () => {
    const names = trucks(12)
    const both = (n: number) => ({ ...usual(n), total: 500 + n })
    const fleet = await startFleet(12, { edit: difference })
    await fleet.sendMany(names, 0, 30, both)
    await fleet.edit('odo - previous.odo', 'total - previous.total')
    await fleet.sendMany(names, 30, 34, both)
    expect(fleet.condition()).toBeUndefined()
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
        await fleet.send(names, n, (at, name) => ({ id: `${name}-old`, vin: `${name}-new`, ...body(at) }))
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
})

describe('an update of the devices', () => {
  test('is noticed where a newcomer has the other name of the field from its start', async () => {
    const names = trucks(9)
    const [newcomer = '', ...others] = names
    const fleet = await startFleet(9)
    for (let n = 0; n < 5; n += 1) {
      await fleet.send(others, n)
      await fleet.send([newcomer], n, renamed)
    }
    await untilLost(fleet, names, (n) => renamed(n + 2))
    expect(fleet.condition()).toMatchObject({
      key: 'fleet|position',
      what: expect.stringMatching(/^[5-8] of 8/),
    })
  })

  test('that renames a key of all of them is said with the key', async () => {
    const names = trucks(6)
    const fleet = await startFleet(6)
    await healthy(fleet, names)
    for (let n = 3; n < 9; n += 1) await fleet.send(names, n, renamed)
    await fleet.pipeline.until(() => fleet.condition() !== undefined)
    expect(fleet.condition()!.what).toContain('6 of 6 devices that sent positions')
    expect(fleet.condition()!.why).toContain('"gps.latitude"')
    await fleet.send(names, 9, renamed)
    await fleet.edit('{ path: gps.lat }', '{ path: gps.latitude }')
    await fleet.edit('{ path: gps.lon }', '{ path: gps.longitude }')
    expect(await remap(fleet)).not.toMatchObject({ payloads: 0 })
    await fleet.pipeline.until(
      () => fleet.got().filter(({ at, values }) => at === 9 && values === 'gps').length === 6,
    )
  })

  test('is said, too, after it was tried with one of them and taken back', async () => {
    const names = trucks(7)
    const [tried = '', ...others] = names
    const fleet = await startFleet(7)
    await healthy(fleet, names)
    let n = 3
    for (const end = n + 8; n < end; n += 1) {
      await fleet.send([tried], n, renamed)
      await fleet.send(others, n)
    }
    for (const end = n + 3; n < end; n += 1) await fleet.send(names, n)
    expect(fleet.condition()).toBeUndefined()
    for (const end = n + 8; n < end; n += 1) await fleet.send(others, n, renamed)
    await fleet.pipeline.until(() => fleet.condition() !== undefined)
    expect(fleet.condition()!.why).toContain('"gps.latitude"')
  })

  test('is said, too, where devices that lacked it before begin, and the gateway is restarted', async () => {
    const names = trucks(12)
    const first = names.slice(0, 5)
    const folder = await newFolder()
    let n = 0
    const rounds = async (
      fleet: Fleet,
      count: number,
      updated: readonly string[],
      body: (n: number) => Body,
    ) => {
      for (const end = n + count; n < end; n += 1) {
        await fleet.send(updated, n, body)
        await fleet.send(
          names.filter((name) => !updated.includes(name)),
          n,
        )
      }
    }
    const before = await startFleet(12, { folder })
    await rounds(before, 3, [], usual)
    await rounds(before, 12, first, withoutFix)
    await rounds(before, 3, [], usual)
    await rounds(before, 6, first, renamed)
    await before.pipeline.gateway.stop('test')
    const fleet = await startFleet(12, { folder })
    await rounds(fleet, 3, first, renamed)
    await rounds(fleet, 8, names.slice(0, 11), renamed)
    await fleet.pipeline.until(() => fleet.condition() !== undefined)
    expect(fleet.condition()!.why).toContain('"gps.latitude"')
  })

  test('that comes to one device after the other is said, with how many lack the field; theirs is kept', async () => {
    const names = trucks(20)
    const fleet = await startFleet(20)
    await healthy(fleet, names, 5)
    let n = 5
    const round = async (updated: number) => {
      for (const end = n + 6; n < end; n += 1) {
        await fleet.send(names.slice(0, updated), n, renamed)
        await fleet.send(names.slice(updated, 12), n)
        await fleet.send(names.slice(12), n, updated % 2 === 1 ? withoutFix : usual)
      }
    }
    for (const updated of [1, 2, 3, 4]) await round(updated)
    expect(fleet.condition()).toBeUndefined()
    expect(fleet.deadLetters()).toBe(0)
    for (const updated of [5, 6, 7]) await round(updated)
    await fleet.pipeline.until(() => fleet.condition()?.what.startsWith('7 of 20 devices') === true)
    expect(fleet.condition()).toMatchObject({ key: 'fleet|position' })
    expect(fleet.condition()!.why).toContain('"gps.latitude"')
    await fleet.pipeline.until(() => fleet.deadLetters() > 0)
    const kept = fleet.deadLetters()
    await fleet.send(names.slice(7), n)
    await fleet.pipeline.until(() => fleet.got().some(({ device, at }) => device === 'truck-20' && at === n))
    expect(fleet.deadLetters()).toBe(kept)
    expect(fleet.condition()).toBeDefined()
    expect(await remap(fleet)).toMatchObject({ remapped: 0, payloads: 0 })
    await fleet.edit('{ path: gps.lat }', '{ path: [gps.lat, gps.latitude] }')
    await fleet.edit('{ path: gps.lon }', '{ path: [gps.lon, gps.longitude] }')
    await fleet.send(names, n + 1, renamed)
    await fleet.pipeline.until(() => fleet.condition() === undefined)
    expect(await remap(fleet)).toMatchObject({ remapped: kept, payloads: kept })
  })

  test('of a part of the devices is still said after a restart, and their messages kept', async () => {
    const names = trucks(8)
    const folder = await newFolder()
    const first = await startFleet(8, { folder })
    await healthy(first, names)
    for (let n = 3; n < 9; n += 1) await first.send(names.slice(0, 5), n, renamed)
    await first.pipeline.until(() => first.condition() !== undefined)
    await first.pipeline.gateway.stop('test')
    const second = await startFleet(8, { folder })
    await second.send(names.slice(5), 9)
    await second.pipeline.until(() => second.condition() !== undefined)
    const before = second.deadLetters()
    await second.send(names.slice(0, 5), 9, renamed)
    await second.pipeline.until(() => second.deadLetters() === before + 5)
    expect(second.condition()!.what).toMatch(/^5 of 8 devices/)
  })
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
      const next = (from: number, to: number) =>
        fleet.sendMany(names, from, to, (n) => withPosition(has(n))(n))
      await next(0, 80)
      await fleet.edit('gps.lat }', '[gps.lat, gps.latitude] }')
      await next(80, 110)
      await fleet.edit('[gps.lat, gps.latitude] }', '[gps.lat, gps.y] }')
      await next(110, 150)
      expect(fleet.condition()).toBeUndefined()
    },
    60_000,
  )

  test.each(rhythms)(
    'is lost where all lack it for much longer: %s',
    async (_what, has) => {
      const names = trucks(3)
      const fleet = await startFleet(3)
      await fleet.sendMany(names, 0, 60, (n) => withPosition(has(n))(n))
      await fleet.edit('gps.lat }', 'gps.latitude }')
      let n = 60
      for (; fleet.condition() === undefined && n < 150; n += 1)
        await fleet.send(names, n, withPosition(has(n)))
      expect(fleet.condition()).toMatchObject({ key: 'fleet|position' })
    },
    60_000,
  )
})
