// A sample of the table of damage (test/damage): real spools as a kill leaves them, each with one damaged file.

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { runCells } from '../damage/damage-table.ts'

const cells = 8

test(
  'in 8 damaged spools, nothing is lost that was not hit, and what is lost is reported',
  { timeout: 300_000 },
  async () => {
    const folder = await mkdtemp(join(tmpdir(), 'gateway-damage-'))
    onTestFinished(() => rm(folder, { recursive: true, force: true }))
    const options = { seed: 1, places: 6, cells, only: null, cell: null, size: 'small', jobs: 2 } as const
    const reports = await runCells(folder, { ...options, progress: () => undefined })
    expect(reports).toHaveLength(cells)
    expect(reports.filter(({ violations }) => violations.length > 0)).toEqual([])
    // Some of the cells do damage: the test would pass on cells that hit nothing.
    expect(reports.some(({ lost }) => lost > 0)).toBe(true)
  },
)
