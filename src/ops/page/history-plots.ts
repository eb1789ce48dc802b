// history-plots.ts: how the gateway did, as plots of the overview: SVG with the values under the pointer, and
// a table of them.

import { isoTime, zonedTime } from '../../std/clock.ts'
import { formatDuration } from '../../std/quantity.ts'
import type { HistorySpan, HistoryView } from '../history/history.ts'
import { html, type Html } from './html.ts'
import { at, count, link, rate } from './shown-values.ts'
import { linesSvg, type Line } from './svg-plots.ts'
import { table } from './table.ts'

type ColumnName = 'messages' | 'payloads' | 'accepted' | 'waiting' | 'oldestAgeSeconds'

type Plot = {
  id: string
  title: string
  /** Columns; `answers`: one line for each kind of answer. */
  lines: readonly (readonly [ColumnName, string])[] | 'answers'
  /** `second`: counts are divided by the seconds of their sample; `minute`: the same by minutes. */
  per: 'second' | 'minute' | null
  format(value: number): string
}

const plots: readonly Plot[] = [
  {
    id: 'rates',
    title: 'Per second',
    lines: [
      ['messages', 'messages received'],
      ['payloads', 'payloads stored'],
      ['accepted', 'payloads accepted'],
    ],
    per: 'second',
    format: rate,
  },
  { id: 'backlog', title: 'Payloads that wait', lines: [['waiting', 'payloads']], per: null, format: count },
  {
    id: 'age',
    title: 'Age of the oldest payload',
    lines: [['oldestAgeSeconds', 'age']],
    per: null,
    format: (seconds) => (seconds < 1 ? '0 s' : formatDuration(seconds * 1000)),
  },
  {
    id: 'answers',
    title: 'Answers of the service per minute',
    lines: 'answers',
    per: 'minute',
    format: rate,
  },
]

const spanNames: Readonly<Record<HistorySpan, string>> = {
  hour: 'Last hour',
  day: 'Last day',
  week: 'Last week',
}

const rowsInTable = 12
const pointsInPlot = 60

export function plotsSection(history: HistoryView): Html {
  const { span, atSeconds } = history
  return html`<section aria-labelledby="plots-title">
    <h2 id="plots-title">How it went</h2>
    <ul class="tabs" aria-label="Time of the plots">
      ${(Object.keys(spanNames) as HistorySpan[]).map(
        (one) =>
          html`<li>
            <a
              href="${link('/', { span: one === 'hour' ? null : one })}"
              ${one === span && html`aria-current="true"`}
              >${spanNames[one]}</a
            >
          </li>`,
      )}
    </ul>
    ${
      atSeconds.length < 2
        ? html`<p class="quiet">Nothing to plot yet. A sample is taken every 10 s.</p>`
        : html`<div class="plots" id="plots" data-region>${plots.map((plot) => figure(plot, history))}</div>`
    }
  </section>`
}

function figure(plot: Plot, history: HistoryView): Html {
  const { id, title, format } = plot
  const lines = linesOf(plot, history)
  const largest = Math.max(0, ...lines.flatMap(({ values }) => values.map((value) => value ?? 0)))
  const latest = (line: Line) => line.values.findLast((value) => value !== null) ?? null
  const { atSeconds } = history
  const points = largestOf(lines, plot, { atSeconds, count: pointsInPlot }).toReversed()
  return html`<figure class="plot" data-key="${id}">
    <figcaption>
      <strong>${title}</strong> <span class="quiet">up to ${format(largest)}</span>
      <ul class="legend">
        ${lines.map((line, index) => {
          const now = latest(line)
          return html`<li class="series-${(index % 5) + 1}">
            <svg class="dash" viewBox="0 0 28 4" aria-hidden="true"><path class="line" d="M0 2h28" /></svg>
            <span>${line.name}</span>
            <strong>${now === null ? 'unknown' : format(now)}</strong>
          </li>`
        })}
      </ul>
    </figcaption>
    ${linesSvg(
      lines,
      `${title}, ${spanNames[history.span].toLowerCase()}: up to ${format(largest)}`,
      points.map(({ until, values }) =>
        [
          `Until ${zonedTime(until)}`,
          ...lines.map(({ name }, index) => `${name}: ${values[index]! || 'unknown'}`),
        ].join('\n'),
      ),
    )}
    <p class="quiet range">
      ${[atSeconds[0], atSeconds.at(-1)].map((seconds) => html`<span>${at(timeOf(seconds))}</span>`)}
    </p>
    <details>
      <summary aria-label="Values: ${title}">Values</summary>
      ${valuesTable(plot, lines, history)}
    </details>
  </figure>`
}

function linesOf({ lines, per }: Plot, history: HistoryView): readonly Line[] {
  const scaled = (values: readonly (number | null)[]) =>
    per === null ? values : values.map((value, index) => perTime(value, history.seconds[index] ?? null, per))
  if (lines === 'answers')
    return history.answers.map(({ kind, submissions }) => ({ name: kind, values: scaled(submissions) }))
  return lines.map(([column, name]) => {
    const values = history[column]
    // No age where nothing waits.
    const known =
      column === 'oldestAgeSeconds'
        ? values.map((value, index) => value ?? (history.waiting[index] === 0 ? 0 : null))
        : values
    return { name, values: scaled(known) }
  })
}

function perTime(value: number | null, seconds: number | null, per: 'second' | 'minute'): number | null {
  if (value === null || seconds === null || seconds <= 0) return null
  return (value / seconds) * (per === 'minute' ? 60 : 1)
}

/** A few rows. */
function valuesTable(plot: Plot, lines: readonly Line[], { atSeconds }: HistoryView): Html {
  return table({
    caption: `${plot.title}: the largest value until each time`,
    columns: ['Until', ...lines.map(({ name }) => `*${name}`)],
    rows: largestOf(lines, plot, { atSeconds, count: rowsInTable }).map(({ until, values }) => [
      at(until),
      ...values,
    ]),
  })
}

/** The largest values of as many samples each as make `count` of them, the last ones first. */
function largestOf(
  lines: readonly Line[],
  { format }: Pick<Plot, 'format'>,
  { atSeconds, count }: { atSeconds: readonly number[]; count: number },
) {
  const each = Math.max(1, Math.ceil(atSeconds.length / count))
  const ends: number[] = []
  for (let end = atSeconds.length; end > 0; end -= each) ends.push(end)
  return ends.map((end) => ({
    until: timeOf(atSeconds[end - 1]),
    values: lines.map(({ values }) => {
      const known = values.slice(Math.max(0, end - each), end).filter((value) => value !== null)
      return known.length === 0 ? '' : format(Math.max(...known))
    }),
  }))
}

function timeOf(seconds = 0): string {
  return isoTime(seconds * 1000)
}
