// timed-cases.ts: cases in a YAML file whose times are relative to a moment.

import { readFileSync } from 'node:fs'
import { parse } from 'yaml'

const unitMs: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 }

/** The text `-2h` is the time two hours before `now`, wherever it stands alone. */
export function timedCases(url: URL, now: number): unknown {
  return withTimes(parse(readFileSync(url, 'utf8')))

  function withTimes(value: unknown): unknown {
    if (Array.isArray(value)) return value.map(withTimes)
    if (typeof value === 'object' && value !== null)
      return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, withTimes(one)]))
    const [, count = '', unit = ''] = /^-(\d+)(ms|s|m|h)$/.exec(String(value)) ?? []
    return unit === '' ? value : now - Number(count) * unitMs[unit]!
  }
}
