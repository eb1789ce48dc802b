// remap-text.ts: the result of mapping messages again, for `remap` and `requeue`.

import { plural } from '../../std/quantity.ts'
import { countLines } from '../../std/text-table/text-lines.ts'

type Remapped = {
  /** Messages that were mapped again. */
  deadLetters: number
  payloads: number
  duplicates: number
  ignored: Record<string, number>
  kept: number
  stillRefused: Record<string, number>
}

export function duplicatesLines(duplicates: number): string[] {
  if (duplicates === 0) return []
  return [`  ${plural(duplicates, 'payload')} left out: the same reading came in another message`]
}

/** The sum of several reports. */
export function remapLines(reports: readonly Remapped[], dryRun: boolean): string[] {
  if (reports.length === 0) return []
  const messages = plural(sumOf(reports.map(({ deadLetters }) => deadLetters)), 'message')
  const payloads = plural(sumOf(reports.map((report) => report.payloads)), 'payload')
  const kept = sumOf(reports.map((report) => report.kept))
  return [
    dryRun ? `${messages} would map to ${payloads}.` : `${messages} mapped to ${payloads}.`,
    ...duplicatesLines(sumOf(reports.map(({ duplicates }) => duplicates))),
    ...countLines(totals(reports.map(({ ignored }) => ignored)), (count, why) => `${count} ignored: ${why}`),
    ...(kept > 0 ? [`  ${kept} kept for their device, their clock or their expression`] : []),
    ...countLines(
      totals(reports.map(({ stillRefused }) => stillRefused)),
      (count, why) => `${count} cannot be mapped: ${why}`,
    ),
  ]
}

function sumOf(numbers: readonly number[]): number {
  return numbers.reduce((sum, number) => sum + number, 0)
}

function totals(records: readonly Readonly<Record<string, number>>[]): Record<string, number> {
  const sums: Record<string, number> = {}
  for (const record of records)
    for (const [key, count] of Object.entries(record)) sums[key] = (sums[key] ?? 0) + count
  return sums
}
