// row-text.ts: a row of the table as text.

import { isAsExpected, type AttemptReport } from './attempts/attempts.ts'
import type { HonestReport } from './honest-client.ts'
import type { Row } from './hostile.ts'

export function attemptLine(report: AttemptReport): string {
  const { who, where, what, expected, tls, seen } = report
  const head = isAsExpected(report) ? 'ok    ' : 'BROKEN'
  const expectation = isAsExpected(report) ? seen : `${seen}; expected: ${expected}`
  return `${head} ${(where === 'mqtt' && tls ? 'mqtts' : where).padEnd(5)} ${who} ${what}: ${expectation}`
}

const columns = [
  ['attack', 28],
  ['alone p50/p99', 15],
  ['attacked p50/p99/max ms', 24],
  ['acked/due', 11],
  ['lost', 5],
  ['newcomers failed, worst ms', 27],
  ['RssAnon quiet/peak/after MB', 28],
  ['healthz', 8],
  ['log', 6],
  ['attacker: opened/ended/refused, MB sent', 0],
] as const

export const heading = `       ${columns.map(([name, width]) => name.padEnd(width)).join(' ')}`

export function lineOf(row: Row): string {
  const { attacked, alone, residentMb, attacker } = row
  const cells = [
    `${row.name}${row.tls ? ' (tls)' : ''}`,
    [alone.latency.p50Ms, alone.latency.p99Ms].map(short).join('/'),
    [attacked.latency.p50Ms, attacked.latency.p99Ms, attacked.latency.maxMs].map(short).join('/'),
    `${attacked.latency.count}/${attacked.due}`,
    String(attacked.lost),
    newcomersOf(attacked),
    [residentMb.quiet, residentMb.peak, residentMb.after].map((mb) => Math.round(mb)).join('/'),
    row.healthMs === null ? '-' : short(row.healthMs),
    String(row.logLines),
    `${attacker.opened}/${attacker.ended}/${attacker.refused}, ${short(attacker.sentBytes / 1e6)}`,
  ]
  const line = cells.map((cell, index) => cell.padEnd(columns[index]?.[1] ?? 0)).join(' ')
  const head = row.violations.length === 0 ? 'ok    ' : 'BROKEN'
  return [`${head} ${line.trimEnd()}`, ...row.violations.map((violation) => `       ${violation}`)].join('\n')
}

function newcomersOf({ newcomers: { tried, failed, worstMs } }: HonestReport): string {
  return `${failed} of ${tried}, ${short(worstMs)}`
}

const short = (value: number) => (value < 10 ? value.toFixed(1) : String(Math.round(value)))
