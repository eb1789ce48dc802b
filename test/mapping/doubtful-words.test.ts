import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { doubtfulWords } from '../../src/mapping/mapping.ts'
import { runCli } from '../support/cli-world.ts'
import { newFolder } from '../support/folders.ts'
import { configOf, truckSource } from '../support/mapping-world.ts'
import { loadPresetMapping } from '../support/preset-mapping.ts'

const deps = { env: {}, readText: (path: string) => readFile(path, 'utf8') }
const none: ReadonlyMap<string, number> = new Map()

function wordsOf(signal: object, rest: Record<string, unknown> = {}): string[] {
  // Who sets a scale has thought of the unit.
  const one = { type: 'OBD_LIFETIME_ODOMETER', path: 'o', scale: 0.1, ...signal }
  return doubtfulWords(configOf([truckSource({ signals: [one] }, rest)]), none).map(({ what }) => what)
}

describe('a word of the interface', () => {
  test.each([
    ['type', 'OBD_LIFETIME_ODOMETR', 'OBD_LIFETIME_ODOMETER'],
    ['type', 'OBD_LIFETIME_ODOMETRE', 'OBD_LIFETIME_ODOMETER'],
    ['type', 'obd_lifetime_odometer', 'OBD_LIFETIME_ODOMETER'],
    ['type', 'OBD-LIFETIME-ODOMETER', 'OBD_LIFETIME_ODOMETER'],
    ['type', 'ODOMETER', 'OBD_LIFETIME_ODOMETER'],
    ['type', 'OBD_TOTAL_ENGINE_TIMES', 'OBD_TOTAL_ENGINE_TIME'],
    ['type', 'OBD_ENGINE_HOURS', 'OBD_TOTAL_ENGINE_TIME'],
    ['value_unit', 'KILOMETRES', 'KILOMETERS'],
    ['value_unit', 'HOUR', 'HOURS'],
    ['part', 'ENGIN', 'ENGINE'],
    ['part', 'Engine', 'ENGINE'],
  ])('%s: %s is doubtful, %s is meant', (option, word, meant) => {
    expect(wordsOf({ [option]: word })).toEqual([
      `the source "trucks" has the ${option} "${word}", which is sent as it is. Did you mean "${meant}"?`,
    ])
  })

  test.each([
    ['type', 'OBD_LIFETIME_ODOMETER'],
    ['type', 'TRIP_DISTANCE'],
    ['type', 'OBD_FUEL_LEVEL'],
    ['type', 'BATTERY'],
    ['value_unit', 'LITERS'],
    ['value_unit', 'MILES'],
    ['part', 'ENGINE_2'],
    ['part', 'TRAILER'],
  ])('%s: %s is as good as any', (option, word) => {
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

  test.each([
    [
      'message.imei',
      'In a path the whole message is `$`: write `$.imei`. If the message has such a key, write `"message".imei`.',
    ],
    ['record.a.b', 'In a path the record has no name: write `a.b`.'],
    ['outer.key', 'In a path the record one level out is `$up`: write `$up.key`.'],
    ['packet.user.vin', 'In a path user properties are `$properties`: write `$properties.vin`.'],
    ['packet.content_type', 'In a path the packet is `$packet`: write `$packet.content_type`.'],
    ['topic.event', 'Only an expression reads the topic: write `expr: topic.event`.'],
    ['previous.odo', 'Only an expression reads the record before: write `expr: previous.odo`.'],
  ])('%s has another form', (path, act) => {
    expect(actsOf(path)).toEqual([expect.stringContaining(act)])
    expect(actsOf(['a', path])).toHaveLength(1)
    expect(actsOf([{ path, when: 'a == 1' }])).toHaveLength(1)
  })

  test.each(['"message".imei', 'a.message', 'message', 'messages.a', '$.message.a', 'messageId'])(
    '%s is a key',
    (path) => {
      expect(actsOf(path)).toEqual([])
    },
  )
})

describe('a model', () => {
  async function modelWords(own: object, table: ReadonlyMap<string, number> | null = none) {
    const config = await loadPresetMapping('teltonika-codec8', deps, { ...own })
    return doubtfulWords(config, table).map(({ what }) => what)
  }

  test.each([
    ['FMC65', 'It is read as one of the family truck. Did you mean "FMC650"?'],
    ['FMB92', 'It is read as one of the family car. Did you mean "FMB920"?'],
    ['fmb92o', 'It is read as one of the family car. Did you mean "FMB920"?'],
    ['FBM920', 'values that depend on the model are omitted. Did you mean "FMB920"?'],
    ['FMC560', 'values that depend on the model are omitted. Did you mean "FMC'],
    ['truck', 'It belongs to no family, so values that depend on the model are omitted.'],
  ])('%s is doubtful', async (model, effect) => {
    expect(await modelWords({ model })).toEqual([
      expect.stringContaining(`has the model "${model}", which is not a known one. `),
    ])
    expect((await modelWords({ model }))[0]).toContain(effect)
  })

  test.each(['FMC650', 'fmb920', 'FMC650-QJAA0', 'FMB920BTIB01', 'TAT140'])('%s is known', async (model) => {
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
