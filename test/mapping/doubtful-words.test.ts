import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { doubtfulWords } from '../../src/mapping/mapping.ts'
import { rowsBeside } from '../support/case-rows.ts'
import { runCli } from '../support/cli-world.ts'
import { newFolder } from '../support/folders.ts'
import { configOf, truckSource } from '../support/mapping-world.ts'
import { loadPresetMapping } from '../support/preset-mapping.ts'

const deps = { env: {}, readText: (path: string) => readFile(path, 'utf8') }
const rows = rowsBeside(import.meta.filename) as {
  doubtful: [option: string, word: string, meant: string][]
  good: [option: string, word: string][]
  of_expressions: Record<string, string>
  keys: string[]
  models: Record<string, string>
  known_models: string[]
}
const none: ReadonlyMap<string, number> = new Map()

function wordsOf(signal: object, rest: Record<string, unknown> = {}): string[] {
  // Who sets a scale has thought of the unit.
  const one = { type: 'OBD_LIFETIME_ODOMETER', path: 'o', scale: 0.1, ...signal }
  return doubtfulWords(configOf([truckSource({ signals: [one] }, rest)]), none).map(({ what }) => what)
}

describe('a word of the interface', () => {
  test.each(rows.doubtful)('%s: %s is doubtful, %s is meant', (option, word, meant) => {
    expect(wordsOf({ [option]: word })).toEqual([
      `the source "trucks" has the ${option} "${word}", which is sent as it is. Did you mean "${meant}"?`,
    ])
  })

  test.each(rows.good)('%s: %s is as good as any', (option, word) => {
    expect(wordsOf({ [option]: word })).toEqual([])
  })

  test.each([
    [{ defaults: { asset_type: 'TRACTR' } }, 'asset_type "TRACTR"'],
    [{ defaults: { asset_type: 'Truck' } }, 'asset_type "Truck"'],
  ])('is looked for in %j', (rest, found) => {
    expect(wordsOf({}, rest)).toEqual([expect.stringContaining(found)])
  })
})

describe('a word of expressions at the begin of a path', () => {
  const actsOf = (path: unknown) => {
    const words = doubtfulWords(configOf([truckSource({ fields: { x: { path, type: 'text' } } })]), none)
    return words.map(({ act }) => act)
  }

  test.each(Object.entries(rows.of_expressions))('%s has another form', (path, act) => {
    expect(actsOf(path)).toEqual([expect.stringContaining(act)])
    expect(actsOf(['a', path])).toHaveLength(1)
    expect(actsOf([{ path, when: 'a == 1' }])).toHaveLength(1)
  })

  test.each(rows.keys)('%s is a key', (path) => {
    expect(actsOf(path)).toEqual([])
  })
})

describe('a battery', () => {
  const fieldsOf = (fields: object) =>
    doubtfulWords(configOf([truckSource({ fields })]), none).map(({ what }) => what)

  test('of which nothing tells the unit has no bounds, so that a 255 would be sent', () => {
    const found = [expect.stringContaining('the 255 of a byte without a value would be sent')]
    expect(fieldsOf({ battery: { type: 'number', path: 'b' } })).toEqual(found)
    expect(fieldsOf({ 'tracker.batteryMain': { type: 'number', path: 'b' } })).toEqual(found)
    expect(wordsOf({ type: 'BATTERY', scale: 1 })).toEqual(found)
  })

  test.each([
    { battery: { type: 'number', path: 'b', quantity: 'battery' } },
    { battery: { type: 'number', path: 'b', quantity: 'none' } },
    { battery: { type: 'number', path: 'b', absent: [255] } },
    { battery: { type: 'number', path: 'b', scale: 0.001 } },
    { battery: { type: 'text', path: 'b' } },
    { batteryLevel: { type: 'number', path: 'b' } },
    { fuel: { type: 'number', path: 'b' } },
  ])('is good as %j', (fields) => {
    expect(fieldsOf(fields)).toEqual([])
  })
})

describe('a model', () => {
  async function modelWords(own: object, table: ReadonlyMap<string, number> | null = none) {
    const config = await loadPresetMapping('teltonika-codec8', deps, { ...own })
    return doubtfulWords(config, table).map(({ what }) => what)
  }

  test.each(Object.entries(rows.models))('%s is doubtful', async (model, effect) => {
    expect(await modelWords({ model })).toEqual([
      expect.stringContaining(`has the model "${model}", which is not a known one. `),
    ])
    expect((await modelWords({ model }))[0]).toContain(effect)
  })

  test.each(rows.known_models)('%s is known', async (model) => {
    expect(await modelWords({ model })).toEqual([])
  })

  test('is needed where values depend on it', async () => {
    expect(await modelWords({})).toEqual([
      expect.stringMatching(/^the source "teltonika-codec8" has no `model`.*odometer and engine hours\.$/),
    ])
    expect(await modelWords({}, new Map([['FMC650', 3]]))).toEqual([])
    expect(await modelWords({}, null)).toEqual([])
    expect(wordsOf({}, { model: 'anything' })).toEqual([])
  })

  test('of the device table is judged as well', async () => {
    const models = new Map([
      ['FMC650', 3],
      ['FMC65', 2],
    ])
    expect(await modelWords({}, models)).toEqual([
      expect.stringMatching(/^the device table, for 2 devices, has the model "FMC65"/),
    ])
  })
})

test('check warns of them, with the device table', async () => {
  const folder = await newFolder()
  const path = join(folder, 'gateway.yaml')
  await writeFile(join(folder, 'devices.csv'), 'device,model\nA,FMC65\n')
  await writeFile(
    path,
    `ingest: { broker: { access: { anonymous: true } } }
sources: [{ name: trucks, preset: teltonika-json }]
devices: { file: devices.csv }
spool: { path: ./spool }
delivery: { base_url: "http://127.0.0.1:1" }
`,
  )
  const { status, stdout } = await runCli(['check', '--config', path])
  expect(status).toBe(0)
  expect(stdout).toMatch(/warning +the device table, for 1 device, has the model "FMC65".* "FMC650"\?/)
})
