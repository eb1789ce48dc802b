import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { LaneId } from '../../../src/domain/ids.ts'
import { seqKey, table } from '../../../src/spool/chunk-log/key-layout.ts'
import { openSalvage, type LaneView, type Spool } from '../../../src/spool/spool.ts'
import type { Store } from '../../../src/storage/storage.ts'
import { createMemoryDisk } from '../../support/memory-store.ts'
import {
  collect,
  ended,
  openSpoolWorld,
  reopenTampered,
  sealLane,
  type SpoolWorld,
} from '../../support/open-spool.ts'
import { emptyDisk, deadLetterNamed, payloadNamed, provider } from '../../support/spool-world.ts'

const owner = provider('default')
const wide = { payloadsMax: 1000, bodyBytesMax: 1e6 }
const isLate = (_provider: string, deviceTime: number) => deviceTime < 0

function wrongChecksum(value: Buffer): Buffer {
  value[1]! ^= 1
  return value
}

function send(spool: Spool, name: string): Promise<unknown> {
  spool.append(payloadNamed(name))
  return ended(spool)
}

async function drain(spool: Spool, id: LaneId): Promise<void> {
  for (const batch of await sealLane(spool, id)) {
    await spool.load(batch)
    await spool.settle(batch, { payloads: 'all delivered', requestId: null })
  }
}

const kinds = (lanes: readonly LaneView[]) => lanes.map(({ id, role }) => `${id} ${role.kind}`)

describe('a drained backfill lane', () => {
  /** Each outage leaves one backfill lane. */
  async function outage({ spool }: SpoolWorld, name: string): Promise<void> {
    await send(spool, name)
    await spool.rotate(owner)
  }

  /** The spool looks for what is drained once in `forgetMs`. */
  async function aMinute({ clock, spool }: SpoolWorld): Promise<void> {
    await clock.advance(60_000)
    // Whatever was asked for is durable once a write behind it is.
    await send(spool, `after ${spool.totals().groups}`)
  }

  test.each([true, false])(
    'leaves its number unused after a restart (high-water mark: %s)',
    async (hasMark) => {
      const before = await openSpoolWorld()
      for (const name of ['one', 'two', 'three']) await outage(before, name)
      for (const { id } of before.spool.lanes()) await drain(before.spool, id)
      const { groups } = before.spool.totals()
      await before.clock.advance(60_000)
      while (before.spool.totals().groups === groups) await new Promise((resolve) => setImmediate(resolve))
      await before.spool.close()
      if (!hasMark) await rm(join(before.path, 'mark'))
      const world = await before.reopen()
      expect(kinds(world.spool.lanes())).toEqual(['3 backfill'])
      await world.publish('four')
      expect(kinds(world.spool.lanes())).toEqual(['3 backfill', '4 live'])
    },
  )

  test('leaves only a few lanes after a hundred outages', async () => {
    const world = await openSpoolWorld({ changes: { backfillLanesMax: 3 } })
    for (let n = 0; n < 100; n += 1) {
      await send(world.spool, `message ${n}`)
      expect(await world.spool.rotate(owner)).toBe(true)
      for (const { id } of world.spool.lanes()) await drain(world.spool, id)
      await aMinute(world)
    }
    expect(world.spool.lanes().length).toBeLessThan(5)
    expect(world.eventsOf('conservation_broken')).toEqual([])
    expect((await world.spool.check(new AbortController().signal)).problems).toEqual([])
  })

  test('is deleted also if a chunk of it was set aside, and its record is kept for that chunk', async () => {
    const before = await openSpoolWorld()
    await outage(before, 'one')
    await outage(before, 'two')
    const world = await reopenTampered(before, seqKey(table.chunks, 1 as LaneId, 0), wrongChecksum)
    expect(await world.spool.seal(1 as LaneId, wide)).toBeNull()
    await drain(world.spool, 2 as LaneId)
    await aMinute(world)
    expect(kinds(world.spool.lanes())).toEqual(['2 backfill', '3 live'])
    await world.spool.close()
    const salvage = await openSalvage(world.path, new AbortController().signal)
    const found = await collect(salvage.entries(new AbortController().signal))
    await salvage.close()
    expect(found).toContainEqual(expect.objectContaining({ kind: 'payload', lane: 1, provider: owner }))
  })

  test('stays while the only younger lane could still be lost in a power cut', async () => {
    const disk = createMemoryDisk()
    const boot = disk.boot()
    const waiting: (() => void)[] = []
    let held = false
    const openStore = async (path: string): Promise<Store> => {
      const store = await boot(path)
      return {
        ...store,
        async write(ops, options) {
          if (held) await new Promise<void>((resolve) => waiting.push(resolve))
          await store.write(ops, options)
        },
      }
    }
    const world = await openSpoolWorld({ openStore, disk: emptyDisk, isLate, crashes: true })
    const { spool, clock } = world
    const writing = async <Result>(work: Promise<Result>): Promise<Result> => {
      const state = { over: false }
      const over = work.finally(() => (state.over = true))
      while (!state.over) {
        waiting.shift()?.()
        await clock.advance(0)
      }
      return over
    }
    expect(await world.publish('one')).toBeNull()
    held = true
    // So many messages wait that what comes behind them stays in memory for a while.
    for (let n = 0; n < 12; n += 1) {
      const { deadLetter } = deadLetterNamed(`letter ${n}${'x'.repeat(3000)}`)
      spool.addDeadLetter(deadLetter)
      spool.endMessage(null)
    }
    spool.append(payloadNamed('late', { deviceTime: -1 }))
    spool.endMessage(null)
    expect(kinds(world.spool.lanes())).toEqual(['1 live', '2 backfill'])
    expect(await writing(spool.rotate(owner))).toBe(true)
    const lane = spool.lanes()[0]!.id
    const batch = await writing(spool.seal(lane, { payloadsMax: 9, bodyBytesMax: 1e6 }))
    await spool.load(batch!)
    await writing(spool.settle(batch!, { payloads: 'all delivered', requestId: null }))
    await clock.advance(61_000)
    // What is to be done about lanes is asked for by now: it goes with the next write.
    await writing(spool.forgetReceipts(0))
    expect(spool.totals().deadLetters).toBeLessThan(12)
    disk.crash({ keepRunning: false })
    const again = await openSpoolWorld({ openStore: disk.boot(), disk: emptyDisk, isLate })
    expect(await again.publish('two')).toBeNull()
    expect(kinds(again.spool.lanes())).toEqual(['1 backfill', '2 live'])
  })
})
