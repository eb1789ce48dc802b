// A field that the devices of a source had, and that is in none of their messages any more, is noticed: after a
// change of the mapping, and after an update of the devices. What they send meanwhile is kept, and gives the
// missing values later, once.

import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { configText } from '../support/config-text.ts'
import { newFolder } from '../support/folders.ts'
import type { Device } from '../support/mqtt-device.ts'
import { send as request } from '../support/ops-world.ts'
import { startPipeline, type Pipeline } from '../support/pipeline-world.ts'
import { stepCases } from '../support/step-cases.ts'

type Body = Record<string, unknown>
type Edits = [from: string, to: string][]

/** `edit`: of the config at the start, and `options` of its source. `models`: all trucks are listed with it. */
type Given =
  | { count?: number; edit?: Edits; options?: string; sections?: string; model?: string; ids?: boolean }
  | undefined

type Fleet = {
  given: NonNullable<Given>
  folder: string
  pipeline: Pipeline
  devices: Map<string, { device: Device; sent: number }>
}

const start = Date.now() - 3_600_000
const names = (count: number) => Array.from({ length: count }, (_, index) => `truck-${index + 1}`)

const usual = (n: number) => ({
  ts: start + n * 1000,
  gps: { lat: 52.5 + n / 1000, lon: 13.4, spd: 50 } as Body,
  odo: 1000 + n / 100,
})

function renamed(n: number): Body {
  const { gps, ...body } = usual(n)
  return { ...body, gps: { latitude: gps['lat'], longitude: gps['lon'], spd: 50 } }
}

const bodies: Record<string, (n: number) => Body> = {
  usual,
  renamed,
  parked: (n) => ({ ts: start + n * 1000, odo: 1000 + n }),
  /** A receiver that finds no satellites. */
  withoutFix: (n) => ({ ...usual(n), gps: { lat: null, lon: null, spd: 0 } }),
  withFuel: (n) => ({ ...usual(n), fuel: 50 }),
  withTotal: (n) => ({ ...usual(n), total: 500 + n }),
  withVelocity: (n) => ({ ...usual(n), gps: { ...usual(n).gps, velocity: 50 } }),
  renamedSpeed: (n) => ({ ...usual(n), gps: { ...usual(n).gps, velocity: 50, spd: undefined } }),
  badTime: (n) => ({ ...usual(n), ts: 'soon' }),
  position: (n) => ({ ...usual(n), odo: undefined }),
  bus: (n) => ({ ...usual(n), gps: undefined }),
}

/** A position in some messages of each `of`: in these, or in so many tens of them; the others are of the bus. */
type Rhythm = { of: number; has?: number[]; tens?: number }
const bodyIn = ({ of, has = [], tens = 0 }: Rhythm, n: number) =>
  bodies[has.includes(n % of) || n % of < tens * 10 ? 'position' : 'bus']!(n)

const changed = (text: string, edits: Edits) =>
  edits.reduce((before, [from, to]) => {
    const after = before.replaceAll(from, to)
    expect(after, from).not.toBe(before)
    return after
  }, text)

async function open(fleet: Fleet): Promise<void> {
  const { count = 9, edit = [], options = '', sections = '' } = fleet.given
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
  const { folder } = fleet
  fleet.pipeline = await startPipeline({ folder, config: (baseUrl) => changed(text(baseUrl), edit) })
  const devices = names(count).map(async (name) => {
    return [name, { device: await fleet.pipeline.device(name), sent: 0 }] as const
  })
  fleet.devices = new Map(await Promise.all(devices))
}

const writeModels = ({ folder, given: { count = 9 } }: Fleet, model: string) =>
  writeFile(
    join(folder, 'devices.csv'),
    ['device,model', ...names(count).map((name) => `${name},${model}`), ''].join('\n'),
  )

async function startFleet(given: Given = {}): Promise<Fleet> {
  const fleet = { given, folder: await newFolder() } as Fleet
  if (given.model !== undefined) await writeModels(fleet, given.model)
  await open(fleet)
  return fleet
}

/** The trucks: all, the first ones, or those from one number to another. */
type Which = { trucks?: number | [from: number, to: number]; only?: string[] }
/** `n` makes the time of the first message; `more` is in each. */
type Sent = Which & { n: number; times?: number; body?: string; more?: Body }

function namesOf({ given: { count = 9 } }: Fleet, { trucks = count, only }: Which): string[] {
  const [from, to] = Array.isArray(trucks) ? trucks : [1, trucks]
  return only ?? names(count).slice(from - 1, to)
}

function publish({ devices, given }: Fleet, name: string, body: Body): void {
  const one = devices.get(name)!
  one.sent += 1
  const ids = given.ids === true ? { id: `${name}-old`, vin: `${name}-new` } : {}
  const payload = JSON.stringify({ ...ids, ...body })
  one.device.publish({ topic: `fleet/${name}`, payload, messageId: one.sent })
}

const acked = ({ devices }: Fleet, all: readonly string[]) =>
  Promise.all(all.map((name) => devices.get(name)!.device.acked(devices.get(name)!.sent)))

async function send(
  fleet: Fleet,
  { n, times = 1, body = 'usual', more = {}, ...which }: Sent,
): Promise<void> {
  const all = namesOf(fleet, which)
  for (let at = n; at < n + times; at += 1) {
    for (const name of all) publish(fleet, name, { ...bodies[body]!(at), ...more })
    await acked(fleet, all)
  }
}

/** Five rounds at once; in a rhythm of positions and the bus. */
async function sendMany(
  fleet: Fleet,
  { n, to, body = 'usual', rhythm }: { n: number; to: number; body?: string; rhythm?: Rhythm },
): Promise<void> {
  const all = namesOf(fleet, {})
  for (let at = n; at < to; at += 1) {
    for (const name of all) publish(fleet, name, rhythm ? bodyIn(rhythm, at) : bodies[body]!(at))
    if (at % 5 === 0) await acked(fleet, all)
  }
  await acked(fleet, all)
}

type UntilLost = { n?: number; parts?: Omit<Sent, 'n'>[]; says?: string }

async function untilLost(fleet: Fleet, { n = 3, parts = [{}], says = '' }: UntilLost): Promise<void> {
  for (let at = n; conditionOf(fleet)?.what.startsWith(says) !== true; at += 1)
    for (const part of parts) await send(fleet, { ...part, n: at })
}

const conditionsOf = ({ pipeline }: Fleet) =>
  pipeline.status().conditions.filter(({ code }) => code === 'FIELD_LOST')
const conditionOf = (fleet: Fleet) => conditionsOf(fleet)[0]
const deadLettersOf = ({ pipeline }: Fleet) => pipeline.status().spool.deadLetters

/** What the service has: for each payload its device, time, and which values. */
const got = ({ pipeline }: Fleet) =>
  pipeline.sandbox.received({ limit: 10_000 }).map(({ payload }) => ({
    device: (payload['deviceIdentifier'] as { id: string }).id,
    at: (Number(payload['signalTimestamp']) - start) / 1000,
    values: ['gps', 'signals'].filter((key) => key in payload).join(' '),
  }))

async function edit({ folder, pipeline }: Fleet, edits: Edits): Promise<void> {
  const path = join(folder, 'gateway.yaml')
  await writeFile(path, changed(await readFile(path, 'utf8'), edits))
  expect(await pipeline.gateway.reload('test')).toMatchObject({ kind: 'reloaded' })
}

let kept = 0

async function remap({ pipeline }: Fleet, reason: string): Promise<{ remapped: number; payloads: number }> {
  const path = `/control/dead-letters/remap?reason=${reason}`
  const response = await request(pipeline.gateway.addresses.control, path, { method: 'POST' })
  return (await response.json()) as { remapped: number; payloads: number }
}

stepCases(import.meta.filename, startFleet, {
  send,
  /** What each part of the fleet sends in each round. */
  rounds: async (
    fleet: Fleet,
    { n, times, parts }: { n: number; times: number; parts: Omit<Sent, 'n'>[] },
  ) => {
    for (let at = n; at < n + times; at += 1) for (const part of parts) await send(fleet, { ...part, n: at })
  },
  sendMany,
  sendManyFrom: (fleet: Fleet, [n, to, { rhythm }]: [number, number, { rhythm: Rhythm }]) =>
    sendMany(fleet, { n, to, rhythm }),
  /** In six rounds for each number of devices that have the update; in the odd ones eight others stand in a hall. */
  update: async (fleet: Fleet, { n, devices }: { n: number; devices: number[] }) => {
    for (const [index, updated] of devices.entries())
      for (let at = n + index * 6; at < n + index * 6 + 6; at += 1) {
        await send(fleet, { trucks: updated, n: at, body: 'renamed' })
        await send(fleet, { trucks: [updated + 1, 12], n: at })
        await send(fleet, { trucks: [13, 20], n: at, body: updated % 2 === 1 ? 'withoutFix' : 'usual' })
      }
  },
  /** Rounds of messages until the condition is open, and begins with `says`; what each part of the fleet sends. */
  untilLost,
  untilLostIn: async (fleet: Fleet, [n, to, { rhythm }]: [number, number, { rhythm: Rhythm }]) => {
    for (let at = n; conditionOf(fleet) === undefined && at < to; at += 1) {
      for (const name of namesOf(fleet, {})) publish(fleet, name, bodyIn(rhythm, at))
      await acked(fleet, namesOf(fleet, {}))
    }
  },
  edit,
  model: async (fleet: Fleet, model: string) => {
    await writeModels(fleet, model)
    expect(await fleet.pipeline.gateway.reload('test')).toMatchObject({ kind: 'reloaded' })
  },
  restart: async (fleet: Fleet, edit: Edits | null) => {
    await fleet.pipeline.gateway.stop('test')
    if (edit !== null) fleet.given = { ...fleet.given, edit }
    await open(fleet)
  },
  /** `all`: as many as are kept; `some`: not none. */
  remap: async (
    fleet: Fleet,
    {
      reason = 'FIELD_LOST',
      payloads,
      remapped,
    }: { reason?: string; payloads?: number | 'all' | 'some'; remapped?: number | 'all' },
  ) => {
    kept = deadLettersOf(fleet)
    const found = await remap(fleet, reason)
    if (payloads === 'some') expect(found.payloads).toBeGreaterThan(0)
    else if (payloads !== undefined) expect(found.payloads).toBe(payloads === 'all' ? kept : payloads)
    if (remapped !== undefined) expect(found.remapped).toBe(remapped === 'all' ? kept : remapped)
  },

  isLost: (fleet: Fleet) => fleet.pipeline.until(() => conditionOf(fleet) !== undefined),
  areLost: (fleet: Fleet, count: number) => fleet.pipeline.until(() => conditionsOf(fleet).length === count),
  isFound: (fleet: Fleet) => fleet.pipeline.until(() => conditionOf(fleet) === undefined),
  says: (fleet: Fleet, what: string) =>
    fleet.pipeline.until(() => conditionOf(fleet)?.what.startsWith(what) === true),
  lost: (fleet: Fleet, expected: object) => expect(conditionOf(fleet)).toMatchObject(expected),
  notLost: (fleet: Fleet) => expect(conditionOf(fleet)).toBeUndefined(),
  deadLetters: (fleet: Fleet, count: number) => expect(deadLettersOf(fleet)).toBe(count),
  note: (fleet: Fleet) => void (kept = deadLettersOf(fleet)),
  /** More than at the last `note` or `remap`. */
  moreDeadLetters: (fleet: Fleet, count: number) =>
    fleet.pipeline.until(() => deadLettersOf(fleet) === kept + count),
  isKept: (fleet: Fleet, least: number) => fleet.pipeline.until(() => deadLettersOf(fleet) >= least),
  /** Payloads at the service, beside those that the last `remap` found kept; each message is accounted for. */
  arrived: async (fleet: Fleet, { count, andKept = false }: { count: number; andKept?: boolean }) => {
    const due = count + (andKept ? kept : 0)
    // The service has a payload before the answer for it is written.
    await fleet.pipeline.until(() => {
      const { messages, payloads } = fleet.pipeline.status().internals.conservation
      return got(fleet).length >= due && messages.difference === 0 && payloads.difference === 0
    })
    expect(got(fleet)).toHaveLength(due)
  },
  /** Values of all payloads with this time. */
  values: async (fleet: Fleet, [at, values]: [number, string[]]) => {
    const found = () => got(fleet).filter((one) => one.at === at)
    await fleet.pipeline.until(() => found().length >= values.length)
    expect(
      found()
        .map((one) => one.values)
        .toSorted(),
    ).toEqual(values)
  },
  /** So many devices have exactly these payloads of this time. */
  valuesOfEach: async (fleet: Fleet, [at, values, devices]: [number, string[], number]) => {
    const found = () =>
      Object.groupBy(
        got(fleet).filter((one) => one.at === at),
        ({ device }) => device,
      )
    const done = () =>
      Object.values(found()).filter(
        (all) =>
          all!
            .map((one) => one.values)
            .toSorted()
            .join() === values.join(),
      )
    await fleet.pipeline.until(() => done().length === devices)
  },
  countOf: (fleet: Fleet, [values, count]: [string, number]) =>
    expect(got(fleet).filter((one) => one.values === values)).toHaveLength(count),
  addsUp: ({ pipeline }: Fleet) =>
    expect(pipeline.status().internals.conservation.messages.difference).toBe(0),
})

type Row = { what: string; count?: number; change?: Edits; usual?: string[] }
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
}
type Quiet = Row & { before?: number; body: string; more?: Body }

const rows = parse(await readFile(join(import.meta.dirname, 'lost-fields.rows.yaml'), 'utf8')) as {
  lost: Lost[]
  quiet: Quiet[]
}

test.each(rows.lost)('$what is said to be lost', async (row) => {
  const { count = 9, options, first = {}, then = {}, change, key, says = '', why = '' } = row
  const { silent = [], usual: unchanged = [], keepsNothing = false } = row
  const fleet = await startFleet({
    count,
    ...(row.edit && { edit: [row.edit] }),
    ...(options && { options }),
  })
  await send(fleet, { n: 0, more: first })
  await send(fleet, { n: 1, times: 2 })
  if (change !== undefined) await edit(fleet, change)
  const only = names(count).filter((name) => ![...silent, ...unchanged].includes(name))
  await untilLost(fleet, { parts: [{ only: unchanged }, { only, more: then }] })
  const { act, ...condition } = conditionOf(fleet)!
  expect(condition).toMatchObject({ key, what: expect.stringMatching(says) })
  expect(condition.why).toContain(why)
  expect(act.includes('dead-letters remap')).toBe(!keepsNothing)
  expect(!keepsNothing || deadLettersOf(fleet) === 0, 'what is kept').toBe(true)
})

test.each(rows.quiet)('$what is no alarm', async (row) => {
  const { count = 9, change = [], before = 0, body, more = {}, usual: unchanged = [] } = row
  const fleet = await startFleet({ count })
  await send(fleet, { n: 0, times: 5 })
  const only = names(count).filter((name) => !unchanged.includes(name))
  for (let sent = 0; sent < before + 10; sent += 1) {
    if (sent === before && change.length > 0) await edit(fleet, change)
    await send(fleet, { only: unchanged, n: 5 + sent, more })
    await send(fleet, { only, n: 5 + sent, body, more })
  }
  expect(conditionOf(fleet)).toBeUndefined()
  expect(deadLettersOf(fleet)).toBe(0)
})
