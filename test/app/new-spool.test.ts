// Where there is no spool, the config says whether the daemon makes one. A marker in the directory says that it
// is a spool; without it, a file system may not be mounted.

import { mkdirSync, renameSync } from 'node:fs'
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { checkInThread, openLevelStore, realDisk } from '../../src/storage/storage.ts'
import { startGateway } from '../../src/app/app.ts'
import { loadConfig } from '../../src/config/config.ts'
import type { GatewayEvent } from '../../src/domain/event.ts'
import { newRandomId } from '../../src/domain/ids.ts'
import { systemClock } from '../../src/std/clock.ts'
import { mountSmallDisk } from '../crash/small-disk.ts'
import { runCli } from '../support/cli-world.ts'
import { createFastClock } from '../support/fast-clock.ts'
import { newFolder } from '../support/folders.ts'
import { keptOutput } from '../support/ops-world.ts'
import { testKernel } from '../support/our-time.ts'
import { startPipeline, type Pipeline } from '../support/pipeline-world.ts'

const spoolText = (create: boolean) =>
  `{ path: ./spool, allow_in_memory: true, create: ${create}, max_bytes: 32MiB, min_free_bytes: 1MiB }`

type Deps = NonNullable<Parameters<typeof startPipeline>[0]>['deps']

function startWith(folder: string, create: boolean, deps: Deps = {}): Promise<Pipeline> {
  return startPipeline({
    folder,
    baseUrl: 'http://127.0.0.1:1',
    sections: { spool: spoolText(create) },
    // A refused spool is looked at every second.
    clock: createFastClock(10),
    deps: { checkStore: checkInThread, ...deps },
  })
}

/** The folder of a gateway that has made its spool, and was stopped. */
async function stoppedSpool(): Promise<string> {
  const folder = await newFolder()
  const first = await startWith(folder, true)
  await first.gateway.stop('SIGTERM')
  return folder
}

const init = (folder: string) => runCli(['spool', 'init', '--path', join(folder, 'spool')])

const markerIn = async (folder: string) =>
  JSON.parse(await readFile(join(folder, 'spool', 'spool.json'), 'utf8')) as Record<string, unknown>

describe('a daemon without a spool', () => {
  test('makes one with spool.create, and says so for a day without being degraded', async () => {
    const folder = await newFolder()
    const first = await startWith(folder, true)
    expect(first.condition('SPOOL_NEW')).toMatchObject({ severity: 'info' })
    expect(first.status().verdict).toBe('ok')
    expect(await markerIn(folder)).toMatchObject({ by: 'daemon' })
    await first.gateway.stop('SIGTERM')
    // Also after a restart on the same day.
    expect((await startWith(folder, false)).condition('SPOOL_NEW')).toBeDefined()
  })

  test('with spool.create false stays up, refuses, makes nothing, and names the file system and the command', async () => {
    const folder = await newFolder()
    await mkdir(join(folder, 'spool'))
    const pipeline = await startWith(folder, false)
    expect(pipeline.condition('SPOOL_UNUSABLE')).toMatchObject({
      why: expect.stringMatching(/^SPOOL_MISSING: .*The path is on \S+.*, mounted at \//),
      act: expect.stringContaining(`telemetry-gateway spool init --path ${join(folder, 'spool')}`),
    })
    expect(pipeline.status()).toMatchObject({ ready: false, verdict: 'not_receiving' })
    expect(pipeline.gateway.addresses.mqtt).toEqual([])
    expect(await readdir(join(folder, 'spool'))).not.toContain('store')
    // A person makes one, and the daemon opens it.
    const { status, stdout } = await init(folder)
    expect([status, stdout]).toEqual([0, `A new spool is made at ${join(folder, 'spool')}.\n`])
    await pipeline.until(() => pipeline.status().ready)
    expect(pipeline.condition('SPOOL_UNUSABLE')).toBeUndefined()
    expect(pipeline.condition('SPOOL_NEW')).toBeUndefined()
  }, 30_000)

  test('with spool.create false opens the spool when its directory is back', async () => {
    const folder = await stoppedSpool()
    await rename(join(folder, 'spool'), join(folder, 'away'))
    const pipeline = await startWith(folder, false)
    expect(pipeline.condition('SPOOL_UNUSABLE')?.why).toContain('SPOOL_MISSING')
    await rename(join(folder, 'away'), join(folder, 'spool'))
    await pipeline.until(() => pipeline.status().ready)
  }, 30_000)
})

describe('a daemon whose store and high-water mark were moved away, beside the marker', () => {
  async function moveAway(folder: string) {
    const names = ['store', 'mark']
    await mkdir(join(folder, 'away'))
    for (const name of names) await rename(join(folder, 'spool', name), join(folder, 'away', name))
    return async () => {
      for (const name of names) await rename(join(folder, 'away', name), join(folder, 'spool', name))
    }
  }

  test.each([
    // Commands do not take it for a new spool, or for one in which nothing waits.
    ['as it was', /a store was made here/, /delete spool\.json and run/, ['init', 'waiting']],
    ['unreadable', /^SPOOL_MISSING/, /./, []],
  ])(
    'with spool.create false makes no new store, and opens the one that comes back: the marker is %s',
    async (marker, why, act, commands) => {
      const folder = await stoppedSpool()
      const moveBack = await moveAway(folder)
      if (marker === 'unreadable') await writeFile(join(folder, 'spool', 'spool.json'), '{')
      const pipeline = await startWith(folder, false)
      const refusal = pipeline.condition('SPOOL_UNUSABLE')
      expect([refusal?.why, refusal?.why, refusal?.act]).toEqual([
        expect.stringMatching(/^SPOOL_MISSING/),
        expect.stringMatching(why),
        expect.stringMatching(act),
      ])
      for (const command of commands) {
        const { status, stderr } = await runCli(['spool', command, '--path', join(folder, 'spool')])
        expect([status === 0, stderr]).toEqual([false, expect.stringContaining('a store was made here')])
      }
      expect(await readdir(join(folder, 'spool'))).not.toContain('store')
      await moveBack()
      await pipeline.until(() => pipeline.status().ready)
      expect(pipeline.condition('SPOOL_UNUSABLE')).toBeUndefined()
    },
    30_000,
  )

  test('while the gateway starts, it makes no new store, and opens the one that comes back', async () => {
    const folder = await stoppedSpool()
    let moveBack: (() => Promise<void>) | null = null
    const pipeline = await startWith(folder, false, {
      disk: {
        ...realDisk,
        // After the marker was read, and before the files are looked at.
        async free(path) {
          moveBack ??= await moveAway(folder)
          return realDisk.free(path)
        },
      },
    })
    expect(pipeline.condition('SPOOL_UNUSABLE')?.why).toContain('SPOOL_MISSING')
    expect(await readdir(join(folder, 'spool'))).not.toContain('store')
    await moveBack!()
    await pipeline.until(() => pipeline.status().ready)
  }, 30_000)

  test('makes a new one after spool init, once a person has deleted the marker', async () => {
    const folder = await stoppedSpool()
    await moveAway(folder)
    await rm(join(folder, 'spool', 'spool.json'))
    expect((await init(folder)).status).toBe(0)
    expect((await startWith(folder, false)).status().ready).toBe(true)
  })

  test('with spool.create makes a new one and says so', async () => {
    const folder = await newFolder()
    expect((await init(folder)).status).toBe(0)
    const second = await startWith(folder, false)
    expect(second.condition('SPOOL_NEW')).toBeUndefined()
    await second.gateway.stop('SIGTERM')
    await moveAway(folder)
    expect((await startWith(folder, true)).condition('SPOOL_NEW')).toBeDefined()
  })
})

test('a spool that goes away before its records are opened gets none in its place', async () => {
  const folder = await newFolder()
  const spool = join(folder, 'spool')
  const events: GatewayEvent[] = []
  let isAway = false
  const pipeline = await startWith(folder, true, {
    // As a file system that is unmounted, with the empty directory below it.
    observe(event) {
      events.push(event)
      if (event.kind !== 'spool_recovered' || isAway) return
      isAway = true
      renameSync(spool, join(folder, 'away'))
      mkdirSync(spool)
    },
  })
  // Events, since LEDGER_UNAVAILABLE gives way to STORE_LOST within milliseconds, or comes behind it.
  const isSeen = new Set(['LEDGER_UNAVAILABLE', 'STORE_LOST'])
  await pipeline.until(() =>
    events.some((event) => event.kind === 'condition_raised' && isSeen.has(event.code)),
  )
  expect(await readdir(spool)).not.toContain('records')
  expect(events.map(({ kind }) => kind)).not.toContain('ledger_opened')
  await rm(spool, { recursive: true })
  await rename(join(folder, 'away'), spool)
  await pipeline.until(() => events.some(({ kind }) => kind === 'ledger_opened'))
  await pipeline.until(() => pipeline.codes().every((code) => code === 'SPOOL_NEW'))
  expect(await readdir(spool)).toContain('records')
}, 30_000)

test('a store without a marker, as version 0.1.0 left it, is accepted once and gets one', async () => {
  const folder = await stoppedSpool()
  await rm(join(folder, 'spool', 'spool.json'))
  const pipeline = await startWith(folder, false)
  expect(pipeline.status().ready).toBe(true)
  expect(await markerIn(folder)).toMatchObject({ by: 'found' })
  expect(pipeline.condition('SPOOL_NEW')).toBeUndefined()
})

test('spool init leaves a spool that is there as it is', async () => {
  const folder = await stoppedSpool()
  const before = await markerIn(folder)
  const { status, stdout } = await init(folder)
  expect([status, stdout]).toEqual([0, expect.stringContaining('is not changed')])
  expect(await markerIn(folder)).toEqual(before)
})

test('spool restore makes a spool that a daemon with spool.create false opens', async () => {
  const folder = await stoppedSpool()
  const copy = join(folder, 'copy')
  await rename(join(folder, 'spool'), copy)
  await rm(join(copy, 'spool.json'))
  const { status } = await runCli(['spool', 'restore', '--from', copy, '--path', join(folder, 'spool')])
  expect(status).toBe(0)
  expect(await markerIn(folder)).toMatchObject({ by: 'restore' })
  expect((await startWith(folder, false)).status().ready).toBe(true)
})

test('a spool in memory is an error of check and of the start, unless the config allows it', async ({
  skip,
}) => {
  await using disk = await mountSmallDisk(64)
  if (disk === null) {
    skip('nothing may be mounted here')
    return
  }
  const folder = await newFolder()
  const path = join(folder, 'gateway.yaml')
  const spool = `{ path: ${disk.path}/spool, min_free_bytes: 1MiB, max_bytes: 32MiB }`
  const pipeline = await startPipeline({ folder, baseUrl: 'http://127.0.0.1:1', sections: { spool } })
  await pipeline.gateway.stop('SIGTERM')
  const { status, stderr } = await runCli(['check', '--config', path])
  expect(status).toBe(2)
  expect(stderr).toMatch(/spool\.path.*|The spool .* is on a file system in memory\. It is on tmpfs/)
  const { config, files } = await loadConfig(path, { env: {} })
  const start = startGateway(
    {
      clock: systemClock,
      kernel: testKernel(),
      random: Math.random,
      newId: newRandomId,
      env: {},
      stdout: keptOutput().stream,
      version: '0.0.0-test',
      openStore: openLevelStore,
      checkStore: checkInThread,
      disk: realDisk,
      configFiles: files,
    },
    config,
    path,
  )
  await expect(start).rejects.toMatchObject({ code: 'SPOOL_IN_MEMORY' })
}, 30_000)
