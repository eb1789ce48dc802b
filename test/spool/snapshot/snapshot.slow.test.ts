import { mkdir, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { ProviderName } from '../../../src/domain/ids.ts'
import { allKeys, formatKey } from '../../../src/spool/chunk-log/key-layout.ts'
import { formatRecord } from '../../../src/spool/chunk-log/record-codec.ts'
import { readMarkIn } from '../../../src/spool/high-water-mark/mark-file.ts'
import { openRestingSpool, restoreSpool } from '../../../src/spool/spool.ts'
import { openExistingStore } from '../../../src/storage/storage.ts'
import { newFolder } from '../../support/folders.ts'
import {
  addDeadLetters,
  deadLettersIn,
  ended,
  keptIn,
  openSpoolWorld,
  sealAll,
  type SpoolWorld,
  publishAll,
  deliverAll,
} from '../../support/open-spool.ts'
import { checkOf } from '../../support/resting-spool.ts'
import { useElsewhere } from '../../support/spool-process.ts'
import { keptNamed, payloadNamed } from '../../support/spool-world.ts'

const never = new AbortController().signal
const restoring = { replace: false, now: () => 1, newId: () => 'restored', signal: never }

async function withContent(): Promise<SpoolWorld> {
  const world = await openSpoolWorld()
  await publishAll(world, ['a', 'b'])
  await sealAll(world.spool)
  await publishAll(world, ['c'])
  await addDeadLetters(world.spool, ['dead'])
  world.spool.keepMessage(keptNamed('kept').message)
  await ended(world.spool)
  return world
}

describe('a snapshot of the running spool', () => {
  test('holds what was acknowledged before it, and nothing that came later', async () => {
    const world = await withContent()
    const to = join(await newFolder(), 'snapshot')
    const report = await world.spool.snapshot(to, never)
    await publishAll(world, ['later'])
    expect(report).toMatchObject({ path: to, payloads: 3, batches: 1 })
    expect((await readdir(to)).sort()).toEqual(['mark', 'snapshot.json', 'store'])
    const check = await checkOf(to)
    expect(check).toMatchObject({ ok: true, problems: [], lanes: [{ appended: 3, settled: 0, open: 3 }] })
    expect(await readMarkIn(to)).toMatchObject({ mark: { lanes: [{ nextSeq: 3, open: 3 }] } })
    expect((await readdir(world.path)).filter((name) => name.startsWith('snapshot'))).toEqual([])
  })

  test('is consistent at any moment, also while messages come and tables are compacted', async () => {
    const changes = { bytesMax: 64 * 1024 ** 2, uncommittedBytesMax: 8 * 1024 ** 2 }
    const world = await openSpoolWorld({ changes })
    const folder = await newFolder()
    let published = 0
    const over = new AbortController()
    const publishing = (async () => {
      while (!over.signal.aborted) {
        for (let n = 0; n < 50; n += 1) {
          world.spool.append(payloadNamed(`${(published += 1)}`, { padding: 2000 }))
          world.spool.endMessage(null)
        }
        await ended(world.spool)
      }
    })()
    for (let n = 0; n < 6; n += 1) {
      const before = world.spool.totals().payloads
      const to = join(folder, `${n}`)
      const report = await world.spool.snapshot(to, never)
      expect(report.payloads).toBeGreaterThanOrEqual(before)
      const { ok, problems, lanes } = await checkOf(to)
      expect({ ok, problems }).toEqual({ ok: true, problems: [] })
      expect(lanes.reduce((sum, { open }) => sum + open, 0)).toBe(report.payloads)
    }
    over.abort()
    await publishing
  })

  test('shares tables with the spool by hard links, and keeps them when the spool deletes them', async () => {
    const before = await withContent()
    await before.spool.close()
    const store = await openExistingStore(join(before.path, 'store'))
    await store.compact(allKeys)
    await store.close()
    const world = await before.reopen()
    const to = join(await newFolder(), 'snapshot')
    // On the file system of the spool.
    const near = join(world.path, 'backup')
    expect(await world.spool.snapshot(near, never)).toMatchObject({ linkedTables: expect.any(Number) })
    const tables = (await readdir(join(near, 'store'))).filter((name) => name.endsWith('.ldb'))
    expect(tables.length).toBeGreaterThan(0)
    for (const name of tables) expect((await stat(join(near, 'store', name))).nlink).toBeGreaterThan(1)
    await deliverAll(world.spool)
    await world.spool.close()
    const again = await openExistingStore(join(world.path, 'store'))
    await again.compact(allKeys)
    await again.close()
    const report = await restoreSpool(near, to, restoring)
    expect(report).toMatchObject({ state: 'restored', payloads: 3 })
  })

  test('is refused where the directory is not empty, and the spool goes on', async () => {
    const world = await withContent()
    const to = await newFolder()
    await writeFile(join(to, 'something'), '')
    await expect(world.spool.snapshot(to, never)).rejects.toMatchObject({ code: 'OUTPUT_UNWRITABLE' })
    await writeFile(join(to, 'file'), '')
    await expect(world.spool.snapshot(join(to, 'file', 'x'), never)).rejects.toMatchObject({
      code: 'OUTPUT_UNWRITABLE',
    })
    await publishAll(world, ['d'])
    expect(world.eventsOf('store_lost')).toEqual([])
  })

  test('is one at a time', async () => {
    const world = await withContent()
    const folder = await newFolder()
    const first = world.spool.snapshot(join(folder, '1'), never)
    await expect(world.spool.snapshot(join(folder, '2'), never)).rejects.toMatchObject({
      why: expect.stringContaining('Another snapshot'),
    })
    await first
  })
})

describe('a restore', () => {
  test('gives back everything, under the same batchIds, and says what goes again', async () => {
    const world = await withContent()
    const [batch] = world.spool.batches()
    const from = join(await newFolder(), 'snapshot')
    await world.spool.snapshot(from, never)
    const path = join(await newFolder(), 'spool')
    const report = await restoreSpool(from, path, restoring)
    expect(report).toMatchObject({
      state: 'restored',
      replaced: null,
      payloads: 3,
      batches: [{ batchId: batch?.batchId, payloads: 2 }],
      deadLetters: 1,
      keptMessages: 1,
    })
    const restored = await openSpoolWorld({ path })
    expect(restored.spool.batches()).toMatchObject([{ batchId: batch?.batchId, recovered: true }])
    expect(await deadLettersIn(restored.spool)).toHaveLength(1)
    expect(await keptIn(restored.spool, 'quarantine:default')).toEqual(['kept'])
    expect(await deliverAll(restored.spool)).toEqual(['a', 'b', 'c'])
    expect(restored.eventsOf('writes_missing')).toEqual([])
    expect(restored.eventsOf('high_water_mark_unknown')).toEqual([])
    expect(await restored.spool.check(never)).toMatchObject({ ok: true })
  })

  test('refuses a directory with a spool, unless it may replace it, and keeps that spool', async () => {
    const world = await withContent()
    const from = join(await newFolder(), 'snapshot')
    await world.spool.snapshot(from, never)
    await publishAll(world, ['d', 'e'])
    await world.spool.close()
    expect(await restoreSpool(from, world.path, restoring)).toMatchObject({ state: 'planned', payloads: 3 })
    const report = await restoreSpool(from, world.path, { ...restoring, replace: true })
    expect(report).toMatchObject({ state: 'restored', replaced: expect.stringContaining('store.replaced-') })
    const restored = await openSpoolWorld({ path: world.path, clock: world.clock })
    // What the replaced store numbered after the snapshot is not given again, and is not reported as missing.
    expect(restored.spool.lanes()).toMatchObject([{ appended: 5, open: 3 }])
    expect(restored.eventsOf('writes_missing')).toEqual([])
    await publishAll(restored, ['f'])
    expect(await deliverAll(restored.spool)).toEqual(['a', 'b', 'c', 'f'])
    const old = await openRestingSpool(report.replaced ?? '')
    const { lanes } = await old.check(never)
    await old.close()
    expect(lanes).toMatchObject([{ appended: 5 }])
  })

  test('gives the store an id of its own, so that the mark of the old one does not fit it', async () => {
    const world = await withContent()
    const from = join(await newFolder(), 'snapshot')
    await world.spool.snapshot(from, never)
    const path = join(await newFolder(), 'spool')
    await restoreSpool(from, path, restoring)
    const store = await openExistingStore(join(path, 'store'))
    expect(formatRecord.decode(await store.get(formatKey))?.instance).toBe('restored')
    await store.close()
    expect(await readMarkIn(path)).toMatchObject({ mark: { instance: 'restored' } })
  })

  test('refuses a spool that a daemon uses', async () => {
    const world = await withContent()
    const from = join(await newFolder(), 'snapshot')
    await world.spool.snapshot(from, never)
    const path = join(await newFolder(), 'spool')
    await restoreSpool(from, path, restoring)
    await useElsewhere(path)
    await expect(restoreSpool(from, path, { ...restoring, replace: true })).rejects.toMatchObject({
      code: 'SPOOL_LOCKED',
    })
    expect((await readdir(path)).sort()).toEqual(['mark', 'spool.json', 'store'])
  })

  test('refuses a damaged snapshot, and changes nothing', async () => {
    const world = await withContent()
    const from = join(await newFolder(), 'snapshot')
    await world.spool.snapshot(from, never)
    await rm(join(from, 'store', 'CURRENT'))
    const path = join(await newFolder(), 'spool')
    await mkdir(path)
    await expect(restoreSpool(from, path, restoring)).rejects.toMatchObject({ code: 'SPOOL_DAMAGED' })
    expect(await readdir(path)).toEqual([])
  })
})

const acme = 'acme' as ProviderName

describe('a lane whose provider is lost', () => {
  test('is delivered for the provider that an operator assigns, with its sealed batches', async () => {
    const before = await openSpoolWorld()
    await publishAll(before, ['a', 'b'])
    const [batch] = await sealAll(before.spool)
    await publishAll(before, ['c'])
    await before.spool.close()
    const store = await openExistingStore(join(before.path, 'store'))
    const ops: { type: 'del'; key: Buffer }[] = []
    for await (const page of store.pages(allKeys))
      for (const [key] of page)
        if ((key[0] === 0x02 || key[0] === 0x12) && key.readUInt32BE(1) === 1) ops.push({ type: 'del', key })
    await store.write(ops, { sync: true })
    await store.close()
    await rm(join(before.path, 'mark'))
    const world = await before.reopen()
    expect([...world.spool.states()]).toMatchObject([{ code: 'LANE_UNKNOWN', lane: 1, payloads: 3 }])
    const assigned: string[] = []
    world.spool.listen({ laneAssigned: (provider) => void assigned.push(provider) })
    const [lane] = world.spool.lanes()
    expect(await world.spool.assignLane(lane!.id, acme)).toBe(3)
    expect(assigned).toEqual(['acme'])
    expect(world.spool.batches()).toMatchObject([{ batchId: batch?.batchId, provider: 'acme' }])
    await expect(world.spool.assignLane(lane!.id, acme)).rejects.toMatchObject({ code: 'LANE_KNOWN' })
    const again = await world.reopen()
    expect([...again.spool.states()]).toEqual([])
    expect(again.spool.lanes()).toMatchObject([{ id: 1, provider: 'acme', open: 3 }])
    expect(await deliverAll(again.spool)).toEqual(['a', 'b', 'c'])
  })
})
