// resident.ts: anonymous resident memory of a process. Not RSS: LevelDB maps its tables, and those pages are the
// kernel's to take back.

import { readFile } from 'node:fs/promises'
import { setInterval as every } from 'node:timers/promises'

/** RssAnon in bytes; null where the process is gone. */
export async function residentBytes(pid: number): Promise<number | null> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '')
  const match = /^RssAnon:\s+(\d+) kB$/m.exec(status)
  return match ? Number(match[1]) * 1024 : null
}

const ticksPerS = 100

/** User and system time of a process so far, all threads together; in steps of 10 ms. */
export async function processorMs(pid: number): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8')
  // Behind the name, which may hold anything; the state is the third field.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return ((Number(fields[11]) + Number(fields[12])) * 1000) / ticksPerS
}

/** Of a process, for each of `count` messages, until `work` is done. */
export async function measureUsEach<Result>(
  pid: number,
  count: number,
  work: () => Promise<Result>,
): Promise<{ result: Result; usEach: number }> {
  const beforeMs = await processorMs(pid)
  const result = await work()
  return { result, usEach: (((await processorMs(pid)) - beforeMs) * 1000) / count }
}

export type Sampler = AsyncDisposable & {
  /** The most that was seen so far. */
  readonly maxBytes: number
}

/** Samples `measure` until it is disposed of, or until there is nothing more to measure. */
export function sampleMax(measure: () => Promise<number | null>, everyMs: number): Sampler {
  const stop = new AbortController()
  let maxBytes = 0
  const running = (async () => {
    try {
      for await (const _ of every(everyMs, null, { signal: stop.signal })) {
        const bytes = await measure()
        if (bytes === null) return
        maxBytes = Math.max(maxBytes, bytes)
      }
    } catch (error) {
      if (!stop.signal.aborted) throw error
    }
  })()
  return {
    get maxBytes() {
      return maxBytes
    },
    async [Symbol.asyncDispose]() {
      stop.abort()
      await running
    },
  }
}

export function sampleResident(pid: number): Sampler {
  return sampleMax(() => residentBytes(pid), 100)
}
