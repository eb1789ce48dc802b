// `spool repair` on real spools whose files were damaged while no daemon ran.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chown, mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { LaneId } from '../../../src/domain/ids.ts'
import { table } from '../../../src/spool/chunk-log/key-layout.ts'
import { userKeyOf } from '../../../src/storage/level-files/table-reader/block.ts'
import { openTable } from '../../../src/storage/level-files/table-reader/table-reader.ts'
import { readStoreDirectory } from '../../../src/storage/level-files/store-directory.ts'
import { openLevelStore } from '../../../src/storage/storage.ts'
import { compacted, tableOf, zeroPage } from '../../support/damaged-spool.ts'
import { eventually } from '../../support/eventually.ts'
import { newFolder } from '../../support/folders.ts'
import { writeKilledStore } from '../../support/killed-store.ts'
import {
  addDeadLetters,
  collect,
  ended,
  keptIn,
  namesIn,
  openSpoolWorld,
  sealAll,
  statesIn,
  type SpoolWorld,
} from '../../support/open-spool.ts'
import { copied, killBehindEachStep, repair } from '../../support/repaired-spool.ts'
import { checkOf } from '../../support/resting-spool.ts'
import { keptNamed, payloadNamed } from '../../support/spool-world.ts'

const changes = { bytesMax: 256 * 1024 ** 2, quarantineBytesMax: 64 * 1024 ** 2 }

/** Something in every table: a sealed batch, pending payloads, a dead letter, a message, state. */
async function filled(): Promise<SpoolWorld> {
  const world = await openSpoolWorld({ changes })
  const { spool, publish } = world
  for (let n = 0; n < 30; n += 1) await publish(`sealed ${n}`, { padding: 2000 })
  await sealAll(spool)
  for (let n = 0; n < 60; n += 1) await publish(`pending ${n}`, { padding: 2000 })
  await addDeadLetters(spool, ['a letter'])
  spool.keepMessage(keptNamed('a message').message)
  spool.putState('state', Buffer.from('remembered'))
  await ended(spool)
  return world
}

/** Everything in the spool, sealed on the way, with the batchIds of what was sealed before. */
async function contentOf(path: string): Promise<Record<string, unknown>> {
  const world = await openSpoolWorld({ path, changes })
  const { spool } = world
  const sealed = spool.batches().map(({ batchId, firstSeq, endSeq }) => [batchId, firstSeq, endSeq])
  await sealAll(spool)
  const names: string[] = []
  for (const batch of spool.batches()) names.push(...(await namesIn(spool, batch)))
  const letters = await collect(spool.deadLetters({ limit: 100 }))
  const content = {
    sealed,
    names,
    letters: letters.length,
    messages: await keptIn(spool, 'quarantine:default'),
    state: await statesIn(spool),
  }
  await spool.close()
  return content
}

/** Moves the content of the log into tables. */
async function flushed(path: string): Promise<void> {
  for (let n = 0; n < 2; n += 1) await (await openLevelStore(join(path, 'store'))).close()
}

/** Damages the blocks of the newest table whose first and last key `fits`. Returns how many. */
async function damageBlocks(path: string, fits: (key: Buffer) => boolean): Promise<number> {
  const folder = join(path, 'store')
  const { tables } = await readStoreDirectory(folder)
  const newest = tables[tables.length - 1]
  if (newest === undefined) throw new Error('no table')
  const reader = await openTable(folder, newest)
  const bytes = await readFile(join(folder, newest.name))
  let damaged = 0
  for (const [index, { offset, bytes: length }] of reader.blocks.entries()) {
    const entries = await reader.entries(index)
    const keys = Array.isArray(entries) ? [entries[0], entries[entries.length - 1]] : []
    if (!keys.every((entry) => entry !== undefined && fits(userKeyOf(entry.key)))) continue
    bytes.fill(0, offset, offset + length)
    damaged += 1
  }
  await reader.close()
  await writeFile(join(folder, newest.name), bytes)
  return damaged
}

describe('the repair of a spool', () => {
  test('deletes payloads that were settled where the record of their deletion is lost', async () => {
    const wide = { ...changes, groupBytesMax: 64 * 1024, uncommittedBytesMax: 16 * 1024 ** 2 }
    const world = await openSpoolWorld({ changes: wide })
    for (let n = 0; n < 12_000; n += 1) {
      world.spool.append(payloadNamed(`payload ${n}`))
      world.spool.endMessage(null)
    }
    await ended(world.spool)
    await world.spool.close()
    await compacted(world.path)
    const settling = await openSpoolWorld({ path: world.path, changes: wide })
    const batch = await settling.spool.seal(1 as LaneId, {
      payloadsMax: 10_000,
      bodyBytesMax: 64 * 1024 ** 2,
    })
    if (batch === null) throw new Error('no batch')
    await settling.spool.load(batch)
    await settling.spool.settle(batch, { payloads: 'all delivered', requestId: null })
    await settling.spool.close()
    await flushed(world.path)
    const expected = await contentOf(await copied(world.path))
    expect(await damageBlocks(world.path, (key) => key[0] === table.chunks)).toBeGreaterThan(0)
    const report = await repair(world.path)
    expect(report.returned.payloads).toBeGreaterThan(100)
    expect(report.losses.payloads).toBe(0)
    expect(await contentOf(world.path)).toEqual(expected)
  })

  test.each([
    ['everything but the log is gone', (name: string) => !name.endsWith('.log'), 'no tail'],
    ['all tables are gone, and the manifest is whole', (name: string) => name.endsWith('.ldb'), 'no tail'],
    ['everything is gone', () => true, 'all'],
  ] as const)(
    'counts payloads, dead letters and messages that are lost where %s',
    async (_name, isGone, kind) => {
      const world = await openSpoolWorld({ changes })
      for (let n = 0; n < 10; n += 1) await world.publish(`delivered ${n}`, { padding: 2000 })
      for (const batch of await sealAll(world.spool)) {
        await world.spool.load(batch)
        await world.spool.settle(batch, { payloads: 'all delivered', requestId: null })
      }
      for (let n = 0; n < 30; n += 1) await world.publish(`pending ${n}`, { padding: 2000 })
      await addDeadLetters(world.spool, ['one', 'two', 'three'])
      for (const name of ['a', 'b']) world.spool.keepMessage(keptNamed(name).message)
      await ended(world.spool)
      await world.spool.close()
      await flushed(world.path)
      const more = await openSpoolWorld({ path: world.path, changes })
      await addDeadLetters(more.spool, ['four'])
      more.spool.keepMessage(keptNamed('c').message)
      for (let n = 0; n < 5; n += 1) await more.publish(`later ${n}`)
      await more.spool.close()
      const folder = join(world.path, 'store')
      for (const name of await readdir(folder)) if (isGone(name)) await rm(join(folder, name))
      const { losses } = await repair(world.path)
      const isAll = kind === 'all'
      expect(losses.payloads).toBe(isAll ? 35 : 30)
      expect(losses.deadLetters).toBe(isAll ? 0 : 3)
      expect(losses.messages.map(({ messages }) => messages)).toEqual(isAll ? [] : [2])
      expect(losses.writes > 0).toBe(isAll)
      const { spool, eventsOf } = await openSpoolWorld({ path: world.path, changes })
      expect(eventsOf('writes_missing').length).toBe(isAll ? 1 : 0)
      await spool.close()
    },
  )

  test('of a table and the log together leaves a spool that adds up after the next start', async () => {
    const world = await openSpoolWorld({ changes })
    for (let n = 0; n < 60; n += 1) await world.publish(`in a table ${n}`, { padding: 2000 })
    await world.spool.close()
    await compacted(world.path)
    const more = await openSpoolWorld({ path: world.path, changes })
    for (let n = 0; n < 20; n += 1) await more.publish(`in the log ${n}`, { padding: 2000 })
    await more.spool.close()
    await zeroPage(await tableOf(world.path), 1)
    const { logs } = await readStoreDirectory(join(world.path, 'store'))
    await zeroPage(join(world.path, 'store', logs.at(-1)!.name), 0)
    const { losses } = await repair(world.path)
    expect(losses.payloads).toBeGreaterThan(2)
    const started = await openSpoolWorld({ path: world.path, changes })
    await eventually(() => started.spool.totals().damaged === losses.payloads)
    await started.spool.close()
    expect((await checkOf(world.path)).problems).toEqual([])
  })

  test('does not say that no payload is lost where totals and mark are lost', async () => {
    const world = await filled()
    await world.spool.close()
    await flushed(world.path)
    const more = await openSpoolWorld({ path: world.path, changes })
    for (let n = 0; n < 5; n += 1) await more.publish(`later ${n}`)
    await more.spool.close()
    const folder = join(world.path, 'store')
    for (const name of await readdir(folder)) if (!name.endsWith('.log')) await rm(join(folder, name))
    await rm(join(world.path, 'mark'))
    const { losses } = await repair(world.path)
    expect(losses).toMatchObject({ payloads: 0, unknown: [{ lane: 1, belowSeq: 90 }] })
  })

  test('refuses while a process has the database open', async () => {
    const path = join(await newFolder(), 'spool')
    await mkdir(join(path, 'store'), { recursive: true })
    const program = join(import.meta.dirname, '../../support/killed-store.ts')
    const contents = { seed: 1, writes: 2, operationsMax: 1, valueBytesMax: 10, keys: 2 }
    const child = spawn(process.execPath, [program, join(path, 'store'), JSON.stringify(contents)])
    onTestFinished(() => void child.kill('SIGKILL'))
    await once(child.stdout, 'data')
    await expect(repair(path)).rejects.toMatchObject({ code: 'SPOOL_LOCKED' })
  })

  test('rejects where there is no spool, and where the directory of the backup is not empty', async () => {
    const path = await newFolder()
    await expect(repair(join(path, 'none'))).rejects.toMatchObject({ code: 'SPOOL_MISSING' })
    await expect(repair(path)).rejects.toMatchObject({ code: 'SPOOL_MISSING' })
    await mkdir(join(path, 'store'))
    await writeKilledStore(join(path, 'store'), {
      seed: 2,
      writes: 3,
      operationsMax: 2,
      valueBytesMax: 9,
      keys: 4,
    })
    await rm(join(path, 'store/CURRENT'))
    await expect(repair(path, { backup: path })).rejects.toMatchObject({ code: 'OUTPUT_UNWRITABLE' })
    expect(await readdir(join(path, 'store'))).not.toContain('CURRENT')
  })

  test('copies the damaged store first, and deletes what it set aside when it is asked to', async () => {
    const world = await filled()
    await world.spool.close()
    const folder = join(world.path, 'store')
    await rm(join(folder, 'CURRENT'))
    const names = (await readdir(folder)).filter((name) => name !== 'LOCK')
    const backup = join(await newFolder(), 'copy')
    const report = await repair(world.path, { backup })
    expect((await readdir(backup)).toSorted()).toEqual(names.toSorted())
    expect(report).toMatchObject({ backup, asidePath: join(world.path, 'damaged/2026-01-01T00-00-00-000') })
    expect(await readdir(report.asidePath ?? '')).toContain('repair-report.json')
    const purged = await repair(world.path, { purge: true })
    expect(purged).toMatchObject({ state: 'whole', purged: [report.asidePath] })
    expect(await readdir(world.path)).not.toContain('damaged')
  })

  test('copies a whole store, too, and refuses a directory inside of the spool', async () => {
    const world = await filled()
    await world.spool.close()
    const backup = join(await newFolder(), 'copy')
    expect(await repair(world.path, { backup })).toMatchObject({ state: 'whole', backup })
    expect(await readdir(backup)).toContain('CURRENT')
    const inside = join(world.path, 'store/copy')
    await expect(repair(world.path, { backup: inside })).rejects.toMatchObject({ code: 'OUTPUT_UNWRITABLE' })
  })

  test('begins an empty store where only the mark is left; numbers go on behind it', async () => {
    const world = await filled()
    await world.spool.close()
    for (const name of await readdir(join(world.path, 'store'))) await rm(join(world.path, 'store', name))
    const report = await repair(world.path)
    expect(report).toMatchObject({
      state: 'repaired',
      damage: [{ unit: 'CURRENT' }],
      losses: { payloads: 90 },
    })
    const { spool, eventsOf } = await openSpoolWorld({ path: world.path, changes })
    expect(eventsOf('writes_missing')).toMatchObject([{ payloads: 90 }])
    expect(spool.lanes()).toMatchObject([{ id: 1, appended: 90, open: 0 }])
  })

  test.skipIf(process.geteuid?.() !== 0)(
    'leaves all files to the owner of the spool when root runs it',
    async () => {
      const world = await filled()
      await world.spool.close()
      await rm(join(world.path, 'store/CURRENT'))
      const names = await readdir(world.path, { recursive: true })
      for (const name of ['.', ...names]) await chown(join(world.path, name), 12_345, 12_346)
      await repair(world.path)
      const owners = new Set<string>()
      for (const name of await readdir(world.path, { recursive: true })) {
        const { uid, gid } = await stat(join(world.path, name))
        owners.add(`${uid} ${gid}`)
      }
      expect([...owners]).toEqual(['12345 12346'])
    },
  )

  test('can be killed behind any step and repeated: nothing is lost, nothing comes twice', async () => {
    const world = await filled()
    await world.spool.close()
    await compacted(world.path)
    const more = await openSpoolWorld({ path: world.path, changes })
    for (let n = 0; n < 5; n += 1) await more.publish(`later ${n}`)
    await more.spool.close()
    const folder = join(world.path, 'store')
    for (const name of await readdir(folder)) if (name.startsWith('MANIFEST')) await rm(join(folder, name))
    const whole = await copied(world.path)
    await repair(whole)
    const expected = await contentOf(whole)
    const steps = await killBehindEachStep(world.path, async (path) => {
      await repair(path)
      expect(await contentOf(path)).toEqual(expected)
    })
    expect(steps).toBeGreaterThan(5)
  })
})
