// change-page.ts: `/page/change`: asks before a change, and shows what it did.

import type { JsonAnswer } from '../../http/json-answer.ts'
import { readParameters } from '../../http/http-routing/parameters.ts'
import { nowOf, type Operation } from '../../operations/operation.ts'
import { operationNamed } from '../../operations/operations.ts'
import { html, type Html } from '../html.ts'
import { commandOf, takesYes } from '../page-changes.ts'
import { blocksView } from '../shown-blocks.ts'
import { link, sentence, toCopy } from '../shown-values.ts'
import { facts } from '../table.ts'

type Parameters = Readonly<Record<string, string>>

export type ChangeAsked = {
  /** Behind /control/. */
  change: string
  /** What it does, as the list of paths says it. */
  summary: string
  parameters: Parameters
  /** What it would do; null where that cannot be known before. */
  preview: Html | null
  isPossible: boolean
  token: string | null
}

export function changeQuestion(asked: ChangeAsked): Html {
  const { change, summary, parameters, preview, isPossible, token } = asked
  return html`<p>${summary}</p>
    ${Object.keys(parameters).length > 0 && selected(parameters)}
    ${preview !== null && html`<h2>What it would do</h2>`} ${preview}
    ${
      isPossible &&
      html`<form method="post" action="/page/change">
        <input type="hidden" name="token" value="${token}" /><input
          type="hidden"
          name="change"
          value="${change}"
        />
        ${Object.entries(parameters).map(
          ([name, value]) => html`<input type="hidden" name="${name}" value="${value}" />`,
        )}
        ${takesYes(change) && html`<input type="hidden" name="yes" value="1" />`}
        <p>
          <button class="danger">${questionOf(change)}</button>
          <a href="${originOf(change, parameters)}">Cancel</a>
        </p>
      </form>`
    }
    <details>
      <summary>The same as a command</summary>
      ${toCopy(commandOf({ action: change, parameters }))}
    </details>`
}

function selected(parameters: Parameters): Html {
  return html`<h2>What it selects</h2>
    ${facts(Object.entries(parameters).map(([name, value]) => [name, html`<code>${value}</code>`]))}`
}

type Result = { change: string; parameters: Parameters; isDone: boolean; shown: Html }

export function changeResult({ change, parameters, isDone, shown }: Result): Html {
  const isGone = isDone && ('id' in parameters || change === 'devices/forget')
  return html`${shown}
    <p>
      <a href="${isGone ? placeOf(change) : originOf(change, parameters)}">Back</a> ·
      <a href="/page/changes">All changes</a>
    </p>`
}

function questionOf(change: string): string {
  const words = (change.split('/')[1] ?? change).replaceAll('-', ' ')
  return `Yes, ${words}`
}

/** The view that the change was begun in: of the one thing, or the list as it was selected. */
function originOf(change: string, parameters: Parameters): string {
  const { id = null, device } = parameters
  const [group] = change.split('/')
  if (device !== undefined && (group === 'devices' || group === 'quarantine'))
    return link('/page/device', { key: device })
  if (id !== null && group === 'batches') return link('/page/batch', { id })
  if (group !== 'dead-letters') return placeOf(change)
  if (id !== null) return link('/page/dead-letter', { id })
  const { shape } = operationNamed('dead-letters/list').parameters
  return link(
    '/page/dead-letters',
    Object.fromEntries(Object.entries(parameters).filter(([name]) => name in shape)),
  )
}

/** The list of what the change is about. */
export function placeOf(change: string): string {
  const [group = ''] = change.split('/')
  return ['dead-letters', 'quarantine', 'batches', 'devices'].includes(group) ? `/page/${group}` : '/'
}

export function problemReport({ value }: JsonAnswer): Html {
  const { code = '', what = '', why = '', act = '' } = value as Record<string, string>
  return html`<div class="condition error" role="alert">
    <p class="lines"><strong>${sentence(what)}</strong> ${sentence(why)}</p>
    <p class="lines">${sentence(act)} <code>${code}</code></p>
  </div>`
}

/** A problem, or the text that the command prints. */
export function report(operation: Operation, answer: JsonAnswer, parameters: Parameters): Html {
  if (answer.isProblem === true) return problemReport(answer)
  const read = readParameters(operation.parameters, parameters)
  const shown = {
    now: nowOf(answer.value),
    values: read.kind === 'values' ? read.values : {},
    prints: new Set<string>(),
  }
  return blocksView(operation.text?.(answer.value, shown) ?? ['Done.'])
}
