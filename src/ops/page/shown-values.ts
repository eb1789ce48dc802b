// shown-values.ts: times, durations, sizes and names as every view shows them.

import { zonedTime } from '../../std/clock.ts'
import { formatAgo } from '../../std/quantity.ts'
import { bounded } from '../../std/quote.ts'
import { html, type Html } from './html.ts'

const numbers = new Intl.NumberFormat('en')

export function count(value: number): string {
  return numbers.format(value)
}

/** At most two digits behind the point. */
export function rate(value: number): string {
  return numbers.format(Math.round(value * 100) / 100)
}

/** `3 min ago`, with the time itself. */
export function ago(at: string | null, now: string): Html {
  if (at === null) return html`<span class="quiet">never</span>`
  const text = formatAgo(Date.parse(now) - Date.parse(at))
  return html`<time datetime="${at}" title="${zonedTime(at)}">${text}</time>`
}

/** `2026-11-23 14:03:20 CET`. */
export function at(time: string | null): Html {
  if (time === null) return html`<span class="quiet">never</span>`
  return html`<time datetime="${time}">${zonedTime(time)}</time>`
}

/** A name from outside, of whatever length and writing direction. */
export function named(text: string | null, lengthMax = 60): Html {
  if (text === null) return html`<span class="quiet">none</span>`
  return html`<bdi ${text.length <= shortMax && html`class="short"`}>${bounded(text, lengthMax)}</bdi>`
}

/** Not broken at a hyphen. */
const shortMax = 24

/** With its first small letter large: a column may begin with a sign. */
export function capital(text: string): string {
  return text.replace(/[a-z]/, (letter) => letter.toUpperCase())
}

/** A sentence of ours: what stands in backticks is code. */
export function sentence(text: string): Html {
  return html`${text.split('`').map((part, index) => (index % 2 === 0 ? part : html`<code>${part}</code>`))}`
}

/** Short parts on one line, so that a payload is seen at a glance. */
export function jsonText(value: unknown, indent = ''): string {
  const short = JSON.stringify(value) ?? 'null'
  if (typeof value !== 'object' || value === null || indent.length + short.length <= 72) return short
  const inner = `${indent}  `
  const parts = Array.isArray(value)
    ? value.map((one) => jsonText(one, inner))
    : Object.entries(value).map(([name, one]) => `${JSON.stringify(name)}: ${jsonText(one, inner)}`)
  const [open, close] = Array.isArray(value) ? '[]' : '{}'
  return `${open}\n${inner}${parts.join(`,\n${inner}`)}\n${indent}${close}`
}

/** Text as it is, in a box that scrolls when it is long. `name`: what a screen reader calls the box. */
export function textBox(name: string, text: string): Html {
  return html`<pre tabindex="0" role="group" aria-label="${name}"><code>${text}</code></pre>`
}

/** A command or a row to copy. */
export function toCopy(text: string, name = 'Command'): Html {
  return html`<div class="copy">${textBox(name, text)}</div>`
}

/** The path of a view with its parameters; empty ones are left out. */
export function link(path: string, parameters: Readonly<Record<string, string | number | null>>): string {
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(parameters))
    if (value !== null && value !== '') query.set(name, String(value))
  const text = query.toString()
  return text === '' ? path : `${path}?${text}`
}
