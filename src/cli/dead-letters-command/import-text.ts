// import-text.ts: what an import did, as text.

import { plural } from '../../std/quantity.ts'
import type { ImportReport } from '../../dead-letters/dead-letters.ts'
import { textOfLines } from '../../std/text-table/text-lines.ts'
import { remapLines, sumOf } from '../../ops/ops.ts'

export function importText(reports: readonly ImportReport[], dryRun: boolean): string {
  const payloads = sumOf(reports.map((report) => report.payloads))
  const duplicates = sumOf(reports.map((report) => report.duplicates))
  const delivered = sumOf(reports.map((report) => report.delivered))
  const suspect = sumOf(reports.map((report) => report.suspect))
  const remaps = reports.flatMap(({ remap }) => (remap === null ? [] : [remap]))
  return textOfLines([
    ...(payloads > 0 || duplicates + delivered > 0 || remaps.length === 0
      ? [`${plural(payloads, 'payload')} ${dryRun ? 'would' : 'will'} be sent to the ingestion API.`]
      : []),
    ...(duplicates > 0 ? [`  ${plural(duplicates, 'duplicate')} skipped: already in the spool`] : []),
    ...(delivered > 0 ? [`  ${plural(delivered, 'payload')} skipped: already delivered, by the ledger`] : []),
    ...(suspect > 0
      ? [`  ${suspect} suspect left out. Check them, and remove \`suspect\` from their lines to import them.`]
      : []),
    ...remapLines(remaps, dryRun),
    ...(dryRun ? ['Nothing was changed.'] : []),
  ])
}
