// A spool that cannot be opened does not end the daemon: it stays up, says why, and opens the spool when it
// can.

import { execFile } from 'node:child_process'
import { mkdir, readdir, rename, rm, rmdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { GatewayEvent } from '../../src/domain/event.ts'
import {
  checkInThread,
  openLevelStore,
  realDisk,
  type OpenStore,
  type Store,
} from '../../src/storage/storage.ts'
import { mountSmallDisk } from '../crash/small-disk.ts'
import { killedSpool, tableOf, zeroPage } from '../support/damaged-spool.ts'
import { newFolder } from '../support/folders.ts'
import {
  messageOf,
  startPipeline,
  topicOf,
  type Pipeline,
  type PipelineOptions,
} from '../support/pipeline-world.ts'

const run = promisify(execFile)

function succeeds(program: string, ...words: string[]): Promise<boolean> {
  return run(program, words).then(
    () => true,
    () => false,
  )
}

async function startWith(folder: string, options: PipelineOptions = {}): Promise<Pipeline> {
  return startPipeline({ folder, ...options, deps: { checkStore: checkInThread, ...options.deps } })
}

async function get(pipeline: Pipeline, path: string): Promise<{ status: number; text: string }> {
  const response = await fetch(`${pipeline.gateway.addresses.ops}${path}`)
  return { status: response.status, text: await response.text() }
}

const openPayloads = (pipeline: Pipeline) =>
  pipeline.status().lanes.reduce((sum, lane) => sum + lane.pending + lane.sealed, 0)

/** The service is not there, so that what is in the spool stays. */
const noService = { baseUrl: 'http://127.0.0.1:1' }

/** The store of the spool on real files, with these methods in the place of its own. */
function openStoreWith(change: (store: Store) => Partial<Store>): OpenStore {
  return async (at, options) => {
    const store = await openLevelStore(at, options)
    return at.endsWith('store') ? { ...store, ...change(store) } : store
  }
}

const ioError = () => Object.assign(new Error('input/output error'), { code: 'EIO' })

/** With `faults.write` the next write fails. */
function storeWithFault() {
  const faults = { write: false }
  const openStore = openStoreWith((store) => ({
    write(ops, options) {
      if (!faults.write) return store.write(ops, options)
      faults.write = false
      return Promise.reject(ioError())
    },
  }))
  return { faults, openStore }
}

describe('a spool with a damaged table', () => {
  test('is refused: ops answers with what was found and the command, and no listener is open', async () => {
    const folder = await newFolder()
    const path = join(folder, 'spool')
    await killedSpool(path, 2000)
    const table = await tableOf(path)
    const mend = await zeroPage(table, 1)
    const pipeline = await startWith(folder, noService)
    expect(pipeline.gateway.addresses.mqtt).toEqual([])
    expect(await get(pipeline, '/healthz')).toMatchObject({ status: 200 })
    const { status, text } = await get(pipeline, '/readyz')
    expect(status).toBe(503)
    expect(text).toContain('SPOOL_DAMAGED')
    expect((await get(pipeline, '/metrics')).text).toContain('gateway_ready 0')
    expect(pipeline.condition('SPOOL_DAMAGED')).toMatchObject({
      severity: 'critical',
      why: expect.stringContaining(table.split('/').at(-1) ?? ''),
      act: expect.stringContaining(`telemetry-gateway spool repair --path ${path}`),
    })
    expect(await pipeline.gateway.reload('SIGHUP')).toMatchObject({
      kind: 'refused',
      fault: { code: 'SPOOL_DAMAGED' },
    })
    // Somebody brings the file back: the daemon notices it.
    await mend()
    await pipeline.until(() => pipeline.status().ready)
    expect(openPayloads(pipeline)).toBe(2000)
    expect(pipeline.condition('SPOOL_DAMAGED')).toBeUndefined()
    await pipeline.publish('truck-1', messageOf(1))
  }, 30_000)

  test('does not keep the daemon from stopping in order', async () => {
    const folder = await newFolder()
    await killedSpool(join(folder, 'spool'), 500)
    await rm(join(folder, 'spool', 'store', 'CURRENT'))
    const tables = (await readdir(join(folder, 'spool', 'store'))).filter((name) => name.endsWith('.ldb'))
    const pipeline = await startWith(folder, noService)
    expect(pipeline.condition('SPOOL_DAMAGED')?.why).toContain('CURRENT')
    await pipeline.gateway.stop('SIGTERM')
    expect(pipeline.events.at(-1)).toMatchObject({ kind: 'gateway_stopped', pending: null })
    const after = await readdir(join(folder, 'spool', 'store'))
    expect(after).toEqual(expect.arrayContaining(tables))
    expect(after).not.toContain('CURRENT')
  })
})

describe('a spool that is lost while the daemon runs', () => {
  test('is refused if its files are damaged, and is opened again after they are whole', async () => {
    const folder = await newFolder()
    const path = join(folder, 'spool')
    const { faults, openStore } = storeWithFault()
    const pipeline = await startWith(folder, { ...noService, deps: { openStore } })
    await pipeline.publish('truck-1', messageOf(1))
    const device = await pipeline.device('truck-1')
    const current = join(path, 'store', 'CURRENT')
    await rename(current, `${current}.away`)
    faults.write = true
    device.publish({ topic: topicOf('truck-1'), payload: messageOf(2), messageId: 2 })
    await pipeline.until(() => pipeline.condition('SPOOL_DAMAGED') !== undefined)
    await pipeline.until(() => pipeline.gateway.addresses.mqtt.length === 0)
    expect((await get(pipeline, '/readyz')).status).toBe(503)
    await rename(`${current}.away`, current)
    await pipeline.until(() => pipeline.status().ready)
    expect(pipeline.condition('STORE_LOST')).toBeUndefined()
    await pipeline.publish('truck-1', messageOf(3))
    expect(openPayloads(pipeline)).toBe(2)
    expect(pipeline.status().internals.conservation).toMatchObject({})
  }, 30_000)
})

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
    const folder = await newFolder()
    const { faults, openStore } = storeWithFault()
    const pipeline = await startWith(folder, { ...noService, deps: { openStore } })
    await pipeline.publish('truck-1', messageOf(1))
    const device = await pipeline.device('truck-1')
    const mend = await make(join(folder, 'spool'))
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

describe('a disk without space for the opening', () => {
  test('gives the ballast for it, and where that is not enough, the daemon waits for room', async () => {
    const folder = await newFolder()
    const path = join(folder, 'spool')
    await killedSpool(path, 100)
    await writeFile(join(path, 'ballast'), 'x')
    let freeBytes = 0
    const disk = { ...realDisk, free: async () => ({ bytes: freeBytes, files: Infinity }) }
    const pipeline = await startWith(folder, { ...noService, deps: { disk } })
    expect(pipeline.condition('SPOOL_UNUSABLE')?.what).toContain('no space')
    expect((await get(pipeline, '/readyz')).text).toContain('SPOOL_DISK_FULL')
    expect(await readdir(path)).not.toContain('ballast')
    freeBytes = 1e12
    await pipeline.until(() => pipeline.status().ready)
    expect(openPayloads(pipeline)).toBe(100)
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
    const folder = await newFolder()
    const spool = `{ path: ${disk.path}/spool, allow_in_memory: true, max_bytes: 64MiB, min_free_bytes: 8MiB }`
    const before = await startWith(folder, { ...noService, sections: { spool } })
    await before.publish('truck-1', messageOf(1))
    await before.gateway.stop('SIGTERM')
    disk.fill()
    const after = await startWith(folder, { sections: { spool } })
    expect(after.condition('DISK_LOW')).toBeDefined()
    await after.until(() => after.status().totals.delivered === 1)
    expect(await readdir(join(disk.path, 'spool'))).not.toContain('ballast')
    await after.gateway.stop('SIGTERM')
    disk.fill()
    const last = await startWith(folder, { sections: { spool } })
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
  const folder = await newFolder()
  const spool = `{ path: ${disk.path}/spool, allow_in_memory: true, max_bytes: 64MiB, min_free_bytes: 8MiB }`
  const before = await startWith(folder, { ...noService, sections: { spool } })
  await before.publish('truck-1', messageOf(1))
  disk.fillFiles()
  await before.until(() => before.condition('DISK_LOW') !== undefined)
  expect(before.condition('DISK_LOW')).toMatchObject({ why: expect.stringMatching(/inode/) })
  expect(before.condition('STORE_LOST')).toBeUndefined()
  await before.gateway.stop('SIGTERM')
  disk.fillFiles()
  const after = await startWith(folder, { sections: { spool } })
  expect((await get(after, '/readyz')).text).toContain('SPOOL_DISK_FULL')
  expect(JSON.stringify(after.status().conditions)).toMatch(/has \d free inodes?, and opening needs/)
  await disk.clear()
  await after.until(() => after.status().ready && after.status().totals.delivered === 1)
}, 60_000)

test('a disk that fails between the opening of the spool and the listeners does not end the start', async () => {
  const folder = await newFolder()
  await killedSpool(join(folder, 'spool'), 100)
  let failsNext = false
  const openStore = openStoreWith((store) => ({
    async *pages(range, readOptions) {
      const fails = failsNext
      failsNext = false
      if (fails) throw ioError()
      yield* store.pages(range, readOptions)
    },
  }))
  let openings = 0
  const observe = ({ kind }: GatewayEvent) => {
    if (kind === 'spool_recovered') failsNext = (openings += 1) === 1
  }
  const pipeline = await startWith(folder, { ...noService, deps: { openStore, observe } })
  await pipeline.until(() => pipeline.status().ready)
  expect(openings).toBe(2)
  expect(openPayloads(pipeline)).toBe(100)
})

test('a start that is stopped opens no listener, and the stop is in order', async () => {
  const folder = await newFolder()
  await killedSpool(join(folder, 'spool'), 100)
  const pipeline = await startWith(folder, { ...noService, deps: { stop: AbortSignal.abort() } })
  expect(pipeline.gateway.addresses.mqtt).toEqual([])
  await pipeline.gateway.stop('SIGTERM')
  expect(pipeline.events.map(({ kind }) => kind)).not.toContain('gateway_ready')
  expect(pipeline.events.at(-1)?.kind).toBe('gateway_stopped')
  // The check did not end, so the next start makes it.
  expect(await readdir(join(folder, 'spool'))).toContain('in-use')
})

/** A store whose first openings fail as on a full disk. */
function fullDiskFor(openings: number): OpenStore {
  let failures = openings
  return (at, options) => {
    if (!at.endsWith('store') || failures === 0) return openLevelStore(at, options)
    failures -= 1
    return Promise.reject(Object.assign(new Error('no space left on device'), { code: 'ENOSPC' }))
  }
}

describe('attempts to open the spool that fail', () => {
  const endsOf = ({ events }: Pipeline) =>
    events.flatMap((event) => (event.kind === 'gateway_ended_unclean' ? [event.end] : []))
  const times = ({ events }: Pipeline, kind: GatewayEvent['kind']) =>
    events.filter((event) => event.kind === kind).length

  test('are no unclean end of the run before, and report a new spool once, when it is there', async () => {
    const folder = await newFolder()
    const first = await startWith(folder, { ...noService, deps: { openStore: fullDiskFor(5) } })
    expect(first.codes()).not.toContain('SPOOL_NEW')
    await first.until(() => first.status().ready)
    expect(first.codes()).toContain('SPOOL_NEW')
    expect(endsOf(first)).toEqual([])
    await first.gateway.stop('SIGTERM')
    const second = await startWith(folder, { ...noService, deps: { openStore: fullDiskFor(5) } })
    await second.until(() => second.status().ready)
    expect(times(second, 'spool_refused')).toBe(1)
    expect(endsOf(second)).toEqual([])
  }, 30_000)

  test('after an unclean end are not a second one', async () => {
    const folder = await newFolder()
    await killedSpool(join(folder, 'spool'), 100)
    const pipeline = await startWith(folder, { ...noService, deps: { openStore: fullDiskFor(5) } })
    await pipeline.until(() => pipeline.status().ready)
    expect(endsOf(pipeline)).toEqual(['unclean'])
    expect(openPayloads(pipeline)).toBe(100)
  }, 30_000)

  test.each([
    ['clean', false],
    ['unclean', true],
  ])(
    'and a stop after them leave the end before as it was: %s',
    async (_end, isKilled) => {
      const folder = await newFolder()
      if (isKilled) await killedSpool(join(folder, 'spool'), 100)
      else await (await startWith(folder, noService)).gateway.stop('SIGTERM')
      // Nothing can be written in its place.
      await mkdir(join(folder, 'spool', 'check-state.json.next'))
      const refused = await startWith(folder, { ...noService, deps: { openStore: fullDiskFor(99) } })
      expect(refused.condition('SPOOL_UNUSABLE')).toBeDefined()
      await refused.gateway.stop('SIGTERM')
      expect((await readdir(join(folder, 'spool'))).includes('in-use')).toBe(isKilled)
    },
    30_000,
  )
})
