// run.ts: the table of damage, as a command: `npm run test:damage -- [--seed N] [--places N] [--cells N]
// [--only KIND] [--cell ID] [--size small] [--jobs N]`.
//
// Prints a line for each cell: what was hit, lost, reported, and what went twice. Exit status 1 if a rule was
// broken. The same seed gives the same places; a cell of a run is repeated with its number.

import { mkdtemp, rm } from 'node:fs/promises'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { runCells, type CellReport } from './damage-table.ts'

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    places: { type: 'string', default: '20' },
    cells: { type: 'string' },
    only: { type: 'string' },
    cell: { type: 'string' },
    size: { type: 'string', default: 'full' },
    jobs: { type: 'string', default: String(Math.max(1, availableParallelism())) },
  },
})

const folder = await mkdtemp(join(tmpdir(), 'gateway-damage-'))
try {
  const reports = await runCells(folder, {
    seed: Number(values.seed),
    places: Number(values.places),
    cells: values.cells === undefined ? null : Number(values.cells),
    only: values.only ?? null,
    cell: values.cell === undefined ? null : Number(values.cell),
    size: values.size === 'small' ? 'small' : 'full',
    jobs: Number(values.jobs),
    progress: (report) => process.stdout.write(`${lineOf(report)}\n`),
  })
  const broken = reports.filter(({ violations }) => violations.length > 0)
  process.stdout.write(`${reports.length} cells, ${broken.length} with a broken rule\n`)
  process.exitCode = broken.length > 0 ? 1 : 0
} finally {
  await rm(folder, { recursive: true, force: true })
}

function lineOf({ text, start, hit, lost, reported, twice, violations, tookMs }: CellReport): string {
  const counts = `hit ${hit}, lost ${lost}, reported ${reported}, twice ${twice}`
  const head = `${violations.length === 0 ? 'ok    ' : 'BROKEN'} ${text}: ${start}; ${counts}; ${Math.round(tookMs)} ms`
  return [head, ...violations.map((violation) => `         ${violation}`)].join('\n')
}
