// batches-show-command.ts: `batches show`: one batch with its payloads and its last answers.

import { Command } from 'commander'
import type { IsoTimes } from '../../std/iso-times.ts'
import { formatSize } from '../../std/quantity.ts'
import type { BatchDetail } from '../../delivery/types.ts'
import { requestByOptions, withDaemonOptions, type DaemonOptions } from '../daemon-client/daemon-options.ts'
import { columns } from '../terminal/text-table.ts'
import { printAnswer, type BuildCommand } from '../terminal/terminal.ts'
import { notes } from '../terminal/text-format.ts'
import { reasonText } from './batch-text.ts'

export const showCommand: BuildCommand = (io, done) =>
  withDaemonOptions(new Command('show'))
    .description('Show a batch: its payloads, and the last answers of the service.')
    .argument('<batchId>', 'the batch; `batches list` shows its id')
    .addHelpText('after', notes('The answers are those since the start of the daemon.'))
    .action(async (batchId: string, options: DaemonOptions) => {
      const path = `/control/batches/show?id=${encodeURIComponent(batchId.toLowerCase())}`
      const request = { path, method: 'POST', timeoutMs: Infinity } as const
      const detail = (await requestByOptions(options, io, request)) as IsoTimes<BatchDetail>
      printAnswer(io, options, detail, detailText)
      done(0)
    })

function detailText(detail: IsoTimes<BatchDetail>, width: number): string {
  const { batchId, provider, role, payloads, bytes, sealedAt, held, submissions, contents, answers } = detail
  const rows = [
    ['batchId', batchId],
    ['provider', provider],
    ['lane', role],
    ['payloads', `${payloads}, ${formatSize(bytes)}`],
    ['sealed', sealedAt],
    ['state', held === null ? detail.state : `held since ${held.since}`],
    ...(held === null
      ? []
      : [
          ['why', held.why],
          ['reason', reasonText(held.reason)],
        ]),
    ['submissions', String(submissions)],
    ['processed', detail.mayBeProcessed ? 'perhaps' : 'no: every submission was refused'],
    ['requestId', detail.lastRequestId ?? '-'],
    ['next try', detail.nextTryAt ?? '-'],
  ]
  const lines = [
    ...columns(rows, width),
    ...(answers.length === 0 ? [] : ['', 'last answers']),
    ...columns(
      answers.map(({ at, requestId, text }) => [`  ${at}`, requestId ?? '-', text]),
      width,
    ),
    '',
    'payloads',
    ...columns(
      contents.map(({ payloadId, device }) => [`  ${payloadId}`, device ?? '-']),
      width,
    ),
  ]
  return `${lines.join('\n')}\n`
}
