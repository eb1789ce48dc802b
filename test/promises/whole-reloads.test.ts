// A reload that is refused changes nothing: an operator who reads "refused" at night may go on from what was in force.

import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { hashPassword } from '../../src/std/passwords/passwords.ts'
import { startHttpReceiver } from '../support/alert-world.ts'
import { newFolder } from '../support/folders.ts'
import { createDevice } from '../support/mqtt-device.ts'
import { startPipeline, type Pipeline } from '../support/pipeline-world.ts'

const codes = (pipeline: Pipeline) => pipeline.status().conditions.map(({ code }) => code)

async function returnCode(pipeline: Pipeline, username: string): Promise<number> {
  const port = Number(new URL(pipeline.gateway.addresses.mqtt[0]!).port)
  const device = await createDevice({ port, clientId: `truck-of-${username}` })
  onTestFinished(() => device.destroy())
  return (await device.connect({ username, password: Buffer.from('right') })).returnCode ?? -1
}

test('a reload whose device table cannot be read leaves users and receivers of alerts as they were', async () => {
  const hash = await hashPassword('right', 12)
  const folder = await newFolder()
  const receivers = { old: await startHttpReceiver(), new: await startHttpReceiver() }
  const sourceOf = (name: string) =>
    `{ name: ${name}, topic: "${name}/{device}", map: { latitude: { path: lat }, longitude: { path: lon } } }`
  const sourcesOf = { old: ['telemetry'].map(sourceOf), new: ['telemetry', 'trailers'].map(sourceOf) }
  const configOf = (which: 'old' | 'new', baseUrl: string) => `
ingest: { broker: { listeners: [{ url: "mqtt://127.0.0.1:0" }], access: { users: [{ name: ${which}, password: "\${file:hash}" }] } } }
sources: [${sourcesOf[which].join()}]
devices: { file: ./devices.csv, unknown: accept }
spool: { path: ./spool, max_bytes: 1GiB, min_free_bytes: 1MiB }
delivery: { base_url: "${baseUrl}" }
ops: { listen: "127.0.0.1:0" }
alerts: { wait: 0s, receivers: [{ name: ${which}, type: webhook, url: "${receivers[which].url}" }] }
`
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
