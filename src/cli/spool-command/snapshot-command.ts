// snapshot-command.ts: `spool snapshot`: a copy of the whole spool, also while the daemon runs.

import { resolve } from 'node:path'
import { Command } from 'commander'
import { systemClock, zonedTime } from '../../std/clock.ts'
import { formatSize, plural } from '../../std/quantity.ts'
import type { SnapshotReport } from '../../spool/spool.ts'
import { audited } from '../daemon-client/audited-change.ts'
import { requestOrOpen, withSpoolOptions, type SpoolOptions } from '../daemon-client/spool-access.ts'
import { directory } from '../terminal/option-values.ts'
import { printAnswer, type BuildCommand } from '../terminal/terminal.ts'
import { notes } from '../terminal/text-format.ts'
import { textOfLines } from '../../std/text-table/text-lines.ts'

export const snapshotCommand: BuildCommand = (io, done) =>
  withSpoolOptions(new Command('snapshot'))
    .description('Write a copy of the whole spool as it is between two writes, and read it back.')
    .requiredOption('--to <dir>', 'write into this empty directory (required)', directory)
    .addHelpText(
      'after',
      notes(
        'The running daemon writes it, with the rights of its user.',
        'On the file system of the spool, tables are shared by hard links. They then need space only when the ' +
          'spool deletes them.',
        'The ledger is not part of a snapshot.',
      ),
    )
    .action(async (options: SpoolOptions & { to: string }) => {
      const to = resolve(options.to)
      const path = `/control/spool/snapshot?to=${encodeURIComponent(to)}`
      const request = { path, method: 'POST', timeoutMs: Infinity } as const
      const report = await requestOrOpen(options, io, request, async (spoolPath) => {
        const { snapshotResting } = await import('../../spool/spool.ts')
        const change = { spoolPath, change: 'spool/snapshot', request: `to=${encodeURIComponent(to)}` }
        return audited(io, change, () =>
          snapshotResting(spoolPath, to, { now: systemClock.now(), signal: io.stop }),
        )
      })
      printAnswer(io, options, report, snapshotText)
      done(0)
    })

function snapshotText(report: SnapshotReport): string {
  const { path, createdAt, payloads, batches, tables, linkedTables, bytes } = report
  return textOfLines([
    `The snapshot of ${zonedTime(createdAt)} is in ${path}. Every block of it was read.`,
    `${plural(payloads, 'payload')}, ${plural(batches, 'sealed batch', 'sealed batches')}; ` +
      `${formatSize(bytes)} in ${plural(tables, 'table')}, ${linkedTables} of them shared by hard links.`,
    `Restore it with: telemetry-gateway spool restore --from ${path} --path DIR`,
  ])
}
