// end-of-time.ts: the end of a time that a person gives as its length, or as a date.

import type { EpochMs } from '../../../std/clock.ts'
import { parseDuration } from '../../../std/quantity.ts'
import { parseTimeArgument } from '../../../std/time-argument.ts'

/** Null where it is missing, or past. */
export function endOfTime(
  now: EpochMs,
  { lasts, until }: { lasts?: string | undefined; until?: string | undefined },
): EpochMs | null {
  const lastsMs = lasts === undefined ? undefined : parseDuration(lasts)
  const end = until === undefined ? null : parseTimeArgument(until, now)
  const at = lastsMs !== undefined ? now + lastsMs : end?.kind === 'time' ? end.at : null
  return at !== null && at > now ? at : null
}
