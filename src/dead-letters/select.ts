// select.ts: the letters that somebody means.

import type { DeadLetterEntry } from '../spool/spool.ts'
import type { DeadLetterQuery, DeadLetterReader } from './dead-letters.ts'

/** Oldest first, or in the order of their ids; ids that are not there are left out. */
export async function* selectDeadLetters(
  spool: DeadLetterReader,
  query: DeadLetterQuery,
): AsyncGenerator<DeadLetterEntry> {
  const { ids, stage, reason } = query
  if (ids !== undefined) {
    for (const id of new Set(ids)) {
      const entry = await spool.deadLetter(id)
      if (entry !== null && fits(entry, query)) yield entry
    }
    return
  }
  const filter = {
    limit: Infinity,
    ...(stage === undefined ? {} : { stage }),
    ...(reason === undefined ? {} : { reason }),
  }
  for await (const entry of spool.deadLetters(filter)) if (fits(entry, query)) yield entry
}

function fits({ deadLetter: letter }: DeadLetterEntry, query: DeadLetterQuery): boolean {
  const { stage, reason, device, source, provider, since = -Infinity, until = Infinity } = query
  return (
    (stage ?? letter.stage) === letter.stage &&
    (reason ?? letter.reason) === letter.reason &&
    (device ?? letter.device) === letter.device &&
    (source ?? letter.envelope?.source) === letter.envelope?.source &&
    (provider ?? letter.provider) === letter.provider &&
    letter.at >= since &&
    letter.at < until
  )
}
