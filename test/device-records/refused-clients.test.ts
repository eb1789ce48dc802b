import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import type { DeviceView } from '../../src/ops/ops.ts'
import { configText } from '../support/config-text.ts'
import type { Clock } from '../../src/std/clock.ts'
import { createFastClock } from '../support/fast-clock.ts'
import { runCli } from '../support/cli-world.ts'
import { eventually } from '../support/eventually.ts'
import { newFolder } from '../support/folders.ts'
import { createDevice, type Device } from '../support/mqtt-device.ts'
import { messageOf, startPipeline, topicOf, type Pipeline } from '../support/pipeline-world.ts'

const config = configText({
  broker: `
    listeners: [{ url: "mqtt://127.0.0.1:0" }]
    access: { users: [{ name: truck-1, password: "\${env:ONE}" }, { name: truck-2, password: "\${env:TWO}" }] }
    rules: { publish: [{ topics: ["telemetry/v1/{identity}"] }] }`,
  more: 'devices: { file: ./devices.csv, unknown: accept }',
})

async function start(folder: string, clock?: Clock): Promise<Pipeline> {
  await writeFile(join(folder, 'devices.csv'), 'device,asset_id\ntruck-1,TRK-1\ntruck-2,TRK-2\n')
  const env = { ONE: 'first', TWO: 'second', AWS_ACCESS_KEY_ID: 'AKIDEXAMPLE', AWS_SECRET_ACCESS_KEY: 'x' }
  return startPipeline({ config, folder, deps: { env }, ...(clock && { clock }) })
}

async function connectionTo(pipeline: Pipeline, clientId: string): Promise<Device> {
  const port = Number(new URL(pipeline.gateway.addresses.mqtt[0] ?? '').port)
  const device = await createDevice({ port, clientId })
  onTestFinished(() => device.destroy())
  return device
}

const asUser = (username: string, password: string) => ({ username, password: Buffer.from(password) })

async function list(pipeline: Pipeline, query = ''): Promise<readonly DeviceView[]> {
  const response = await fetch(`${pipeline.gateway.addresses.ops}/devices${query}`)
  return ((await response.json()) as { devices: DeviceView[] }).devices
}

const named = (views: readonly DeviceView[], name: string) => views.find(({ device }) => device === name)

test('every refused client is in the list, as its device where it has one, and over a restart', async () => {
  const folder = await newFolder()
  const pipeline = await start(folder)
  // By the user name: the client id is that of no device.
  const wrong = await connectionTo(pipeline, 'imei-4711')
  expect(await wrong.connect(asUser('truck-1', 'guess'))).toMatchObject({ returnCode: 4 })
  const modern = await connectionTo(pipeline, 'modern')
  // Anonymous.
  expect(await modern.connect()).toMatchObject({ returnCode: 5 })
  const tls = await connectionTo(pipeline, 'nobody')
  tls.sendBytes(Buffer.from('160301020001000001fc0303', 'hex'))
  await Promise.all([wrong.gone(), modern.gone(), tls.gone()])
  const faulty = async (query: string) => {
    const response = await fetch(`${pipeline.gateway.addresses.ops}/devices?${query}`)
    return ((await response.json()) as { clients: { clientId: string }[] }).clients.map(
      ({ clientId }) => clientId,
    )
  }
  expect(await faulty('find=MODERN')).toEqual(['modern'])
  expect(await faulty('find=truck-1')).toEqual(['imei-4711'])
  expect(await faulty('provider=default')).toEqual([])

  const check = async (from: Pipeline) => {
    const views = await list(from)
    expect(named(views, 'truck-1')).toMatchObject({
      kind: 'device',
      listed: true,
      state: 'refused',
      client: { clientId: 'imei-4711', userName: 'truck-1', fault: { reason: 'bad_credentials', count: 1 } },
    })
    expect(named(views, 'truck-1')?.why).toMatch(/^It was refused from 127\.0\.0\.1, .*password is wrong\.$/)
    expect(named(views, 'truck-2')).toMatchObject({ state: 'never_sent' })
    expect(named(views, 'imei-4711')).toBeUndefined()
    expect(named(views, 'modern')).toMatchObject({ kind: 'client', listed: false, state: 'refused' })
    expect(named(views, 'modern')?.why).toContain('no user name')
    expect(named(views, '127.0.0.1')).toMatchObject({ kind: 'address', state: 'refused' })
    expect(named(views, '127.0.0.1')?.why).toContain('It speaks TLS to a listener without TLS')
    expect(await list(from, '?state=refused')).toHaveLength(3)
  }
  await check(pipeline)
  const { stdout } = await runCli(['devices', 'show', 'modern', '--url', pipeline.gateway.addresses.ops])
  expect(stdout).toMatch(/^last fault +.*no_user_name/m)
  await pipeline.gateway.stop('restart')

  const again = await start(folder)
  await eventually(async () => named(await list(again), 'modern') !== undefined)
  await check(again)
  // With its password it is refused no more.
  const right = await connectionTo(again, 'imei-4711')
  expect(await right.connect(asUser('truck-1', 'first'))).toMatchObject({ returnCode: 0 })
  right.publish({
    topic: 'telemetry/v1/truck-1',
    payload: JSON.stringify({ ts: Date.now(), lat: 1, lon: 2 }),
  })
  await right.acked(1)
  expect(named(await list(again), 'truck-1')).toMatchObject({
    state: 'sending',
    client: { state: 'connected', protocol: 'MQTT 3.1.1', address: '127.0.0.1', refusedAt: null },
  })
})

test('a device that two clients name is in the list once', async () => {
  const pipeline = await start(await newFolder())
  const wrong = await connectionTo(pipeline, 'truck-2')
  await wrong.connect(asUser('truck-2', 'wrong'))
  const modem = await connectionTo(pipeline, 'modem-51')
  await modem.connect({ ...asUser('truck-2', 'x'), protocolVersion: 5 }).catch(() => null)
  await eventually(async () => named(await list(pipeline), 'truck-2')?.client?.clientId === 'modem-51')
  const views = (await list(pipeline)).filter(({ device }) => device === 'truck-2')
  expect(views).toMatchObject([{ kind: 'device', listed: true, state: 'refused' }])
})

test('a client whose messages a rule refuses is refused, though it is connected', async () => {
  const pipeline = await start(await newFolder())
  const device = await connectionTo(pipeline, 'truck-2')
  await device.connect(asUser('truck-2', 'second'))
  device.publish({ topic: 'telemetry/v1/truck-1', payload: '{}' })
  await device.acked(1)
  const view = named(await list(pipeline), 'truck-2')
  expect(view).toMatchObject({ state: 'refused', client: { state: 'connected', refusedMessages: 1 } })
  expect(view?.why).toMatch(/^A rule refuses its messages, the last time /)
  expect(named(await list(pipeline), 'truck-1')).toMatchObject({ state: 'never_sent' })
})

test('a device that sent and is refused later says both', async () => {
  const pipeline = await start(await newFolder())
  const device = await connectionTo(pipeline, 'truck-2')
  await device.connect(asUser('truck-2', 'second'))
  device.publish({
    topic: 'telemetry/v1/truck-2',
    payload: JSON.stringify({ ts: Date.now(), lat: 1, lon: 2 }),
  })
  await device.acked(1)
  device.send({ cmd: 'disconnect' })
  await device.gone()
  await eventually(async () => named(await list(pipeline), 'truck-2')?.client?.state === 'disconnected')
  const wrong = await connectionTo(pipeline, 'truck-2')
  expect(await wrong.connect(asUser('truck-2', 'changed'))).toMatchObject({ returnCode: 4 })
  const [view] = await list(pipeline)
  expect(view).toMatchObject({ device: 'truck-2', state: 'refused', messages: 1, kind: 'device' })
})

test('a client that was connected when the gateway stopped was so until then', async () => {
  const folder = await newFolder()
  const clock = createFastClock(60)
  const first = await start(folder, clock)
  const truck = await connectionTo(first, 'imei-1')
  await truck.connect(asUser('truck-1', 'first'))
  const send = async (n: number) => {
    truck.publish({ topic: topicOf('truck-1'), payload: messageOf(n), messageId: n })
    await truck.acked(n)
  }
  await send(1)
  // By then it was written, and it has not changed since.
  const untilMs = clock.monotonic() + 60_000
  await first.until(() => clock.monotonic() > untilMs)
  await send(2)
  const lastAt = clock.now()
  await first.gateway.stop('the test')

  const second = await start(folder, clock)
  let client: DeviceView['client'] = null
  await eventually(async () => {
    client = named(await list(second), 'truck-1')?.client ?? null
    return client !== null
  })
  expect(client).toMatchObject({ clientId: 'imei-1', state: 'disconnected' })
  expect(Date.parse(client!.since)).toBeGreaterThanOrEqual(lastAt)
})
