// Random damage to the files of a spool: what a repair reports as lost, and what comes back.

import { cp, readdir, readFile, rm, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { LaneId } from '../../../src/domain/ids.ts'
import { repairSpool, type Batch, type RepairReport, type Spool } from '../../../src/spool/spool.ts'
import { openLevelStore } from '../../../src/storage/storage.ts'
import { newFolder } from '../../support/folders.ts'
import { addDeadLetters, ended, namesIn, openSpoolWorld, sealAll } from '../../support/open-spool.ts'
import { createRandom, type Random } from '../../support/random.ts'
import { keptNamed } from '../../support/spool-world.ts'

const changes = { bytesMax: 256 * 1024 ** 2, quarantineBytesMax: 64 * 1024 ** 2 }
const seeds = Array.from({ length: 16 }, (_, n) => 400 + n)

type Base = { path: string; open: ReadonlySet<string> }

async function settleFirst(spool: Spool): Promise<void> {
  const [batch] = spool.batches()
  if (batch === undefined) throw new Error('no batch')
  await spool.load(batch)
  await spool.settle(batch, { payloads: 'all delivered', requestId: null })
}

/** Two tables and a log, with settled, sealed and pending payloads in each. */
async function writeBase(): Promise<Base> {
  const first = await openSpoolWorld({ changes })
  const { path, clock } = first
  for (let n = 0; n < 40; n += 1) await first.publish(`sealed ${n}`, { padding: 900 })
  for (let n = 0; n < 4; n += 1)
    await first.spool.seal(1 as LaneId, { payloadsMax: 10, bodyBytesMax: 10 ** 8 })
  await settleFirst(first.spool)
  for (let n = 0; n < 60; n += 1) await first.publish(`pending ${n}`, { padding: 900 })
  await addDeadLetters(
    first.spool,
    Array.from({ length: 30 }, (_, n) => `letter ${n}`),
  )
  for (let n = 0; n < 20; n += 1) first.spool.keepMessage(keptNamed(`message ${n}`, { padding: 500 }).message)
  await ended(first.spool)
  await first.spool.close()
  const store = await openLevelStore(join(path, 'store'))
  await store.compact({ gte: Buffer.from([0]), lt: Buffer.from([255]) })
  await store.close()
  for (const from of [60, 90]) {
    const world = await openSpoolWorld({ path, changes, clock })
    await settleFirst(world.spool)
    for (let n = from; n < from + 30; n += 1) await world.publish(`pending ${n}`, { padding: 900 })
    await world.spool.close()
    if (from === 60) await (await openLevelStore(join(path, 'store'))).close()
  }
  const numbers = (kind: string, from: number, until: number) =>
    Array.from({ length: until - from }, (_, n) => `${kind} ${from + n}`)
  return { path, open: new Set([...numbers('sealed', 30, 40), ...numbers('pending', 0, 120)]) }
}

/** Returns what was done. */
async function damage(folder: string, random: Random): Promise<string> {
  const names = (await readdir(folder)).filter((name) => /\.ldb$|\.log$|^MANIFEST|^CURRENT/.test(name))
  const name = random.pick(names)
  const file = join(folder, name)
  const bytes = await readFile(file)
  const at = random.below(bytes.length)
  const kind = random.pick(['remove', 'cut', 'zero a page of', 'flip a bit of', 'flip a bit of'] as const)
  if (kind === 'remove') await rm(file)
  if (kind === 'cut') await truncate(file, at)
  const page = at - (at % 4096)
  if (kind === 'zero a page of')
    await writeFile(file, bytes.fill(0, page, Math.min(bytes.length, page + 4096)))
  if (kind === 'flip a bit of') {
    bytes[at] = (bytes[at] ?? 0) ^ (1 << random.below(8))
    await writeFile(file, bytes)
  }
  return `${kind} ${name} at ${at}`
}

/** Names of all payloads, with how often each comes; everything is settled on the way. */
async function drained(path: string): Promise<{ names: string[]; damaged: number }> {
  const { spool } = await openSpoolWorld({ path, changes })
  const names: string[] = []
  // A batch with a hole is sealed again.
  for (let round = 0; round < 4; round += 1) {
    await sealAll(spool)
    for (const batch of spool.batches()) names.push(...(await settled(spool, batch)))
  }
  const { damaged } = spool.totals()
  await spool.close()
  return { names, damaged }
}

async function settled(spool: Spool, batch: Batch): Promise<string[]> {
  if ((await spool.load(batch)).kind !== 'content') return []
  const names = await namesIn(spool, batch)
  await spool.settle(batch, { payloads: 'all delivered', requestId: null })
  return names
}

function repair(path: string): Promise<RepairReport> {
  const { signal } = new AbortController()
  return repairSpool(path, { apply: true, backup: null, purge: false, now: () => 1e12, signal })
}

describe('random damage to the files of a spool', () => {
  test('loses no more than the repair and the start report, and brings nothing twice', async () => {
    const base = await writeBase()
    for (const seed of seeds) {
      const path = join(await newFolder(), 'spool')
      await cp(base.path, path, { recursive: true })
      const done = `seed ${seed}: ${await damage(join(path, 'store'), createRandom(seed))}`
      const report = await repair(path)
      const { names, damaged } = await drained(path)
      const missing = [...base.open].filter((name) => !names.includes(name)).length
      expect(missing, done).toBeLessThanOrEqual(Math.max(report.losses.payloads, damaged))
      expect(new Set(names).size, done).toBe(names.length)
      expect((await repair(path)).state, done).toBe('whole')
    }
  })
})
