// seeded-random.ts: random numbers from a seed. Each vehicle has its own stream, so that its track does not
// depend on other vehicles or on the network.

/** mulberry32: 0 <= x < 1, the same sequence for the same seed. */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** A seed for a stream that branches off `random`. */
export function drawSeed(random: () => number): number {
  return Math.floor(random() * 2 ** 32)
}
