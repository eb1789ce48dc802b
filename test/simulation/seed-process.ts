// seed-process.ts: runs a range of seeds in this process, one after the other, and writes one line for each (run.ts).

import { runSeed } from './simulation.ts'

export type SeedReport = {
  seed: number
  hash: string
  wrong: readonly string[]
  messages: number
  starts: number
  virtualMs: number
  events: number
  reached: [state: string, times: number][]
  log: readonly string[]
}

export type SeedRange = {
  first: number
  count: number
  without: readonly string[]
  devices: number | null
  log: boolean
}

const range = JSON.parse(process.env['SIMULATION'] ?? '{}') as SeedRange

// Loads what the daemon loads late, and lets it keep what it keeps: the next seeds are then alike in each process.
await runSeed(0, { without: [], devices: 1 })

for (let index = 0; index < range.count; index += 1) {
  const run = await runSeed(range.first + index, range)
  const { reached, log, ...rest } = run
  const report: SeedReport = {
    ...rest,
    reached: [...reached],
    log: range.log && (run.wrong.length > 0 || range.count === 1) ? log : [],
  }
  process.stdout.write(`${JSON.stringify(report)}\n`)
}
