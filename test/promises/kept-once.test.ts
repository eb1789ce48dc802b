// A reading that is kept has one effect, however often it comes: in several messages, because a device sends its last
// records in each, or in one message that comes again under another packet identifier.

import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { configText } from '../support/config-text.ts'
import { newFolder } from '../support/folders.ts'
import { send } from '../support/ops-world.ts'
import { startPipeline, type Pipeline } from '../support/pipeline-world.ts'

const start = Date.now() - 60_000

type World = {
  pipeline: Pipeline
  folder: string
  /** Each under another packet identifier. */
  publish(topic: string, ...messages: readonly unknown[]): Promise<void>
  edit(from: string, to: string): Promise<void>
  list(devices: readonly string[]): Promise<void>
  post(path: string): Promise<unknown>
  get(path: string): Promise<unknown>
  /** When the service has so many payloads and nothing waits: what it has, and what came twice. */
  delivered(count: number): Promise<{ payloads: number; twice: number }>
  kept(): Promise<{ dead: number; quarantined: number }>
}

async function startDepot({ folder = '', listed = ['a', 'b'] } = {}): Promise<World> {
  const place = folder === '' ? await newFolder() : folder
  const list = (devices: readonly string[]) =>
    writeFile(join(place, 'devices.csv'), ['device', ...devices, ''].join('\n'))
  await list(listed)
  const config = configText({
    sources: `
  - name: buffers
    topic: buffers/{device}
    each: last
    map: { time: { path: ts, format: ms }, latitude: { path: lat }, longitude: { path: lon } }
  - name: doors
    topic: doors/{device}
    map: { signals: [{ type: DOOR, path: open }] }
  - name: fleet
    topic: fleet/{client}
    each: vehicles
    device: { path: id }
    map: { time: { path: ts, format: ms }, latitude: { path: lat }, longitude: { path: lon } }
  - name: trucks
    topic: trucks/{device}
    map: { time: { path: ts, format: ms }, latitude: { path: lat }, longitude: { path: lon } }`,
    more: `devices: { file: devices.csv, unknown: quarantine }
clocks: { trust_local: true }`,
  })
  const pipeline = await startPipeline({ folder: place, config })
  let connections = 0
  const request = async (path: string, method: 'GET' | 'POST') =>
    (await send(pipeline.gateway.addresses.control, path, { method })).json()
  const settled = () =>
    pipeline.until(() => pipeline.status().internals.conservation.messages.difference === 0)
  return {
    pipeline,
    folder: place,
    list,
    async publish(topic, ...messages) {
      for (const message of messages) {
        // One client, which connects anew for each.
        const device = await pipeline.device('depot')
        connections += 1
        const payload = typeof message === 'string' ? message : JSON.stringify(message)
        device.publish({ topic, payload, messageId: connections })
        await device.acked(1)
        device.destroy()
        await device.gone()
      }
    },
    async edit(from, to) {
      const path = join(place, 'gateway.yaml')
      const text = await readFile(path, 'utf8')
      expect(text).toContain(from)
      await writeFile(path, text.replace(from, to))
      expect(await pipeline.gateway.reload('test')).toMatchObject({ kind: 'reloaded' })
    },
    post: (path) => request(path, 'POST'),
    get: async (path) => (await send(pipeline.gateway.addresses.ops, path)).json(),
    async delivered(count) {
      await pipeline.until(() => {
        const { payloads, delivered } = pipeline.status().totals
        return payloads === delivered && pipeline.sandbox.stats().distinctPayloadIds >= count
      })
      const { distinctPayloadIds, payloadsAccepted } = pipeline.sandbox.stats()
      return { payloads: distinctPayloadIds, twice: payloadsAccepted - distinctPayloadIds }
    },
    async kept() {
      await settled()
      const { deadLetters, quarantined } = pipeline.status().spool
      return { dead: deadLetters, quarantined }
    },
  }
}

const record = (n: number, lat = 'lat') => ({ ts: start + n * 1000, [lat]: 52 + n / 1000, lon: 13.4 })

describe('a record that was kept in two messages', () => {
  const buffers = [{ last: [record(1, 'y'), record(2, 'y')] }, { last: [record(2, 'y'), record(3, 'y')] }]

  test('is sent once by a remap, which counts the other one', async () => {
    const depot = await startDepot()
    await depot.publish('buffers/a', ...buffers)
    expect(await depot.kept()).toEqual({ dead: 2, quarantined: 0 })
    await depot.edit(
      'each: last\n    map: { time: { path: ts, format: ms }, latitude: { path: lat }',
      'each: last\n    map: { time: { path: ts, format: ms }, latitude: { path: y }',
    )
    expect(await depot.post('/control/dead-letters/remap')).toMatchObject({
      remapped: 2,
      payloads: 3,
      duplicates: 1,
    })
    expect(await depot.delivered(3)).toEqual({ payloads: 3, twice: 0 })
    // What a remap has sent is known when the device sends it once more.
    await depot.publish('buffers/a', { last: [record(3, 'y'), record(4, 'y')] })
    expect(await depot.delivered(4)).toEqual({ payloads: 4, twice: 0 })
  })

  test('is sent once by two releases, with a restart between them', async () => {
    const depot = await startDepot({ listed: [] })
    await depot.publish('buffers/a', { last: [record(1), record(2)] })
    await depot.list(['a'])
    await depot.pipeline.until(() => depot.pipeline.sandbox.stats().distinctPayloadIds === 2)
    await depot.list(['b'])
    expect(await depot.pipeline.gateway.reload('test')).toMatchObject({ kind: 'reloaded' })
    await depot.publish('buffers/a', { last: [record(2), record(3)] })
    expect(await depot.kept()).toEqual({ dead: 0, quarantined: 1 })
    await depot.pipeline.gateway.stop('to start it again')
    const again = await startDepot({ folder: depot.folder, listed: ['a'] })
    await again.pipeline.until(() => again.pipeline.status().spool.quarantined === 0)
    expect(await again.delivered(1)).toEqual({ payloads: 1, twice: 0 })
  })
})

describe('a message that is kept and comes again under another packet identifier', () => {
  const tomorrow = { ts: start + 86_400_000, lat: 52, lon: 13 }

  test('is kept once, also over a restart, and restamped once', async () => {
    const depot = await startDepot()
    await depot.publish('trucks/a', tomorrow, tomorrow)
    expect(await depot.kept()).toEqual({ dead: 0, quarantined: 1 })
    expect(depot.pipeline.status().totals).toMatchObject({ messages: 2, acked: 2 })
    await depot.pipeline.gateway.stop('to start it again')
    const again = await startDepot({ folder: depot.folder })
    await again.publish('trucks/a', tomorrow)
    expect(await again.kept()).toEqual({ dead: 0, quarantined: 1 })
    expect(await again.post('/control/quarantine/release?restamp=1&device=a')).toMatchObject({
      released: 1,
      payloads: 1,
    })
    await again.publish('trucks/a', tomorrow)
    expect(await again.delivered(1)).toEqual({ payloads: 1, twice: 0 })
    expect(await again.kept()).toEqual({ dead: 0, quarantined: 0 })
  })

  test.each([
    ['without a position', 'trucks/a', { ts: start, y: 1 }, { dead: 1, quarantined: 0 }],
    [
      'of an unlisted device',
      'trucks/stranger',
      { ts: start, lat: 52, lon: 13 },
      { dead: 0, quarantined: 1 },
    ],
    [
      'of several vehicles',
      'fleet/depot',
      {
        vehicles: [
          { id: 'a', ts: start, lat: 52, lon: 13 },
          { id: 'a', ts: start },
          { id: 'b', ts: start + 86_400_000, lat: 52, lon: 13 },
          { id: 'stranger', ts: start, lat: 52, lon: 13 },
        ],
      },
      { dead: 1, quarantined: 2 },
    ],
  ])('%s is kept once', async (_, topic, message, kept) => {
    const depot = await startDepot()
    await depot.publish(topic, message, message, message)
    expect(await depot.kept()).toEqual(kept)
  })

  test.each([
    ['without a device time', 'doors/stranger', { open: 1 }, { dead: 0, quarantined: 2 }],
    ['that has none although it should', 'trucks/a', { lat: 52, lon: 13 }, { dead: 2, quarantined: 0 }],
    ['that cannot be read', 'trucks/a', 'no json', { dead: 2, quarantined: 0 }],
  ])('%s may be another reading, and is kept twice', async (_, topic, message, kept) => {
    const depot = await startDepot()
    await depot.publish(topic, message, message)
    expect(await depot.kept()).toEqual(kept)
  })
})
