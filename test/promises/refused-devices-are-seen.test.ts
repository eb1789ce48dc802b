// A device that is refused is not shown as one that sends, nor with the state of another: by the service, where its
// payloads are retried, or by the broker. Another client that has its client id keeps it from nothing.

import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { runCli } from '../support/cli-world.ts'
import { configText } from '../support/config-text.ts'
import { eventually } from '../support/eventually.ts'
import { newFolder } from '../support/folders.ts'
import { createDevice, type Device } from '../support/mqtt-device.ts'
import { messageOf, startPipeline, topicOf } from '../support/pipeline-world.ts'

test('a device is not accepted from its third refused payload on, and not by its first one', async () => {
  const pipeline = await startPipeline({
    sandbox: { faults: { fail: [{ device: 'truck-2' }] } },
    sections: { delivery: 'batch: { max_payloads: 2, linger: 1s }' },
  })
  const devices = [await pipeline.device('truck-1'), await pipeline.device('truck-2')]
  const shown = async () =>
    (await runCli(['devices', '--state', 'not_accepted', '--url', pipeline.gateway.addresses.ops, '--json']))
      .stdout
  for (let n = 1; n <= 3; n += 1) {
    expect(await shown()).not.toContain('truck')
    for (const [index, device] of devices.entries())
      device.publish({ topic: topicOf(`truck-${index + 1}`), payload: messageOf(n), messageId: n })
    // In batches of both: those of the second device alone would be an outage.
    await pipeline.until(() => {
      const { delivered, retried } = pipeline.status().totals
      return delivered === n && retried === n
    })
  }
  const { devices: list } = JSON.parse(await shown()) as {
    devices: { device: string; lastRefused: { outcome: string; times: number } }[]
  }
  expect(list.map(({ device, lastRefused: { outcome, times } }) => [device, outcome, times])).toEqual([
    ['truck-2', 'retried', 3],
  ])
})

test('a device whose client id another identity holds gets in, and is shown by its own connection', async () => {
  const folder = await newFolder()
  await writeFile(join(folder, 'devices.csv'), 'device,asset_id\ntruck-1,TRK-1\ntruck-2,TRK-2\n')
  const user = (name: string) => `{ name: ${name}, password: "\${env:PASSWORD}" }`
  const pipeline = await startPipeline({
    folder,
    config: configText({
      broker: `{ listeners: [{ url: "mqtt://127.0.0.1:0" }], access: { users: [${['truck-1', 'truck-2', 'spare'].map(user).join(', ')}] } }`,
      more: 'devices: { file: devices.csv }',
    }),
    deps: { env: { ...process.env, AWS_ACCESS_KEY_ID: 'x', AWS_SECRET_ACCESS_KEY: 'x', PASSWORD: 'right' } },
  })
  const { control, mqtt } = pipeline.gateway.addresses
  async function connect(clientId: string, username: string) {
    const device = await createDevice({ port: Number(new URL(mqtt[0]!).port), clientId })
    onTestFinished(() => device.destroy())
    const { returnCode } = await device.connect({ username, password: Buffer.from('right') })
    expect(returnCode).toBe(0)
    return device
  }
  const shown = async (name: string) => (await runCli(['devices', 'show', name, '--url', control])).stdout
  async function send(device: Device, name: string, n: number) {
    device.publish({ topic: topicOf(name), payload: messageOf(n), messageId: n })
    await device.acked(1)
  }

  const before = await connect('truck-1', 'truck-1')
  await send(before, 'truck-1', 1)
  before.destroy()
  await eventually(async () => (await shown('truck-1')).includes('connection lost'))
  // The second one was never heard of.
  for (const [index, name] of ['truck-1', 'truck-2'].entries()) {
    const holder = await connect(name, 'spare')
    const truck = await connect(name, name)
    await send(truck, name, 2 + index)
    expect(await shown(name)).toMatch(new RegExp(`state +sending[^]*identity +${name}\\n`))
    truck.destroy()
    await eventually(async () => (await shown(name)).includes('connection lost'))
    expect(holder.closed).toBe(false)
  }
  expect(pipeline.status().devices.idShared).toBe(0)
})
