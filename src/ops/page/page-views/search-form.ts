// search-form.ts: the form above a list, made of the parameters of its operation.

import { metaOf } from '../../http/http-routing/parameters.ts'
import { operationNamed } from '../../operations/operations.ts'
import { html, type Html } from '../html.ts'
import { capital } from '../shown-values.ts'

type Search = {
  path: string
  /** The operation that lists. */
  operation: string
  /** Parameters that a person fills in; other given ones stay as they are. */
  asks: readonly string[]
  given: Readonly<Record<string, string | undefined>>
}

export function searchForm({ path, operation, asks, given }: Search): Html {
  const { shape } = operationNamed(operation).parameters
  const metas = asks.map((name) => ({ name, ...metaOf(shape[name]) }))
  const kept = Object.entries(given).filter(([name]) => !asks.includes(name) && name !== 'after')
  return html`<form class="filter" role="search" action="${path}">
    ${metas.map(
      ({ name, allowed, description, form: { label = capital(name) } }) =>
        html`<label
          >${label}
          ${allowed === undefined ? input(name, description, given[name]) : select(name, description, allowed, given[name])}</label
        > `,
    )}
    ${kept.map(([name, value]) => value !== undefined && html`<input type="hidden" name="${name}" value="${value}" />`)}
    <button>Search</button>
    ${
      metas.some(({ form }) => form.isTime) &&
      html`<p class="quiet">A time is 14:03 (today), 2026-11-21T14:03, 2026-11-21T14:03:20Z, or 2h (ago).</p>`
    }
  </form>`
}

function input(name: string, title: string, value: string | undefined): Html {
  return html`<input type="search" name="${name}" title="${title}" value="${value}" autocomplete="off" />`
}

function select(name: string, title: string, allowed: readonly string[], value?: string): Html {
  return html`<select name="${name}" title="${title}">
    <option value="">any</option>
    ${allowed.map((one) => html`<option ${one === value && html`selected`}>${one}</option>`)}
  </select>`
}
