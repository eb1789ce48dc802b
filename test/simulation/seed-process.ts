// seed-process.ts: runs a range of seeds in this process, one after the other, and writes one line for each (run.ts).

import { realCpuMs } from './machine/real-time.ts'
import { runSeed } from './simulation.ts'

export type SeedReport = {
  seed: number
  hash: string
  wrong: readonly string[]
  messages: number
  starts: number
  virtualMs: number
  events: number
  /** Processor time. */
  cpuMs: number
  reached: [state: string, times: number][]
  log: readonly string[]
}

export type SeedRange = {
  first: number
  count: number
  /** Instead of those. */
  seeds?: readonly number[]
  /** The first that fails is the last one. */
  isSearch: boolean
  isWeek: boolean
  without: readonly string[]
  devices: number | null
  safetyS: number | null
  log: boolean
}

const range = JSON.parse(process.env['SIMULATION'] ?? '{}') as SeedRange

// Loads what the daemon loads late, and lets it keep what it keeps: the next seeds are then alike in each process.
await runSeed(0, { isWeek: false, without: [], devices: 1, safetyS: null })

const seeds = range.seeds ?? Array.from({ length: range.count }, (_, index) => range.first + index)

for (const seed of seeds) {
  const beforeMs = realCpuMs()
  // The handlers of the daemon would take the rejection for its own. What it leaves here spoils the next seeds.
  const run = await runSeed(seed, range).catch((error: unknown) => {
    const wrong = [String(error instanceof Error ? error.stack : error)]
    const nothing = {
      hash: '',
      messages: 0,
      starts: 0,
      virtualMs: 0,
      events: 0,
      cpuMs: 0,
      reached: [],
      log: [],
    }
    process.stdout.write(`${JSON.stringify({ seed, wrong, ...nothing } satisfies SeedReport)}\n`)
    process.exit(1)
  })
  const { reached, log, ...rest } = run
  const report: SeedReport = {
    ...rest,
    cpuMs: realCpuMs() - beforeMs,
    reached: [...reached],
    log: range.log && (run.wrong.length > 0 || range.count === 1) ? log : [],
  }
  process.stdout.write(`${JSON.stringify(report)}\n`)
  if (range.isSearch && run.wrong.length > 0) break
}
