// dead-letters-page.ts: what `/page/dead-letters` has beside the lists: what selects them, and what can be
// done with them.

import { html, nothing, type Html } from '../html.ts'
import { changes, type Access } from '../page-changes.ts'

type Given = Readonly<Record<string, string>>

/** What the list is about, and how to leave it. */
export function deadLetterFilter(given: Given): Html {
  const chosen = Object.entries(given)
  if (chosen.length === 0) return nothing
  return html`<p>
    Only ${chosen.map(([name, value], index) => html`${index > 0 && ', '}${name} <code>${value}</code>`)}.
    <a href="/page/dead-letters">Show all</a>
  </p>`
}

/** Without a selection a change must say that it means all. */
export function deadLetterChanges(selection: Given, access: Access): Html {
  const isSelection = Object.keys(selection).length > 0
  const parameters = isSelection ? selection : { all: 1 }
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
