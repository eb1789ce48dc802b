// property-seed.ts: whether a commit passes must not depend on chance, so properties have the same seed in
// each run, and what failed once is kept as an example. `PROPERTY_SEED=random npm test` looks for more, and
// names the seed of a failure.
//
// A property is tried 400 times, or as often as it says where a run costs much. `npm run test:all` sets PROPERTY_RUNS.

import { configureGlobal } from 'fast-check'

const text = process.env['PROPERTY_SEED'] ?? '1'
const seed = Number(text)
if (text !== 'random' && !Number.isSafeInteger(seed))
  throw new Error(`PROPERTY_SEED is ${text}: set an integer or "random".`)
const numRuns = Number(process.env['PROPERTY_RUNS'] ?? 400)
configureGlobal(text === 'random' ? { numRuns } : { numRuns, seed })
