// text-table.ts: rows of texts as aligned columns, for people.

import { visible } from '../../std/quote.ts'

/** Each row as a line without blanks at its end; what cannot be seen in a foreign text is written out. */
export function columns(rows: readonly (readonly string[])[]): string[] {
  const cells = rows.map((row) => row.map(visible))
  const widths: number[] = []
  for (const row of cells)
    for (const [column, cell] of row.entries()) widths[column] = Math.max(widths[column] ?? 0, cell.length)
  return cells.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  )
}
