// row-text.ts: a row of the table as text.

import type { HonestReport } from './honest-client.ts'
import type { Row } from './hostile.ts'
import { routeText } from './route.ts'

const columns = [
  ['attack', 34],
  ['alone p50/p99', 15],
  ['attacked p50/p99/max ms', 24],
  ['acked/due', 11],
  ['lost', 5],
  ['missing', 8],
  ['newcomers failed, worst ms', 27],
  ['RssAnon quiet/peak/after MB', 28],
  ['healthz', 8],
  ['log', 6],
  ['attacker: opened/ended/refused, MB sent', 0],
] as const

export const heading = `       ${columns.map(([name, width]) => name.padEnd(width)).join(' ')}`

export function lineOf(row: Row): string {
  const { honest, residentMb, attacker } = row
  const alone = worstOf(honest.map((client) => client.alone))
  const attacked = worstOf(honest.map((client) => client.attacked))
  const missing = honest.reduce((sum, client) => sum + client.missing, 0)
  const cells = [
    `${row.name} (${routeText(row.route)})`,
    [alone.latency.p50Ms, alone.latency.p99Ms].map(short).join('/'),
    [attacked.latency.p50Ms, attacked.latency.p99Ms, attacked.latency.maxMs].map(short).join('/'),
    `${attacked.latency.count}/${attacked.due}`,
    String(attacked.lost),
    String(missing),
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

type Seen = Omit<HonestReport, 'acked'>

/** Of both honest clients: the worst times, and the counts together. */
function worstOf(reports: readonly HonestReport[]): Seen {
  const worst = (of: (report: HonestReport) => number) => Math.max(...reports.map(of))
  const sum = (of: (report: HonestReport) => number) => reports.reduce((all, one) => all + of(one), 0)
  return {
    latency: {
      count: sum(({ latency }) => latency.count),
      p50Ms: worst(({ latency }) => latency.p50Ms),
      p95Ms: worst(({ latency }) => latency.p95Ms),
      p99Ms: worst(({ latency }) => latency.p99Ms),
      maxMs: worst(({ latency }) => latency.maxMs),
    },
    due: sum(({ due }) => due),
    lost: sum(({ lost }) => lost),
    newcomers: {
      tried: sum(({ newcomers }) => newcomers.tried),
      failed: sum(({ newcomers }) => newcomers.failed),
      p50Ms: worst(({ newcomers }) => newcomers.p50Ms),
      worstMs: worst(({ newcomers }) => newcomers.worstMs),
    },
  }
}

function newcomersOf({ newcomers: { tried, failed, worstMs } }: Seen): string {
  return `${failed} of ${tried}, ${short(worstMs)}`
}

const short = (value: number) => (value < 10 ? value.toFixed(1) : String(Math.round(value)))
