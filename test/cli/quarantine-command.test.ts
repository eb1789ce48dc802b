import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { QuarantineView } from '../../src/ops/ops.ts'
import { configText } from '../support/config-text.ts'
import { runCli, type CliResult } from '../support/cli-world.ts'
import { newFolder } from '../support/folders.ts'
import { messageOf, startPipeline, topicOf, type Pipeline } from '../support/pipeline-world.ts'

type World = {
  pipeline: Pipeline
  ask(...words: string[]): Promise<CliResult>
  list(text: string): Promise<void>
}

async function start(): Promise<World> {
  const folder = await newFolder()
  const list = (text: string) => writeFile(join(folder, 'devices.csv'), text)
  await list('device\ntruck-1\ntruck-2\n')
  const config = configText({ more: 'devices: { file: devices.csv, unknown: quarantine }' })
  const pipeline = await startPipeline({ folder, config })
  const ask = (...words: string[]) =>
    runCli(['quarantine', ...words, '--url', pipeline.gateway.addresses.control])
  return { pipeline, ask, list }
}

/** Messages of a clock that was never set. */
async function publishUnset(pipeline: Pipeline, name: string, numbers: readonly number[]): Promise<void> {
  const device = await pipeline.device(name)
  for (const n of numbers)
    device.publish({ topic: topicOf(name), payload: messageOf(n, { ts: n * 1000 }), messageId: n })
  await device.acked(numbers.length)
  device.destroy()
}

const deliveredTimes = ({ sandbox }: Pipeline) =>
  sandbox
    .received({ limit: 1000 })
    .map(({ payload }) => (payload as { signalTimestamp: number }).signalTimestamp)

function addsUp(pipeline: Pipeline): void {
  const { conservation } = pipeline.status().internals
  expect(conservation.messages.difference).toBe(0)
  expect(conservation.payloads.difference).toBe(0)
}

describe('quarantine', () => {
  test('lists devices and reasons, and the messages of a device with their ids', async () => {
    const { pipeline, ask } = await start()
    expect((await ask()).stdout).toBe('The quarantine is empty.\n')
    await publishUnset(pipeline, 'truck-1', [1, 2])
    await publishUnset(pipeline, 'unlisted', [3])
    const { stdout, status } = await ask('list')
    expect(status).toBe(0)
    expect(stdout).toMatch(/^device +reason +messages +oldest +latest +detail of the latest\n/)
    expect(stdout).toMatch(/\ntruck-1 +UNSET_CLOCK +2 .* never set\.\nunlisted +UNKNOWN_DEVICE +1 /)
    const listed = JSON.parse((await ask('list', '--device', 'truck-1', '--json')).stdout) as QuarantineView
    const shelves = [
      { provider: 'default', kind: 'clock', messages: 2 },
      { provider: 'default', kind: 'quarantine', messages: 1 },
    ]
    expect(listed).toMatchObject({ scanned: 2, more: false, shelves })
    expect(listed.messages.map(({ topic, source }) => [topic, source])).toEqual([
      [topicOf('truck-1'), 'trucks'],
      [topicOf('truck-1'), 'trucks'],
    ])
    expect((await ask('list', '--device', 'truck-1')).stdout).toContain(listed.messages[1]?.id)
    expect((await ask('list', '--device', 'unknown')).stdout).toBe(
      'The quarantine has no messages of this device.\n',
    )
  })

  test('release sends one message by its id and the rest restamped', async () => {
    const { pipeline, ask } = await start()
    const before = Date.now()
    await publishUnset(pipeline, 'truck-1', [1, 2, 3])
    const listed = JSON.parse((await ask('list', '--device', 'truck-1', '--json')).stdout) as QuarantineView
    const one = await ask('release', '--device', 'truck-1', '--id', listed.messages[1]?.id ?? '')
    expect(one).toEqual({
      status: 0,
      stdout: '1 message released, 1 payload made.\n',
      stderr: '',
    })
    await pipeline.until(() => pipeline.status().totals.delivered === 1)
    expect(deliveredTimes(pipeline)).toEqual([2000])
    expect((await ask('release', '--all', '--restamp')).stdout).toContain('2 messages released')
    await pipeline.until(() => pipeline.status().totals.delivered === 3)
    expect(deliveredTimes(pipeline).filter((time) => time >= before)).toHaveLength(2)
    expect(pipeline.status().totals).toMatchObject({ quarantined: 3, released: 3, dead: 0 })
    expect(pipeline.log()).toContain('Released')
    addsUp(pipeline)
  })

  test('release refuses an unlisted device, whose messages are sent when the table lists it', async () => {
    const { pipeline, ask, list } = await start()
    const device = await pipeline.device('unlisted')
    device.publish({ topic: topicOf('unlisted'), payload: messageOf(1), messageId: 1 })
    await device.acked(1)
    const refused = await ask('release', '--device', 'unlisted')
    expect(refused).toMatchObject({ status: 1, stdout: '' })
    expect(refused.stderr).toContain('DAEMON_REFUSED')
    expect(refused.stderr).toContain('Add the device to the table (devices.file)')
    expect((await ask('release', '--all')).stdout).toContain(
      '1 message not released: the device table (devices.file) does not list the device.',
    )
    await list('device\ntruck-1\nunlisted\n')
    await pipeline.until(() => pipeline.status().totals.delivered === 1)
    addsUp(pipeline)
  })

  test('drop needs --yes; then the messages are dead letters, counted and logged', async () => {
    const { pipeline, ask } = await start()
    await publishUnset(pipeline, 'truck-1', [1, 2])
    await publishUnset(pipeline, 'truck-2', [3])
    const looked = await ask('drop', '--device', 'truck-1')
    expect(looked.stdout).toBe(
      '2 messages would be dropped.\n  2 UNSET_CLOCK\nNothing was changed. Add --yes to do it.\n',
    )
    expect(pipeline.status().spool).toMatchObject({ quarantined: 3, deadLetters: 0 })
    expect((await ask('drop', '--device', 'truck-1', '--yes')).stdout).toContain('2 messages dropped.')
    expect(pipeline.status().spool).toMatchObject({ quarantined: 1, deadLetters: 2 })
    expect(pipeline.log()).toContain('Dropped 2 messages of device')
    const metrics = await (await fetch(`${pipeline.gateway.addresses.ops}/metrics`)).text()
    expect(metrics).toContain('gateway_quarantine_dropped_total 2\n')
    addsUp(pipeline)
  })
})
