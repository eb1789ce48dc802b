// change-page.ts: `/page/change`: asks before a change, and shows what it did.

import type { JsonAnswer } from '../../http/json-answer.ts'
import { html, type Html, type HtmlValue } from '../html.ts'
import { commandOf, takesYes } from '../page-changes.ts'
import { at, sentence, toCopy } from '../shown-values.ts'
import { facts } from '../table.ts'

type Parameters = Readonly<Record<string, string>>

export type ChangeAsked = {
  /** Behind /control/. */
  change: string
  /** What it does, as the list of paths says it. */
  summary: string
  parameters: Parameters
  /** What it would do; null where that cannot be known before. */
  preview: JsonAnswer | null
  token: string | null
}

export function changeQuestion({ change, summary, parameters, preview, token }: ChangeAsked): Html {
  const isPossible = preview === null || preview.isProblem !== true
  return html`<p>${summary}</p>
    ${Object.keys(parameters).length > 0 && selected(parameters)}
    ${preview !== null && html`<h2>What it would do</h2>`} ${preview !== null && report(preview)}
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
        <p><button class="danger">${questionOf(change)}</button> <a href="${placeOf(change)}">Cancel</a></p>
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

export function changeResult(change: string, answer: JsonAnswer): Html {
  return html`${report(answer)}
    <p><a href="${placeOf(change)}">Back</a> · <a href="/page/changes">All changes</a></p>`
}

function questionOf(change: string): string {
  const words = (change.split('/')[1] ?? change).replaceAll('-', ' ')
  return `Yes, ${words}`
}

/** The view that the change was begun in. */
export function placeOf(change: string): string {
  const [group = ''] = change.split('/')
  return ['dead-letters', 'quarantine', 'batches', 'devices'].includes(group) ? `/page/${group}` : '/'
}

function report({ value, isProblem = false }: JsonAnswer): Html {
  if (isProblem) {
    const { code = '', what = '', why = '', act = '' } = value as Record<string, string>
    return html`<div class="condition error" role="alert">
      <p class="lines"><strong>${sentence(what)}</strong> ${sentence(why)}</p>
      <p class="lines">${sentence(act)} <code>${code}</code></p>
    </div>`
  }
  return facts(
    Object.entries(value as Record<string, unknown>)
      .filter(([name, one]) => name !== 'dryRun' && one !== null && !(Array.isArray(one) && one.length === 0))
      .map(([name, one]) => [wordsOf(name), valueText(one)]),
  )
}

function valueText(value: unknown): HtmlValue {
  if (typeof value === 'string') return isTime.test(value) ? at(value) : value
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  if (Array.isArray(value))
    return html`<ul>
      ${value.map((one) => html`<li>${valueText(one)}</li>`)}
    </ul>`
  const parts = Object.entries(value).filter(([, one]) => one !== null)
  if (parts.length === 0) return 'none'
  return parts.map(([name, one], index) => html`${index > 0 && ', '}${wordsOf(name)}: ${valueText(one)}`)
}

const isTime = /^\d{4}-\d\d-\d\dT[\d:.]+Z$/

/** `deadLetters` as `dead letters`. */
function wordsOf(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)
}
