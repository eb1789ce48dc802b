import { readFile, stat, writeFile, chmod } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { parsePasswordFile } from '../../../src/std/passwords/password-file.ts'
import { configText } from '../../support/config-text.ts'
import { runCli } from '../../support/cli-world.ts'
import { eventually } from '../../support/eventually.ts'
import { newFolder } from '../../support/folders.ts'
import { startPipeline, type Pipeline } from '../../support/pipeline-world.ts'
import { sandboxAccount } from '../../../src/sandbox/sandbox.ts'

const config = configText({
  broker:
    '{ listeners: [{ url: "mqtt://127.0.0.1:0" }], access: { anonymous: true, password_file: ./users } }',
  more: 'devices: { file: ./devices.csv, unknown: quarantine }',
})

const env = {
  AWS_ACCESS_KEY_ID: sandboxAccount.accessKeyId,
  AWS_SECRET_ACCESS_KEY: sandboxAccount.secret.reveal(),
}

async function start(rows = ''): Promise<Pipeline> {
  const folder = await newFolder()
  await writeFile(join(folder, 'devices.csv'), `# of the depot\ndevice,asset_id\n${rows}`)
  await writeFile(join(folder, 'users'), '')
  return startPipeline({ config, folder })
}

const run = (pipeline: Pipeline, args: readonly string[], stdin = '') =>
  runCli(['devices', ...args, '--config', join(pipeline.folder, 'gateway.yaml')], { env, stdin })
const tableOf = ({ folder }: Pipeline) => readFile(join(folder, 'devices.csv'), 'utf8')

async function publish(pipeline: Pipeline, name: string): Promise<void> {
  const device = await pipeline.device(name)
  const payload = JSON.stringify({ ts: Date.now(), lat: 52.5, lon: 13.4 })
  device.publish({ topic: `telemetry/v1/${name}`, payload })
  await device.acked(1)
}

test('accept writes the row, and the messages leave the quarantine and are delivered', async () => {
  const pipeline = await start('truck-1,TRK-1\n')
  await publish(pipeline, 'truck-9')
  expect(pipeline.status().totals).toMatchObject({ quarantined: 1, payloads: 0 })
  const { status, stdout, stderr } = await run(pipeline, ['accept', 'truck-9', '--asset', 'TRK-9'])
  expect([status, stderr]).toEqual([0, ''])
  expect(stdout).toMatch(
    /"truck-9" is in the device table .*\nIt is in force\.\nIts messages leave the quarantine/,
  )
  expect(await tableOf(pipeline)).toBe('# of the depot\ndevice,asset_id\ntruck-1,TRK-1\ntruck-9,TRK-9\n')
  await pipeline.until(() => pipeline.status().totals.delivered === 1)
  const shown = await run(pipeline, ['show', 'truck-9'])
  expect(shown.stdout).toMatch(/^state +sending/m)
  expect(shown.stdout).toMatch(/became +quarantined when it came; 1 payload by the mapping in force/)
  const again = await run(pipeline, ['accept', 'truck-9'])
  expect([again.status, again.stderr]).toEqual([1, expect.stringMatching(/^DEVICE_LISTED\n/)])
})

test('accept refuses a device that nobody heard of, and changes nothing', async () => {
  const pipeline = await start()
  const before = await tableOf(pipeline)
  await publish(pipeline, 'truck-9')
  const { status, stderr } = await run(pipeline, ['accept', 'truck-8'])
  expect(status).toBe(1)
  expect(stderr).toContain('Did you mean "truck-9"?')
  expect(await tableOf(pipeline)).toBe(before)
})

test('add writes the row and the password, keeps the mode of the file, and asks before it replaces', async () => {
  const pipeline = await start()
  const file = join(pipeline.folder, 'devices.csv')
  await chmod(file, 0o664)
  const added = await run(
    pipeline,
    ['add', 'truck-1', '--asset', 'TRK-1', '--model', 'FMC650', '--password'],
    'abc\n',
  )
  expect([added.status, added.stderr]).toEqual([0, ''])
  expect(await tableOf(pipeline)).toBe('# of the depot\ndevice,asset_id,model\ntruck-1,TRK-1,FMC650\n')
  expect((await stat(file)).mode & 0o777).toBe(0o664)
  const { users } = parsePasswordFile(await readFile(join(pipeline.folder, 'users'), 'utf8'))
  expect([...users.keys()]).toEqual(['truck-1'])
  await eventually(async () => {
    const { ops } = pipeline.gateway.addresses
    return (await fetch(`${ops}/devices/truck-1`)).status === 200
  })
  const other = await run(pipeline, ['add', 'truck-1', '--asset', 'TRK-2'])
  expect([other.status, other.stderr]).toEqual([1, expect.stringMatching(/^DEVICE_LISTED\n/)])
  expect((await run(pipeline, ['add', 'truck-1', '--asset', 'TRK-2', '--replace'])).status).toBe(0)
  expect(await tableOf(pipeline)).toContain('\ntruck-1,TRK-2,\n')
  const zoned = await run(pipeline, ['add', 'truck-3', '--zone', 'Europe/Berln'])
  expect([zoned.status, zoned.stderr]).toEqual([2, expect.stringContaining('Did you mean "Europe/Berlin"?')])
  expect((await run(pipeline, ['add', 'truck-3', '--zone', 'Europe/Berlin'])).status).toBe(0)
  expect(await tableOf(pipeline)).toContain('\ntruck-3,,,Europe/Berlin\n')
  const wrong = await run(pipeline, ['add', 'truck-2', '--provider', 'nobody'])
  expect([wrong.status, wrong.stderr]).toEqual([2, expect.stringMatching(/^DEVICES_INVALID\n.*nobody/s)])
  expect(await tableOf(pipeline)).not.toContain('truck-2')
})

test('import adds all devices of a file, or none', async () => {
  const pipeline = await start('truck-1,TRK-1\n')
  const more = join(pipeline.folder, 'more.csv')
  await writeFile(more, 'asset_id,device,operator\nTRK-2,truck-2,OP1\nTRK-9,truck-1,OP1\n')
  const refused = await run(pipeline, ['import', more])
  expect([refused.status, refused.stderr]).toEqual([1, expect.stringMatching(/^DEVICE_LISTED\n.*truck-1/s)])
  expect(await tableOf(pipeline)).not.toContain('truck-2')
  const { status, stdout } = await run(pipeline, ['import', more, '--replace'])
  expect([status, stdout]).toEqual([
    0,
    expect.stringMatching(/^1 device added to .*, 1 replaced\.\nIt is in force\.\n$/),
  ])
  expect(await tableOf(pipeline)).toBe(
    '# of the depot\ndevice,asset_id,operator\ntruck-1,TRK-9,OP1\ntruck-2,TRK-2,OP1\n',
  )
  await writeFile(more, 'device\ntruck-3\ntruck-3\n')
  const invalid = await run(pipeline, ['import', more])
  expect(invalid.stderr).toMatch(/^DEVICES_INVALID\n.*more\.csv:3 /s)
})

test('forget --ledger deletes the entries of the device, and those of others in its batches stay', async () => {
  const pipeline = await start('truck-1,TRK-1\ntruck-2,TRK-2\n')
  await Promise.all(['truck-1', 'truck-2'].map((name) => publish(pipeline, name)))
  await pipeline.until(() => pipeline.status().totals.delivered === 2)
  const { ops } = pipeline.gateway.addresses
  const entriesOf = async (name: string) => {
    const response = await fetch(`${ops}/ledger?device=${name}`)
    return ((await response.json()) as { entries: { requestId: string }[] }).entries
  }
  const [other] = await entriesOf('truck-2')
  expect(await entriesOf('truck-1')).toHaveLength(1)
  const { status, stdout } = await run(pipeline, ['forget', 'truck-1', '--ledger'])
  expect([status, stdout]).toEqual([0, 'Its history is deleted. 1 entry of the ledger deleted.\n'])
  expect(await entriesOf('truck-1')).toEqual([])
  expect(await entriesOf('truck-2')).toEqual([other])
})

test('forget deletes the history of a device; without a daemon the table can be changed', async () => {
  const pipeline = await start('truck-1,TRK-1\n')
  await publish(pipeline, 'truck-1')
  const { status, stdout } = await run(pipeline, ['forget', 'truck-1'])
  expect([status, stdout]).toEqual([0, 'Its history is deleted.\n'])
  const { ops } = pipeline.gateway.addresses
  const view = (await (await fetch(`${ops}/devices/truck-1`)).json()) as { messages: number; state: string }
  expect(view).toMatchObject({ messages: 0, state: 'never_sent' })
  await publish(pipeline, 'truck-1')
  expect(await (await fetch(`${ops}/devices/truck-1`)).json()).toMatchObject({ messages: 1 })
  await pipeline.gateway.stop('to change the table')
  const added = await run(pipeline, ['add', 'truck-2'])
  expect([added.status, added.stdout]).toEqual([0, expect.stringContaining('No daemon answers')])
})
