// Clients whose messages never reach a device: the whole gateway, with real connections. A technician asks by any
// name which device is silent, since when and why.

import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { DeviceView } from '../../src/ops/ops.ts'
import { costMin, hashPassword } from '../../src/std/passwords/passwords.ts'
import { configText, positionMap } from '../support/config-text.ts'
import { runCli } from '../support/cli-world.ts'
import { newFolder } from '../support/folders.ts'
import { createDevice, type PublishOptions } from '../support/mqtt-device.ts'
import { get } from '../support/ops-world.ts'
import { startPipeline } from '../support/pipeline-world.ts'

const config = configText({
  broker: '{ listeners: [{ url: "mqtt://127.0.0.1:0" }], access: { anonymous: true, password_file: users } }',
  sources: `
  - { name: trucks, topic: "fleet/{device}/telemetry", map: ${positionMap} }
  - { name: lists, topic: lists/all, device: { path: id }, map: ${positionMap} }
  - { name: own, topic: "own/{device}/telemetry", identity: device, map: ${positionMap} }`,
  more: 'devices: { file: devices.csv }\ndefaults: { carrier: ACME, operator: OP1, asset_type: TRACTOR }',
})

async function world() {
  const folder = await newFolder()
  await writeFile(join(folder, 'devices.csv'), 'device,asset_id\ntruck-7,ACME-7\ntruck-8,ACME-8\n')
  const hash = await hashPassword('right', costMin)
  await writeFile(join(folder, 'users'), `depot:${hash}\nspare:${hash}\n`)
  const pipeline = await startPipeline({ config, folder })
  const { ops } = pipeline.gateway.addresses
  return {
    ...pipeline,
    async connect(clientId: string, username?: string) {
      const port = Number(new URL(pipeline.gateway.addresses.mqtt[0] ?? '').port)
      const device = await createDevice({ port, clientId })
      onTestFinished(() => device.destroy())
      await device.connect(username === undefined ? {} : { username, password: Buffer.from('right') })
      return {
        ...device,
        subscribe(topic: string) {
          device.send({ cmd: 'subscribe', messageId: 1, subscriptions: [{ topic, qos: 1 }] })
        },
        /** Resolves when it is acknowledged, or taken in. */
        async publish({ qos = 1, ...message }: PublishOptions) {
          const { messages } = pipeline.status().totals
          const acks = device.acks.length
          device.publish({ qos, messageId: acks + 1, ...message })
          if (qos === 1) await device.acked(acks + 1)
          else await pipeline.until(() => pipeline.status().totals.messages > messages)
        },
      }
    },
    async ask(key: string): Promise<DeviceView> {
      return JSON.parse((await get(ops, `/devices/${encodeURIComponent(key)}`)).text) as DeviceView
    },
    async list(query = ''): Promise<{ devices: DeviceView[]; total: number; clientsForgotten: number }> {
      return JSON.parse((await get(ops, `/devices${query}`)).text) as never
    },
    cli: (...words: string[]) => runCli([...words, '--socket', join(folder, 'spool.sock')]),
  }
}

describe('a client whose messages name no device', () => {
  test('is told of under its device, its asset, its client id and its user, with the topics that are taken', async () => {
    const { connect, ask, cli, log, status } = await world()
    await (await connect('truck-7', 'depot')).publish({ topic: 'telemetry/v1/truck-7', payload: '{}' })
    for (const key of ['truck-7', 'ACME-7', 'depot']) {
      const view = await ask(key)
      expect(view).toMatchObject({ device: 'truck-7', state: 'not_mapped', messages: 0 })
      expect(view.why).toMatch(
        /It connected as client "truck-7", user "depot", from 127\.0\.0\.1, at 20\S+ \S+ \S+, /,
      )
      expect(view.why).toContain('It sent 1 message that names no device, on "telemetry/v1/truck-7" ')
      expect(view.why).toContain('No source takes this topic')
      expect(view.why).toContain(
        'Sources take "fleet/{device}/telemetry", "lists/all", "own/{device}/telemetry".',
      )
    }
    expect(status().devices).toMatchObject({ total: 2, notMapped: 1, neverSent: 1 })
    expect((await cli('devices', 'ACME-7')).stdout).toContain('No source takes this topic')
    expect((await cli('devices', 'show', 'depot')).stdout).toMatch(/names no device +1 message, the last at /)
    const line =
      log()
        .split('\n')
        .find((one) => one.includes('message_unmappable')) ?? ''
    expect(JSON.parse(line)).toMatchObject({ clientId: 'truck-7', userName: 'depot', address: '127.0.0.1' })
    const letters = JSON.parse((await cli('dead-letters', 'list', '--json')).stdout) as {
      deadLetters: { id: string }[]
    }
    const [{ id } = { id: '' }] = letters.deadLetters
    expect((await cli('dead-letters', 'show', id)).stdout).toMatch(/address +127\.0\.0\.1/)
  })

  test.each<[string, PublishOptions[], RegExp]>([
    [
      'sends only QoS 0 on a topic that no source takes',
      [
        { topic: 'a', payload: '{}', qos: 0 },
        { topic: 'b/c', payload: '{}', qos: 0 },
      ],
      /It sent 2 messages that name no device, the last one on "b\/c" .* No source takes this topic/,
    ],
    [
      'sends messages without the id that the source takes the device from',
      [{ topic: 'lists/all', payload: '{"ts":1}' }],
      /It sent 1 message .* The message of source "lists" became a dead letter: NO_DEVICE: ./,
    ],
    [
      'sends what the source cannot decode, on a topic that names no device',
      [{ topic: 'lists/all', payload: 'no json' }],
      /The message of source "lists" became a dead letter: NOT_JSON: ./,
    ],
    [
      'is ignored by a rule',
      [{ topic: 'own/truck-9/telemetry', payload: '{}' }],
      /A rule refuses its messages/,
    ],
  ])('is in the list where it %s', async (_what, messages, why) => {
    const { connect, list, ask } = await world()
    const client = await connect('odd-1')
    for (const message of messages) await client.publish(message)
    const { devices, total } = await list('?find=odd')
    expect(devices).toMatchObject([{ device: 'odd-1', kind: 'client', client: { address: '127.0.0.1' } }])
    expect(devices[0]?.why).toMatch(why)
    expect((await ask('odd-1')).why).toMatch(why)
    expect(total).toBe(1)
  })

  test('is in the list while it is connected and sends nothing, also where it subscribes', async () => {
    const { connect, list, ask, until, status } = await world()
    const client = await connect('idle-1')
    client.subscribe('x/#')
    await client.until((received) => received.some(({ cmd }) => cmd === 'suback'))
    const view = await ask('idle-1')
    expect(view).toMatchObject({ kind: 'client', state: 'never_sent' })
    expect(view.why).toContain('It sent no message, and subscribed to 1 topic filter. ')
    expect((await list()).total).toBe(3)
    client.end()
    await client.gone()
    await until(() => status().clients.connections === 0)
    expect((await list()).total).toBe(2)
    expect((await ask('idle-1')).why).toContain('client "idle-1", from 127.0.0.1')
  })

  test('is not in the list when its messages name devices, and leads to the device that it sends for', async () => {
    const { connect, list, ask } = await world()
    const client = await connect('tracker-x')
    await client.publish({
      topic: 'fleet/truck-9/telemetry',
      payload: `{"ts":${Date.now()},"lat":1.5,"lon":2.5}`,
    })
    await client.publish({ topic: 'heartbeat', payload: '1' })
    expect((await list()).devices.map(({ device }) => device).sort()).toEqual([
      'truck-7',
      'truck-8',
      'truck-9',
    ])
    expect(await ask('tracker-x')).toMatchObject({ device: 'truck-9', state: 'sending' })
    await client.publish({
      topic: 'fleet/truck-10/telemetry',
      payload: `{"ts":${Date.now()},"lat":1.5,"lon":2.5}`,
    })
    const both = await ask('tracker-x')
    expect(both).toMatchObject({ kind: 'client', state: 'sending' })
    expect(both.why).toContain('the last messages of "truck-9", "truck-10" came from it')
  })

  test('that is a user of the password file and never connected is known by its name', async () => {
    const { ask } = await world()
    expect(await ask('spare')).toMatchObject({ kind: 'user', state: 'never_sent', client: null })
    expect(await ask('nobody')).toMatchObject({ code: 'NOT_FOUND' })
  })
})

test('status counts devices as they are, right after their messages came', async () => {
  const { connect, cli, status } = await world()
  expect(status().devices).toMatchObject({ total: 2, neverSent: 2, sending: 0 })
  const client = await connect('truck-7')
  for (let n = 0; n < 20; n += 1)
    await client.publish({
      topic: 'fleet/truck-7/telemetry',
      payload: `{"ts":${Date.now() + n},"lat":1.5,"lon":2.5}`,
    })
  expect((await cli('status')).stdout).toMatch(/^devices +2: 1 never sent, 1 sending$/m)
})
