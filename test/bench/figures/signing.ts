// signing.ts: the share of the main thread that signing takes at 200 batches of 500 payloads a second.

import { figureOf, median, rounded } from '../bench.ts'
import type { BenchOptions, Figure } from '../bench.ts'
import { runScript } from '../children.ts'
import type { SigningResult } from '../signing.ts'

const batchesPerS = 200

export async function measureSigning(options: BenchOptions): Promise<Figure[]> {
  const runs: SigningResult[] = []
  for (let run = 0; run < options.pairs; run += 1)
    runs.push(await runScript<SigningResult>('signing.ts', ['--count', '1000']))
  const value = (median(runs.map((run) => run.threadCpuMsEach)) * batchesPerS) / 1000
  return [
    figureOf({
      figure: 'signing',
      value,
      digits: 4,
      unit: 'share of the main thread',
      atMost: 0.05,
      detail: {
        batchesPerS,
        bodyBytes: runs[0]?.bodyBytes,
        threadCpuMsEach: runs.map((run) => rounded(run.threadCpuMsEach, 4)),
        wallMsEach: runs.map((run) => rounded(run.wallMsEach, 4)),
      },
    }),
  ]
}
