// sized-cache.ts: a cache that is bounded by the size of what it holds, for topics and devices.
//
//   young   entries that were used since the last turn
//   old     entries that were not yet; a hit makes them young
//
// Below the bound all entries are young, and a hit costs one Map lookup. At the bound the first of the old
// entries is removed for a new one (second chance). When none is old, all entries become old: a turn. They
// have the time in which as many other keys are not found to be used again.
//
// At the bound only one of `keptEvery` new keys is kept. With more keys in turn than there is room for, as of
// a fleet that sends once a minute, each key would be removed just before it is used again, and none would be
// found. So most of those that are there stay, and a flood of keys that are seen once removes few of them.

import type { CacheCounters } from './bounded-cache.ts'

export type SizedCache<Value> = ReturnType<typeof createSizedCache<Value>>

type Options<Value> = {
  bytesMax: number
  /** What an entry counts for; the same for it each time. */
  bytesOf(key: string, value: Value): number
}

/** At the bound, of the keys that were not found. */
const keptEvery = 8

export function createSizedCache<Value>({ bytesMax, bytesOf }: Options<Value>) {
  let young = new Map<string, Value>()
  let old = new Map<string, Value>()
  /** The next removal continues here. A new iterator would first pass all that were deleted. */
  let hand = old.entries()
  let bytes = 0
  let misses = 0
  let evictions = 0
  /** Keys that were not kept since the last one that was. */
  let passed = 0
  return { get, add, entries, counters }

  /** In no order. */
  function* entries(): Generator<[string, Value]> {
    yield* old
    yield* young
  }

  function get(key: string): Value | undefined {
    const value = young.get(key)
    if (value !== undefined) return value
    const older = old.size === 0 ? undefined : old.get(key)
    if (older === undefined) {
      misses += 1
      return undefined
    }
    old.delete(key)
    young.set(key, older)
    return older
  }

  /** Of a key that was not found. It may not be kept. */
  function add(key: string, value: Value): void {
    const size = bytesOf(key, value)
    if (bytes + size > bytesMax) {
      passed += 1
      if (passed < keptEvery || size > bytesMax) return
      passed = 0
      while (bytes + size > bytesMax) if (!removeOne()) return
    }
    bytes += size
    young.set(key, value)
  }

  /** False at a turn: nothing is removed until as many keys passed as there are entries. */
  function removeOne(): boolean {
    const { value: first } = hand.next()
    if (first === undefined) {
      passed = -young.size
      old = young
      young = new Map()
      hand = old.entries()
      return false
    }
    const [key, value] = first
    old.delete(key)
    bytes -= bytesOf(key, value)
    evictions += 1
    return true
  }

  function counters(): CacheCounters {
    return { entries: young.size + old.size, misses, evictions }
  }
}
