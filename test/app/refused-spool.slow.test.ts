// A spool that cannot be opened does not end the daemon: more of it is in refused-spool.slow.cases.yaml.

import { execFile } from 'node:child_process'
import { mkdir, readdir, rmdir } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { GatewayEvent } from '../../src/domain/event.ts'
import { openLevelStore, type OpenStore } from '../../src/storage/storage.ts'
import { mountSmallDisk } from '../crash/small-disk.ts'
import { killedSpool } from '../support/damaged-spool.ts'
import { get as getOf } from '../support/ops-world.ts'
import { messageOf, topicOf, type Pipeline } from '../support/pipeline-world.ts'
import { ioError, spoolPlace, spoolPlaceWords, startIn } from '../support/spool-place-steps.ts'
import { stepCases } from '../support/step-cases.ts'

stepCases(import.meta.filename, spoolPlace, spoolPlaceWords)

const run = promisify(execFile)

function succeeds(program: string, ...words: string[]): Promise<boolean> {
  return run(program, words).then(
    () => true,
    () => false,
  )
}

const get = ({ gateway }: Pipeline, path: string) => getOf(gateway.addresses.ops, path)

const openPayloads = (pipeline: Pipeline) =>
  pipeline.status().lanes.reduce((sum, lane) => sum + lane.pending + lane.sealed, 0)

/** Ways in which a directory of the spool cannot be written by its path. Null: not possible here. */
const unwritable: Record<string, (spool: string) => Promise<(() => Promise<unknown>) | null>> = {
  async SPOOL_READ_ONLY(spool) {
    if (!(await succeeds('mount', '--bind', spool, spool))) return null
    await run('mount', ['-o', 'remount,ro,bind', spool])
    return () => run('umount', ['-l', spool])
  },
  async SPOOL_PERMISSION(spool) {
    const paths = [spool, join(spool, 'store')]
    if (!(await succeeds('chattr', '+i', ...paths))) return null
    return () => run('chattr', ['-i', ...paths])
  },
  async SPOOL_UNWRITABLE(spool) {
    const names = ['check-state.json.next', 'in-use.next'].map((name) => join(spool, name))
    for (const name of names) await mkdir(name)
    return () => Promise.all(names.map((name) => rmdir(name)))
  },
}

describe.each(Object.entries(unwritable))('a spool with %s', (code, make) => {
  test('while the store is lost does not end the daemon, and it continues by itself afterwards', async ({
    skip,
  }) => {
    const place = await spoolPlace()
    const { faults } = place
    const pipeline = await startIn(place)
    await pipeline.publish('truck-1', messageOf(1))
    const device = await pipeline.device('truck-1')
    const mend = await make(place.spool)
    if (mend === null) {
      skip('not possible for this user')
      return
    }
    try {
      faults.write = true
      device.publish({ topic: topicOf('truck-1'), payload: messageOf(2), messageId: 2 })
      const isSaid = () => pipeline.condition('STORE_LOST')?.why?.startsWith(`${code}: `) === true
      await pipeline.until(isSaid)
      expect((await get(pipeline, '/readyz')).status).toBe(503)
      expect(pipeline.status().verdict).toBe('not_receiving')
    } finally {
      await mend()
    }
    await pipeline.until(() => pipeline.status().ready)
    await pipeline.publish('truck-1', messageOf(3))
    expect(openPayloads(pipeline)).toBeGreaterThanOrEqual(2)
  }, 30_000)
})

describe('a small disk (skipped where nothing may be mounted)', () => {
  test('that is full at the start is opened with the ballast: what is there is delivered, and acks are held', async ({
    skip,
  }) => {
    const disk = await mountSmallDisk(32)
    if (disk === null) {
      skip('nothing may be mounted here')
      return
    }
    onTestFinished(() => disk[Symbol.asyncDispose]())
    const place = await spoolPlace()
    const spool = `{ path: ${disk.path}/spool, allow_in_memory: true, max_bytes: 64MiB, min_free_bytes: 8MiB }`
    const withService = { sections: { spool }, sandbox: {} }
    const before = await startIn(place, true, { sections: { spool } })
    await before.publish('truck-1', messageOf(1))
    await before.gateway.stop('SIGTERM')
    disk.fill()
    const after = await startIn(place, true, withService)
    expect(after.condition('DISK_LOW')).toBeDefined()
    await after.until(() => after.status().totals.delivered === 1)
    expect(await readdir(join(disk.path, 'spool'))).not.toContain('ballast')
    await after.gateway.stop('SIGTERM')
    disk.fill()
    const last = await startIn(place, true, withService)
    expect((await get(last, '/readyz')).text).toContain('SPOOL_DISK_FULL')
    await disk.clear()
    await last.until(() => last.status().ready)
  }, 30_000)
})

test('a disk without a free inode holds acks, is named as such at the start, and is left by itself (skipped where nothing may be mounted)', async ({
  skip,
}) => {
  const disk = await mountSmallDisk(64, { inodes: 400 })
  if (disk === null) {
    skip('nothing may be mounted here')
    return
  }
  onTestFinished(() => disk[Symbol.asyncDispose]())
  const place = await spoolPlace()
  const spool = `{ path: ${disk.path}/spool, allow_in_memory: true, max_bytes: 64MiB, min_free_bytes: 8MiB }`
  const withService = { sections: { spool }, sandbox: {} }
  const before = await startIn(place, true, { sections: { spool } })
  await before.publish('truck-1', messageOf(1))
  disk.fillFiles()
  await before.until(() => before.condition('DISK_LOW') !== undefined)
  expect(before.condition('DISK_LOW')).toMatchObject({ why: expect.stringMatching(/inode/) })
  expect(before.condition('STORE_LOST')).toBeUndefined()
  await before.gateway.stop('SIGTERM')
  disk.fillFiles()
  const after = await startIn(place, true, withService)
  expect((await get(after, '/readyz')).text).toContain('SPOOL_DISK_FULL')
  expect(JSON.stringify(after.status().conditions)).toMatch(/has \d free inodes?, and opening needs/)
  await disk.clear()
  await after.until(() => after.status().ready && after.status().totals.delivered === 1)
}, 60_000)

test('a disk that fails between the opening of the spool and the listeners does not end the start', async () => {
  const place = await spoolPlace()
  await killedSpool(place.spool, 100)
  let failsNext = false
  const openStore: OpenStore = async (at, options) => {
    const store = await openLevelStore(at, options)
    if (!at.endsWith('store')) return store
    return {
      ...store,
      async *pages(range, readOptions) {
        const fails = failsNext
        failsNext = false
        if (fails) throw ioError()
        yield* store.pages(range, readOptions)
      },
    }
  }
  let openings = 0
  const observe = ({ kind }: GatewayEvent) => {
    if (kind === 'spool_recovered') failsNext = (openings += 1) === 1
  }
  const pipeline = await startIn(place, true, { deps: { openStore, observe } })
  await pipeline.until(() => pipeline.status().ready)
  expect(openings).toBe(2)
  expect(openPayloads(pipeline)).toBe(100)
})

test('a start that is stopped opens no listener, and the stop is in order', async () => {
  const place = await spoolPlace()
  await killedSpool(place.spool, 100)
  const pipeline = await startIn(place, true, { deps: { stop: AbortSignal.abort() } })
  expect(pipeline.gateway.addresses.mqtt).toEqual([])
  await pipeline.gateway.stop('SIGTERM')
  expect(pipeline.events.map(({ kind }) => kind)).not.toContain('gateway_ready')
  expect(pipeline.events.at(-1)?.kind).toBe('gateway_stopped')
  // The check did not end, so the next start makes it.
  expect(await readdir(place.spool)).toContain('in-use')
})
