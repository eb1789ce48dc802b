// shown-block.ts: what an operation shows to people, once for the command line and the page. A block is a
// line, names with values, a table, or lines that keep their form. The command prints it as text; the page
// makes HTML of it (../page/shown-blocks.ts), where a value may be a link.

import { columns } from '../../std/text-table/text-table.ts'

/** `to`: a view of the page. `at`: the time that the text is about. `state`: its colour there. */
export type Cell =
  | string
  | {
      text: string
      to?: readonly [path: string, query: Readonly<Record<string, string>>]
      at?: string
      state?: string
    }

export type ShownTable = {
  caption: string
  /** `*payloads`: a column of numbers. */
  head: readonly string[]
  rows: readonly (readonly Cell[])[]
}

export type Block =
  | string
  | { facts: readonly (readonly [string, Cell | null])[] }
  | ShownTable
  | { title: string; lines: readonly string[] }

/** `width`: of the terminal. A table alone has no caption: the command says what it lists. */
export function linesOfBlocks(blocks: readonly Block[], width: number): string[] {
  const isAlone = blocks.filter((block) => typeof block === 'object' && 'rows' in block).length === 1
  const lines = blocks.flatMap((block) => {
    if (typeof block === 'string') return [block]
    if ('lines' in block) return ['', `${block.title}:`, ...block.lines]
    if ('facts' in block)
      return columns(
        block.facts.flatMap(([name, cell]) => (cell === null ? [] : [[name, textOf(cell)]])),
        width,
      )
    const { caption, head, rows } = block
    if (rows.length === 0) return []
    const names = head.map((name) => name.replace('*', ''))
    const table = [names, ...rows.map((row) => row.map(textOf))]
    if (isAlone && !blocks.some((other) => typeof other === 'object' && 'facts' in other))
      return columns(table, width)
    const indented = table.map(([first = '', ...others]) => [`  ${first}`, ...others])
    return ['', caption, ...columns(indented, width)]
  })
  return lines[0] === '' ? lines.slice(1) : lines
}

function textOf(cell: Cell): string {
  return typeof cell === 'string' ? cell : cell.text
}
