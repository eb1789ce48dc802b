// dead-letters-requeue-command.ts: `dead-letters requeue`: sends what was mended on its way again, letters of the spool or lines of a
// file that `export` or `spool salvage` wrote.

import { createReadStream } from 'node:fs'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { Command } from 'commander'
import { GatewayError, messageOf } from '../../std/gateway-error.ts'
import { visible } from '../../std/quote.ts'
import type { ImportReport, RequeueReport } from '../../dead-letters/dead-letters.ts'
import { toDeadLetterParams } from '../../ops/ops.ts'
import { requestDaemon } from '../daemon-client.ts'
import { countOf } from '../terminal/result-text.ts'
import {
  withDaemonOptions,
  requiredQuery,
  withFilterOptions,
  type FilterOptions,
  type PlaceOptions,
} from './dead-letter-options.ts'
import type { CommandIo, ExitStatus } from '../terminal/terminal.ts'
import { daemonUrl } from '../status-command.ts'

type Options = PlaceOptions & FilterOptions & { dryRun?: boolean; file?: string }

/** Of one request: an address has no room for more ids, and the daemon takes no more bytes at once. */
const idsMax = 100
const partLinesMax = 20_000
const partLengthMax = 3 * 1024 * 1024

export function requeueCommand(io: CommandIo, done: (status: ExitStatus) => void): Command {
  return withFilterOptions(withDaemonOptions(new Command('requeue')))
    .argument('[id...]')
    .description('sends dead letters on their way again: payloads as they are, messages through the mapping')
    .option('--all', 'all of them')
    .option('--dry-run', 'only say what would come of it')
    .option('--file <file>', 'what `export` or `spool salvage` wrote, `-` for stdin')
    .addHelpText(
      'after',
      '\nEach letter is sent and leaves the letters in one write. Of a file, what is in the spool already is left out.' +
        '\nCtrl-C ends it; what was done is done.',
    )
    .action(async (ids: string[], options: Options) => {
      const url = await daemonUrl(options, io)
      if (options.file !== undefined) {
        io.stdout.write(await fill(url, ids, options, io))
        done(0)
        return
      }
      const reports = await requeue(url, ids, options, io)
      const isJson = options.json === true
      io.stdout.write(
        isJson
          ? reports.map((report) => `${JSON.stringify(report)}\n`).join('')
          : requeueText(reports, options.dryRun ?? false),
      )
      done(reports.some(({ missing }) => missing.length > 0) ? 1 : 0)
    })
}

async function requeue(
  url: string,
  ids: readonly string[],
  options: Options,
  io: CommandIo,
): Promise<RequeueReport[]> {
  const query = requiredQuery(ids, options)
  const parts = ids.length === 0 ? [query] : slices(ids, idsMax).map((some) => ({ ...query, ids: some }))
  const reports: RequeueReport[] = []
  for (const part of parts) {
    const params = toDeadLetterParams(part)
    if (options.all === true) params.set('all', '1')
    if (options.dryRun === true) params.set('dryRun', '1')
    const path = `/control/dead-letters/requeue?${params.toString()}`
    reports.push(
      (await requestDaemon({ url, path, method: 'POST', stop: io.stop, untimed: true })) as RequeueReport,
    )
  }
  return reports
}

function requeueText(reports: readonly RequeueReport[], dryRun: boolean): string {
  const would = dryRun ? 'would go' : 'go'
  const payloads = sumOf(reports, ({ payloads }) => payloads)
  const missing = reports.flatMap(({ missing }) => missing)
  const lines = [
    `${countOf(payloads, 'payload')} ${would} to the ingestion API again.`,
    ...countsOf(reports.map(({ left }) => left)).map(([why, count]) => `  ${count} stay: ${why}`),
    ...remapLines(reports, dryRun),
    ...missing.map((id) => `  ${id} is no dead letter`),
    ...(dryRun ? ['Nothing was changed.'] : []),
  ]
  return `${lines.map(visible).join('\n')}\n`
}

function remapLines(reports: readonly Pick<RequeueReport, 'remap'>[], dryRun: boolean): string[] {
  const remaps = reports.flatMap(({ remap }) => (remap === null ? [] : [remap]))
  if (remaps.length === 0) return []
  const messages = sumOf(remaps, ({ deadLetters: letters }) => letters)
  const became = dryRun ? 'would become' : 'became'
  const payloads = sumOf(remaps, ({ payloads }) => payloads)
  const kept = sumOf(remaps, ({ kept }) => kept)
  return [
    `${countOf(messages, 'message')} ${dryRun ? 'would be' : 'were'} mapped again and ${became} ${countOf(payloads, 'payload')}.`,
    ...countsOf(remaps.map(({ ignored }) => ignored)).map(
      ([why, count]) => `  ${count} left out on purpose: ${why}`,
    ),
    ...(kept > 0 ? [`  ${kept} wait for their device, their clock or their expression`] : []),
    ...countsOf(remaps.map(({ stillRefused }) => stillRefused)).map(
      ([why, count]) => `  ${count} cannot be mapped: ${why}`,
    ),
  ]
}

async function fill(url: string, ids: readonly string[], options: Options, io: CommandIo): Promise<string> {
  if (ids.length > 0 || options.all === true)
    throw new GatewayError('USAGE', {
      what: '--file is given beside letters of the spool.',
      why: 'A file is taken whole.',
      act: 'Give one of them; filter a file with grep or jq.',
    })
  const reports: ImportReport[] = []
  const path = `/control/dead-letters/import${options.dryRun === true ? '?dryRun=1' : ''}`
  for await (const { text, firstLine } of partsOf(options.file ?? '-', io)) {
    try {
      const asked = { url, path, method: 'POST', stop: io.stop, patient: true, body: text } as const
      reports.push((await requestDaemon(asked)) as ImportReport)
    } catch (error) {
      if (!(error instanceof GatewayError) || firstLine === 1) throw error
      const why = `${error.why} (lines are counted from line ${firstLine} of the file; those before it are taken.)`
      throw new GatewayError(error.code, { what: error.what, why, act: error.act, cause: error })
    }
  }
  if (options.json === true) return reports.map((report) => `${JSON.stringify(report)}\n`).join('')
  const dryRun = options.dryRun ?? false
  const copies = sumOf(reports, ({ duplicates: copies }) => copies)
  const suspect = sumOf(reports, ({ suspect }) => suspect)
  const lines = [
    `${countOf(
      sumOf(reports, ({ payloads }) => payloads),
      'payload',
    )} ${dryRun ? 'would go' : 'go'} to the ingestion API.`,
    ...(copies > 0 ? [`  ${copies} are in the spool already`] : []),
    ...(suspect > 0
      ? [`  ${suspect} are suspect and left out; look at them, and take \`suspect\` out of their lines`]
      : []),
    ...remapLines(reports, dryRun),
    ...(dryRun ? ['Nothing was changed.'] : []),
  ]
  return `${lines.map(visible).join('\n')}\n`
}

async function* partsOf(file: string, io: CommandIo): AsyncGenerator<{ text: string; firstLine: number }> {
  const input: Readable = file === '-' ? io.stdin : createReadStream(file)
  let lines: string[] = []
  let length = 0
  let firstLine = 1
  try {
    for await (const line of createInterface({ input, crlfDelay: Infinity })) {
      if (lines.length > 0 && (lines.length === partLinesMax || length + line.length > partLengthMax)) {
        yield { text: lines.join('\n'), firstLine }
        firstLine += lines.length
        lines = []
        length = 0
      }
      lines.push(line)
      length += line.length + 1
    }
  } catch (error) {
    if (error instanceof GatewayError) throw error
    throw new GatewayError('INPUT_UNREADABLE', {
      what: `Cannot read ${file}.`,
      why: `${messageOf(error)}.`,
      act: 'Give a file that `dead-letters export` or `spool salvage` wrote.',
      cause: error,
    })
  }
  if (lines.length > 0) yield { text: lines.join('\n'), firstLine }
}

function slices<Entry>(entries: readonly Entry[], size: number): Entry[][] {
  const parts: Entry[][] = []
  for (let start = 0; start < entries.length; start += size) parts.push(entries.slice(start, start + size))
  return parts
}

function sumOf<Entry>(entries: readonly Entry[], read: (entry: Entry) => number): number {
  return entries.reduce((sum, entry) => sum + read(entry), 0)
}

function countsOf(records: readonly Record<string, number>[]): [string, number][] {
  const counts = new Map<string, number>()
  for (const record of records)
    for (const [key, count] of Object.entries(record)) counts.set(key, (counts.get(key) ?? 0) + count)
  return [...counts]
}
