// ledger-page.ts: `/page/ledger`: what became of payloads.

import { ledgerOutcomes } from '../../../domain/settlement.ts'
import type { LedgerAnswer } from '../../../ledger/types.ts'
import { html, type Html } from '../html.ts'
import { ago, at, link, named } from '../shown-values.ts'
import { paging, table } from '../table.ts'

const path = '/page/ledger'

const labels = {
  device: 'Device',
  at: 'Measured at',
  from: 'Measured from',
  to: 'to',
  payload: 'payloadId',
  batch: 'batchId',
  request: 'requestId',
} as const

export type LedgerSelection = Readonly<Partial<Record<keyof typeof labels | 'outcome', string>>>

type LedgerShown = {
  now: string
  selection: LedgerSelection
  /** Or why there is none. */
  answer: LedgerAnswer | string
}

export function ledgerView({ now, selection, answer }: LedgerShown): Html {
  return html`${searchForm(selection)}
  ${typeof answer === 'string' ? html`<p class="bad" role="alert">${answer}</p>` : entries(answer, selection, now)}`
}

function searchForm(selection: LedgerSelection): Html {
  return html`<form class="filter" role="search" action="${path}">
    ${(Object.keys(labels) as (keyof typeof labels)[]).map(
      (name) =>
        html`<label
          >${labels[name]} <input type="search" name="${name}" value="${selection[name]}" autocomplete="off"
        /></label> `,
    )}
    <label
      >Outcome
      <select name="outcome">
        <option value="">any</option>
        ${ledgerOutcomes.map(
          (one) => html`<option ${one === selection.outcome && html`selected`}>${one}</option>`,
        )}
      </select></label
    >
    <button>Search</button>
    <p class="quiet">A time is 14:03 (today), 2026-11-21T14:03, 2026-11-21T14:03:20Z, or 2h (ago).</p>
  </form>`
}

function entries(
  { entries: found, next, oldestAt, behind }: LedgerAnswer,
  selection: LedgerSelection,
  now: string,
): Html {
  return html`${table({
      caption: 'The newest settlement first',
      columns: ['Settled', 'Outcome', 'Device', 'Measured', 'Payload', 'Request', 'Why'],
      rows: found.map((one) => [
        html`${at(iso(one.at))} <span class="quiet">${ago(iso(one.at), now)}</span>`,
        html`<span class="state ${one.outcome}">${one.outcome}</span>`,
        one.device === null
          ? named(null)
          : html`<a href="${link(path, { device: one.device })}">${named(one.device)}</a>`,
        one.deviceTime === null ? named(null) : at(iso(one.deviceTime)),
        html`<a href="${link(path, { payload: one.payloadId })}"><code>${one.payloadId}</code></a>`,
        one.requestId === null
          ? ''
          : html`<a href="${link(path, { request: one.requestId })}"><code>${one.requestId}</code></a>`,
        one.reason === null
          ? null
          : html`${one.reason !== null && html`<code>${one.reason}</code> `}${one.detail}${
              one.schedule !== null && html` <span class="quiet">retry ${one.schedule} ${one.step}</span>`
            }`,
      ]),
      empty: 'No entry.',
    })}
    ${paging({ previous: null, next: next === null ? null : link(path, { ...selection, after: next }) })}
    <p class="quiet">
      ${oldestAt === null ? 'The ledger is empty.' : html`The oldest entry was settled ${ago(iso(oldestAt), now)}.`}
      ${behind > 0 && html`${behind} settled batches are not in it yet.`}
    </p>`
}

function iso(time: number): string {
  return new Date(time).toISOString()
}
