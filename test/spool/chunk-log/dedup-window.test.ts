import { hash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { createWindow } from '../../../src/spool/chunk-log/dedup-window.ts'
import { ended, openSpoolWorld } from '../../support/open-spool.ts'
import { createRandom } from '../../support/random.ts'
import { payloadNamed } from '../../support/spool-world.ts'

const keyOf = (n: number) => hash('sha256', `key ${n}`, 'hex').slice(0, 32)

describe('the dedup window', () => {
  test('keeps records that are held whatever their age, and no more than its bound', () => {
    const held = { from: 2 }
    const window = createWindow({ windowMs: 1000, keysMax: 3 }, held)
    for (let n = 0; n < 4; n += 1) {
      window.load(keyOf(n))
      window.add()
      window.endGroup(n, 1, 0)
    }
    expect(window.expire(5000, 10)).toEqual([0, 1])
    for (const n of [4, 5]) {
      window.load(keyOf(n))
      window.add()
      window.endGroup(n, 1, 5000)
    }
    expect(window.expire(5000, 10)).toEqual([2])
    held.from = Infinity
    expect(window.expire(5000, 10)).toEqual([3])
  })

  test('keeps a renewed key with the last record, also over a growth and a restart', () => {
    const window = createWindow({ windowMs: 1000, keysMax: 1e6 })
    const load = (n: number) => window.loadBytes(Buffer.from(keyOf(n), 'hex').subarray(8), 0)
    for (let n = 0; n < 3000; n += 1) {
      load(n)
      window.add()
    }
    window.endGroup(0, 3000, 0)
    for (let n = 0; n < 3000; n += 2) {
      window.load(keyOf(n))
      window.renew()
    }
    window.endGroup(1, 1500, 900)
    expect(window.expire(1500, 10)).toEqual([0])
    expect(window.size()).toBe(1500)
    const known = Array.from({ length: 3000 }, (_, n) => n).filter((n) => {
      window.load(keyOf(n))
      return window.has()
    })
    expect(known).toEqual(Array.from({ length: 1500 }, (_, n) => n * 2))
    expect(window.expire(2000, 10)).toEqual([1])
    expect(window.size()).toBe(0)
  })

  test.each(['whole', 'recovered'])(
    'agrees with a plain set over a long random history of %s keys',
    (kind) => {
      const random = createRandom(11)
      const window = createWindow({ windowMs: 500, keysMax: 3000 })
      const groups: { n: number; keys: number[]; at: number }[] = []
      const known = new Set<number>()
      let nowMs = 0
      for (let n = 0; n < 3000; n += 1) {
        const added: number[] = []
        for (let index = random.below(12); index > 0; index -= 1) {
          const key = random.below(20_000)
          window.load(keyOf(key))
          expect(window.has()).toBe(known.has(key))
          if (kind === 'recovered' && random.chance(0.5))
            window.loadBytes(Buffer.from(keyOf(key), 'hex').subarray(8), 0)
          if (window.add()) added.push(key)
          known.add(key)
        }
        window.endGroup(n, added.length, nowMs)
        groups.push({ n, keys: added, at: nowMs })
        nowMs += random.below(4)
        for (const forgotten of window.expire(nowMs, 100)) {
          const group = groups.shift()
          expect(group?.n).toBe(forgotten)
          for (const key of group?.keys ?? []) known.delete(key)
        }
        expect(window.size()).toBe(known.size)
      }
      expect(known.size).toBeGreaterThan(500)
      for (let key = 0; key < 20_000; key += 1) {
        window.load(keyOf(key))
        expect(window.has()).toBe(known.has(key))
      }
    },
  )
})

describe('the dedup window on the disk', () => {
  test('has what is held whatever its age, a duplicate with the write that brought it again', async () => {
    const { spool, clock, publish } = await openSpoolWorld()
    spool.holdKeys(0)
    for (const name of ['one', 'two']) await publish(name)
    const from = spool.committedKeys()
    await clock.advance(3_600_000)
    await publish('one')
    spool.holdKeys(from)
    await publish('three')
    expect(spool.append(payloadNamed('one'))).toBe('duplicate')
    expect(spool.append(payloadNamed('two'))).toBe('stored')
    expect(await ended(spool)).toBeNull()
    expect(spool.totals()).toMatchObject({ payloads: 4, duplicates: 2 })
  })
})
