// ledger-command.ts: `ledger`: what happened to payloads, with the requestId of the service. It asks the
// running daemon; where none runs, it opens the ledger in the spool of --config.

import { Command } from 'commander'
import { systemClock } from '../../std/clock.ts'
import { isoTimes, type IsoTimes } from '../../std/iso-times.ts'
import { GatewayError } from '../../std/gateway-error.ts'
import { ledgerOutcomes } from '../../domain/settlement.ts'
import {
  limitMax,
  openOfflineLedger,
  parseLedgerQuery,
  type LedgerAnswer,
  type LedgerQuery,
} from '../../ledger/ledger.ts'
import { checkInThread, openExistingStore } from '../../storage/storage.ts'
import { requestDaemon } from '../daemon-client/daemon-client.ts'
import { withDaemonOptions, type DaemonOptions } from '../daemon-client/daemon-options.ts'
import { findDaemon } from '../daemon-client/find-daemon.ts'
import { isUnreachable, spoolPathIn } from '../daemon-client/spool-access.ts'
import { wholeNumber } from '../terminal/option-values.ts'
import { terminalWidth, type BuildCommand, type CommandIo } from '../terminal/terminal.ts'
import { csvExport, jsonExport, tableExport, type Export } from './ledger-export.ts'
import { notes } from '../terminal/text-format.ts'

type Options = DaemonOptions & {
  device?: string
  at?: string
  from?: string
  to?: string
  payload?: string
  batch?: string
  request?: string
  outcome?: string
  limit: number
  csv?: boolean
}

type Answer = IsoTimes<LedgerAnswer>
/** The parameters as they are written: a time without a zone is one of the gateway. */
type Params = Readonly<Record<string, string>>
type RunQuery = (params: Params) => Promise<Answer>

export const ledgerCommand: BuildCommand = (io, done) =>
  withDaemonOptions(new Command('ledger'))
    .option('--device <name>', 'only payloads of this device')
    .option('--at <time>', 'only payloads measured within a minute of this time')
    .option('--from <time>', 'only payloads measured at this time or later')
    .option('--to <time>', 'only payloads measured at this time or earlier')
    .option('--payload <id>', 'only the payload with this payloadId')
    .option('--batch <id>', 'only payloads of the batch with this batchId')
    .option('--request <id>', 'only payloads of the answer with this requestId')
    .option('--outcome <name>', `only this outcome: ${ledgerOutcomes.join(', ')}`)
    .option('--limit <entries>', 'print at most this many entries, newest first', wholeNumber(1, 1e9), 100)
    .option('--csv', 'print CSV, times in UTC')
    .addHelpText(
      'after',
      notes(
        'A time is 14:03 (today), 2026-11-21T14:03, 2026-11-21T14:03:20Z, 2h (ago), or milliseconds ' +
          'since 1970. Without a zone it is one of the gateway: ops.time_zone.',
        'A payload that was retried has one entry for each answer. Without a running daemon, the command ' +
          'reads the ledger in the spool of --config.',
      ),
    )
    .action(async (options: Options) => {
      const params = paramsOf(options)
      queryOf(params)
      const output = exportOf(options, io)
      await withLedger(options, io, (run) => exportAll(run, params, options.limit, output))
      done(0)
    })

function exportOf({ csv, json }: Options, { stdout }: CommandIo): Export {
  if (csv && json) throw usage('Both --csv and --json are given.', 'Each of them is a format of the output.')
  const print = (text: string) => void stdout.write(text)
  if (csv) return csvExport(print)
  return json ? jsonExport(print) : tableExport(print, terminalWidth(stdout))
}

function paramsOf({ device, at, from, to, payload, batch, request, outcome }: Options): Params {
  const given = Object.entries({ device, at, from, to, payload, batch, request, outcome })
  return Object.fromEntries(given.flatMap(([name, text]) => (text === undefined ? [] : [[name, text]])))
}

/** In the zone that is known at that moment. */
function queryOf(params: Params): LedgerQuery {
  const parsed = parseLedgerQuery(params, systemClock.now())
  if (parsed.kind === 'invalid') throw usage(parsed.what, parsed.why)
  return parsed.query
}

function usage(what: string, why: string): GatewayError {
  return new GatewayError('USAGE', { what, why, act: 'See `telemetry-gateway ledger --help`.' })
}

/** An answer is bounded, so a large export takes several. */
async function exportAll(run: RunQuery, params: Params, count: number, output: Export): Promise<void> {
  let left = count
  let next: Params | null = params
  let last: Answer | null = null
  while (next !== null && left > 0) {
    const answer = await run({ ...next, limit: String(Math.min(left, limitMax)) })
    // The zone of the gateway is known now.
    if (last === null) output.begin(queryOf(params))
    last = answer
    output.entries(last.entries)
    left -= last.entries.length
    next = last.next === null ? null : { ...params, after: last.next }
  }
  const more = (last?.next ?? null) !== null
  output.end({ more, next: last?.next ?? null, oldestAt: last?.oldestAt ?? null, behind: last?.behind ?? 0 })
}

/** Runs queries on the daemon, or on the ledger of a stopped one. */
async function withLedger(
  options: Options,
  io: CommandIo,
  use: (run: RunQuery) => Promise<void>,
): Promise<void> {
  const daemon = await findDaemon(options, io)
  let answered = false
  try {
    await use(async (params) => {
      const path = `/ledger?${new URLSearchParams(params).toString()}`
      const answer = await requestDaemon({ daemon, path, method: 'GET', stop: io.stop })
      answered = true
      return answer as Answer
    })
  } catch (error) {
    if (answered || !isUnreachable(error)) throw error
    if (options.config === undefined) throw withConfigHint(error)
    const path = await spoolPathIn(options.config, io)
    await using ledger = await openOfflineLedger(
      { openStore: openExistingStore, checkStore: checkInThread, clock: systemClock },
      { path },
    )
    await use(async (params) => isoTimes(await ledger.query(queryOf(params), io.stop)))
  }
}

function withConfigHint({ what, why, cause }: GatewayError): GatewayError {
  return new GatewayError('DAEMON_UNREACHABLE', {
    what,
    why,
    act: 'Give --url, or give --config to read the ledger of a stopped daemon.',
    cause,
  })
}
