// ledger-command.ts: `ledger`: what became of payloads, with the requestId of the service. Asks the running daemon; where none runs
// and --config says where its spool is, the records are opened here.

import { Command } from 'commander'
import { systemClock } from '../../std/clock.ts'
import { GatewayError } from '../../std/gateway-error.ts'
import {
  openOfflineLedger,
  limitMax,
  parseCursor,
  parseLedgerQuery,
  type LedgerAnswer,
  type LedgerQuery,
} from '../../ledger/ledger.ts'
import { openExistingStore } from '../../storage/storage.ts'
import { requestDaemon } from '../daemon-client.ts'
import type { CommandIo, ExitStatus } from '../terminal/terminal.ts'
import { csvExport, jsonExport, tableExport, type Export } from './ledger-text.ts'
import { daemonUrl } from '../status-command.ts'

type Options = {
  config?: string
  url?: string
  device?: string
  at?: string
  from?: string
  to?: string
  payload?: string
  batch?: string
  request?: string
  outcome?: string
  limit: string
  csv?: boolean
  json?: boolean
}

type Ask = (question: LedgerQuery) => Promise<LedgerAnswer>

export function ledgerCommand(io: CommandIo, done: (status: ExitStatus) => void): Command {
  return new Command('ledger')
    .description('what became of payloads: delivered, retried or dead, when, and with which requestId')
    .option(
      '--config <file>',
      'take the address from ops.listen of this config; where no daemon runs, its spool',
    )
    .option('--url <url>', 'base URL of the daemon (default: http://127.0.0.1:8080)')
    .option('--device <name>', 'of this device')
    .option('--at <time>', 'measured within a minute of this time')
    .option('--from <time>', 'measured at this time or later')
    .option('--to <time>', 'measured at this time or earlier')
    .option('--payload <id>', 'with this payloadId')
    .option('--batch <id>', 'sent in the batch with this batchId')
    .option('--request <id>', 'answered with this requestId')
    .option('--outcome <word>', 'delivered, retried or dead')
    .option('--limit <number>', 'at most so many, the newest first', '100')
    .option('--csv', 'as CSV, times in UTC')
    .option('--json', 'as one JSON document, times in milliseconds')
    .addHelpText(
      'after',
      '\nTimes are written 14:03 (today), 2026-11-21T14:03, 2026-11-21T14:03:20Z or in milliseconds; without a zone they' +
        '\nare local. A payload that was retried is listed once for each answer about it.',
    )
    .action(async (options: Options) => {
      const { question, count } = readOptions(options)
      const to = exportOf(options, io)
      await withAsk(options, io, async (ask) => {
        await exportAll(ask, question, count, to)
      })
      done(0)
    })
}

function exportOf({ csv, json }: Options, { stdout }: CommandIo): Export {
  if (csv && json)
    throw usage('Both --csv and --json are given.', 'Each of them is a form of the whole output.')
  const write = (text: string) => void stdout.write(text)
  if (csv) return csvExport(write)
  return json ? jsonExport(write) : tableExport(write)
}

function readOptions(options: Options): { question: LedgerQuery; count: number } {
  const { device, at, from, to, payload, batch, request, outcome, limit } = options
  const said = { device, at, from, to, payload, batch, request, outcome, limit }
  const asked = parseLedgerQuery(said, systemClock.now())
  if (asked.kind === 'invalid') throw usage(asked.what, asked.why)
  return { question: asked.query, count: Number(limit) }
}

function usage(what: string, why: string): GatewayError {
  return new GatewayError('USAGE', { what, why, act: 'See `telemetry-gateway ledger --help`.' })
}

/** As many answers as it takes: each is bounded. */
async function exportAll(ask: Ask, question: LedgerQuery, count: number, to: Export): Promise<void> {
  let left = count
  let next: LedgerQuery | null = question
  let last: LedgerAnswer | null = null
  while (next !== null && left > 0) {
    const answer = await ask({ ...next, limit: Math.min(left, limitMax) })
    if (last === null) to.begin(question)
    last = answer
    to.entries(last.entries)
    left -= last.entries.length
    const after = parseCursor(last.next ?? '')
    next = after === null ? null : { ...question, after }
  }
  to.end({ next: last?.next ?? null, oldestAt: last?.oldestAt ?? null, behind: last?.behind ?? 0 })
}

/** Asks the daemon, or opens the records of one that does not run. */
async function withAsk(options: Options, io: CommandIo, use: (ask: Ask) => Promise<void>): Promise<void> {
  const url = await daemonUrl(options, io)
  let asked = false
  try {
    await use(async (question) => {
      const path = `/ledger?${queryOf(question)}`
      const answer = (await requestDaemon({ url, path, method: 'GET', stop: io.stop })) as LedgerAnswer
      asked = true
      return answer
    })
  } catch (error) {
    if (asked || !(error instanceof GatewayError) || error.code !== 'DAEMON_UNREACHABLE') throw error
    if (options.config === undefined) throw unreachable(error)
    const { loadSpoolPath } = await import('../../config/config.ts')
    const path = await loadSpoolPath(options.config, { env: io.env })
    await using records = await openOfflineLedger(
      { openStore: openExistingStore, clock: systemClock },
      { path },
    )
    await use((question) => records.query(question, io.stop))
  }
}

function unreachable({ what, why, cause }: GatewayError): GatewayError {
  return new GatewayError('DAEMON_UNREACHABLE', {
    what,
    why,
    act: 'Give --url, or --config: then the ledger of a gateway that does not run is read as well.',
    cause,
  })
}

/** Times go as milliseconds: the daemon may live in another time zone. */
function queryOf(question: LedgerQuery): string {
  const { after, ...said } = question
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(said)) query.set(name, String(value))
  if (after !== undefined) query.set('after', `${after.number}.${after.index}`)
  return query.toString()
}
