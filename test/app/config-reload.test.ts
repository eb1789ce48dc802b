import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { configText } from '../support/config-text.ts'
import { newFolder } from '../support/folders.ts'
import { get } from '../support/ops-world.ts'
import { messageOf, startPipeline } from '../support/pipeline-world.ts'
import { stepCases } from '../support/step-cases.ts'

type Given = { unknown?: string; table?: string } | undefined
type World = Awaited<ReturnType<typeof world>>

/** A gateway whose config and device table are files that the test edits. */
async function world(given: Given) {
  const { unknown = 'quarantine', table = 'device\n' } = given ?? {}
  const folder = await newFolder()
  const tablePath = join(folder, 'devices.csv')
  await writeFile(tablePath, table)
  const config = configText({ more: `devices: { file: devices.csv, unknown: ${unknown} }` })
  const pipeline = await startPipeline({ folder, config })
  const path = join(folder, 'gateway.yaml')
  return { ...pipeline, path, tablePath, written: await readFile(path, 'utf8') }
}

const reloadsOf = ({ events }: World) => events.filter(({ kind }) => kind === 'mapping_reloaded').length

async function edited({ path }: World, [from, to]: [string, string]): Promise<string> {
  const text = await readFile(path, 'utf8')
  expect(text).toContain(from)
  return text.replace(from, to)
}

/** Messages whose latitude has another name. */
const breite = (n: number) => messageOf(n).replace('"lat"', '"breite"')

stepCases(import.meta.filename, world, {
  publish: ({ publish }: World, [device, ...numbers]: [string, ...number[]]) =>
    publish(device, ...numbers.map((n) => messageOf(n))),
  publishBreite: ({ publish }: World, [device, ...numbers]: [string, ...number[]]) =>
    publish(device, ...numbers.map(breite)),
  table: ({ tablePath }: World, text: string) => writeFile(tablePath, text),
  edit: async (of: World, change: [string, string]) => writeFile(of.path, await edited(of, change)),
  writeAsLatin1: async (of: World, change: [string, string]) =>
    writeFile(of.path, Buffer.from(await edited(of, change), 'latin1')),
  writeBack: ({ path, written }: World) => writeFile(path, written),
  delivered: (of: World, count: number) => of.until(() => of.status().totals.delivered === count),
  reloads: (of: World, count: number) => of.until(() => reloadsOf(of) >= count),
  stale: async (of: World, expected: object) => {
    await of.until(() => of.condition('MAPPING_STALE') !== undefined)
    expect(of.condition('MAPPING_STALE')).toMatchObject(expected)
  },
  fresh: (of: World) => of.until(() => of.condition('MAPPING_STALE') === undefined),
  status: ({ status }: World, expected: object) => expect(status()).toMatchObject(expected),
  deadLetters: async ({ gateway }: World, groups: object[]) => {
    const { text } = await get(gateway.addresses.ops, '/dead-letters')
    expect(JSON.parse(text)).toMatchObject({ groups })
  },
  remaps: async ({ gateway }: World, [query, report]: [string, object]) => {
    const path = `/control/dead-letters/remap?${query}`
    const { text } = await get(gateway.addresses.control, path, { method: 'POST' })
    expect(JSON.parse(text)).toMatchObject(report)
  },
})

test('a reload that is asked for many times at once reads the files of the last request, in few turns', async () => {
  const of = await world(undefined)
  const reports = await Promise.all(Array.from({ length: 20 }, () => of.gateway.reload('test')))
  expect(reports.every(({ kind }) => kind === 'reloaded')).toBe(true)
  expect(reloadsOf(of)).toBeLessThanOrEqual(2)
})
