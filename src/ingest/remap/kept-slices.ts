// kept-slices.ts: cuts messages of the spool into slices, each mapped as a whole and settled in one
// exchange.

import type { RemapEntry, SliceResult } from './slice-result.ts'

/** Of one slice; one that lies within a single record grows up to `growthMax` times as long. */
const messagesMax = 100
/** Of the messages as base64. */
const bytesMax = 2 * 1024 * 1024
const growthMax = 10

export type SlicesDeps<Entry extends RemapEntry> = {
  entries: AsyncIterable<Entry>
  /** Null where more messages are needed. */
  map(
    entries: readonly Entry[],
    options: { more: boolean; mayGrow: boolean },
  ): SliceResult | null | Promise<SliceResult | null>
  settle(slice: SliceResult): Promise<void>
  signal: AbortSignal
}

/**
 * Resolves with true when everything was settled; false where the last messages need more than there are, or
 * `signal` aborted. One slice at a time, in order.
 */
export async function inSlices<Entry extends RemapEntry>({
  entries,
  map,
  settle,
  signal,
}: SlicesDeps<Entry>): Promise<boolean> {
  let pending: Entry[] = []
  let growth = 1
  for await (const entry of entries) {
    if (signal.aborted) return false
    pending.push(entry)
    while (sliceLength(pending, growth) < pending.length && !signal.aborted) await settleFirst(true)
  }
  while (pending.length > 0 && !signal.aborted) if ((await settleFirst(false)) === 'needs more') return false
  return !signal.aborted

  async function settleFirst(moreFollow: boolean): Promise<'needs more' | 'continued'> {
    const length = sliceLength(pending, growth)
    const more = moreFollow || length < pending.length
    const slice = await map(pending.slice(0, length), { more, mayGrow: growth < growthMax && more })
    if (slice === null) {
      growth += 1
      return more ? 'continued' : 'needs more'
    }
    growth = 1
    pending = pending.slice(slice.entries)
    await settle(slice)
    return 'continued'
  }
}

function sliceLength(entries: readonly RemapEntry[], growth: number): number {
  let bytes = 0
  for (const [index, { envelope }] of entries.entries()) {
    bytes += envelope.bytes.length
    if (index === messagesMax * growth) return index
    if (bytes > bytesMax * growth && index > 0) return index
  }
  return entries.length
}
