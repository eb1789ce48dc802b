// A message of several vehicles: each record stands alone. Good ones are delivered, bad ones are kept, and what is
// done later with the kept ones never touches the others again.

import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { parseLine } from '../../src/dead-letters/ndjson-line.ts'
import { configText } from '../support/config-text.ts'
import { runCli } from '../support/cli-world.ts'
import { newFolder } from '../support/folders.ts'
import { send } from '../support/ops-world.ts'
import { startPipeline, type Pipeline } from '../support/pipeline-world.ts'

const topic = 'fleet/depot'
const start = Date.now() - 60_000

/** A good record, distinct by vehicle and `n`. */
const vehicle = (name: string, n = 0, more: Record<string, unknown> = {}) => ({
  id: name,
  ts: start + n * 1000,
  pos: { lat: 52.5 + n / 1000, lon: 13.4 },
  ...more,
})

type World = {
  pipeline: Pipeline
  /** `payload`: the whole message, in place of an object with the records. */
  publish(records: readonly unknown[], options?: { dup?: boolean; payload?: string }): Promise<void>
  /** Vehicles that the service has, sorted; each as often as it has it. */
  arrived(): string[]
  edit(from: string, to: string): Promise<void>
  list(devices: readonly string[]): Promise<void>
}

async function startFleet({ spool = '', listed = ['a', 'b', 'c', 'd', 'e'] } = {}): Promise<World> {
  const folder = await newFolder()
  const list = (devices: readonly string[]) =>
    writeFile(join(folder, 'devices.csv'), ['device', ...devices, ''].join('\n'))
  await list(listed)
  const config = configText({
    sources: `
  - name: fleet
    topic: fleet/{client}
    each: vehicles
    device: { path: id }
    map:
      time: { path: ts, format: ms }
      latitude: { path: pos.lat }
      longitude: { path: pos.lon }`,
    spool: `{ path: ./spool, allow_in_memory: true, max_bytes: 32MiB, min_free_bytes: 1MiB ${spool} }`,
    more: `devices: { file: devices.csv, unknown: quarantine }
clocks: { trust_local: true }`,
  })
  const pipeline = await startPipeline({ folder, config })
  const device = await pipeline.device('depot')
  let sent = 0
  return {
    pipeline,
    list,
    async publish(records, { dup = false, payload: whole } = {}) {
      if (!dup) sent += 1
      const acked = device.acked(dup ? sent + 1 : sent)
      const payload = whole ?? JSON.stringify({ vehicles: records, others: [...records].reverse() })
      device.publish({ topic, payload, messageId: sent, dup })
      await acked
    },
    arrived: () =>
      pipeline.sandbox
        .received({ limit: 10_000 })
        .map(({ payload }) => (payload['deviceIdentifier'] as { id: string }).id)
        .sort(),
    async edit(from, to) {
      const path = join(folder, 'gateway.yaml')
      const text = await readFile(path, 'utf8')
      expect(text).toContain(from)
      await writeFile(path, text.replace(from, to))
      expect(await pipeline.gateway.reload('test')).toMatchObject({ kind: 'reloaded' })
    },
  }
}

async function post({ pipeline }: World, path: string): Promise<unknown> {
  const response = await send(pipeline.gateway.addresses.control, path, { method: 'POST' })
  return response.json()
}

/** What is kept, as `reason records`, once nothing waits for its commit. */
async function kept({ pipeline }: World): Promise<{ dead: number; quarantined: number }> {
  await pipeline.until(() => pipeline.status().internals.conservation.messages.difference === 0)
  const { deadLetters, quarantined } = pipeline.status().spool
  return { dead: deadLetters, quarantined }
}

const bad: [what: string, record: unknown][] = [
  ['of an unlisted device', vehicle('stranger')],
  ['of tomorrow', vehicle('b', 86_400 * 1000)],
  ['without a time', vehicle('b', 0, { ts: null })],
  ['with a text as latitude', vehicle('b', 0, { pos: { lat: 'n/a', lon: 1 } })],
  ['with half a position', vehicle('b', 0, { pos: { lon: 1 } })],
  ['out of range', vehicle('b', 0, { pos: { lat: 423.22, lon: 1 } })],
  ['without a name', vehicle('b', 0, { id: null })],
  ['that is null', null],
  ['that is a number', 7],
  ['of a name beyond all bounds', vehicle('x'.repeat(2000))],
]

describe('a bad record of a message', () => {
  test.each(bad)('%s is kept, and the other vehicles are delivered', async (_what, record) => {
    const fleet = await startFleet()
    await fleet.publish([vehicle('a'), record, vehicle('c')])
    await fleet.pipeline.until(() => fleet.arrived().length === 2)
    expect(fleet.arrived()).toEqual(['a', 'c'])
    const { dead, quarantined } = await kept(fleet)
    expect(dead + quarantined).toBe(1)
  })

  test('is one entry with all records of its reason, which names them', async () => {
    const fleet = await startFleet()
    const broken = Array.from({ length: 900 }, (_, n) => vehicle('b', n, { ts: null }))
    await fleet.publish([vehicle('a'), ...broken, vehicle('c')])
    await fleet.pipeline.until(() => fleet.arrived().length === 2)
    expect(await kept(fleet)).toEqual({ dead: 1, quarantined: 0 })
    const { events } = fleet.pipeline
    expect(events.find(({ kind }) => kind === 'message_unmappable')).toMatchObject({
      reason: 'NO_TIME',
      detail: expect.stringMatching(/^Record 2 of the message: .* The same applies to 899 more records\.$/),
    })
  })
})

describe('an element that is no object, in a list inside of a list,', () => {
  const reasons = ({ pipeline }: World) =>
    pipeline.events.flatMap((event) => (event.kind === 'message_unmappable' ? [event.detail] : []))

  test.each([
    ['the inner one', [{ list: [vehicle('a'), null, vehicle('c')] }, { list: [7] }, {}], '1 more record.'],
    ['the outer one', [null, { list: [vehicle('a')] }, 7, { list: [vehicle('c')] }], '1 more record.'],
    ['both', ['x', { list: [vehicle('a'), [vehicle('b')], vehicle('c')] }], '1 more record.'],
  ])('is kept: of %s', async (_what, records, more) => {
    const fleet = await startFleet()
    await fleet.edit('each: vehicles', 'each: [vehicles, list]')
    await fleet.publish(records)
    await fleet.pipeline.until(() => fleet.arrived().length === 2)
    expect(fleet.arrived()).toEqual(['a', 'c'])
    expect(await kept(fleet)).toEqual({ dead: 1, quarantined: 0 })
    expect(reasons(fleet)).toEqual([expect.stringContaining(more)])
  })

  test('is none of a list that is a value of any entry of an object', async () => {
    const fleet = await startFleet()
    await fleet.edit('each: vehicles', 'each: [vehicles, $entries(), value]')
    await fleet.publish([{ tags: ['x', 'y'], sizes: [[1], [2]], name: 'depot', list: [vehicle('a'), null] }])
    await fleet.pipeline.until(() => fleet.arrived().length === 1)
    expect(await kept(fleet)).toEqual({ dead: 1, quarantined: 0 })
    expect(reasons(fleet)).toEqual([expect.not.stringContaining('more')])
  })
})

describe('what is done with the kept records', () => {
  test('a release sends those of the device that is listed now, and none of the others again', async () => {
    const fleet = await startFleet({ listed: ['a'] })
    for (const n of [0, 1, 2]) await fleet.publish([vehicle('new', n), vehicle('a', n), vehicle('later', n)])
    await fleet.pipeline.until(() => fleet.arrived().length === 3)
    expect(await kept(fleet)).toEqual({ dead: 0, quarantined: 3 })
    // A message is found by each of its devices.
    for (const device of ['new', 'later']) {
      const response = await send(fleet.pipeline.gateway.addresses.ops, `/quarantine?device=${device}`)
      expect(await response.json()).toMatchObject({ groups: [{ device, messages: 3 }] })
    }
    await fleet.list(['a', 'new'])
    await fleet.pipeline.until(() => fleet.arrived().length === 6)
    expect(fleet.arrived()).toEqual(['a', 'a', 'a', 'new', 'new', 'new'])
    expect(await kept(fleet)).toEqual({ dead: 0, quarantined: 3 })
    await fleet.list(['a', 'new', 'later'])
    await fleet.pipeline.until(() => fleet.arrived().length === 9)
    expect(fleet.arrived().filter((name) => name === 'later')).toHaveLength(3)
    expect(await kept(fleet)).toEqual({ dead: 0, quarantined: 0 })
  })

  test('devices that are listed together share messages, and each record is sent once', async () => {
    const fleet = await startFleet({ listed: ['a'] })
    const names = Array.from({ length: 12 }, (_, n) => `new-${n}`)
    for (let n = 0; n < 30; n += 1) await fleet.publish(names.map((name) => vehicle(name, n)))
    expect(await kept(fleet)).toEqual({ dead: 0, quarantined: 30 })
    await fleet.list(names)
    await fleet.pipeline.until(() => fleet.arrived().length >= 360)
    await fleet.pipeline.until(() => fleet.pipeline.status().spool.quarantined === 0)
    expect(new Set(fleet.arrived()).size).toBe(12)
    expect(fleet.pipeline.sandbox.stats()).toMatchObject({ distinctPayloadIds: 360, payloadsAccepted: 360 })
  })

  test('a dead letter is found by each of its devices, and a purge for one of them leaves it', async () => {
    const fleet = await startFleet()
    const names = Array.from({ length: 70 }, (_, n) => `many-${n}`)
    await fleet.list(['a', 'b', ...names])
    expect(await fleet.pipeline.gateway.reload('test')).toMatchObject({ kind: 'reloaded' })
    await fleet.publish([vehicle('a', 0, { ts: null }), vehicle('b', 0, { ts: null }), null])
    await fleet.publish([vehicle('b', 1, { ts: null })])
    await fleet.publish(names.map((name) => vehicle(name, 0, { ts: null })))
    expect(await kept(fleet)).toEqual({ dead: 4, quarantined: 0 })
    const foundFor = async (device: string) => {
      const response = await send(fleet.pipeline.gateway.addresses.ops, `/dead-letters?device=${device}`)
      const { scanned } = (await response.json()) as { scanned: number }
      return scanned
    }
    expect(await Promise.all(['a', 'b', 'c', 'many-0', 'many-63', 'many-64'].map(foundFor))).toEqual([
      1, 2, 0, 1, 1, 0,
    ])
    const letters = await send(fleet.pipeline.gateway.addresses.ops, '/dead-letters')
    const { groups } = (await letters.json()) as { groups: { reason: string; devices: number }[] }
    expect(groups.find(({ reason }) => reason === 'NO_TIME')).toMatchObject({ devices: 66 })
    expect(await post(fleet, '/control/dead-letters/purge?device=b&yes=1')).toMatchObject({
      deadLetters: 1,
      shared: 1,
    })
    expect(await kept(fleet)).toEqual({ dead: 3, quarantined: 0 })
  })

  test('a spool with them is whole, and its export names the records', async () => {
    const fleet = await startFleet({ listed: ['a'] })
    await fleet.publish([vehicle('x'), vehicle('a'), vehicle('y'), vehicle('a', 1, { ts: null })])
    await fleet.pipeline.until(() => fleet.arrived().length === 1)
    await fleet.pipeline.gateway.stop('to look at the spool')
    const path = join(fleet.pipeline.folder, 'spool')
    const verified = await runCli(['spool', 'verify', '--path', path])
    expect([verified.status, verified.stderr]).toEqual([0, ''])
    const lines = join(fleet.pipeline.folder, 'dead.ndjson')
    const config = join(fleet.pipeline.folder, 'gateway.yaml')
    expect((await runCli(['dead-letters', 'export', '--config', config, '--to', lines])).status).toBe(0)
    const read = parseLine(await readFile(lines, 'utf8'))
    expect(read).toMatchObject({ kind: 'message', envelope: { records: [{ index: 3 }] } })
  })

  test('a remap sends what the mapping can read now, and keeps the rest for its own reason', async () => {
    const fleet = await startFleet()
    const other = { id: 'b', ts: start, position: { lat: 1, lon: 2 } }
    await fleet.publish([vehicle('a'), other, { id: 'c', ts: start }, vehicle('d')])
    await fleet.pipeline.until(() => fleet.arrived().length === 2)
    expect(await kept(fleet)).toEqual({ dead: 1, quarantined: 0 })
    await fleet.edit('path: pos.lat', 'path: [pos.lat, position.lat]')
    await fleet.edit('path: pos.lon', 'path: [pos.lon, position.lon]')
    expect(await post(fleet, '/control/dead-letters/remap')).toMatchObject({ deadLetters: 1, payloads: 1 })
    await fleet.pipeline.until(() => fleet.arrived().length === 3)
    expect(fleet.arrived()).toEqual(['a', 'b', 'd'])
    expect(await kept(fleet)).toEqual({ dead: 1, quarantined: 0 })
    // Once more, it is the record of c alone.
    expect(await post(fleet, '/control/dead-letters/remap')).toMatchObject({
      payloads: 0,
      stillRefused: { NOTHING_TO_SEND: 1 },
    })
  })

  test('a remap leaves a record that `each` finds elsewhere now, and says so', async () => {
    const fleet = await startFleet()
    await fleet.publish([vehicle('a'), vehicle('b', 0, { ts: null })])
    await fleet.pipeline.until(() => fleet.arrived().length === 1)
    await fleet.edit('each: vehicles', 'each: others')
    expect(await post(fleet, '/control/dead-letters/remap')).toMatchObject({
      payloads: 0,
      stillRefused: { RECORD_CHANGED: 1 },
    })
    expect(await kept(fleet)).toEqual({ dead: 1, quarantined: 0 })
  })
})

test.each([
  ['a list', (records: readonly unknown[]) => JSON.stringify(records)],
  ['lines of JSON', (records: readonly unknown[]) => records.map((one) => JSON.stringify(one)).join('\n')],
])('of a message that is %s a requeue sends the bad record alone', async (_what, text) => {
  const fleet = await startFleet()
  await fleet.edit('    each: vehicles\n', '')
  await fleet.publish([], { payload: text([vehicle('a'), vehicle('b', 0, { ts: 'soon' }), vehicle('c')]) })
  await fleet.pipeline.until(() => fleet.arrived().length === 2)
  expect(fleet.arrived()).toEqual(['a', 'c'])
  expect(await kept(fleet)).toEqual({ dead: 1, quarantined: 0 })
  const requeue = '/control/dead-letters/requeue?stage=mapping'
  await post(fleet, requeue)
  expect(await kept(fleet)).toEqual({ dead: 1, quarantined: 0 })
  await fleet.edit('format: ms', 'format: ms, missing: arrival')
  await fleet.edit('path: ts', 'path: time')
  await post(fleet, requeue)
  await fleet.pipeline.until(() => fleet.arrived().length === 3)
  expect(fleet.arrived()).toEqual(['a', 'b', 'c'])
  expect(await kept(fleet)).toEqual({ dead: 0, quarantined: 0 })
})

test('a record that was released under another `each` is mapped once `each` is as it was', async () => {
  const fleet = await startFleet({ listed: ['a'] })
  await fleet.publish([vehicle('new'), vehicle('a')])
  await fleet.pipeline.until(() => fleet.arrived().length === 1)
  await fleet.edit('each: vehicles', 'each: others')
  await fleet.list(['a', 'new'])
  await fleet.pipeline.until(() => fleet.pipeline.status().spool.deadLetters === 1)
  expect(await post(fleet, '/control/dead-letters/remap')).toMatchObject({
    stillRefused: { RECORD_CHANGED: 1 },
  })
  await fleet.edit('each: others', 'each: vehicles')
  expect(await post(fleet, '/control/dead-letters/remap')).toMatchObject({ payloads: 1 })
  await fleet.pipeline.until(() => fleet.arrived().length === 2)
  expect(fleet.arrived()).toEqual(['a', 'new'])
  expect(await kept(fleet)).toEqual({ dead: 0, quarantined: 0 })
})

describe('the other rules of a message', () => {
  test('sent again with DUP it is delivered and kept once', async () => {
    const fleet = await startFleet()
    const records = [vehicle('a'), vehicle('b', 0, { ts: null }), vehicle('stranger')]
    await fleet.publish(records)
    await fleet.publish(records, { dup: true })
    await fleet.pipeline.until(() => fleet.arrived().length === 1)
    expect(await kept(fleet)).toEqual({ dead: 1, quarantined: 1 })
    expect(fleet.pipeline.status().totals).toMatchObject({ resent: 1, messages: 2 })
  })

  test('where there is no room for its bad records, nothing of it is stored or acknowledged', async () => {
    const fleet = await startFleet({ spool: ', dead_letters: { max_bytes: 1MiB, on_full: hold }' })
    const filler = 'x'.repeat(60_000)
    const fill = Array.from({ length: 30 }, (_, n) => [
      vehicle('a', n),
      vehicle('b', n, { ts: null, filler }),
    ])
    let acked = 0
    for (const records of fill)
      void fleet.publish(records).then(
        () => (acked += 1),
        () => undefined,
      )
    const isFull = () => fleet.pipeline.status().conditions.some(({ code }) => code === 'DEAD_LETTERS_FULL')
    await fleet.pipeline.until(isFull)
    // What was acknowledged is delivered and kept, and nothing else is.
    const letters = () => fleet.pipeline.status().spool.deadLetters
    await fleet.pipeline.until(() => acked > 0 && fleet.arrived().length === acked && letters() === acked)
    expect(acked).toBeLessThan(30)
    expect(fleet.pipeline.status().internals.conservation.messages.difference).toBe(0)
  })
})
