// svg-plots.ts: plots as SVG, and small ones in tables. Colours come from the style sheet, by class; the
// content security policy allows no others.

import { html, type Html } from './html.ts'

export type Line = {
  name: string
  /** Null: not known; the line has a gap there. */
  values: readonly (number | null)[]
}

const width = 600
const height = 120

/**
 * Lines over the same times, from zero to the largest value. `text`: what a screen reader says. `points`:
 * what a browser shows under the pointer, each over its share of the width.
 */
export function linesSvg(lines: readonly Line[], text: string, points: readonly string[]): Html {
  const largest = Math.max(0, ...lines.flatMap(({ values }) => values.map((value) => value ?? 0)))
  return html`<svg
    class="lines"
    viewBox="0 0 ${width} ${height}"
    preserveAspectRatio="none"
    role="img"
    aria-label="${text}"
  >
    ${lines.map(
      ({ values }, index) =>
        html`<path class="line series-${(index % 5) + 1}" d="${pathOf(values, largest)}" />`,
    )}
    ${points.map((point, index) => {
      const wide = width / points.length
      return html`<rect class="point" x="${short(index * wide)}" width="${short(wide)}" height="${height}">
        <title>${point}</title>
      </rect>`
    })}
  </svg>`
}

function pathOf(values: readonly (number | null)[], largest: number): string {
  const step = width / Math.max(1, values.length - 1)
  let path = ''
  let isOpen = false
  for (const [index, value] of values.entries()) {
    if (value === null) {
      isOpen = false
      continue
    }
    const y = largest === 0 ? height - 1 : height - 1 - (value / largest) * (height - 2)
    path += `${isOpen ? 'L' : 'M'}${short(index * step)} ${short(y)}`
    // A value between two gaps is a dot.
    if (!isOpen && (values[index + 1] ?? null) === null) path += 'h1'
    isOpen = true
  }
  return path
}

const barWidth = 4
const barsHeight = 20

/** One bar a value, the last one now. */
export function bars(values: readonly number[], text: string): Html {
  const largest = Math.max(1, ...values)
  const wide = values.length * barWidth
  const sum = values.reduce((total, value) => total + value, 0)
  const label = `${text}: ${sum} in all, at most ${Math.max(0, ...values)}`
  let path = ''
  for (const [index, value] of values.entries()) {
    if (value === 0) continue
    const tall = Math.max(1.5, (value / largest) * (barsHeight - 1))
    path += `M${index * barWidth} ${short(barsHeight - tall)}h${barWidth - 1}V${barsHeight}h-${barWidth - 1}z`
  }
  return html`<svg
    class="bars"
    viewBox="0 0 ${wide} ${barsHeight}"
    width="${wide}"
    height="${barsHeight}"
    role="img"
    aria-label="${label}"
  >
    <path class="base" d="M0 ${barsHeight}h${wide}" />
    <path d="${path}" />
  </svg>`
}

function short(value: number): string {
  return String(Math.round(value * 10) / 10)
}
