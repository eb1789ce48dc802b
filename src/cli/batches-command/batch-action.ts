// batch-action.ts: sends an action on batches to the daemon, and prints what it did.

import { assertNever } from '../../std/assert.ts'
import { formatDuration, plural } from '../../std/quantity.ts'
import type { BatchAction, BatchActionReport, WaitingEndpoint } from '../../delivery/types.ts'
import { toBatchParams } from '../../ops/ops.ts'
import { changeRequest, requestByOptions, type DaemonOptions } from '../daemon-client/daemon-options.ts'
import { printAnswer, type CommandIo, type ExitStatus } from '../terminal/terminal.ts'
import { textOfLines } from '../terminal/text-format.ts'
import { selectionOf, type BatchFilterOptions } from './batch-filter.ts'

export type BatchActionOptions = DaemonOptions & BatchFilterOptions & { dryRun?: boolean; yes?: boolean }

/** Resolves with the exit status. `flags`: further parameters. */
export async function runBatchAction(
  name: string,
  { ids, flags = {} }: { ids: readonly string[]; flags?: Record<string, string | undefined> },
  options: BatchActionOptions,
  io: CommandIo,
): Promise<ExitStatus> {
  const params = toBatchParams(selectionOf(options, ids))
  const set = { all: flag(options.all), dryRun: flag(options.dryRun), yes: flag(options.yes), ...flags }
  for (const [key, value] of Object.entries(set)) if (value !== undefined) params.set(key, value)
  const request = changeRequest(`batches/${name}`, params)
  const report = (await requestByOptions(options, io, request)) as BatchActionReport
  printAnswer(io, options, report, actionText)
  return report.skipped.length > 0 ? 1 : 0
}

function flag(isSet: boolean | undefined): string | undefined {
  return isSet === true ? '1' : undefined
}

const done: Record<Exclude<BatchAction, 'retry'>, string> = {
  reissue: 'sent under new batchIds',
  split: 'sent under new batchIds',
  'mark-delivered': 'settled as delivered, without another submission',
  drop: 'settled: the payloads become dead letters',
  discard: 'deleted. Their payloads are lost',
}

function actionText(report: BatchActionReport): string {
  const { action, dryRun, batches, payloads, newBatches, skipped } = report
  const what = `${plural(batches, 'batch', 'batches')} with ${plural(payloads, 'payload')}`
  const made = newBatches > 0 ? ` (${plural(newBatches, 'new batch', 'new batches')})` : ''
  const verb = dryRun ? 'would be' : batches === 1 ? 'is' : 'are'
  return textOfLines([
    `${what} ${verb} ${action === 'retry' ? retryText(report) : done[action]}${made}.`,
    ...(batches > 0 ? effectLines(report) : []),
    ...skipped.slice(0, 20).map(({ batchId, code, why }) => `  skipped: ${batchId}: ${code}: ${why}`),
    ...(skipped.length > 20 ? [`  skipped: ${skipped.length - 20} more`] : []),
    ...(dryRun ? [`Nothing was changed.${action === 'retry' ? '' : ' Add --yes to do it.'}`] : []),
  ])
}

function effectLines({ action, mayBeProcessed, payloads, batches, waiting }: BatchActionReport): string[] {
  const sure = payloads - mayBeProcessed.payloads
  switch (action) {
    case 'reissue':
    case 'split':
      if (mayBeProcessed.batches === 0)
        return [
          `  The service has processed ${batches === 1 ? 'nothing of it' : 'none of them'}: it refused every submission.`,
        ]
      return [
        `  The service may have processed ${partText(mayBeProcessed.batches, batches)}. If it did, it processes ` +
          `${plural(mayBeProcessed.payloads, 'payload')} twice, under two batchIds.`,
        '  Ask the service first: `batches show` has the batchId and the requestIds.',
      ]
    case 'mark-delivered':
      if (sure === 0)
        return [
          `  If the service did not process ${batches === 1 ? 'it, its' : 'them, their'} payloads are lost.`,
        ]
      return [
        `  The service refused every submission of ${partText(batches - mayBeProcessed.batches, batches)}: ` +
          `${plural(sure, 'payload')} ${sure === 1 ? 'is' : 'are'} lost.`,
      ]
    case 'drop':
      return ['  To send them later: dead-letters requeue --reason DROPPED_BY_OPERATOR.']
    case 'retry':
      return waiting.map(waitText)
    case 'discard':
      return []
    default:
      return assertNever(action)
  }
}

function retryText({ batches, waiting }: BatchActionReport): string {
  const verb = waiting.length > 0 ? 'queued for a retry' : 'retried'
  return `${verb} under the same batchId${batches > 1 ? ', one after the other' : ''}`
}

/** `part` of `all` batches, in words. */
function partText(part: number, all: number): string {
  if (all === 1) return 'the batch'
  return part === all ? `all ${all} batches` : `${part} of the ${all} batches`
}

function waitText({ provider, endpoint, nextAttemptInMs }: WaitingEndpoint): string {
  const next =
    nextAttemptInMs > 0
      ? `The next try is in ${formatDuration(nextAttemptInMs)}; \`probe\` starts it now.`
      : 'The next try is running or starts now.'
  return `  The endpoint of provider ${provider} is ${endpoint}. Its batches wait until a try succeeds. ${next}`
}
