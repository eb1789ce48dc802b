// repeats.ts: whether the last messages of a device bring nothing new: each is a duplicate.

import type { EpochMs } from '../std/clock.ts'
import { column } from './record-table.ts'
import type { Repeating } from './types.ts'

/** So many messages in a row that bring nothing new, over this time: the same one, or several. */
const repeatsMin = 20
const repeatsMs = 60_000
const repeatsOtherMs = 300_000
/** The same for a device that sends rarely. */
const repeatsSlowMin = 5
const repeatsSlowMs = 900_000
/** The first repeat may be of another message. */
const repeatsUnlike = 2

/**
 * A backlog that is sent again has other messages each time, and is over soon. What a device sends twice, or
 * on two paths, has new messages in between.
 */
export function repeatingOf(
  row: Float64Array,
  { lastAt, silentAfterMs }: { lastAt: EpochMs; silentAfterMs: number },
): Repeating | null {
  const messages = row[column.repeats]!
  const from = row[column.repeatsFrom]!
  const spanMs = row[column.repeatedAt]! - from
  const isOneMessage = messages < 2 * row[column.repeatsAlike]! + repeatsUnlike
  const isOften = messages >= repeatsMin && spanMs >= (isOneMessage ? repeatsMs : repeatsOtherMs)
  const isSlow = messages >= repeatsSlowMin && spanMs >= repeatsSlowMs && isOneMessage
  // It sends something else now.
  if (!(isOften || isSlow) || lastAt - row[column.repeatedAt]! > silentAfterMs) return null
  return { messages, from, newAt: row[column.newAt]! || null, isOneMessage }
}
