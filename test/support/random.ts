// random.ts: seeded random numbers, so that a failure can be repeated with its seed.

export type Random = {
  /** 0 <= x < 1. */
  next(): number
  /** 0 <= n < below. */
  below(below: number): number
  chance(probability: number): boolean
  pick<T>(from: readonly T[]): T
  /** As `count` numbers that nobody asks for. */
  skip(count: number): void
}

/** mulberry32: small, fast, good enough to vary tests. */
export function createRandom(seed: number): Random {
  let state = seed >>> 0
  const step = 0x6d2b79f5
  function next(): number {
    state = (state + step) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  const below = (bound: number) => Math.floor(next() * bound)
  return {
    next,
    below,
    chance: (probability) => next() < probability,
    pick(from) {
      const chosen = from[below(from.length)]
      if (chosen === undefined) throw new Error('nothing to pick from')
      return chosen
    },
    skip: (count) => void (state = (state + Math.imul(count, step)) >>> 0),
  }
}
