// bounded-cache.ts: a bounded cache in two generations.
//
//   young   entries that were used since the last turn
//   old     entries that were used in the turn before; a hit makes them young
//
// When the young generation holds half of the bound, it becomes the old one, and the old one is dropped. A
// hit costs one Map lookup and no bookkeeping, and entries in use outlive any flood of keys that are seen
// once.

export type Cache<Value> = ReturnType<typeof createCache<Value>>

export type CacheCounters = { entries: number; misses: number; evictions: number }

/** Of two caches, of which the second is asked after a miss of the first. */
export function bothOf(first: CacheCounters, second: CacheCounters): CacheCounters {
  return { ...sumOf([first, second]), misses: second.misses }
}

export function sumOf(caches: readonly CacheCounters[]): CacheCounters {
  const sum = { entries: 0, misses: 0, evictions: 0 }
  for (const { entries, misses, evictions } of caches) {
    sum.entries += entries
    sum.misses += misses
    sum.evictions += evictions
  }
  return sum
}

/**
 * Holds at most `entriesMax` values; beyond that the longest unused half is removed, counted as evictions.
 */
export function createCache<Value>(entriesMax: number) {
  const youngMax = Math.max(1, Math.floor(entriesMax / 2))
  let young = new Map<string, Value>()
  let old = new Map<string, Value>()
  let misses = 0
  let evictions = 0
  return { get, set, entries, counters }

  function get(key: string): Value | undefined {
    const value = young.get(key)
    if (value !== undefined) return value
    const older = old.get(key)
    if (older === undefined) {
      misses += 1
      return undefined
    }
    old.delete(key)
    set(key, older)
    return older
  }

  function set(key: string, value: Value): void {
    if (young.size >= youngMax) {
      evictions += old.size
      old = young
      young = new Map()
    }
    young.set(key, value)
  }

  /** In no order. */
  function* entries(): Generator<[string, Value]> {
    yield* old
    yield* young
  }

  function counters(): CacheCounters {
    return { entries: young.size + old.size, misses, evictions }
  }
}
