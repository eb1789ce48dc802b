import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { GatewayEvent } from '../../src/domain/event.ts'
import { configText } from '../support/config-text.ts'
import { newFolder } from '../support/folders.ts'
import { messageOf, startPipeline, type Pipeline } from '../support/pipeline-world.ts'
import { send } from '../support/ops-world.ts'

type World = {
  pipeline: Pipeline
  edit(from: string | RegExp, to: string): Promise<void>
  list(text: string): Promise<void>
}

/** A gateway whose config and device table are files that the test edits. */
async function start({ unknown = 'quarantine', devices = 'device\n' } = {}): Promise<World> {
  const folder = await newFolder()
  await writeFile(join(folder, 'devices.csv'), devices)
  const config = configText({ more: `devices: { file: devices.csv, unknown: ${unknown} }` })
  const pipeline = await startPipeline({ folder, config })
  const path = join(folder, 'gateway.yaml')
  return {
    pipeline,
    async edit(from, to) {
      const text = await readFile(path, 'utf8')
      const edited = text.replace(from, to)
      if (edited === text) throw new Error('nothing was edited')
      await writeFile(path, edited)
    },
    list: (text) => writeFile(join(folder, 'devices.csv'), text),
  }
}

const kinds = ({ events }: Pipeline) => events.map(({ kind }) => kind)
const countOf = (pipeline: Pipeline, kind: GatewayEvent['kind']) =>
  kinds(pipeline).filter((one) => one === kind).length
const staleIn = (pipeline: Pipeline) => pipeline.condition('MAPPING_STALE')
const delivered = (pipeline: Pipeline) => pipeline.sandbox.received({ limit: 1000 })

describe('a changed file', () => {
  test('with a valid device table is put in force, and the messages of the new device are sent', async () => {
    const { pipeline, list } = await start()
    await pipeline.publish('truck-1', messageOf(1), messageOf(2), messageOf(3))
    expect(pipeline.status().totals).toMatchObject({ quarantined: 3, payloads: 0 })
    await list('device,asset_id\ntruck-1,ASSET-1\n')
    await pipeline.until(() => pipeline.status().totals.delivered === 3)
    await pipeline.publish('truck-1', messageOf(4))
    await pipeline.until(() => pipeline.status().totals.delivered === 4)
    expect(kinds(pipeline)).toContain('mapping_reloaded')
    const { internals, totals, spool } = pipeline.status()
    const { conservation } = internals
    expect(conservation.messages.difference).toBe(0)
    expect(conservation.payloads.difference).toBe(0)
    expect([totals.released, spool.quarantined]).toEqual([3, 0])
  })

  test('with an invalid device table changes nothing, and a condition names the line of every bad row', async () => {
    const { pipeline, list } = await start({ devices: 'device\ntruck-1\n' })
    await list('device\ntruck-1\ntruck-1\n"open\n')
    await pipeline.until(() => staleIn(pipeline) !== undefined)
    expect(staleIn(pipeline)).toMatchObject({ severity: 'error' })
    expect(staleIn(pipeline)?.why).toMatch(/devices\.csv:3 .*devices\.csv:4 /s)
    await pipeline.publish('truck-1', messageOf(1))
    await pipeline.until(() => pipeline.status().totals.delivered === 1)
    await list('device\ntruck-1\ntruck-2\n')
    await pipeline.until(() => staleIn(pipeline) === undefined)
    await pipeline.publish('truck-2', messageOf(2))
    await pipeline.until(() => pipeline.status().totals.delivered === 2)
  })

  test('with an invalid config changes nothing, and a condition names file, line and column', async () => {
    const { pipeline, edit } = await start({ unknown: 'accept' })
    await edit('path: lat }', 'path: lat, unit: furlong }')
    await pipeline.until(() => staleIn(pipeline) !== undefined)
    expect(staleIn(pipeline)?.why).toMatch(/gateway\.yaml:5:\d+ +sources\[0\]\.map\.latitude/)
    await pipeline.publish('truck-1', messageOf(1))
    await pipeline.until(() => pipeline.status().totals.delivered === 1)
    await edit(', unit: furlong', '')
    await pipeline.until(() => staleIn(pipeline) === undefined)
  })

  test('that is not UTF-8 any more changes nothing, and the condition has its line and column', async () => {
    const { pipeline, edit } = await start({ unknown: 'accept' })
    const path = join(pipeline.folder, 'gateway.yaml')
    const before = await readFile(path, 'utf8')
    await writeFile(
      path,
      Buffer.from(before.replace('sources:', 'defaults: { carrier: "M\xfcller" }\nsources:'), 'latin1'),
    )
    await pipeline.until(() => staleIn(pipeline) !== undefined)
    expect(staleIn(pipeline)?.why).toContain('gateway.yaml:5:24  The file is not UTF-8 at line 5, column 24')
    await writeFile(path, before)
    await pipeline.until(() => staleIn(pipeline) === undefined)
    await edit('path: lat }', 'path: breite }')
    await pipeline.until(() => countOf(pipeline, 'mapping_reloaded') > 1)
  })

  test('with another mapping is used for the next message', async () => {
    const { pipeline, edit } = await start({ unknown: 'accept' })
    await pipeline.publish('truck-1', messageOf(1))
    await edit('latitude: { path: lat }', 'latitude: { path: breite }')
    await pipeline.until(() => countOf(pipeline, 'mapping_reloaded') === 1)
    await pipeline.publish('truck-1', messageOf(2).replace('"lat"', '"breite"'))
    await pipeline.until(() => pipeline.status().totals.delivered === 2)
    expect(delivered(pipeline)).toHaveLength(2)
  })
})

describe('a reload on request', () => {
  const post = async ({ gateway }: Pipeline, path: string) => {
    const response = await send(gateway.addresses.control, path, { method: 'POST' })
    return { status: response.status, body: (await response.json()) as Record<string, unknown> }
  }

  test('repeated many times at once reads the files of the last request, in few turns', async () => {
    const { pipeline } = await start()
    const reports = await Promise.all(Array.from({ length: 20 }, () => pipeline.gateway.reload('test')))
    expect(reports.every(({ kind }) => kind === 'reloaded')).toBe(true)
    expect(countOf(pipeline, 'mapping_reloaded')).toBeLessThanOrEqual(2)
  })

  test('maps dead letters again with the mapping in force, after a dry run', async () => {
    const { pipeline, edit } = await start({ unknown: 'accept' })
    await pipeline.publish('truck-1', messageOf(1).replace('"lat"', '"breite"'))
    const deadLetters = async () =>
      (await (await fetch(`${pipeline.gateway.addresses.ops}/dead-letters`)).json()) as Record<
        string,
        unknown
      >
    expect(await deadLetters()).toMatchObject({
      groups: [{ reason: 'HALF_POSITION', source: 'trucks', count: 1 }],
    })
    await edit('latitude: { path: lat }', 'latitude: { path: breite }')
    await pipeline.until(() => countOf(pipeline, 'mapping_reloaded') === 1)
    const remapped = { deadLetters: 1, remapped: 1, payloads: 1 }
    expect((await post(pipeline, '/control/dead-letters/remap?dryRun=1')).body).toMatchObject(remapped)
    expect((await post(pipeline, '/control/dead-letters/remap?reason=HALF_POSITION')).body).toMatchObject(
      remapped,
    )
    await pipeline.until(() => pipeline.status().totals.delivered === 1)
    expect(await deadLetters()).toMatchObject({ groups: [] })
  })
})
