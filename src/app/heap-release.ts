// heap-release.ts: gives memory back to the system after a burst. V8 collects garbage when a program
// allocates: a daemon that is quiet after a flood of connections allocates little, and keeps 100 MB that it
// does not use for hours, on a machine with one gigabyte.
//
// Each `lookEveryMs` it compares the heap with what the last collection left. Where it has grown by
// `growthBytes` and no longer grows fast, it collects everything once. That stops the process for 50 ms with
// a heap of 100 MB, so it waits until fewer than `quietMessages` messages came since the last look, but no
// longer than `looksMax` looks.

import { getHeapStatistics } from 'node:v8'
import { every, type Clock } from '../std/clock.ts'

export type Heap = {
  /** Bytes that it takes from the system, buffers included. */
  bytes(): number
  /** Collects everything and returns free pages to the system. */
  collect(): void
}

export type HeapDeps = {
  clock: Clock
  heap: Heap
  /** Messages received since the start. */
  messages: () => number
}

const lookEveryMs = 10_000
const growthBytes = 24 * 1024 ** 2
/** In one look: less is what some clients leave until the next collection. */
const slowGrowthBytes = 8 * 1024 ** 2
/** In one look. */
const quietMessages = 5000
/** Then it collects although messages come: each waits for the collection once. */
const looksMax = 3

/** The heap of this process; null where it was started without `--expose-gc` (relaunch.ts). */
export function processHeap(): Heap | null {
  const { gc } = globalThis
  if (gc === undefined) return null
  return {
    bytes() {
      // process.memoryUsage() opens a file, and throws where none is free.
      const { total_heap_size, external_memory } = getHeapStatistics()
      return total_heap_size + external_memory
    },
    collect() {
      gc({ type: 'major', flavor: 'last-resort' })
    },
  }
}

/** Returns what ends it. */
export function releaseHeapWhenQuiet({ clock, heap, messages }: HeapDeps): () => void {
  let leftBytes = heap.bytes()
  let lastBytes = leftBytes
  let lastMessages = messages()
  let looks = 0
  return every(clock, lookEveryMs, look)

  function look(): void {
    const [bytes, received] = [heap.bytes(), messages()]
    const grows = bytes > lastBytes + slowGrowthBytes
    const isQuiet = received - lastMessages < quietMessages
    lastBytes = bytes
    lastMessages = received
    leftBytes = Math.min(leftBytes, bytes)
    if (bytes - leftBytes < growthBytes || grows) looks = 0
    else {
      looks += 1
      if (isQuiet || looks >= looksMax) collectNow()
    }
  }

  function collectNow(): void {
    heap.collect()
    looks = 0
    // What it could not free is in use.
    leftBytes = heap.bytes()
    lastBytes = leftBytes
  }
}
