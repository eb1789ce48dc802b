// dead-letters-page.ts: what `/page/dead-letters` has beside the lists: a search, and what can be done with
// what it found.

import type { DeadLetterQuery } from '../../../dead-letters/types.ts'
import { html, type Html } from '../html.ts'
import { changes, type Access } from '../page-changes.ts'

const path = '/page/dead-letters'

export type DeadLetterSelection = Pick<DeadLetterQuery, 'stage' | 'reason' | 'device' | 'source' | 'provider'>

export function deadLetterForm(selection: DeadLetterSelection): Html {
  const chosen = Object.entries(selection)
  return html`<form class="filter" role="search" action="${path}">
      <label
        >Device <input type="search" name="device" value="${selection.device}" autocomplete="off"
      /></label>
      <label
        >Reason <input type="search" name="reason" value="${selection.reason}" autocomplete="off"
      /></label>
      <button>Show</button>
    </form>
    ${
      chosen.length > 0 &&
      html`<p>
        Only ${chosen.map(([name, value], index) => html`${index > 0 && ', '}${name} <code>${value}</code>`)}.
        <a href="${path}">Show all</a>
      </p>`
    }`
}

/** Without a selection a change must say that it means all. */
export function deadLetterChanges(selection: DeadLetterSelection, access: Access): Html {
  const isSelection = Object.keys(selection).length > 0
  const parameters = isSelection ? (selection as Record<string, string>) : { all: 1 }
  return html`<h2>Change ${isSelection ? 'these' : 'all'}</h2>
    <p class="quiet">
      A requeue sends payloads as they are, and maps messages with the mapping in force. Correct the cause
      first. A purge cannot be undone.
    </p>
    ${changes(access, [
      { action: 'dead-letters/requeue', parameters, name: 'Requeue' },
      { action: 'dead-letters/purge', parameters, name: 'Purge' },
    ])}`
}
