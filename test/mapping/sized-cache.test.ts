import { expect, test } from 'vitest'
import { createSizedCache } from '../../src/mapping/sized-cache.ts'
import { createRandom } from '../support/random.ts'

const open = (entriesMax: number) =>
  createSizedCache<string>({ bytesMax: entriesMax * 10, bytesOf: () => 10 })

/** As the mapping uses it. Returns the share of keys that were found. */
function play(cache: ReturnType<typeof open>, keys: Iterable<string>): number {
  let asked = 0
  let found = 0
  for (const key of keys) {
    asked += 1
    const value = cache.get(key)
    if (value === undefined) cache.add(key, `of ${key}`)
    else found += 1
    if (value !== undefined && value !== `of ${key}`) throw new Error(`${value} for ${key}`)
  }
  return found / asked
}

function* inTurn(count: number, turns: number, name = 'k'): Generator<string> {
  for (let turn = 0; turn < turns; turn += 1)
    for (let index = 0; index < count; index += 1) yield `${name}${index}`
}

test('as many keys as there is room for are all found again, and none is removed', () => {
  const cache = open(1000)
  play(cache, inTurn(1000, 1))
  expect(play(cache, inTurn(1000, 3))).toBe(1)
  expect(cache.counters()).toEqual({ entries: 1000, misses: 1000, evictions: 0 })
})

test('of more keys in turn than there is room for, most of those that fit are found', () => {
  for (const [keys, least] of [
    [1100, 0.75],
    [2000, 0.4],
    [4000, 0.17],
  ] as const) {
    const cache = open(1000)
    play(cache, inTurn(keys, 2))
    expect(play(cache, inTurn(keys, 20))).toBeGreaterThan(least)
  }
})

test('of keys in use more are found than a cache by last use would find, beside as many that are seen once', () => {
  const cache = open(1000)
  const random = createRandom(7)
  // By last use it would be 0.21.
  function* withFlood(): Generator<string> {
    for (let index = 0; index < 50_000; index += 1) {
      yield `k${random.below(900)}`
      yield `flood${index}`
    }
  }
  expect(play(cache, withFlood())).toBeGreaterThan(0.28)
})

test('other keys replace those that are no longer used', () => {
  const cache = open(1000)
  play(cache, inTurn(1000, 3))
  play(cache, inTurn(1000, 40, 'other'))
  expect(play(cache, inTurn(1000, 1, 'other'))).toBeGreaterThan(0.9)
})

test('the entries are never larger than the bound, whatever their sizes', () => {
  const random = createRandom(11)
  const kept = new Map<string, number>()
  const sizes = new Map<string, number>()
  const cache = createSizedCache<number>({ bytesMax: 10_000, bytesOf: (_key, size) => size })
  for (let index = 0; index < 20_000; index += 1) {
    const key = `k${random.below(800)}`
    const size = sizes.get(key) ?? 1 + random.below(400)
    sizes.set(key, size)
    if (cache.get(key) === undefined) cache.add(key, size)
    if (index % 500 !== 0) continue
    kept.clear()
    for (const [name, known] of sizes) if (cache.get(name) !== undefined) kept.set(name, known)
    expect([...kept.values()].reduce((sum, one) => sum + one, 0)).toBeLessThanOrEqual(10_000)
    expect(cache.counters().entries).toBe(kept.size)
  }
  expect(cache.counters().evictions).toBeGreaterThan(100)
})

test('an entry that is larger than the bound leaves nothing behind it', () => {
  const cache = createSizedCache<number>({ bytesMax: 100, bytesOf: (_key, size) => size })
  cache.add('small', 60)
  for (let index = 0; index < 40; index += 1) cache.add(`large ${index}`, 200)
  expect(cache.counters().entries).toBeLessThanOrEqual(1)
})
