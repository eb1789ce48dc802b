// A message of several vehicles: each record stands alone. Good ones are delivered, bad ones are kept, and what is
// done later with the kept ones never touches the others again.

import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'vitest'
import { parseLine } from '../../src/dead-letters/ndjson-line.ts'
import { configText } from '../support/config-text.ts'
import { runCli } from '../support/cli-world.ts'
import { newFolder } from '../support/folders.ts'
import type { Device } from '../support/mqtt-device.ts'
import { send } from '../support/ops-world.ts'
import { startPipeline, type Pipeline } from '../support/pipeline-world.ts'
import { stepCases } from '../support/step-cases.ts'

type Given = { spool?: string; listed?: string[] } | undefined

type Fleet = { pipeline: Pipeline; folder: string; device: Device; sent: number }

/**
 * A record: a vehicle, as `a` or `a 3` with a number that makes its time, or that with other members; a list of
 * records; or any other value.
 */
type RecordText = string | number | null | RecordText[] | ({ vehicle?: string } & Record<string, unknown>)

const topic = 'fleet/depot'
const start = Date.now() - 60_000

function vehicle(text: string): Record<string, unknown> {
  const [name = '', n = '0'] = text.split(' ')
  return { id: name, ts: start + Number(n) * 1000, pos: { lat: 52.5 + Number(n) / 1000, lon: 13.4 } }
}

function recordOf(text: RecordText): unknown {
  if (typeof text === 'string') return /^[a-z]+(-\d+)?( \d+)?$/.test(text) ? vehicle(text) : text
  if (Array.isArray(text)) return text.map(recordOf)
  if (typeof text !== 'object' || text === null) return text
  const { vehicle: name, ...more } = text
  if (name !== undefined) return { ...vehicle(name), ...more }
  return Object.fromEntries(Object.entries(more).map(([key, value]) => [key, recordOf(value as RecordText)]))
}

async function startFleet({ spool = '', listed = ['a', 'b', 'c', 'd', 'e'] }: Given = {}): Promise<Fleet> {
  const folder = await newFolder()
  await writeTable(folder, listed)
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
  return { pipeline, folder, device: await pipeline.device('depot'), sent: 0 }
}

const writeTable = (folder: string, devices: readonly string[]) =>
  writeFile(join(folder, 'devices.csv'), ['device', ...devices, ''].join('\n'))

async function publish(fleet: Fleet, payload: string, dup = false): Promise<void> {
  if (!dup) fleet.sent += 1
  const acked = fleet.device.acked(dup ? fleet.sent + 1 : fleet.sent)
  fleet.device.publish({ topic, payload, messageId: fleet.sent, dup })
  await acked
}

function publishRecords(fleet: Fleet, records: readonly RecordText[], dup = false): Promise<void> {
  const vehicles = records.map(recordOf)
  return publish(fleet, JSON.stringify({ vehicles, others: vehicles.toReversed() }), dup)
}

const arrived = ({ pipeline }: Fleet) =>
  pipeline.sandbox
    .received({ limit: 10_000 })
    .map(({ payload }) => (payload['deviceIdentifier'] as { id: string }).id)
    .sort()

async function ask({ pipeline }: Fleet, path: string): Promise<unknown> {
  return (await send(pipeline.gateway.addresses.ops, path)).json()
}

const named = (name: string, count: number) => Array.from({ length: count }, (_, n) => `${name}-${n}`)

stepCases(import.meta.filename, startFleet, {
  publish: publishRecords,
  again: (fleet: Fleet, records: RecordText[]) => publishRecords(fleet, records, true),
  /** `bad` more records without a time. */
  publishMany: (fleet: Fleet, { records, bad }: { records: RecordText[]; bad: number }) => {
    const broken = Array.from({ length: bad }, (_, n) => ({ vehicle: `b ${n}`, ts: null }))
    return publishRecords(fleet, [...records, ...broken])
  },
  /** One message of so many vehicles, `times` over; `bad`: without a time. */
  publishNamed: async (
    fleet: Fleet,
    { name, count, times = 1, bad = false }: { name: string; count: number; times?: number; bad?: boolean },
  ) => {
    for (let n = 0; n < times; n += 1) {
      const vehicles = named(name, count).map((one) => ({ vehicle: `${one} ${n}` }))
      await publishRecords(fleet, bad ? vehicles.map((one) => ({ ...one, ts: null })) : vehicles)
    }
  },
  /** The whole message: a list of records, or a line for each. */
  publishAs: (fleet: Fleet, { list, lines }: { list?: RecordText[]; lines?: RecordText[] }) =>
    publish(
      fleet,
      list === undefined
        ? lines!.map((one) => JSON.stringify(recordOf(one))).join('\n')
        : JSON.stringify(list.map(recordOf)),
    ),
  /** A vehicle with a name of 2,000 letters between two others. */
  publishLongName: (fleet: Fleet) => publishRecords(fleet, ['a', 'x'.repeat(2000), 'c']),
  edit: async ({ folder, pipeline }: Fleet, edits: [from: string, to: string][]) => {
    const path = join(folder, 'gateway.yaml')
    let text = await readFile(path, 'utf8')
    for (const [from, to] of edits) {
      expect(text).toContain(from)
      text = text.replace(from, to)
    }
    await writeFile(path, text)
    expect(await pipeline.gateway.reload('test')).toMatchObject({ kind: 'reloaded' })
  },
  list: async ({ folder, pipeline }: Fleet, devices: string[]) => {
    await writeTable(folder, devices)
    expect(await pipeline.gateway.reload('test')).toMatchObject({ kind: 'reloaded' })
  },
  listNamed: async ({ folder, pipeline }: Fleet, [name, count, ...others]: [string, number, ...string[]]) => {
    await writeTable(folder, [...others, ...named(name, count)])
    expect(await pipeline.gateway.reload('test')).toMatchObject({ kind: 'reloaded' })
  },
  post: async ({ pipeline }: Fleet, [path, expected]: [string, object]) => {
    const response = await send(pipeline.gateway.addresses.control, `/control/dead-letters/${path}`, {
      method: 'POST',
    })
    expect(await response.json()).toMatchObject(expected)
  },
  stop: ({ pipeline }: Fleet) => pipeline.gateway.stop('to look at the spool'),
  spoolIsWhole: async ({ folder }: Fleet) => {
    const verified = await runCli(['spool', 'verify', '--path', join(folder, 'spool')])
    expect([verified.status, verified.stderr]).toEqual([0, ''])
  },
  exported: async ({ folder }: Fleet, expected: object) => {
    const lines = join(folder, 'dead.ndjson')
    const words = ['dead-letters', 'export', '--config', join(folder, 'gateway.yaml'), '--to', lines]
    expect((await runCli(words)).status).toBe(0)
    expect(parseLine(await readFile(lines, 'utf8'))).toMatchObject(expected)
  },
  /** Messages of 60 KB with a good and a bad record, until the dead letters are full: what is acknowledged is stored. */
  fill: async (fleet: Fleet, count: number) => {
    const filler = 'x'.repeat(60_000)
    let acked = 0
    for (let n = 0; n < count; n += 1)
      void publishRecords(fleet, [`a ${n}`, { vehicle: `b ${n}`, ts: null, filler }]).then(
        () => (acked += 1),
        () => undefined,
      )
    await fleet.pipeline.until(() => fleet.pipeline.codes().includes('DEAD_LETTERS_FULL'))
    const letters = () => fleet.pipeline.status().spool.deadLetters
    await fleet.pipeline.until(() => acked > 0 && arrived(fleet).length === acked && letters() === acked)
    expect(acked).toBeLessThan(count)
    expect(fleet.pipeline.status().internals.conservation.messages.difference).toBe(0)
  },

  /** Vehicles that the service has, sorted; each as often as it has it. */
  arrived: async (fleet: Fleet, names: string[]) => {
    await fleet.pipeline.until(() => arrived(fleet).length >= names.length)
    expect(arrived(fleet)).toEqual(names)
  },
  arrivedOnce: async (fleet: Fleet, [payloads, devices]: [number, number]) => {
    await fleet.pipeline.until(() => arrived(fleet).length >= payloads)
    await fleet.pipeline.until(() => fleet.pipeline.status().spool.quarantined === 0)
    expect(new Set(arrived(fleet)).size).toBe(devices)
    const stats = fleet.pipeline.sandbox.stats()
    expect(stats).toMatchObject({ distinctPayloadIds: payloads, payloadsAccepted: payloads })
  },
  /** Dead letters and quarantined messages, once nothing waits for its commit. */
  kept: async ({ pipeline }: Fleet, [dead, quarantined]: [number, number]) => {
    await pipeline.until(() => pipeline.status().internals.conservation.messages.difference === 0)
    await pipeline.until(() => pipeline.status().spool.deadLetters === dead)
    expect(pipeline.status().spool).toMatchObject({ deadLetters: dead, quarantined })
  },
  keptOne: async ({ pipeline }: Fleet) => {
    await pipeline.until(() => pipeline.status().internals.conservation.messages.difference === 0)
    const { deadLetters, quarantined } = pipeline.status().spool
    expect(deadLetters + quarantined).toBe(1)
  },
  /** Of each event that says so. */
  unmappable: ({ pipeline }: Fleet, expected: object[]) =>
    expect(pipeline.events.filter(({ kind }) => kind === 'message_unmappable')).toMatchObject(expected),
  quarantineOf: async (fleet: Fleet, [device, messages]: [string, number]) =>
    expect(await ask(fleet, `/quarantine?device=${device}`)).toMatchObject({
      groups: [{ device, messages }],
    }),
  lettersOf: async (fleet: Fleet, expected: Record<string, number>) => {
    for (const [device, scanned] of Object.entries(expected))
      expect(await ask(fleet, `/dead-letters?device=${device}`), device).toMatchObject({ scanned })
  },
  devicesOf: async (fleet: Fleet, [reason, devices]: [string, number]) => {
    const { groups } = (await ask(fleet, '/dead-letters')) as {
      groups: { reason: string; devices: number }[]
    }
    expect(groups.find((group) => group.reason === reason)).toMatchObject({ devices })
  },
  totals: ({ pipeline }: Fleet, expected: object) => expect(pipeline.status().totals).toMatchObject(expected),
})
