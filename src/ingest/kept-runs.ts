// kept-runs.ts: cuts what is read from the spool into runs, each mapped at once and settled in one exchange.

import type { Again, Entry } from './kept-again.ts'

/** Of one run; a record that takes more messages gets up to `growthMax` times as many. */
const messagesMax = 100
/** Of the messages as base64. */
const bytesMax = 2 * 1024 * 1024
const growthMax = 10

export type RunsDeps<E extends Entry> = {
  entries: AsyncIterable<E>
  map(run: readonly E[], options: { more: boolean; mayGrow: boolean }): Again | null
  settle(again: Again): Promise<void>
  signal: AbortSignal
}

/** Resolves when everything was settled, or `signal` aborted. One run at a time, in order. */
export async function inRuns<E extends Entry>({ entries, map, settle, signal }: RunsDeps<E>): Promise<void> {
  let pending: E[] = []
  let growth = 1
  for await (const entry of entries) {
    if (signal.aborted) return
    pending.push(entry)
    while (runLength(pending, growth) < pending.length && !signal.aborted) await settleFirst(true)
  }
  while (pending.length > 0 && !signal.aborted) await settleFirst(false)

  async function settleFirst(moreCome: boolean): Promise<void> {
    const length = runLength(pending, growth)
    const more = moreCome || length < pending.length
    const again = map(pending.slice(0, length), { more, mayGrow: growth < growthMax && more })
    if (again === null) {
      growth += 1
      return
    }
    growth = 1
    pending = pending.slice(again.entries)
    await settle(again)
  }
}

function runLength(entries: readonly Entry[], growth: number): number {
  let bytes = 0
  for (const [index, { envelope }] of entries.entries()) {
    bytes += envelope.bytes.length
    if (index === messagesMax * growth) return index
    if (bytes > bytesMax * growth && index > 0) return index
  }
  return entries.length
}
