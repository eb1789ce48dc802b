// shown-blocks.ts: what an operation shows (../operations/shown-block.ts), as HTML.

import type { Block, Cell } from '../operations/shown-block.ts'
import { zonedTime } from '../../std/clock.ts'
import { bounded } from '../../std/quote.ts'
import { html, type Html } from './html.ts'
import { capital, link, sentence, textBox } from './shown-values.ts'
import { facts, table } from './table.ts'

export function blocksView(blocks: readonly Block[]): Html {
  return html`${blocks.map((block) => {
    if (typeof block === 'string') return block === '' ? null : html`<p>${sentence(block)}</p>`
    if ('lines' in block)
      return html`<h2>${capital(block.title)}</h2>
        ${textBox(capital(block.title), block.lines.map((line) => `${line}\n`).join(''))}`
    if ('facts' in block)
      return facts(block.facts.map(([name, cell]) => [capital(name), cell === null ? null : cellView(cell)]))
    return table({
      caption: capital(block.caption),
      columns: block.head.map(capital),
      rows: block.rows.map((row) => row.map(cellView)),
    })
  })}`
}

function cellView(cell: Cell): Html {
  if (typeof cell === 'string') return html`<bdi>${cell}</bdi>`
  const { text, to, at, state } = cell
  if (state !== undefined) return html`<span class="state ${state}">${text}</span>`
  const shown =
    at === undefined
      ? html`<bdi>${bounded(text)}</bdi>`
      : html`<time datetime="${at}" title="${zonedTime(at)}">${text}</time>`
  const path = to === undefined ? '' : link(...to)
  // A key may be longer than a browser sends.
  return path === '' || path.length > pathMax ? shown : html`<a href="${path}">${shown}</a>`
}

const pathMax = 4000
