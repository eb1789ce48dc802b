// dead-letters-page.ts: `/page/dead-letters`: dead letters by cause, then one by one.

import type { DeadLetterGroup, DeadLetterList, DeadLetterQuery } from '../../../dead-letters/types.ts'
import { bounded } from '../../../std/quote.ts'
import { html, type Html } from '../html.ts'
import { changes, type Access } from '../page-changes.ts'
import { ago, at, count, link, named } from '../shown-values.ts'
import { table } from '../table.ts'
import { deviceLink } from './devices-page.ts'

const path = '/page/dead-letters'

type Selection = Pick<DeadLetterQuery, 'stage' | 'reason' | 'device' | 'source' | 'provider'>

export type DeadLettersShown = {
  now: string
  list: DeadLetterList
  selection: Selection
  access: Access
}

export function deadLettersView({ now, list, selection, access }: DeadLettersShown): Html {
  const chosen = Object.entries(selection)
  const isSelection = chosen.length > 0
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
      isSelection &&
      html`<p>
        Only ${chosen.map(([name, value], index) => html`${index > 0 && ', '}${name} <code>${value}</code>`)}.
        <a href="${path}">Show all</a>
      </p>`
    }
    <h2>By cause</h2>
    ${table({
      caption: 'Causes, the most frequent first',
      columns: ['Reason', 'Latest detail', '*Dead letters', '*Devices', 'Source', 'Latest', 'Oldest'],
      rows: list.groups.map((group) => groupRow(group, now)),
      empty: 'No dead letters.',
    })}
    ${list.more && html`<p>The first ${count(list.scanned)} were read. There are more.</p>`}
    ${list.deadLetters.length > 0 && html`<h2>One by one</h2>`}
    ${list.deadLetters.length > 0 && deadLetterRows(`The oldest ${count(list.deadLetters.length)}`, list.deadLetters, now)}
    ${
      list.groups.length > 0 &&
      html`<h2>Change ${isSelection ? 'these' : 'all'}</h2>
        <p class="quiet">
          A requeue sends payloads as they are, and maps messages with the mapping in force. Correct the cause
          first. A purge deletes them for good.
        </p>
        ${changes(access, [
          { action: 'dead-letters/requeue', parameters: whichOf(selection), name: 'Requeue' },
          { action: 'dead-letters/purge', parameters: whichOf(selection), name: 'Purge' },
        ])}`
    }`
}

/** Without a selection a change must say that it means all. */
function whichOf(selection: Selection) {
  return Object.keys(selection).length > 0 ? (selection as Record<string, string>) : { all: 1 }
}

function groupRow(group: DeadLetterGroup, now: string) {
  const { stage, reason, source, provider, fields } = group
  return [
    html`<a href="${link(path, { stage, reason, source, provider })}"><code>${reason}</code></a
      ><br /><span class="quiet">${stage}</span>`,
    html`${group.detail}${fields !== null && html`<br /><code>${fields}</code>`}`,
    count(group.count),
    group.devices >= 1000 ? '1,000 or more' : count(group.devices),
    named(source ?? provider),
    ago(iso(group.latestAt), now),
    ago(iso(group.oldestAt), now),
  ]
}

export function deadLetterRows(caption: string, letters: DeadLetterList['deadLetters'], now: string): Html {
  return table({
    caption,
    columns: ['Given up', 'Reason', 'Detail', 'Device', 'Topic or payload'],
    rows: letters.map((one) => [
      html`<a href="${link('/page/dead-letter', { id: one.id })}">${at(iso(one.at))}</a>
        <span class="quiet">${ago(iso(one.at), now)}</span>`,
      html`<code>${one.reason}</code>`,
      one.detail,
      one.device === null ? named(null) : deviceLink(one.device),
      html`<code class="long">${bounded(one.topic ?? one.payloadId ?? '')}</code>`,
    ]),
  })
}

function iso(time: number): string {
  return new Date(time).toISOString()
}
