// text-table.ts: rows of texts as aligned columns for a person: no borders, no colours, unprintable
// characters escaped.
//
// cli-table3 measures and pads, so wide characters align. Its time grows with the square of the rows, so a
// long table is laid out in pages of the same column widths: 10,000 ledger entries take two seconds instead
// of eleven.

import Table from 'cli-table3'
import { visible } from '../quote.ts'

const pageRows = 50

const noBorders = {
  ...Object.fromEntries(
    ['top', 'bottom', 'left', 'mid', 'right'].flatMap((side) =>
      ['', '-mid', '-left', '-right'].map((end) => [`${side}${end}`, '']),
    ),
  ),
  middle: '  ',
}

/**
 * Each row as one line without trailing blanks. Where the table is wider than `widthMax`, the widest columns
 * get narrower and their cells go on in further lines: nothing is cut off.
 */
export function columns(
  rows: readonly (readonly string[])[],
  widthMax: number = Number.POSITIVE_INFINITY,
): string[] {
  const cells = fitted(
    rows.map((row) => row.map(visible)),
    widthMax,
  )
  const pages = Array.from({ length: Math.ceil(cells.length / pageRows) }, (_, page) =>
    cells.slice(page * pageRows, (page + 1) * pageRows),
  )
  const laidOut = pages.map((page) => layOut(page, []))
  if (laidOut.length <= 1) return laidOut.flatMap(({ lines }) => lines)
  const widths: number[] = []
  for (const page of laidOut)
    for (const [column, width] of page.widths.entries()) widths[column] = Math.max(widths[column] ?? 0, width)
  return pages.flatMap((page) => layOut(page, widths).lines)
}

const gapColumns = 2
const columnMin = 5

function fitted(rows: string[][], widthMax: number): string[][] {
  const widths: number[] = []
  for (const row of rows)
    for (const [column, { length }] of row.entries()) widths[column] = Math.max(widths[column] ?? 0, length)
  const gaps = gapColumns * (widths.length - 1)
  let over = widths.reduce((sum, width) => sum + width, gaps) - widthMax
  if (over <= 0) return rows
  // Words stay whole where that is enough.
  narrow(longestWords(rows))
  narrow(widths.map(() => columnMin))
  return rows.map((row) => row.map((cell, column) => folded(cell, widths[column] ?? cell.length)))

  /** The widest column first, none below its floor. */
  function narrow(floors: readonly number[]): void {
    for (; over > 0; over -= 1) {
      const spare = widths.map((width, column) => (width > (floors[column] ?? 0) ? width : 0))
      const widest = Math.max(...spare)
      if (widest === 0) return
      widths[spare.indexOf(widest)] = widest - 1
    }
  }
}

function longestWords(rows: readonly string[][]): number[] {
  const longest: number[] = []
  for (const row of rows)
    for (const [column, cell] of row.entries())
      longest[column] = Math.max(longest[column] ?? columnMin, ...cell.split(' ').map(({ length }) => length))
  return longest
}

/** In lines of at most `width`, at a blank where there is one. */
function folded(text: string, width: number): string {
  const lines: string[] = []
  let rest = text
  while (rest.length > width) {
    const blank = rest.lastIndexOf(' ', width)
    const isIndent = rest.slice(0, Math.max(0, blank)).trim() === ''
    // Not between the halves of a character.
    const end = /[\ud800-\udbff]/.test(rest.charAt(width - 1)) ? width - 1 : width
    const at = isIndent ? end : blank
    lines.push(rest.slice(0, at))
    rest = rest.slice(at).replace(/^ /, '')
  }
  return [...lines, rest].join('\n')
}

function layOut(
  rows: readonly string[][],
  colWidths: readonly number[],
): { lines: string[]; widths: number[] } {
  const table = new Table({
    chars: noBorders,
    style: { head: [], border: [], compact: true, 'padding-left': 0, 'padding-right': 0 },
    colWidths: [...colWidths],
  })
  table.push(...rows)
  const lines = table
    .toString()
    .split('\n')
    .map((line) => line.trimEnd())
  return { lines, widths: table.options.colWidths.map((width) => width ?? 0) }
}
