// A daemon that has had a spool opens that spool again or none: what is at its path meanwhile is not opened,
// nothing is made there, and when the spool is back, the daemon continues with it.

import { execFile } from 'node:child_process'
import { cp, mkdir, readdir, rename, rm, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, onTestFinished, test } from 'vitest'
import { checkInThread } from '../../src/storage/storage.ts'
import { newFolder } from '../support/folders.ts'
import { messageOf, roundTrip, startPipeline, topicOf, type Pipeline } from '../support/pipeline-world.ts'

const run = promisify(execFile)

/** The service is not there, so that what is in the spool stays. */
const noService = { baseUrl: 'http://127.0.0.1:1', deps: { checkStore: checkInThread } }

/** Publishes messages `from` to `to` and waits for their acks. */
async function publish(pipeline: Pipeline, from: number, to: number): Promise<void> {
  const device = await pipeline.device('truck-1')
  for (let n = from; n <= to; n += 1)
    device.publish({ topic: topicOf('truck-1'), payload: messageOf(n), messageId: n })
  await device.acked(to - from + 1)
  device.destroy()
}

const openPayloads = (pipeline: Pipeline) =>
  pipeline.status().lanes.reduce((sum, lane) => sum + lane.pending + lane.sealed, 0)

const refusal = (pipeline: Pipeline) =>
  pipeline.status().conditions.find(({ code }) => code === 'SPOOL_UNUSABLE')

/** With what the verdict, /readyz and the condition say, and no listener. */
async function expectRefused(pipeline: Pipeline, code: string): Promise<void> {
  await pipeline.until(() => refusal(pipeline) !== undefined && pipeline.gateway.addresses.mqtt.length === 0)
  expect(refusal(pipeline)).toMatchObject({ severity: 'critical', why: expect.stringContaining(code) })
  expect(pipeline.status()).toMatchObject({ verdict: 'not_receiving' })
  const ready = await fetch(`${pipeline.gateway.addresses.ops}/readyz`)
  expect(ready.status).toBe(503)
  expect(await ready.text()).toContain(code)
}

/** It continues by itself, with everything that was acknowledged. */
async function expectBack(pipeline: Pipeline, payloads: number): Promise<void> {
  await pipeline.until(() => pipeline.status().ready)
  expect(refusal(pipeline)).toBeUndefined()
  expect(openPayloads(pipeline)).toBe(payloads)
  await publish(pipeline, 1000, 1009)
  expect(openPayloads(pipeline)).toBe(payloads + 10)
  const codes = pipeline.status().conditions.map(({ code }) => code)
  expect(codes).not.toContain('WRITES_MISSING')
  expect(codes).not.toContain('CONSERVATION_BROKEN')
}

describe('a spool that is replaced while the daemon runs', () => {
  test('by a new empty directory is refused, and nothing is made there', async () => {
    const folder = await newFolder()
    const spool = join(folder, 'spool')
    const pipeline = await startPipeline({ folder, ...noService })
    await publish(pipeline, 1, 50)
    const device = await pipeline.device('truck-2')
    await rename(spool, `${spool}.away`)
    await mkdir(spool)
    await expectRefused(pipeline, 'SPOOL_MISSING')
    device.publish({ topic: topicOf('truck-2'), payload: messageOf(1), messageId: 1 })
    await roundTrip(device).catch(() => undefined)
    expect(device.received.filter(({ cmd }) => cmd === 'puback')).toEqual([])
    const names = await readdir(spool)
    for (const made of ['store', 'mark', 'records', 'ballast']) expect(names).not.toContain(made)
    await rm(spool, { recursive: true })
    await rename(`${spool}.away`, spool)
    await expectBack(pipeline, 50)
  }, 30_000)

  test('by nothing at all is refused', async () => {
    const folder = await newFolder()
    const spool = join(folder, 'spool')
    const pipeline = await startPipeline({ folder, ...noService })
    await publish(pipeline, 1, 50)
    await rename(spool, `${spool}.away`)
    await expectRefused(pipeline, 'SPOOL_MISSING')
    expect(await readdir(folder)).not.toContain('spool')
    await rename(`${spool}.away`, spool)
    await expectBack(pipeline, 50)
  }, 30_000)

  test('only in its database, by an empty directory or without one, is refused, and the rest stays as it is', async () => {
    const folder = await newFolder()
    const spool = join(folder, 'spool')
    const pipeline = await startPipeline({ folder, ...noService })
    await publish(pipeline, 1, 50)
    const device = await pipeline.device('truck-2')
    await rename(join(spool, 'store'), join(folder, 'away'))
    await mkdir(join(spool, 'store'))
    const damage = () => pipeline.status().conditions.find(({ code }) => code === 'SPOOL_DAMAGED')
    await pipeline.until(() => damage() !== undefined && pipeline.gateway.addresses.mqtt.length === 0)
    expect(damage()?.why).toContain('The store is empty, and the mark beside it shows that data was stored')
    expect(pipeline.status()).toMatchObject({ ready: false, verdict: 'not_receiving' })
    device.publish({ topic: topicOf('truck-2'), payload: messageOf(1), messageId: 1 })
    await roundTrip(device).catch(() => undefined)
    expect(device.received.filter(({ cmd }) => cmd === 'puback')).toEqual([])
    expect((await readdir(join(spool, 'store'))).filter((name) => name !== 'LOCK')).toEqual([])
    await rm(join(spool, 'store'), { recursive: true })
    await rename(join(folder, 'away'), join(spool, 'store'))
    await expectBack(pipeline, 50)
  }, 30_000)

  test('by a link that leads nowhere is refused', async () => {
    const folder = await newFolder()
    const spool = join(folder, 'spool')
    await mkdir(join(folder, 'disk'))
    await symlink(join(folder, 'disk'), spool)
    const pipeline = await startPipeline({ folder, ...noService })
    await publish(pipeline, 1, 50)
    await rename(join(folder, 'disk'), join(folder, 'away'))
    await expectRefused(pipeline, 'SPOOL_MISSING')
    expect(await readdir(folder)).not.toContain('disk')
    await rename(join(folder, 'away'), join(folder, 'disk'))
    await expectBack(pipeline, 50)
  }, 30_000)

  test('by an older copy of itself is refused', async () => {
    const folder = await newFolder()
    const spool = join(folder, 'spool')
    const first = await startPipeline({ folder, ...noService })
    await publish(first, 1, 10)
    await first.gateway.stop('SIGTERM')
    await cp(spool, `${spool}.old`, { recursive: true })
    const pipeline = await startPipeline({ folder, ...noService })
    await publish(pipeline, 11, 50)
    await rename(spool, `${spool}.away`)
    await rename(`${spool}.old`, spool)
    await expectRefused(pipeline, 'SPOOL_REPLACED')
    expect(refusal(pipeline)?.why).toContain('older copy')
    await rename(spool, `${spool}.old`)
    await rename(`${spool}.away`, spool)
    await expectBack(pipeline, 50)
  }, 30_000)

  test('by the spool of another gateway is refused, and that one is not changed', async () => {
    const [folder, others] = [await newFolder(), await newFolder()]
    const spool = join(folder, 'spool')
    const other = await startPipeline({ folder: others, ...noService })
    await publish(other, 1, 70)
    await other.gateway.stop('SIGTERM')
    const pipeline = await startPipeline({ folder, ...noService })
    await publish(pipeline, 1, 50)
    await rename(spool, `${spool}.away`)
    await rename(join(others, 'spool'), spool)
    const before = await readdir(join(spool, 'store'))
    await expectRefused(pipeline, 'SPOOL_REPLACED')
    expect(await readdir(join(spool, 'store'))).toEqual(before)
    await rename(spool, join(others, 'spool'))
    await rename(`${spool}.away`, spool)
    await expectBack(pipeline, 50)
  }, 30_000)

  test('by the directory below its mount point is refused (skipped where nothing may be mounted)', async ({
    skip,
  }) => {
    const folder = await newFolder()
    const [spool, disk] = [join(folder, 'spool'), join(folder, 'disk')]
    await mkdir(spool)
    await mkdir(disk)
    const mount = () => run('mount', ['--bind', disk, spool])
    if (
      await mount().then(
        () => false,
        () => true,
      )
    ) {
      skip('nothing may be mounted here')
      return
    }
    onTestFinished(() => void run('umount', ['-l', spool]).catch(() => undefined))
    const pipeline = await startPipeline({ folder, ...noService })
    await publish(pipeline, 1, 50)
    await run('umount', ['-l', spool])
    await expectRefused(pipeline, 'SPOOL_MISSING')
    expect(await readdir(spool)).not.toContain('store')
    await mount()
    await expectBack(pipeline, 50)
  }, 30_000)
})
