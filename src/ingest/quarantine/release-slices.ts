// release-slices.ts: maps and settles messages that leave the quarantine, in slices, with what their
// expressions give.

import type { EpochMs } from '../../std/clock.ts'
import type { Mapper } from '../../mapping/mapping.ts'
import type { Expressions } from '../expressions/expressions.ts'
import { messageFrom } from '../remap/kept-message.ts'
import { inSlices, type SlicesDeps } from '../remap/kept-slices.ts'
import { mapKept, remapSlice, type Evaluated } from '../remap/remap.ts'
import type { RemapEntry } from '../remap/slice-result.ts'

type Deps = Pick<SlicesDeps<RemapEntry>, 'entries' | 'settle' | 'signal'> & {
  expressions: Pick<Expressions, 'evaluate'>
  open: () => Mapper
}

/** `stalled` where an expression cannot be evaluated for now; what came before it is settled. */
export async function releaseSlices(
  { expressions, open, entries, settle, signal }: Deps,
  { arrivedUntil = Number.POSITIVE_INFINITY }: { arrivedUntil?: EpochMs } = {},
): Promise<'done' | 'left over' | 'stalled'> {
  const stalled = new AbortController()
  const isDone = await inSlices({
    entries,
    async map(slice, options) {
      const evaluated = await evaluate(expressions, open(), slice)
      if (evaluated !== null) return remapSlice(open, slice, { ...options, arrivedUntil, evaluated })
      stalled.abort()
      return null
    },
    settle,
    signal: AbortSignal.any([signal, stalled.signal]),
  })
  if (stalled.signal.aborted) return 'stalled'
  return isDone ? 'done' : 'left over'
}

/**
 * What the expressions give for the entries that need one, by id; null where one cannot be evaluated for now.
 */
async function evaluate(
  expressions: Pick<Expressions, 'evaluate'>,
  mapper: Mapper,
  entries: readonly RemapEntry[],
): Promise<ReadonlyMap<string, Evaluated> | null> {
  const values = new Map<string, Evaluated>()
  if (mapper.expressions.size === 0) return values
  const answers = await Promise.all(
    entries.map(async ({ id, envelope }) => {
      const message = messageFrom(envelope)
      const result = mapKept(mapper, message, undefined)
      if (result.kind !== 'deferred') return null
      return { id, answer: await expressions.evaluate(mapper, result.source, message) }
    }),
  )
  for (const one of answers) {
    if (one?.answer === 'later') return null
    if (one !== null) values.set(one.id, one.answer)
  }
  return values
}
