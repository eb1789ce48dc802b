// property-seed.ts: whether a commit passes must not depend on chance, so properties have the same seed in
// each run, and what failed once is kept as an example. `PROPERTY_SEED=random npm test` looks for more, and
// names the seed of a failure.

import { configureGlobal } from 'fast-check'

const text = process.env['PROPERTY_SEED'] ?? '1'
if (text !== 'random') {
  const seed = Number(text)
  if (!Number.isSafeInteger(seed)) throw new Error(`PROPERTY_SEED is ${text}: set an integer or "random".`)
  configureGlobal({ seed })
}
