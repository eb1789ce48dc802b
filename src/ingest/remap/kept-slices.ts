// kept-slices.ts: cuts what is read from the spool into runs, each mapped at once and settled in one exchange.

import type { EpochMs } from '../../std/clock.ts'
import type { Spool } from '../../spool/spool.ts'
import type { Remapped, RemapEntry } from './remap.ts'
import { deadLetterFor } from './kept-message.ts'

/** Of one run; a record that takes more messages gets up to `growthMax` times as many. */
const messagesMax = 100
/** Of the messages as base64. */
const bytesMax = 2 * 1024 * 1024
const growthMax = 10

export type SlicesDeps<E extends RemapEntry> = {
  entries: AsyncIterable<E>
  /** Null where more messages are needed. */
  map(
    run: readonly E[],
    options: { more: boolean; mayGrow: boolean },
  ): Remapped | null | Promise<Remapped | null>
  settle(again: Remapped): Promise<void>
  signal: AbortSignal
}

/**
 * Resolves when everything was settled; false where what needs more messages than there are is left, or `signal`
 * aborted. One run at a time, in order.
 */
export async function inSlices<E extends RemapEntry>({
  entries,
  map,
  settle,
  signal,
}: SlicesDeps<E>): Promise<boolean> {
  let pending: E[] = []
  let growth = 1
  for await (const entry of entries) {
    if (signal.aborted) return false
    pending.push(entry)
    while (runLength(pending, growth) < pending.length && !signal.aborted) await settleFirst(true)
  }
  while (pending.length > 0 && !signal.aborted) if ((await settleFirst(false)) === 'needs more') return false
  return !signal.aborted

  async function settleFirst(moreCome: boolean): Promise<'needs more' | 'went on'> {
    const length = runLength(pending, growth)
    const more = moreCome || length < pending.length
    const again = await map(pending.slice(0, length), { more, mayGrow: growth < growthMax && more })
    if (again === null) {
      growth += 1
      return more ? 'went on' : 'needs more'
    }
    growth = 1
    pending = pending.slice(again.entries)
    await settle(again)
    return 'went on'
  }
}

/** Takes a run of kept messages off their shelves for what they became; resolves with how many, when it is durable. */
export async function settleSlice(
  spool: Pick<Spool, 'exchange'>,
  { taken: gone, payloads, keep, refused }: Remapped,
  at: EpochMs,
): Promise<number> {
  const take = [...gone]
  for (const { id } of refused) if (id !== null) take.push(id)
  const letters = refused.map((one) => deadLetterFor(one, one.envelope, at))
  await spool.exchange({ take, payloads, deadLetters: letters, keptMessages: keep, stateChanges: [] })
  return take.length
}

function runLength(entries: readonly RemapEntry[], growth: number): number {
  let bytes = 0
  for (const [index, { envelope }] of entries.entries()) {
    bytes += envelope.bytes.length
    if (index === messagesMax * growth) return index
    if (bytes > bytesMax * growth && index > 0) return index
  }
  return entries.length
}
