import { hash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { createWindow } from '../../src/spool/window.ts'
import { createRandom } from '../support/random.ts'

const keyOf = (n: number) => hash('sha256', `key ${n}`, 'hex').slice(0, 32)

describe('the dedup window', () => {
  test('knows what was added, and nothing else', () => {
    const window = createWindow({ windowMs: 1000, keysMax: 100 })
    window.load(keyOf(1))
    expect(window.has()).toBe(false)
    expect(window.add()).toBe(true)
    expect(window.add()).toBe(false)
    expect(window.has()).toBe(true)
    window.load(keyOf(2))
    expect(window.has()).toBe(false)
    expect(window.size()).toBe(1)
  })

  test('forgets a group when it is older than the window, and says which record may go', () => {
    const window = createWindow({ windowMs: 1000, keysMax: 100 })
    window.load(keyOf(1))
    window.add()
    window.endGroup(7, 1, 0)
    expect(window.expire(1000, 10)).toEqual([])
    expect(window.expire(1001, 10)).toEqual([7])
    window.load(keyOf(1))
    expect(window.has()).toBe(false)
  })

  test('never holds more keys than its bound once groups end', () => {
    const window = createWindow({ windowMs: 1e9, keysMax: 10 })
    for (let n = 0; n < 25; n += 1) {
      window.load(keyOf(n))
      window.add()
      window.endGroup(n, 1, 0)
      window.expire(0, 10)
      expect(window.size()).toBeLessThanOrEqual(10)
    }
    window.load(keyOf(14))
    expect(window.has()).toBe(false)
    window.load(keyOf(15))
    expect(window.has()).toBe(true)
  })

  test('agrees with a plain set over a long random history of adding and forgetting', () => {
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
  })
})
