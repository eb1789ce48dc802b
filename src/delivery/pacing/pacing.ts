// pacing.ts: the entry file of how much is sent: how large a batch is, how many go at once, how fast, and how
// long each may take.
//
//   size-limit   the largest body that the service takes, as its answers with 413 show
//   goodput      the largest body, the deadline and the places that fit the link
//   concurrency  fewer submissions at once after failures
//   rate-limit   limits of our own

import type { Clock } from '../../std/clock.ts'
import type { ProviderOptions } from '../delivery-options.ts'
import { createConcurrency, type Concurrency } from './concurrency.ts'
import { createGoodput, type Goodput } from './goodput.ts'
import { createRateLimit, type RateLimit } from './rate-limit.ts'
import { createSizeLimit, type SizeLimit } from './size-limit.ts'

export { payloadsAtOnce } from './rate-limit.ts'

export type Pacing = {
  sizeLimit: SizeLimit
  goodput: Goodput
  concurrency: Concurrency
  rateLimit: RateLimit
  /** Largest request body of the next batch. */
  bytesMax(): number
  /** Submissions at once. */
  places(): number
}

export function createPacing({ clock }: { clock: Clock }, options: ProviderOptions): Pacing {
  // They read the options at each decision: a reload changes them.
  const sizeLimit = createSizeLimit(options.batch)
  const goodput = createGoodput(options)
  const concurrency = createConcurrency(options)
  return {
    sizeLimit,
    goodput,
    concurrency,
    rateLimit: createRateLimit({ clock }, options.rate),
    bytesMax() {
      return Math.min(sizeLimit.bytesMax(), goodput.bytesMax())
    },
    places() {
      return Math.min(concurrency.limit(), goodput.placesMax())
    },
  }
}
