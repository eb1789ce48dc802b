// select.ts: reads the dead letters that a query selects.

import { devicesOf } from '../domain/message.ts'
import type { DeadLetterEntry } from '../spool/spool.ts'
import type { DeadLetterQuery, DeadLetterReader } from './types.ts'

/** Oldest first, or in the order of `ids`. Ids that do not exist are left out. */
export async function* selectDeadLetters(
  spool: DeadLetterReader,
  query: DeadLetterQuery,
): AsyncGenerator<DeadLetterEntry> {
  const { ids, stage, reason } = query
  if (ids !== undefined) {
    for (const id of new Set(ids)) {
      const entry = await spool.deadLetter(id)
      if (entry !== null && matches(entry, query)) yield entry
    }
    return
  }
  const filter = {
    limit: Infinity,
    ...(stage === undefined ? {} : { stage }),
    ...(reason === undefined ? {} : { reason }),
  }
  for await (const entry of spool.deadLetters(filter)) if (matches(entry, query)) yield entry
}

function matches({ deadLetter }: DeadLetterEntry, query: DeadLetterQuery): boolean {
  const { stage, reason, device, source, provider, since = -Infinity, until = Infinity } = query
  return (
    (stage ?? deadLetter.stage) === deadLetter.stage &&
    (reason ?? deadLetter.reason) === deadLetter.reason &&
    (device === undefined || devicesOf(deadLetter).includes(device)) &&
    (source ?? deadLetter.envelope?.source) === deadLetter.envelope?.source &&
    (provider ?? deadLetter.provider) === deadLetter.provider &&
    deadLetter.at >= since &&
    deadLetter.at < until
  )
}
