// batches-command.ts: `batches`: list the sealed batches that are not settled, and change them. `list` is
// here; each other subcommand has a file of its own.

import { Command } from 'commander'
import type { IsoTimes } from '../../std/iso-times.ts'
import { formatDuration, formatSize, plural } from '../../std/quantity.ts'
import { heldReasons, type HeldReason } from '../../domain/held.ts'
import type { BatchGroup, BatchList, BatchView } from '../../delivery/types.ts'
import { toBatchParams } from '../../ops/ops.ts'
import { requestByOptions, withDaemonOptions, type DaemonOptions } from '../daemon-client/daemon-options.ts'
import { wholeNumber } from '../terminal/option-values.ts'
import { columns } from '../terminal/text-table.ts'
import { printAnswer, type BuildCommand } from '../terminal/terminal.ts'
import { agoSince, notes, listsByDefault } from '../terminal/text-format.ts'
import { filterOf, withBatchFilter, type BatchFilterOptions } from './batch-filter.ts'
import { dropCommand } from './batches-drop-command.ts'
import { markDeliveredCommand } from './batches-mark-delivered-command.ts'
import { reissueCommand } from './batches-reissue-command.ts'
import { retryCommand } from './batches-retry-command.ts'
import { showCommand } from './batches-show-command.ts'
import { splitCommand } from './batches-split-command.ts'
import { reasonText } from './batch-text.ts'

type BatchesAnswer = IsoTimes<Omit<BatchList, 'more'>> & { more: boolean; moreBatches: number }

export const batchesCommand: BuildCommand = (io, done) =>
  new Command('batches')
    .addCommand(listCommand(io, done), { isDefault: true })
    .addCommand(showCommand(io, done))
    .addCommand(retryCommand(io, done))
    .addCommand(reissueCommand(io, done))
    .addCommand(splitCommand(io, done))
    .addCommand(markDeliveredCommand(io, done))
    .addCommand(dropCommand(io, done))
    .addHelpText('after', listsByDefault('batches'))

const listCommand: BuildCommand = (io, done) =>
  withBatchFilter(withDaemonOptions(new Command('list')))
    .description('List sealed batches that are not settled, held batches first.')
    .option('--limit <rows>', 'show at most this many batches', wholeNumber(1, 1000), 50)
    .addHelpText(
      'after',
      notes(
        'in flight: a submission runs. waiting: for its next try. held: because of the answers to it; the ' +
          'other batches are delivered as usual.',
      ),
    )
    .action(async (options: DaemonOptions & BatchFilterOptions & { limit: number }) => {
      const params = toBatchParams(filterOf(options))
      params.set('limit', String(options.limit))
      const request = { path: `/batches?${params.toString()}`, method: 'GET', timeoutMs: Infinity } as const
      const list = (await requestByOptions(options, io, request)) as BatchesAnswer
      const isFiltered = Object.keys(filterOf(options)).length > 0
      printAnswer(io, options, list, (answer, width) => listText(answer, isFiltered, width))
      done(0)
    })

function listText(list: BatchesAnswer, isFiltered: boolean, width: number): string {
  const { groups, batches, moreBatches } = list
  const now = Date.parse(list.now)
  if (batches.length === 0)
    return isFiltered ? 'No sealed batch matches.\n' : 'There are no sealed batches.\n'
  const head = [
    'batchId',
    'provider',
    'lane',
    'payloads',
    'size',
    'sealed',
    'state',
    'sent',
    'requestId',
    'next try',
  ]
  const lines = [
    ...groups.map((group) => groupText(group, now)),
    '',
    ...columns([head, ...batches.map((view) => rowOf(view, now))], width),
    ...(moreBatches > 0
      ? [`${plural(moreBatches, 'more batch', 'more batches')}. --limit shows more of them.`]
      : []),
    ...legend(groups),
  ]
  return `${lines.join('\n')}\n`
}

function groupText(
  { provider, state, reason, batches, payloads, oldestAt }: IsoTimes<BatchGroup>,
  now: number,
): string {
  const what = `${plural(batches, 'batch', 'batches')} with ${plural(payloads, 'payload')}`
  const oldest = `oldest ${agoSince(oldestAt, now)}`
  return `${what} ${state}${reason === null ? '' : ` (${reason})`}, provider ${provider}, ${oldest}`
}

function rowOf(view: IsoTimes<BatchView>, now: number): string[] {
  const { batchId, provider, role, payloads, bytes, sealedAt, state, held, submissions } = view
  return [
    batchId,
    provider,
    role,
    String(payloads),
    formatSize(bytes),
    agoSince(sealedAt, now),
    held === null ? state : `held: ${held.reason}, ${agoSince(held.since, now)}`,
    String(submissions),
    view.lastRequestId ?? '-',
    nextText(view, now),
  ]
}

function nextText({ state, nextTryAt }: IsoTimes<BatchView>, now: number): string {
  if (state === 'in flight') return 'runs now'
  const inMs = nextTryAt === null ? 0 : Date.parse(nextTryAt) - now
  return inMs <= 0 ? 'in turn' : `in ${formatDuration(inMs)}`
}

function legend(groups: readonly Pick<BatchGroup, 'reason'>[]): string[] {
  const all = Object.keys(heldReasons) as HeldReason[]
  const reasons = all.filter((reason) => groups.some((group) => group.reason === reason))
  return reasons.length === 0 ? [] : ['', ...reasons.map(reasonText)]
}
