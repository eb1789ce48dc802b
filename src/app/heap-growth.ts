// heap-growth.ts: by how much the heap may grow before V8 collects all of it. relaunch.ts sets 50 percent.
// The heap of a small fleet has 60 MB and may grow by 30 MB; with a smaller value a busy daemon collects too
// often. The heap of ten thousand connections has 150 MB: it would hold up to 75 MB of garbage, on a machine
// with one gigabyte. So a large heap may grow by 25 percent.
//
// V8 reads the setting at the end of each collection, when it computes where the next one starts. A daemon
// that was started with settings of the user keeps those.

import { getHeapStatistics, setFlagsFromString } from 'node:v8'
import { every, type Clock } from '../std/clock.ts'

export type GrowingHeap = {
  /** Bytes of its pages, without buffers. */
  pageBytes(): number
  /** Percent of what the next collection leaves. */
  setGrowth(percent: number): void
}

export type GrowthDeps = { clock: Clock; heap: GrowingHeap }

/** Shorter than a fleet needs to connect: the collections meanwhile decide how large the heap gets. */
const lookEveryMs = 1000
/** A thousand connections at full load reach 107 MiB. */
const largeBytes = 112 * 1024 ** 2
const noLongerLargeBytes = 96 * 1024 ** 2
const growthOfLarge = 25

/** As relaunch.ts sets it; null where the process was started without, or the user sets another one. */
export function startedGrowth(argv: readonly string[] = process.execArgv): number | null {
  const set = argv.filter((flag) => /^--heap[-_]growing[-_]percent\b/.test(flag))
  const [, percent] = /=(\d+)$/.exec(set[0] ?? '') ?? []
  return set.length !== 1 || percent === undefined ? null : Number(percent)
}

export const v8Heap: GrowingHeap = {
  pageBytes: () => getHeapStatistics().total_heap_size,
  setGrowth: (percent) => setFlagsFromString(`--heap-growing-percent=${percent}`),
}

/** `usual`: percent for a heap that is not large. Returns what ends it. */
export function limitGrowthOfLargeHeap({ clock, heap }: GrowthDeps, usual: number): () => void {
  let isLarge = false
  const end = every(clock, lookEveryMs, look)
  return () => {
    end()
    if (isLarge) heap.setGrowth(usual)
  }

  function look(): void {
    const bytes = heap.pageBytes()
    if (isLarge ? bytes < noLongerLargeBytes : bytes > largeBytes) {
      isLarge = !isLarge
      heap.setGrowth(isLarge ? Math.min(growthOfLarge, usual) : usual)
    }
  }
}
