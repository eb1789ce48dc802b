// repair-command.ts: `spool repair`: shows what is damaged and what a repair keeps, and repairs with --yes.

import { Command } from 'commander'
import { isoTime, systemClock } from '../../std/clock.ts'
import { formatSize, plural } from '../../std/quantity.ts'
import type { MergeReport, RepairReport } from '../../spool/spool.ts'
import { audited } from '../daemon-client/audited-change.ts'
import { directory } from '../terminal/option-values.ts'
import { withProgress } from '../terminal/progress.ts'
import { printAnswer, type BuildCommand } from '../terminal/terminal.ts'
import { notes } from '../terminal/text-format.ts'
import { textOfLines } from '../../std/text-table/text-lines.ts'
import { spoolPathOf, type SpoolPathOptions } from './spool-path.ts'

type RepairCommandOptions = SpoolPathOptions & {
  yes?: boolean
  backup?: string
  purge?: boolean
  json?: boolean
}

export const repairCommand: BuildCommand = (io, done) =>
  new Command('repair')
    .description('Repair a spool with damaged files. Without --yes, only show what a repair does.')
    .option('--path <dir>', 'spool directory, which no daemon may have open')
    .option('--config <file>', 'use spool.path of this config')
    .option('--yes', 'repair')
    .option('--backup <dir>', 'first copy the store as it is into this empty directory', directory)
    .option('--purge', 'with --yes: delete the damaged files that this and earlier repairs keep')
    .option('--json', 'print the report as JSON')
    .addHelpText(
      'after',
      notes(
        'A daemon that refuses the spool opens it automatically after the repair.',
        'An interrupted repair can be repeated.',
        'Exit status 1: the spool is damaged and --yes is missing.',
      ),
    )
    .action(async (options: RepairCommandOptions) => {
      // Loaded late: it brings the database.
      const { repairSpool } = await import('../../spool/spool.ts')
      const spoolPath = await spoolPathOf(options, io)
      const { yes = false, backup, purge = false } = options
      const repair = () =>
        withProgress(io, { what: 'Repairing the spool' }, (count) =>
          repairSpool(spoolPath, {
            apply: yes,
            backup: backup ?? null,
            purge,
            now: () => systemClock.now(),
            signal: io.stop,
            onProgress: ({ bytesRead, bytesTotal }) =>
              count({ done: bytesRead, total: bytesTotal, unit: 'bytes' }),
          }),
        )
      const request = new URLSearchParams({
        ...(backup && { backup }),
        ...(purge && { purge: '1' }),
      }).toString()
      const report = yes
        ? await audited(io, { spoolPath, change: 'spool/repair', request }, repair)
        : await repair()
      printAnswer(io, options, report, repairText)
      done(report.state === 'planned' ? 1 : 0)
    })

const damageShown = 20
const rangesShown = 20
const idsShown = 5

function repairText(report: RepairReport): string {
  const { state, path, damage, asidePath, backup, purged, wasInterrupted } = report
  const ended = [
    ...(backup === null ? [] : [`A copy of the store is in ${backup}.`]),
    ...(purged.length === 0 ? [] : [`Deleted: ${purged.join(', ')}`]),
  ]
  const interrupted = wasInterrupted ? ['An interrupted repair was found.'] : []
  if (state === 'whole')
    return textOfLines([...interrupted, `The files of the spool at ${path} are whole.`, ...ended])
  const found = damage.length > 0 ? [...damageLines(report), '', ...lossLines(report), ''] : []
  const kept = asidePath === null ? [] : [`The damaged files are in ${asidePath}.`]
  return textOfLines([
    ...interrupted,
    ...found,
    ...report.merges.flatMap((merge) => mergeLines(merge, state)),
    ...(state === 'planned'
      ? [
          `A repair needs ${formatSize(report.bytesNeeded)}; ${formatSize(report.bytesFree)} are free.`,
          ...(asidePath === null ? [] : [`It keeps the damaged files in ${asidePath}.`]),
          'Nothing was changed. Repeat the command with --yes to repair.',
        ]
      : ['The spool is repaired.', ...countedLater(report), ...kept, ...ended]),
  ])
}

/** Without it, `spool verify` directly after a repair looks as if it had failed. */
function countedLater({ losses }: RepairReport): string[] {
  const { payloads, unknown, deadLetters, messages, stateEntries, writes, operationsInLogs } = losses
  const isWhole =
    payloads + unknown.length + deadLetters + messages.length + stateEntries + writes === 0 &&
    operationsInLogs === 0
  if (isWhole) return []
  return ['The gateway counts what is lost when it comes to it. Until then `spool verify` ends with 1.']
}

/** A store that was set aside. */
function mergeLines(merge: MergeReport, state: RepairReport['state']): string[] {
  const { path, payloads, batches, deadLetters, messages, stateEntries, problems, losses } = merge
  const verb = state === 'planned' ? 'can be merged' : 'was merged'
  return [
    `The store at ${path} was set aside. It ${verb} into the running one: ${plural(payloads, 'payload')} ` +
      `(${plural(batches, 'batch', 'batches')}), ${plural(deadLetters, 'dead letter')}, ` +
      `${plural(messages, 'kept message')}, ${plural(stateEntries, 'entry', 'entries')} of mapping state.`,
    ...problems.slice(0, damageShown).map((problem) => `  ${problem}`),
    ...rangeLines(losses),
    '',
  ]
}

function damageLines({ problems, files }: RepairReport): string[] {
  const shown = problems.slice(0, damageShown).map((problem) => `  ${problem}`)
  if (problems.length > damageShown) shown.push(`  and ${problems.length - damageShown} more`)
  const { whole, rewritten, lost, logs } = files
  return [
    'Damaged:',
    ...shown,
    `${plural(whole, 'table')} whole, ${rewritten} written anew from their whole blocks, ` +
      `${lost.length} lost, ${plural(logs, 'log')} read.`,
  ]
}

function rangeLines(losses: MergeReport['losses']): string[] {
  const { payloads, ranges, rangesHidden, unknown } = losses
  const shown = ranges.slice(0, rangesShown).map((range) => {
    const { lane, provider, firstSeq, endSeq, payloads: lost, batchIds, after, before } = range
    const times = [
      ...(after === null ? [] : [`after ${isoTime(after)}`]),
      ...(before === null ? [] : [`before ${isoTime(before)}`]),
    ].join(', ')
    const batches = batchIds.length > 0 ? `, batch ${batchIds.join(', ')}` : ''
    const received = times === '' ? '' : `, received ${times}`
    const numbers = lost < endSeq - firstSeq ? 'among the numbers' : 'numbers'
    const place = `of provider ${provider}, lane ${lane}, ${numbers} ${firstSeq} to ${endSeq - 1}`
    return `  ${lost} ${place}${batches}${received}`
  })
  const hidden = ranges.length + rangesHidden - shown.length
  return [
    ...(payloads === 0 && unknown.length > 0
      ? []
      : [payloads === 0 ? 'No payload is lost.' : `Lost: ${plural(payloads, 'payload')}`]),
    ...shown,
    ...(hidden > 0 ? [`  and ${plural(hidden, 'more range')}`] : []),
    ...unknown.map(
      ({ lane, belowSeq }) =>
        `The totals of lane ${lane} are lost: payloads with the numbers 0 to ${belowSeq - 1} are lost, or were ` +
        'settled before.',
    ),
    ...keptLines(losses),
  ]
}

function keptLines({ deadLetters, messages, stateEntries, writes }: MergeReport['losses']): string[] {
  const shelves = messages.map(({ shelf, messages: lost }) => `${plural(lost, 'message')} of ${shelf}`)
  return [
    ...(deadLetters > 0 ? [`Lost: ${plural(deadLetters, 'dead letter')}`] : []),
    ...(shelves.length > 0 ? [`Lost: ${shelves.join(', ')}`] : []),
    ...(stateEntries > 0 ? [`Lost: ${plural(stateEntries, 'entry', 'entries')} of mapping state`] : []),
    ...(writes > 0 ? [`${plural(writes, 'write')} missing by the high-water mark.`] : []),
  ]
}

function shortList(ids: readonly string[]): string {
  const hidden = ids.length - idsShown
  return ids.slice(0, idsShown).join(', ') + (hidden > 0 ? ` and ${hidden} more (--json)` : '')
}

function lossLines({ losses, returned }: RepairReport): string[] {
  const { operationsInLogs, payloadIdEnds } = losses
  const operations =
    operationsInLogs === null
      ? ['An unknown number of changes is lost with damaged logs.']
      : operationsInLogs > 0
        ? [`${plural(operationsInLogs, 'change')} lost with damaged logs.`]
        : []
  return [
    ...rangeLines(losses),
    ...(payloadIdEnds.length > 0 ? [`Their payloadIds end with ${shortList(payloadIdEnds)}.`] : []),
    ...operations,
    ...(returned.payloads + returned.messages > 0
      ? [
          `Settled before, and not sent again: ${plural(returned.payloads, 'payload')}, ` +
            `${plural(returned.messages, 'message')}. The records of their deletion are lost.`,
        ]
      : []),
  ]
}
