import { copyFile, cp, readFile, rm, writeFile, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { LaneId, ProviderName } from '../../../src/domain/ids.ts'
import { slotBytes } from '../../../src/spool/high-water-mark/high-water-mark.ts'
import { readMarkIn } from '../../../src/spool/high-water-mark/mark-file.ts'
import { decodeMark, layOutMark, sealMark } from '../../../src/spool/high-water-mark/mark-codec.ts'
import { openSpoolWorld, type SpoolWorld, publishAll, deliverAll } from '../../support/open-spool.ts'
import { checkOf } from '../../support/resting-spool.ts'
import { spoolWords, startSpool } from '../../support/spool-steps.ts'
import { stepCases } from '../../support/step-cases.ts'

const storesOf = (path: string) => [join(path, 'store'), join(path, 'store-copy')] as const

type One = Awaited<ReturnType<typeof startSpool>>

stepCases(import.meta.filename, startSpool, {
  ...spoolWords,
  copyStore: async (one: One) => {
    await one.w.spool.close()
    const [store, copy] = storesOf(one.w.path)
    await cp(store, copy, { recursive: true })
    one.w = await one.w.reopen()
  },
  /** Nobody has the spool open then. */
  loseWrites: async ({ w }: One) => {
    await w.spool.close()
    const [store, copy] = storesOf(w.path)
    await rm(store, { recursive: true })
    await rename(copy, store)
  },
  problemsAtRest: async ({ w }: One, problems: string[]) =>
    expect(await checkOf(w.path)).toMatchObject({ ok: false, problems }),
})

async function markOf({ path }: SpoolWorld) {
  const found = await readMarkIn(path)
  if (found.kind !== 'mark') throw new Error(`the mark is ${found.kind}`)
  return found.mark
}

describe('a database that lost writes', () => {
  test('that another version opened since reports no lane that it may have drained', async () => {
    const world = await openSpoolWorld({ changes: { forgetMs: 1e9 } })
    await publishAll(world, 'ab')
    await world.spool.rotate('default' as ProviderName)
    await publishAll(world, 'c')
    await world.spool.close()
    const mark = await readFile(join(world.path, 'mark'))
    // The other version drains lane 1 and deletes it; it does not know the mark.
    const other = await openSpoolWorld({ path: world.path, clock: world.clock })
    await deliverAll(other.spool)
    await publishAll(other, 'd')
    await other.spool.rotate('default' as ProviderName)
    await publishAll(other, 'e')
    await deliverAll(other.spool)
    await other.clock.advance(60_000)
    await other.spool.close()
    expect(other.spool.lanes()).toEqual([])
    await writeFile(join(world.path, 'mark'), mark)
    const again = await other.reopen()
    expect(again.spool.lanes().map(({ id }) => id)).not.toContain(1)
    expect(again.eventsOf('writes_missing')).toEqual([])
  })
})

describe('a mark that cannot be used', () => {
  test.each([
    ['is cut short', async (name: string) => writeFile(name, (await readFile(name)).subarray(0, 100))],
    ['has wrong checksums', async (name: string) => writeFile(name, flipped(await readFile(name)))],
    ['is missing', (name: string) => rm(name)],
  ])('because it %s is unknown: a warning, and it is written anew', async (_what, change) => {
    const before = await openSpoolWorld()
    await publishAll(before, 'ab')
    await before.spool.close()
    await change(join(before.path, 'mark'))
    const world = await before.reopen()
    expect(world.eventsOf('high_water_mark_unknown')).toHaveLength(1)
    expect(world.eventsOf('writes_missing')).toEqual([])
    expect((await markOf(world)).lanes).toMatchObject([{ id: 1, nextSeq: 2 }])
    const again = await world.reopen()
    expect(again.eventsOf('high_water_mark_unknown')).toEqual([])
  })

  test('because it belongs to another spool is unknown', async () => {
    const other = await openSpoolWorld()
    await publishAll(other, 'abcdef')
    const world = await openSpoolWorld()
    await publishAll(world, 'a')
    await world.spool.close()
    await copyFile(join(other.path, 'mark'), join(world.path, 'mark'))
    const again = await world.reopen()
    expect(again.eventsOf('high_water_mark_unknown')).toMatchObject([
      { why: expect.stringContaining('another spool') },
    ])
    expect(again.spool.lanes()).toMatchObject([{ appended: 1 }])
  })

  test('survives damage to one of its slots: the other one is older by one write', async () => {
    const before = await openSpoolWorld()
    await publishAll(before, 'abc')
    await before.spool.close()
    const name = join(before.path, 'mark')
    const content = await readFile(name)
    const newest = ((await markOf(before)).serial % 2) * slotBytes
    content[newest + 50]! ^= 1
    await writeFile(name, content)
    const world = await before.reopen()
    expect(world.eventsOf('high_water_mark_unknown')).toEqual([])
    expect(world.spool.lanes()).toMatchObject([{ appended: 3, open: 3 }])
  })
})

describe('a slot of the mark', () => {
  const lanesOf = (count: number) =>
    Array.from({ length: count }, (_, index) => ({
      id: (index + 1) as LaneId,
      provider: `provider-${index % 12}` as ProviderName,
      role:
        index % 7 === 0 ? { kind: 'retry' as const, schedule: 's', step: 3 } : { kind: 'backfill' as const },
      nextSeq: 2 ** 40 + index,
      open: index * 2 ** 33,
    }))
  const identity = { instance: 'store-1', manifest: 'MANIFEST-000004', nextLane: 4000 }

  test('has room for 256 backfill lanes of 12 providers', () => {
    const slot = Buffer.alloc(slotBytes)
    const lanes = lanesOf(256 * 12)
    sealMark(slot, layOutMark(slot, { ...identity, lanes }), { serial: 5, writes: 2 ** 33, nextLane: 4000 })
    expect(decodeMark(slot)).toEqual({ ...identity, serial: 5, writes: 2 ** 33, lanes, lanesLeftOut: 0 })
  })

  test('is refused after any flipped bit of its used bytes', () => {
    const slot = Buffer.alloc(slotBytes)
    const layout = layOutMark(slot, { ...identity, lanes: lanesOf(3) })
    sealMark(slot, layout, { serial: 5, writes: 9, nextLane: 4 })
    for (let at = 0; at < layout.used * 8; at += 1) {
      slot[at >> 3]! ^= 1 << (at & 7)
      expect(decodeMark(slot)).toBeNull()
      slot[at >> 3]! ^= 1 << (at & 7)
    }
    expect(decodeMark(slot)).not.toBeNull()
  })
})

/** One byte of each slot changed. */
function flipped(content: Buffer): Buffer {
  for (const at of [40, slotBytes + 40]) content[at]! ^= 1
  return content
}
