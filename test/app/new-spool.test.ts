// Where there is no spool, the config says whether the daemon makes one. A marker in the directory says that it
// is a spool; without it, a file system may not be mounted.

import { mkdirSync, renameSync } from 'node:fs'
import { readdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { checkInThread, openLevelStore, realDisk } from '../../src/storage/storage.ts'
import { startGateway } from '../../src/app/app.ts'
import { loadConfig } from '../../src/config/config.ts'
import type { GatewayEvent } from '../../src/domain/event.ts'
import { newRandomId } from '../../src/domain/ids.ts'
import { systemClock } from '../../src/std/clock.ts'
import { mountSmallDisk } from '../crash/small-disk.ts'
import { runCli } from '../support/cli-world.ts'
import { newFolder } from '../support/folders.ts'
import { keptOutput } from '../support/ops-world.ts'
import { testKernel } from '../support/our-time.ts'
import { startPipeline } from '../support/pipeline-world.ts'
import { spoolPlace, spoolPlaceWords, startIn } from '../support/spool-place-steps.ts'
import { stepCases } from '../support/step-cases.ts'

stepCases(import.meta.filename, spoolPlace, spoolPlaceWords)

async function moveAway(folder: string) {
  const names = ['store', 'mark']
  for (const name of names) await rename(join(folder, 'spool', name), join(folder, name))
  return async () => {
    for (const name of names) await rename(join(folder, name), join(folder, 'spool', name))
  }
}

test('a daemon whose store is moved away while it starts makes no new store, and opens the one that comes back', async () => {
  const place = await spoolPlace()
  await spoolPlaceWords.stopped(place, 0)
  const { folder } = place
  let moveBack: (() => Promise<void>) | null = null
  const pipeline = await startIn(place, false, {
    deps: {
      disk: {
        ...realDisk,
        // After the marker was read, and before the files are looked at.
        async free(path) {
          moveBack ??= await moveAway(folder)
          return realDisk.free(path)
        },
      },
    },
  })
  expect(pipeline.condition('SPOOL_UNUSABLE')?.why).toContain('SPOOL_MISSING')
  expect(await readdir(join(folder, 'spool'))).not.toContain('store')
  await moveBack!()
  await pipeline.until(() => pipeline.status().ready)
}, 30_000)

test('a spool that goes away before its records are opened gets none in its place', async () => {
  const place = await spoolPlace()
  const { folder, spool } = place
  const events: GatewayEvent[] = []
  let isAway = false
  const pipeline = await startIn(place, true, {
    deps: {
      // As a file system that is unmounted, with the empty directory below it.
      observe(event) {
        events.push(event)
        if (event.kind !== 'spool_recovered' || isAway) return
        isAway = true
        renameSync(spool, join(folder, 'away'))
        mkdirSync(spool)
      },
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
