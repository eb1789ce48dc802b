// heap-growth.ts: how much the heap grows before V8 collects all of it.
//
// V8 takes a percentage of what is in use. One percentage fits no size: with half of 50 MB, a busy daemon is
// marked every second, which costs a tenth of its processor time. The double of 200 MB, with thousands of
// devices or a flood, is memory that a small machine does not have. So the percentage follows the heap: it
// grows by about `growthBytes`, and by half where half is more.
//
// A heap holds garbage, too, until it is collected. So the least size of the last `looksKept` looks counts as
// what is in use. V8 applies the percentage at the end of its next collection.

import type { CancelTimer, Clock } from '../../std/clock.ts'

type Growing = {
  /** Bytes of objects, garbage included. */
  usedBytes(): number
  setPercent(percent: number): void
}

const lookEveryMs = 1000
const looksKept = 4
const growthBytes = 40 * 1024 ** 2
/** The lower one is what the process starts with (cli/relaunch.ts). */
const percents = { least: 50, most: 100 }
/** A change of less is not worth it. */
const stepPercent = 5

/** Returns what ends it. */
export function boundHeapGrowth({ clock, growing }: { clock: Clock; growing: Growing }): () => void {
  const seen: number[] = []
  let percent = percents.least
  let cancel: CancelTimer = clock.after(lookEveryMs, look)
  return () => cancel()

  function look(): void {
    seen.push(growing.usedBytes())
    if (seen.length > looksKept) seen.shift()
    const share = Math.round((growthBytes / Math.min(...seen)) * 100)
    const wanted = Math.min(percents.most, Math.max(percents.least, share))
    if (wanted !== percent && (Math.abs(wanted - percent) >= stepPercent || wanted === percents.least)) {
      percent = wanted
      growing.setPercent(percent)
    }
    cancel = clock.after(lookEveryMs, look)
  }
}
