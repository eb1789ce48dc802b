// path-finder.ts: finds which of the paths of a field has a value in a record, and the raw value there.

import { compileFound, findingsOf, textOf, type Finding, type Reading } from '../fields/fields.ts'
import { shown } from '../fields/gps.ts'
import { compileCondition, limitText, withinLimit } from '../expression/expression.ts'
import { NoResult } from '../path/no-result.ts'
import type { Up } from '../types.ts'
import { compileTable } from '../fields/value-table.ts'

/** A record, what is around it in its message, and the captures of its topic. */
export type PlacedRecord = { record: unknown; root: unknown; up: Up; captures: readonly string[] }

export type Found = { path: string | null; raw: unknown; note: string | null }

export type Readable = Reading & {
  value?: unknown
  when?: string | undefined
}

/**
 * Finds the path with a value, by reading each path alone, and tells what `values` of the field makes of it.
 * `captureNames`: those of the topic.
 */
export function compileFinder(
  readable: Readable,
  captureNames: readonly string[],
): {
  paths: readonly string[]
  find(place: PlacedRecord): Found
} {
  const { value, when, absent, unit, values } = readable
  const reads = findingsOf(readable).map((one) => {
    const finding = typeof one === 'object' && 'expr' in one ? one : { path: [one] }
    return {
      text: textOf(one),
      raw: compileFound('expr' in finding ? finding : { path: textOf(one) }, captureNames),
      condition: typeof one === 'object' && 'when' in one ? one.when : null,
      read: compileFound({ ...finding, absent, unit }, captureNames),
    }
  })
  const table = values === undefined ? null : compileTable(values)
  const holds = when === undefined ? null : compileCondition(when, captureNames)
  return {
    paths: reads.map(({ text }) => text),
    find: (place) =>
      withinLimit(() => find(place)) ?? { path: null, raw: undefined, note: `no value: ${limitText}` },
  }

  function find(place: PlacedRecord): Found {
    const found = value === undefined ? findPath(place) : { path: null, raw: value, note: 'a constant' }
    const { record, root, captures, up } = place
    return holds === null || holds(record, root, captures, up)
      ? found
      : { ...found, note: `when is false: ${when ?? ''}` }
  }

  function findPath(place: PlacedRecord): Found {
    const { record, root, up, captures } = place
    let best: Found = { path: null, raw: undefined, note: 'absent' }
    for (const { text, raw, condition, read } of reads) {
      const found = raw(record, root, up, captures)
      if (found instanceof NoResult) return { path: text, raw: undefined, note: `no value: ${found.reason}` }
      const usable = read(record, root, up, captures)
      if (isThere(usable)) return { path: text, raw: found, note: translated(usable) }
      const note = !isThere(found)
        ? 'absent'
        : condition === null
          ? `${shown(found)} means "no value" (\`absent\`)`
          : `${shown(found)} does not count: ${condition} is false`
      if (found !== undefined && best.raw === undefined) best = { path: text, raw: found, note }
    }
    return best
  }

  /** What `values` made of it; null without it. */
  function translated(usable: unknown): string | null {
    if (table === null) return null
    const value = table(usable)
    return value instanceof NoResult ? value.reason : `\`values\`: ${shown(value)}`
  }
}

function isThere(value: unknown): boolean {
  return value !== undefined && value !== null && value !== ''
}

/** What names the device, for example. */
export function findBy(finding: Finding, captureNames: readonly string[], place: PlacedRecord): Found {
  return compileFinder(finding, captureNames).find(place)
}
