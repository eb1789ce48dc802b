// A truck that gets another provider, or is accepted, stays one device: nothing of before is silent or lost.

import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { DeviceView } from '../../src/ops/ops.ts'
import { sandboxAccount } from '../../src/sandbox/sandbox.ts'
import { runCli } from '../support/cli-world.ts'
import { newFolder } from '../support/folders.ts'
import { startPipeline, type Pipeline } from '../support/pipeline-world.ts'

const configText =
  (provider = 'north') =>
  (baseUrl: string) => `
ingest: { broker: { listeners: [{ url: mqtt://127.0.0.1:0 }], access: { anonymous: true } } }
sources:
  - { name: trucks, topic: "any/{device}", map: &map { latitude: { path: lat }, longitude: { path: lon } } }
  - { name: vans, topic: "vans/{device}", provider: ${provider}, map: *map }
devices: { file: devices.csv }
spool: { path: ./spool, min_free_bytes: 1B }
delivery:
  base_url: ${baseUrl}
  batch: { linger: 10ms }
  providers:
    - { name: north, provider_key: North Haul }
    - { name: south, provider_key: South Haul }
ops: { listen: 127.0.0.1:0 }
`

const sandbox = {
  accounts: [{ ...sandboxAccount, aggregator: true, providers: ['North Haul', 'South Haul'] }],
}

const tableOf = (folder: string, ...rows: string[]) =>
  writeFile(join(folder, 'devices.csv'), `device,provider\n${rows.join('\n')}\n`)

async function devicesOf(pipeline: Pipeline): Promise<Partial<DeviceView>[]> {
  const response = await fetch(`${pipeline.gateway.addresses.ops}/devices?limit=100&sort=name`)
  const { devices } = (await response.json()) as { devices: DeviceView[] }
  return devices
    .filter(({ kind }) => kind === 'device')
    .map(({ device, provider, messages, state }) => ({ device, provider, messages, state }))
}

test('a truck is one device with its history after each change of its provider, and after a restart', async () => {
  const folder = await newFolder()
  await tableOf(folder, 'truck-1,north', 'truck-2,north')
  const writeConfig = (text: string) => writeFile(join(folder, 'gateway.yaml'), text)
  const first = await startPipeline({ folder, config: configText(), sandbox })
  const device = await first.device('truck')
  const send = (topic: string) => device.publish({ topic, payload: '{"lat":60.1,"lon":24.9}' })
  const received = (count: number) => first.until(() => first.status().totals.messages === count)
  for (const topic of ['any/truck-1', 'any/truck-2', 'vans/van-1', 'any/truck-3']) send(topic)
  await received(4)

  await tableOf(folder, 'truck-1,south', 'truck-2,south')
  await first.gateway.reload('the test')
  send('any/truck-1')
  await received(5)
  // Its message was kept under no provider of the config.
  const accept = ['devices', 'accept', 'truck-3', '--provider', 'north', '--config']
  expect(await runCli([...accept, join(folder, 'gateway.yaml')])).toMatchObject({ status: 0 })
  await first.gateway.reload('the test')
  send('any/truck-3')
  await received(6)
  await writeConfig(configText('south')(first.baseUrl))
  await first.gateway.reload('the test')
  send('vans/van-1')
  await received(7)

  const expected = [
    { device: 'truck-1', provider: 'south', messages: 2, state: 'sending' },
    { device: 'truck-2', provider: 'south', messages: 1, state: 'sending' },
    { device: 'truck-3', provider: 'north', messages: 2, state: 'sending' },
    { device: 'van-1', provider: 'south', messages: 2, state: 'sending' },
  ]
  expect(await devicesOf(first)).toEqual(expected)
  expect(first.status().devices).toMatchObject({ total: 4, sending: 4 })
  await first.gateway.stop('the test')

  const second = await startPipeline({ folder, config: configText('south'), sandbox })
  await second.until(() => (second.status().devices?.seen ?? 0) >= 4)
  expect(await devicesOf(second)).toEqual(expected)
})
