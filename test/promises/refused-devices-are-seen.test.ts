// A device that is refused is not shown as one that sends, nor with the state of another: by the service, where its
// payloads are retried, or by the broker, where another client has its client id.

import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { systemClock } from '../../src/std/clock.ts'
import { runCli } from '../support/cli-world.ts'
import { configText } from '../support/config-text.ts'
import { eventually } from '../support/eventually.ts'
import { createFastClock } from '../support/fast-clock.ts'
import { newFolder } from '../support/folders.ts'
import { createDevice } from '../support/mqtt-device.ts'
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

test('a device whose client id another client holds says who that is, and is no silent one', async () => {
  const folder = await newFolder()
  await writeFile(join(folder, 'devices.csv'), 'device,asset_id\ntruck-1,TRK-1\ntruck-2,TRK-2\n')
  const user = (name: string) => `{ name: ${name}, password: "\${env:PASSWORD}" }`
  const pipeline = await startPipeline({
    folder,
    clock: createFastClock(20),
    config: configText({
      broker: `{ listeners: [{ url: "mqtt://127.0.0.1:0" }], access: { users: [${['truck-1', 'truck-2', 'truck-3', 'truck-4', 'spare'].map(user).join(', ')}] } }`,
      more: 'devices: { file: devices.csv }',
    }),
    deps: { env: { ...process.env, AWS_ACCESS_KEY_ID: 'x', AWS_SECRET_ACCESS_KEY: 'x', PASSWORD: 'right' } },
  })
  const { control, mqtt } = pipeline.gateway.addresses
  async function connect(clientId: string, username: string) {
    const device = await createDevice({ port: Number(new URL(mqtt[0]!).port), clientId })
    onTestFinished(() => device.destroy())
    const { returnCode } = await device.connect({ username, password: Buffer.from('right') })
    return { device, returnCode }
  }
  const shown = async (name: string) => (await runCli(['devices', 'show', name, '--url', control])).stdout
  const counts = () => pipeline.status().devices

  const { device: truck } = await connect('truck-1', 'truck-1')
  truck.publish({ topic: topicOf('truck-1'), payload: messageOf(1), messageId: 1 })
  await truck.acked(1)
  truck.destroy()
  // The second one was never heard of.
  for (const name of ['truck-1', 'truck-2']) {
    await eventually(async () => (await connect(name, 'spare')).returnCode === 0)
    expect((await connect(name, name)).returnCode).toBe(2)
    expect(await shown(name)).toMatch(
      new RegExp(
        `client id shared.*Its client id "${name}" is held by the client that is connected as "spare" from 127.0.0.1, since 20.*` +
          `Another one comes with it as "${name}" from 127.0.0.1 and is refused, the last time`,
        's',
      ),
    )
  }
  // One that is known by an id of its own is the one that does not get in; the holder does not look shared.
  const other = await connect('truck-3', 'truck-3')
  other.device.publish({ topic: topicOf('truck-3'), payload: messageOf(3), messageId: 1 })
  await other.device.acked(1)
  const phone = await connect('truck-4', 'truck-4')
  phone.device.publish({ topic: topicOf('truck-4'), payload: messageOf(4), messageId: 1 })
  await phone.device.acked(1)
  phone.device.destroy()
  await eventually(async () => (await shown('truck-4')).includes('connection lost'))
  expect((await connect('truck-3', 'truck-4')).returnCode).toBe(2)
  expect(await shown('truck-4')).toMatch(/state +refused[^]*It is connected as "truck-3" from 127\.0\.0\.1\./)
  expect(await shown('truck-3')).toMatch(/state +sending/)
  other.device.destroy()
  // The first one is silent by then, too: it is counted once.
  const untilMs = systemClock.monotonic() + 3000
  await pipeline.until(() => systemClock.monotonic() > untilMs && counts().idShared === 2)
  expect(counts()).toMatchObject({ neverSent: 0, idShared: 2 })
  const listed = await runCli(['devices', '--state', 'id_shared', '--url', control])
  expect(
    listed.stdout.match(/^truck-\d.*client id shared.*held by the client that is connected as "spare"/gm),
  ).toHaveLength(2)
})
