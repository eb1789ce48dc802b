import { describe, expect, test } from 'vitest'
import type { Store } from '../../../src/storage/storage.ts'
import { createMemoryDisk } from '../../support/memory-store.ts'
import { openSpoolWorld, type SpoolWorld } from '../../support/open-spool.ts'
import { emptyDisk, letterNamed, payloadNamed, provider } from '../../support/spool-world.ts'

const us = provider('default')
const isLate = (_provider: string, deviceTime: number) => deviceTime < 0

function lanesOf({ spool }: SpoolWorld): string[] {
  return spool.lanes().map(({ id, role }) => `${id} ${role.kind}`)
}

describe('backfill lanes that are drained', () => {
  test('stay where the only younger one could still be lost with the power', async () => {
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
      const { letter, windowKey } = letterNamed(`letter ${n}${'x'.repeat(3000)}`)
      spool.addDeadLetter(letter, windowKey, false)
      spool.endMessage(null)
    }
    spool.append(payloadNamed('late', { deviceTime: -1 }), false)
    spool.endMessage(null)
    expect(lanesOf(world)).toEqual(['1 live', '2 backfill'])
    expect(await writing(spool.rotate(us))).toBe(true)
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
    expect(lanesOf(again)).toEqual(['1 backfill', '2 live'])
  })
})
