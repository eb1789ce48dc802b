// heap-work.ts: what the daemon does about the size of its heap: it limits the growth of a large one
// (heap-growth.ts), and gives memory back after a burst (heap-release.ts).

import type { Clock } from '../std/clock.ts'
import { limitGrowthOfLargeHeap, startedGrowth, v8Heap } from './heap-growth.ts'
import { processHeap, releaseHeapWhenQuiet } from './heap-release.ts'

/** `messages`: received since the start. */
export type StartHeapWork = (clock: Clock, messages: () => number) => { stop(): void }

export const startHeapWork: StartHeapWork = (clock, messages) => {
  const heap = processHeap()
  const growth = startedGrowth()
  const ends = [
    ...(heap === null ? [] : [releaseHeapWhenQuiet({ clock, heap, messages })]),
    ...(growth === null ? [] : [limitGrowthOfLargeHeap({ clock, heap: v8Heap }, growth)]),
  ]
  return {
    stop() {
      for (const end of ends) end()
    },
  }
}
