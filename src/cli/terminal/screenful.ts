// screenful.ts: a text that is drawn again and again, made to fit the screen of a terminal: what scrolls away
// is not read. Lines are folded to the width. Where the whole text is too high, a shorter form of it is
// taken, and what even that has too much is left out at the end, with a line that says so.

import { foldLine } from './live-output.ts'

export type Size = { columns: number; rows: number }

/** Of a terminal that does not say its size. */
const usualRows = 24
/** One line, and the one about the others. */
const rowsMin = 3

export function rowsOf({ rows = 0 }: { rows?: number }): number {
  return Math.max(rowsMin, rows > 0 ? rows : usualRows)
}

/** `forms`: the same text, each shorter than the one before. `command`: prints all of it. */
export function screenful(forms: readonly (readonly string[])[], size: Size, command: string): string[] {
  // The last column stays empty, where some terminals begin a new row; the last row has the cursor.
  const rows = size.rows - 1
  const folded = forms.map((lines) => lines.flatMap((line) => foldLine(line, size.columns - 1)))
  const [whole = []] = folded
  if (whole.length <= rows) return whole
  const form = folded.find(({ length }) => length < rows) ?? folded.at(-1) ?? []
  const shown = form.slice(0, rows - 1)
  const more = whole.length - shown.length
  return [
    ...shown,
    foldLine(`${more} more line${more === 1 ? '' : 's'}: ${command}`, size.columns - 1)[0] ?? '',
  ]
}

/** What of the line fits in some rows, with "…" for the rest. */
export function inRows(line: string, columns: number, rows: number): string {
  const folded = foldLine(line, columns - 2)
  return folded.length <= rows ? line : `${folded.slice(0, rows).join(' ')}…`
}
