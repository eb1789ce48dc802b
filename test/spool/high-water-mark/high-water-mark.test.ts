import { copyFile, cp, readFile, rm, writeFile, rename } from 'node:fs/promises'
import { join } from 'node:path'
import type { SpoolOptions } from '../../../src/spool/spool.ts'
import { describe, expect, test } from 'vitest'
import type { LaneId, ProviderName } from '../../../src/domain/ids.ts'
import { slotBytes } from '../../../src/spool/high-water-mark/high-water-mark.ts'
import { readMarkIn } from '../../../src/spool/high-water-mark/mark-file.ts'
import { decodeMark, layOutMark, sealMark } from '../../../src/spool/high-water-mark/mark-codec.ts'
import {
  namesIn,
  openSpoolWorld,
  sealAll,
  type SpoolWorld,
  publishAll,
  deliverAll,
} from '../../support/open-spool.ts'
import { checkOf } from '../../support/resting-spool.ts'

const never = new AbortController().signal

/**
 * A spool of the payloads a and b whose database loses what `use` writes to it, as on a disk that loses writes. The mark
 * stays. Nobody has it open.
 */
async function losing(
  use: (lost: SpoolWorld) => Promise<unknown>,
  {
    changes = {},
    before = async () => undefined,
  }: {
    changes?: Partial<SpoolOptions>
    before?: (world: SpoolWorld) => Promise<unknown>
  } = {},
): Promise<SpoolWorld> {
  const world = await openSpoolWorld({ changes })
  await publishAll(world, 'ab')
  await before(world)
  await world.spool.close()
  const [store, copy] = [join(world.path, 'store'), join(world.path, 'store-copy')]
  await cp(store, copy, { recursive: true })
  const lost = await world.reopen()
  await use(lost)
  await lost.spool.close()
  await rm(store, { recursive: true })
  await rename(copy, store)
  return lost
}

async function markOf({ path }: SpoolWorld) {
  const found = await readMarkIn(path)
  if (found.kind !== 'mark') throw new Error(`the mark is ${found.kind}`)
  return found.mark
}

describe('a database that lost writes', () => {
  test('is reported with the payloads that are missing, and the numbers go on behind them', async () => {
    const lost = await losing((world) => publishAll(world, 'cde'))
    const again = await lost.reopen()
    expect(again.eventsOf('writes_missing')).toMatchObject([
      { writes: 3, payloads: 3, lanes: 'lane 1 of provider default: 3' },
    ])
    expect(again.spool.lanes()).toMatchObject([{ appended: 5, settled: 3, open: 2, pending: 2 }])
    expect(again.spool.totals()).toMatchObject({ damaged: 3 })
    expect(await again.spool.check(never)).toMatchObject({ ok: true })
    await publishAll(again, 'f')
    const batches = await sealAll(again.spool)
    expect(batches.map(({ firstSeq, endSeq }) => [firstSeq, endSeq])).toEqual([
      [0, 2],
      [5, 6],
    ])
    expect(await namesIn(again.spool, batches[0]!)).toEqual(['a', 'b'])
    expect(await namesIn(again.spool, batches[1]!)).toEqual(['f'])
    await again.clock.advance(1000)
    expect(again.eventsOf('conservation_broken')).toEqual([])
    expect(again.spool.lanes()).toMatchObject([{ appended: 6, settled: 3, open: 3, pending: 0 }])
  })

  test('is reported once: the next start finds what the last one left', async () => {
    const lost = await losing((world) => publishAll(world, 'c'))
    const again = await (await lost.reopen()).reopen()
    expect(again.eventsOf('writes_missing')).toEqual([])
    expect(again.spool.lanes()).toMatchObject([{ appended: 3, settled: 1, open: 2, pending: 2 }])
    expect(await again.spool.check(never)).toMatchObject({ ok: true })
    // The gap is stepped over once, also over a restart.
    await deliverAll(again.spool)
    const end = await again.reopen()
    expect(end.spool.lanes()).toMatchObject([{ appended: 3, settled: 3, open: 0, pending: 0 }])
  })

  test('is reported also where only settles are missing, and nothing is pending', async () => {
    const lost = await losing(
      async (lost) => {
        await lost.spool.load(lost.spool.batches()[0]!)
        await lost.spool.settle(lost.spool.batches()[0]!, { payloads: 'all delivered', requestId: null })
      },
      { before: ({ spool }) => sealAll(spool) },
    )
    const again = await lost.reopen()
    expect(again.eventsOf('writes_missing')).toMatchObject([{ writes: 1, payloads: 0, lanes: '' }])
    expect(again.spool.batches()).toMatchObject([{ payloads: 2 }])
  })

  test('opens a lane of which nothing is left again, with its provider, its role and its numbers', async () => {
    const lost = await losing(
      async (lost) => {
        await lost.spool.rotate('default' as ProviderName)
        await publishAll(lost, 'cd')
      },
      { changes: { forgetMs: 1e9 } },
    )
    const again = await lost.reopen()
    expect(again.eventsOf('writes_missing')).toMatchObject([{ writes: 3, payloads: 2 }])
    expect(again.spool.lanes()).toMatchObject([
      { id: 1, role: { kind: 'backfill' }, appended: 2, open: 2 },
      { id: 2, role: { kind: 'live' }, appended: 2, settled: 2, open: 0 },
    ])
    await publishAll(again, 'e')
    expect(again.spool.lanes()).toMatchObject([{ id: 1 }, { id: 2, appended: 3, open: 1 }])
    expect(await again.spool.check(never)).toMatchObject({ ok: true })
  })

  test('is shown by a check of the files where no daemon runs', async () => {
    const lost = await losing((world) => publishAll(world, 'cde'))
    const { ok, problems } = await checkOf(lost.path)
    expect(ok).toBe(false)
    expect(problems).toEqual([
      '3 writes are missing by the high-water mark.',
      'Lane 1 of provider default: 3 payloads are missing by the high-water mark.',
    ])
  })

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
