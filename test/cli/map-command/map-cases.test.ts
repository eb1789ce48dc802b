import { mkdir, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import { runCli } from '../../support/cli-world.ts'
import { newFolder } from '../../support/folders.ts'

const presets = resolve(import.meta.dirname, '../../../config/presets')

const config = `
ingest: { broker: { access: { anonymous: true } } }
sources:
  - { name: trial, preset: simulator }
  - { name: boxes, preset: own/acme.yaml }
devices: { file: devices.csv, unknown: ignore }
delivery: { base_url: "http://127.0.0.1:1" }
`
const acme = `topic: acme/{device}
map: { time: { path: ts, format: ms }, latitude: { path: lat }, longitude: { path: lon } }
`
const message = '{"ts":1750000000000,"lat":48.1,"lon":2.2}'
const one = (latitude: number) => `cases:
  - name: a box that drives
    topic: acme/box-1
    message: '${message}'
    payloads: [{ device: box-1, time: 1750000000000, gps: { latitude: ${latitude}, longitude: 2.2 } }]
  - { name: a box without a position, topic: acme/box-1, message: '{"ts":1750000000000}', ignored: nothing to send }
`

async function depot(files: Record<string, string> = {}) {
  const folder = await newFolder()
  await mkdir(join(folder, 'own'))
  const all = { 'gateway.yaml': config, 'devices.csv': 'device\nbox-1\n', 'own/acme.yaml': acme, ...files }
  for (const [name, text] of Object.entries(all)) await writeFile(join(folder, name), text)
  const run = async (...words: string[]) => {
    const argv = ['map', '--test', ...words.map((word) => word.replace('FOLDER', folder))]
    const { status, stdout, stderr } = await runCli(argv)
    return {
      status,
      stdout: stdout.replaceAll(`${folder}/`, '').replaceAll(`${presets}/`, 'presets/'),
      stderr: stderr.replaceAll(`${folder}/`, ''),
    }
  }
  return { run }
}

describe('map --test', () => {
  test('runs the cases of a preset and ends with status 0 when all pass', async () => {
    const { run } = await depot()
    expect(await run(join(presets, 'simulator.cases.yaml'))).toMatchObject({
      status: 0,
      stdout: expect.stringMatching(/^presets\/simulator\.cases\.yaml: \d+ passed\n$/),
    })
  })

  test('prints the differences and ends with status 1', async () => {
    const { run } = await depot({ 'own/acme.cases.yaml': one(49.1) })
    const { status, stdout } = await run('FOLDER/own/acme.cases.yaml')
    expect(status).toBe(1)
    expect(stdout.split('\n').slice(0, 3)).toEqual([
      expect.stringMatching(/^own\/acme\.cases\.yaml: \d of 2 failed$/),
      '  a box that drives',
      '    payload 1: gps.latitude is 48.1, expected 49.1.',
    ])
  })

  test('without files runs those beside the config and those of its presets', async () => {
    const { run } = await depot({
      'fleet.cases.yaml': `cases: [{ name: x, topic: acme/box-2, message: '${message}', ignored: unknown device }]\n`,
      'other.yaml': acme,
      'other.cases.yaml': one(1),
      'own/acme.cases.yaml': one(48.1).replace(/ {2}- \{.*\n/, ''),
      'own/acme.boxes.cases.yaml': one(48.1).replace(/ {2}- \{.*\n/, ''),
    })
    const { status, stdout } = await run('--config', 'FOLDER/gateway.yaml')
    expect(stdout.split('\n')).toEqual([
      'fleet.cases.yaml: 1 passed',
      expect.stringMatching(/^presets\/simulator\.cases\.yaml: \d+ passed$/),
      'own/acme.boxes.cases.yaml: 1 passed',
      'own/acme.cases.yaml: 1 passed',
      '',
    ])
    expect(status).toBe(0)
  })

  test('tests a config with the device table and the rows of the file', async () => {
    const cases = `devices: { box-2: { model: B } }
cases:
  - name: listed in the file
    topic: acme/box-2
    message: '${message}'
    payloads: [{ device: box-2, time: 1750000000000, gps: { latitude: 48.1, longitude: 2.2 }, fields: { deviceIdentifier.model: B } }]
  - { name: not listed, topic: acme/box-3, message: '${message}', ignored: unknown device }
`
    const { run } = await depot({ 'gateway.cases.yaml': cases })
    const words = ['--config', 'FOLDER/gateway.yaml', 'FOLDER/gateway.cases.yaml']
    expect(await run(...words)).toMatchObject({ status: 0, stdout: 'gateway.cases.yaml: 2 passed\n' })
  })

  test('reports an invalid file, runs the others, and ends with status 2', async () => {
    const { run } = await depot({ 'own/acme.cases.yaml': 'cases: 3\n' })
    const { status, stdout, stderr } = await run(
      'FOLDER/own/acme.cases.yaml',
      join(presets, 'simulator.cases.yaml'),
    )
    expect(status).toBe(2)
    expect(stderr).toContain('own/acme.cases.yaml:1:1  cases must be a list')
    expect(stdout).toMatch(/simulator\.cases\.yaml: \d+ passed/)
  })

  test.each([
    [[], 'There is nothing to test.'],
    [['acme.yaml'], 'acme.yaml is not a file of cases.'],
    [['FOLDER/lonely.cases.yaml'], 'lonely.cases.yaml tests a config, and none is given.'],
  ])('with %j explains the usage', async (words, what) => {
    const { run } = await depot({ 'lonely.cases.yaml': one(48.1) })
    const { status, stderr } = await run(...words)
    expect(status).toBe(2)
    expect(stderr).toContain(what)
  })

  test('reports a config without cases', async () => {
    const { run } = await depot({
      'gateway.yaml': config.replace('  - { name: trial, preset: simulator }\n', ''),
    })
    const { status, stderr } = await run('--config', 'FOLDER/gateway.yaml')
    expect(status).toBe(2)
    expect(stderr).toContain('There are no cases for gateway.yaml.')
  })
})
