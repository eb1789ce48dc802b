// backoff.ts: how long to wait after a failure. Pure but for chance, which is passed in.

/** Full jitter: any time from zero to `minMs`, doubled for each failure after the first, at most `maxMs`. */
export function fullJitter(
  random: () => number,
  failures: number,
  bounds: { minMs: number; maxMs: number },
): number {
  // Beyond 2^30 the product would be no better a bound, only a less exact number.
  const doublings = Math.min(Math.max(failures - 1, 0), 30)
  return random() * Math.min(bounds.maxMs, bounds.minMs * 2 ** doublings)
}

/** `centreMs`, up to `jitter` of it earlier or later: gateways that fell together do not knock together. */
export function around(random: () => number, centreMs: number, jitter: number): number {
  return centreMs * (1 + jitter * (2 * random() - 1))
}
