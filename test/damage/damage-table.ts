// damage-table.ts: runs cells of the table of damage against one base, some at a time. Entry file of this
// folder.
//
//   damage-base    the spool as a kill leaves it          file-layout   what each unit of its files holds
//   cells          which file is damaged how and where     cell-run      verify, salvage, daemon, repair
//   damage-rules   what must hold afterwards

import { keepCompiledCode } from '../support/compiled-code.ts'
import { runCell, type CellResult } from './cell-run.ts'
import { allCells, sampleOf, textOf, type Cell } from './cells.ts'
import { fullSize, makeBase, smallSize, type DamageBase } from './damage-base.ts'
import { judge, type Judgement } from './damage-rules.ts'

export type CellReport = Judgement & { text: string; start: CellResult['start']; tookMs: number }

export type TableOptions = {
  seed: number
  places: number
  /** A sample of this many cells; null for all. */
  cells: number | null
  /** Cells of files of this kind. */
  only: string | null
  /** One cell by its number. */
  cell: number | null
  size: 'full' | 'small'
  jobs: number
  progress: (report: CellReport) => void
}

export async function runCells(folder: string, options: TableOptions): Promise<CellReport[]> {
  keepCompiledCode()
  const base = await makeBase(folder, options.size === 'full' ? fullSize : smallSize)
  const cells = chosen(base, options)
  const reports: CellReport[] = []
  const work = async () => {
    for (let cell = cells.shift(); cell !== undefined; cell = cells.shift()) {
      const result = await runCell({ base, folder }, cell)
      const report = {
        ...judge(base, cell, result),
        text: textOf(cell),
        start: result.start,
        tookMs: result.tookMs,
      }
      reports.push(report)
      options.progress(report)
    }
  }
  await Promise.all(Array.from({ length: options.jobs }, work))
  return reports
}

function chosen(base: DamageBase, { seed, places, cells, only, cell }: TableOptions): Cell[] {
  const all = allCells(base, { seed, places }).filter(
    ({ id, fileKind }) => (only === null || fileKind === only) && (cell === null || id === cell),
  )
  return cells === null ? all : sampleOf(all, cells, seed)
}
