// A reload that is refused changes nothing: an operator who reads "refused" at night may go on from what was in force.

import { existsSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { expect, test } from 'vitest'
import { hashPassword } from '../../src/std/passwords/passwords.ts'
import { configText } from '../support/config-text.ts'
import { startHttpReceiver } from '../support/alert-world.ts'
import { newFolder } from '../support/folders.ts'
import { createDevice } from '../support/mqtt-device.ts'
import { eventually } from '../support/eventually.ts'
import { startPipeline, type Pipeline } from '../support/pipeline-world.ts'
import { runCli } from '../support/cli-world.ts'
import { openLevelStore, type OpenStore } from '../../src/storage/storage.ts'

const codes = (pipeline: Pipeline) => pipeline.status().conditions.map(({ code }) => code)

async function returnCode(pipeline: Pipeline, username: string): Promise<number> {
  const port = Number(new URL(pipeline.gateway.addresses.mqtt[0]!).port)
  const device = await createDevice({ port, clientId: `truck-of-${username}` })
  const { returnCode = -1 } = await device.connect({ username, password: Buffer.from('right') })
  // A reload that withdraws the access of most of the connected clients would be refused.
  device.destroy()
  await pipeline.until(() => pipeline.status().clients.connections === 0)
  return returnCode
}

test('a reload whose device table cannot be read leaves users and receivers of alerts as they were', async () => {
  const hash = await hashPassword('right', 12)
  const folder = await newFolder()
  const receivers = { old: await startHttpReceiver(), new: await startHttpReceiver() }
  const sourceOf = (name: string) =>
    `{ name: ${name}, topic: "${name}/{device}", map: { latitude: { path: lat }, longitude: { path: lon } } }`
  const sourcesOf = { old: ['telemetry'].map(sourceOf), new: ['telemetry', 'trailers'].map(sourceOf) }
  const configOf = (which: 'old' | 'new', baseUrl: string) =>
    configText({
      broker: `{ listeners: [{ url: "mqtt://127.0.0.1:0" }], access: { users: [{ name: ${which}, password: "\${file:hash}" }] } }`,
      sources: `[${sourcesOf[which].join()}]`,
      delivery: '',
      more: `devices: { file: ./devices.csv, unknown: accept }
alerts: { wait: 0s, receivers: [{ name: ${which}, type: webhook, url: "${receivers[which].url}" }] }`,
    })(baseUrl)
  await writeFile(join(folder, 'hash'), hash)
  await writeFile(join(folder, 'devices.csv'), 'device,asset_id\ntruck-1,TRK-1\n')
  const pipeline = await startPipeline({ folder, config: (baseUrl) => configOf('old', baseUrl) })
  const sources = () => pipeline.status().mapping?.sources
  const reload = async (which: 'old' | 'new', table: string) => {
    await writeFile(join(folder, 'devices.csv'), table)
    await writeFile(join(folder, 'gateway.yaml'), configOf(which, pipeline.baseUrl))
  }

  await reload('new', 'device,asset_id\n"truck-1\n')
  await pipeline.until(() => codes(pipeline).includes('MAPPING_STALE'))
  expect(await returnCode(pipeline, 'old')).toBe(0)
  expect(await returnCode(pipeline, 'new')).not.toBe(0)
  expect(sources()).toBe(1)
  await pipeline.until(() => receivers.old.requests.length > 0)
  expect(receivers.new.requests).toEqual([])

  await reload('new', 'device,asset_id\ntruck-1,TRK-1\n')
  await pipeline.until(() => !codes(pipeline).includes('MAPPING_STALE'))
  expect(await returnCode(pipeline, 'new')).toBe(0)
  expect(await returnCode(pipeline, 'old')).not.toBe(0)
  expect(sources()).toBe(2)
})

test('a reload during the start is in force when the command says so', async () => {
  const folder = await newFolder()
  // As it is at every start but the first, so that the control socket is there at once.
  await mkdir(join(folder, 'spool'))
  const opened = Promise.withResolvers<void>()
  let isHeld = false
  let heldReads = 0
  /** What is read after the recovery of the spool waits. */
  const openStore: OpenStore = async (path) => {
    const store = await openLevelStore(path)
    return {
      ...store,
      async *pages(...range) {
        if (isHeld && basename(path) !== 'records') {
          heldReads += 1
          await opened.promise
        }
        yield* store.pages(...range)
      },
    }
  }
  const configOf = (field: string, baseUrl: string) =>
    configText({
      sources: `[{ name: trucks, topic: "telemetry/{device}", map: { latitude: { path: lat }, longitude: { path: lon }, speed: { path: ${field}, unit: km/h } } }]`,
    })(baseUrl)
  let serviceUrl = ''
  const starting = startPipeline({
    folder,
    config: (baseUrl) => configOf('v', (serviceUrl = baseUrl)),
    deps: { openStore, observe: ({ kind }) => void (isHeld ||= kind === 'spool_recovered') },
  })
  await eventually(() => heldReads > 0 && existsSync(join(folder, 'spool.sock')))
  await writeFile(join(folder, 'gateway.yaml'), configOf('speed', serviceUrl))
  const reload = runCli(['reload', '--socket', join(folder, 'spool.sock')])
  // By then its request is there: it is answered, or waits for the end of the start.
  const socket = join(folder, 'spool.sock')
  for (let asked = 0; asked < 3; asked += 1) await runCli(['status', '--socket', socket])
  opened.resolve()
  const pipeline = await starting
  expect(await reload).toMatchObject({ status: 0, stderr: '' })
  const device = await pipeline.device('truck-1')
  device.publish({ topic: 'telemetry/truck-1', payload: '{"lat":52,"lon":13,"speed":123.25}', messageId: 1 })
  await device.acked(1)
  await eventually(() => pipeline.sandbox.received({ limit: 10 }).length > 0)
  expect(JSON.stringify(pipeline.sandbox.received({ limit: 10 }))).toContain('123.25')
})
