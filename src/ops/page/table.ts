// table.ts: a table with headers for the eye and for a screen reader, in a box that scrolls sideways where
// the screen is narrow.

import { html, type Html, type HtmlValue } from './html.ts'

/** `*Payloads`: a column of numbers. */
export type Column = string

export type TableContent = {
  caption: string
  /** The first cell of a row is its header. */
  columns: readonly Column[]
  rows: readonly (readonly HtmlValue[])[]
  /** In the place of a table without rows. */
  empty?: string
}

export function table({ caption, columns, rows, empty = 'None.' }: TableContent): Html {
  if (rows.length === 0) return html`<p class="quiet">${empty}</p>`
  const isNumber = columns.map((name) => name.startsWith('*'))
  const head = columns.map((name, index) =>
    isNumber[index]
      ? html`<th scope="col" role="columnheader" class="number">${name.slice(1)}</th>`
      : html`<th scope="col" role="columnheader">${name}</th>`,
  )
  return html`<div class="table" role="region" aria-label="${caption}" tabindex="0">
    <table role="table">
      <caption>
        ${caption}
      </caption>
      <thead role="rowgroup">
        <tr role="row">
          ${head}
        </tr>
      </thead>
      <tbody role="rowgroup">
        ${rows.map((cells) => row(cells, columns))}
      </tbody>
    </table>
  </div>`
}

/** On a phone a row is a card, where `data-label` names each value. */
function row(cells: readonly HtmlValue[], columns: readonly Column[]): Html {
  return html`<tr role="row">
    ${cells.map((cell, index) => {
      if (index === 0) return html`<th scope="row" role="rowheader">${cell}</th>`
      const name = columns[index] ?? ''
      if (cell === null || cell === '') return html`<td role="cell"></td>`
      return html`<td
        role="cell"
        data-label="${name.replace('*', '')}"
        ${name.startsWith('*') && html`class="number"`}
      >
        ${cell}
      </td>`
    })}
  </tr>`
}

/** Names and values, as pairs. Pairs without a value are left out. */
export function facts(pairs: readonly (readonly [string, HtmlValue])[]): Html {
  const shown = pairs.filter(([, value]) => value !== null && value !== undefined && value !== false)
  return html`<dl class="facts">
    ${shown.map(
      ([name, value]) =>
        html`<div>
          <dt>${name}</dt>
          <dd>${value}</dd>
        </div>`,
    )}
  </dl>`
}

/** Links to the page before and after; nothing where there is only one. */
export function paging(
  { previous, next }: { previous: string | null; next: string | null },
  name = 'Pages',
): Html | null {
  if (previous === null && next === null) return null
  return html`<nav class="paging" aria-label="${name}">
    ${previous !== null && html`<a rel="prev" href="${previous}">Previous</a>`}
    ${next !== null && html`<a rel="next" href="${next}">Next</a>`}
  </nav>`
}
