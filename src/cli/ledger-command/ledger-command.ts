// ledger-command.ts: `ledger`: the operation of that name, for as many entries as are wanted. It asks the
// running daemon; where none runs, it opens the ledger in the spool of --config.

import { Command } from 'commander'
import { systemClock } from '../../std/clock.ts'
import { isoTimes } from '../../std/iso-times.ts'
import { GatewayError } from '../../std/gateway-error.ts'
import { openOfflineLedger } from '../../ledger/ledger.ts'
import { ledgerLimitMax, ledgerQueryOf, operationNamed, type ShownLedger } from '../../ops/ops.ts'
import { checkInThread, openExistingStore } from '../../storage/storage.ts'
import { requestDaemon } from '../daemon-client/daemon-client.ts'
import { withDaemonOptions, type DaemonOptions } from '../daemon-client/daemon-options.ts'
import { fromDaemonOrPath } from '../daemon-client/spool-access.ts'
import { checked, parametersOf, requestOf, withParameters } from '../operation-command.ts'
import { wholeNumber } from '../terminal/option-values.ts'
import type { BuildCommand, CommandIo } from '../terminal/terminal.ts'
import { notes } from '../terminal/text-format.ts'
import { exportOf } from './ledger-export.ts'

type Options = DaemonOptions & { limit: number; csv?: boolean }
type Texts = Readonly<Record<string, string>>

/** A ledger that has given its first answer, and gives more. */
type Asked = { first: ShownLedger; ask(texts: Texts): Promise<ShownLedger>; close(): Promise<void> }

const operation = operationNamed('ledger')

export const ledgerCommand: BuildCommand = (io, done) => {
  const command = withParameters(withDaemonOptions(new Command('ledger')), operation)
  return command
    .option('--limit <entries>', 'print at most this many entries, newest first', wholeNumber(1, 1e9), 100)
    .option('--csv', 'print CSV, times in UTC')
    .addHelpText('after', notes(...(operation.notes ?? [])))
    .action(async () => {
      const options = command.opts<Options>()
      const { raw } = parametersOf(command, operation)
      checked(operation, { raw })
      await exportAll(options, raw as Texts, io)
      done(0)
    })
}

/** An answer is bounded, so a large export takes several. */
async function exportAll(options: Options, texts: Texts, io: CommandIo): Promise<void> {
  if (options.csv && options.json)
    throw new GatewayError('USAGE', {
      what: 'Both --csv and --json are given.',
      why: 'Each of them is a format of the output.',
      act: 'Give one of them.',
    })
  const pageOf = (left: number, after?: string) => ({
    ...texts,
    limit: String(Math.min(left, ledgerLimitMax)),
    ...(after !== undefined && { after }),
  })
  let left = options.limit
  const { first, ask, close } = await askFirst(options, pageOf(left), io)
  try {
    // The zone of the gateway is known now.
    const output = exportOf(options, checked(operation, { raw: texts }).values, io)
    let answer = first
    while (true) {
      left -= answer.entries.length
      const { next } = answer
      const isLast = next === null || left <= 0
      output.answer(answer, isLast)
      if (isLast) return
      answer = await ask(pageOf(left, next))
    }
  } finally {
    await close()
  }
}

/** Of the daemon; of the spool where no daemon gives the first answer. */
function askFirst(options: Options, first: Texts, io: CommandIo): Promise<Asked> {
  return fromDaemonOrPath<Asked>(
    options,
    io,
    async (daemon) => {
      const ask = async (texts: Texts) => {
        const request = requestOf(operation, new URLSearchParams(texts))
        return (await requestDaemon({ ...request, daemon, stop: io.stop })) as ShownLedger
      }
      return { first: await ask(first), ask, close: async () => undefined }
    },
    async (path) => {
      const deps = { openStore: openExistingStore, checkStore: checkInThread, clock: systemClock }
      const ledger = await openOfflineLedger(deps, { path })
      const ask = async (texts: Texts) => {
        const values = checked(operation, { raw: texts }).values as Parameters<typeof ledgerQueryOf>[0]
        const answer = await ledger.query(ledgerQueryOf(values), io.stop)
        return { ...isoTimes(answer), more: answer.next !== null }
      }
      return { first: await ask(first), ask, close: () => ledger[Symbol.asyncDispose]() }
    },
  )
}
