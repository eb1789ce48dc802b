import { readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { LaneId } from '../../../src/domain/ids.ts'
import { seqKey, table } from '../../../src/spool/chunk-log/key-layout.ts'
import { openLevelStore } from '../../../src/storage/storage.ts'
import { runCli } from '../../support/cli-world.ts'
import { newFolder } from '../../support/folders.ts'
import { refusedMessage, refusedPayload } from '../../support/dead-letters-world.ts'
import { ended, flipLastByte, openSpoolWorld } from '../../support/open-spool.ts'
import { messageOf, startPipeline, topicOf } from '../../support/pipeline-world.ts'
import { useElsewhere } from '../../support/spool-process.ts'
import { exchangeOf, keptNamed } from '../../support/spool-world.ts'

const away = 'batch: { linger: 20ms }, timeout: 1s'

/** The spool of a stopped daemon that could not deliver, with 5 payloads. */
async function undelivered(): Promise<{ folder: string; spool: string }> {
  const folder = await newFolder()
  const pipeline = await startPipeline({
    folder,
    baseUrl: 'http://127.0.0.1:1',
    sections: { delivery: away },
  })
  const device = await pipeline.device('truck-1')
  for (let n = 1; n <= 5; n += 1)
    device.publish({ topic: topicOf('truck-1'), payload: messageOf(n), messageId: n })
  await device.acked(5)
  await pipeline.gateway.stop('the machine is replaced')
  return { folder, spool: join(folder, 'spool') }
}

async function salvaged(spool: string): Promise<{ to: string; stdout: string }> {
  const to = join(await newFolder(), 'salvaged')
  const { status, stdout } = await runCli(['spool', 'salvage', '--path', spool, '--to', to])
  expect(status).toBe(0)
  return { to, stdout }
}

describe('spool verify', () => {
  test('lists the problems of a damaged spool and ends with status 1', async () => {
    const { spool } = await undelivered()
    const store = await openLevelStore(join(spool, 'store'))
    const key = seqKey(table.chunks, 1 as LaneId, 0)
    await store.write([{ type: 'put', key, value: flipLastByte((await store.get(key))!) }], { sync: true })
    await store.close()
    const { status, stdout } = await runCli(['spool', 'verify', '--path', spool])
    expect(status).toBe(1)
    expect(stdout).toMatch(/^Problems:\n {2}chunks, record 0000000100+: its checksum is wrong\.$/m)
  })

  test('reports one that is in use', async () => {
    const { path, spool } = await openSpoolWorld()
    await spool.close()
    await useElsewhere(path)
    expect((await runCli(['spool', 'verify', '--path', path])).stderr).toMatch(/^SPOOL_LOCKED/)
  })
})

describe('spool salvage', () => {
  test('payloads of a broken spool are imported by another gateway and delivered once', async () => {
    const { spool } = await undelivered()
    // The files that name the tables of the database are lost.
    const store = join(spool, 'store')
    for (const name of await readdir(store)) if (/^(CURRENT|MANIFEST)/.test(name)) await rm(join(store, name))
    const files = async () => (await readdir(store)).sort().join(' ')
    const before = await files()
    const { to, stdout } = await salvaged(spool)
    expect(stdout).toMatch(/^ {2}payloads\.ndjson +5$/m)
    expect(stdout.match(/--file \S+/g)).toEqual([`--file ${to}/payloads.ndjson`])
    expect(stdout).toMatch(/^ {2}CURRENT cannot be read: the file is missing\.$/m)
    expect(await files()).toBe(before)
    expect(await readdir(to)).toEqual(expect.arrayContaining(['payloads.ndjson', 'report.json']) as string[])

    const pipeline = await startPipeline()
    const url = pipeline.gateway.addresses.control
    const file = join(to, 'payloads.ndjson')
    const taken = await runCli(['dead-letters', 'requeue', '--file', file, '--url', url])
    expect(taken.stdout).toBe('5 payloads will be sent to the ingestion API.\n')
    await pipeline.until(() => pipeline.status().totals.delivered === 5)
    expect(pipeline.sandbox.stats()).toMatchObject({ distinctPayloadIds: 5, duplicatesAcrossBatches: 0 })
  })

  test('kept messages and dead letters are imported through the mapping', async () => {
    const world = await openSpoolWorld()
    const { message } = keptNamed(topicOf('truck-9'))
    const bytes = Buffer.from(messageOf(7)).toString('base64')
    world.spool.keepMessage({ ...message, envelope: { ...message.envelope, bytes } })
    await ended(world.spool)
    await world.spool.exchange(exchangeOf({ deadLetters: [refusedPayload('a'), refusedMessage('other')] }))
    await world.spool.close()
    const { to } = await salvaged(world.path)
    const report = JSON.parse(await readFile(join(to, 'report.json'), 'utf8')) as unknown
    expect(report).toMatchObject({
      problems: [],
      files: [
        { file: 'dead-letters.ndjson', lines: 2 },
        { file: 'messages.ndjson', lines: 1 },
      ],
    })
    const pipeline = await startPipeline()
    const url = pipeline.gateway.addresses.control
    for (const name of ['messages.ndjson', 'dead-letters.ndjson'])
      expect((await runCli(['dead-letters', 'requeue', '--file', join(to, name), '--url', url])).status).toBe(
        0,
      )
    await pipeline.until(() => pipeline.sandbox.received({ device: 'truck-9', limit: 1 }).length === 1)
    const { stdout } = await runCli(['dead-letters', 'list', '--url', url])
    expect(stdout).toMatch(/NO_SOURCE/)
  })

  test('values that waited to become a payload are imported as messages, and sent', async () => {
    const config = (baseUrl: string) => `
ingest: { broker: { listeners: [{ url: mqtt://127.0.0.1:0 }], access: { anonymous: true } } }
sources:
  - name: values
    topic: vehicles/{device}/{metric}
    encoding: scalar
    coalesce: { name: "{metric}", window: 1h, require: [latitude, longitude] }
    map: { time: { format: arrival }, latitude: { path: latitude }, longitude: { path: longitude } }
defaults: { carrier: ACME, operator: OP1, asset_type: TRACTOR }
spool: { path: ./spool }
delivery: { base_url: "${baseUrl}", credentials: { source: environment } }
ops: { listen: 127.0.0.1:0 }
`
    const first = await startPipeline({ config })
    const device = await first.device('truck-1')
    device.publish({ topic: 'vehicles/truck-1/latitude', payload: '48.1', messageId: 1 })
    device.publish({ topic: 'vehicles/truck-1/longitude', payload: '11.5', messageId: 2 })
    await device.acked(2)
    await first.gateway.stop('the machine is replaced')
    const { to, stdout } = await salvaged(join(first.folder, 'spool'))
    expect(stdout).toMatch(/^ {2}open-parts\.ndjson +1$/m)
    expect(stdout).toMatch(/^ {2}state\.ndjson +1$/m)
    const second = await startPipeline({ config })
    const file = join(to, 'open-parts.ndjson')
    const url = second.gateway.addresses.control
    expect((await runCli(['dead-letters', 'requeue', '--file', file, '--url', url])).status).toBe(0)
    await second.until(() => second.status().totals.delivered === 1)
    expect(second.sandbox.received({ device: 'truck-1', limit: 1 })).toMatchObject([
      { payload: { gps: { latitude: 48.1, longitude: 11.5 } } },
    ])
  })

  test('payloads of a damaged chunk are in a file of their own and are sent without their mark', async () => {
    const { spool } = await undelivered()
    const store = await openLevelStore(join(spool, 'store'))
    const chunks: Buffer[] = []
    for await (const page of store.pages({ gte: Buffer.from([0x10]), lt: Buffer.from([0x11]) }))
      for (const [key] of page) chunks.push(key)
    const key = chunks[0]!
    const value = Buffer.from((await store.get(key))!)
    // Only the checksum is wrong; the payloads are intact.
    value[1]! ^= 0xff
    await store.write([{ type: 'put', key, value }], { sync: true })
    await store.close()
    const { to, stdout } = await salvaged(spool)
    expect(stdout).toMatch(/^ {2}suspect\.ndjson +\d$/m)
    expect(stdout).toMatch(/its checksum is wrong/)
    const pipeline = await startPipeline()
    const url = pipeline.gateway.addresses.control
    const file = join(to, 'suspect.ndjson')
    const left = await runCli(['dead-letters', 'requeue', '--file', file, '--url', url])
    expect(left.stdout).toMatch(/^0 payloads will be sent[\s\S]* suspect left out/)
    const lines = (await readFile(file, 'utf8')).replaceAll(/"suspect":"[^"]*",/g, '')
    const sent = await runCli(['dead-letters', 'requeue', '--file', '-', '--url', url], { stdin: lines })
    expect(sent.stdout).toMatch(/^[1-5] payloads? will be sent to the ingestion API\.\n$/)
  })
})
