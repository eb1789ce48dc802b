// heap.ts: keeps the memory of the daemon small while it is quiet, and its collections few while it is busy.
// Entry file of this folder.
//
//   heap-release.ts   after a burst, what is no longer used goes back to the system
//   heap-growth.ts    how much garbage may come together before all of the heap is collected
//
// Both need a process that was started with the settings of cli/relaunch.ts, and do nothing in others.

import { getHeapStatistics, setFlagsFromString } from 'node:v8'
import type { Clock } from '../../std/clock.ts'
import { boundHeapGrowth } from './heap-growth.ts'
import { processHeap, releaseHeapWhenQuiet } from './heap-release.ts'

/** `messages`: received since the start. Returns what ends it. */
export function manageHeap({ clock, messages }: { clock: Clock; messages: () => number }): () => void {
  const heap = processHeap()
  if (heap === null) return () => {}
  const ends = [
    releaseHeapWhenQuiet({ clock, heap, messages }),
    boundHeapGrowth({
      clock,
      growing: {
        usedBytes: () => getHeapStatistics().used_heap_size,
        setPercent: (percent) => setFlagsFromString(`--heap-growing-percent=${percent}`),
      },
    }),
  ]
  return () => ends.forEach((end) => end())
}
