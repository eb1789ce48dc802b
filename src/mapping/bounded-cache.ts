// bounded-cache.ts: a bounded memory of what was worked out before, in two generations.
//
//   young   what was used since the last turn
//   old     what was used in the turn before; asked again, it becomes young
//
// When the young generation holds half of the bound, it becomes the old one and the old one is forgotten. A
// hit costs one Map lookup and no bookkeeping, and what is in use outlives any flood of keys that are seen
// once.

export type Cache<Value> = {
  get(key: string): Value | undefined
  set(key: string, value: Value): void
  counters(): CacheCounters
}

export type CacheCounters = { entries: number; misses: number; evictions: number }

/**
 * Holds at most `entriesMax` values; beyond that the longest unused half is forgotten, counted as evictions.
 */
export function createCache<Value>(entriesMax: number): Cache<Value> {
  const youngMax = Math.max(1, Math.floor(entriesMax / 2))
  let young = new Map<string, Value>()
  let old = new Map<string, Value>()
  let misses = 0
  let evictions = 0
  return { get, set, counters }

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

  function counters(): CacheCounters {
    return { entries: young.size + old.size, misses, evictions }
  }
}
