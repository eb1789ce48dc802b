// import-file.ts: `dead-letters requeue --file`: imports a file of `export` or `spool salvage`, in parts that
// the daemon accepts in one request.

import { createReadStream } from 'node:fs'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { GatewayError, messageOf } from '../../std/gateway-error.ts'
import { plural } from '../../std/quantity.ts'
import type { ImportReport } from '../../dead-letters/dead-letters.ts'
import { requestByOptions, type DaemonOptions } from '../daemon-client/daemon-options.ts'
import type { CommandIo } from '../terminal/terminal.ts'
import { textOfLines } from '../terminal/text-format.ts'
import { remapLines, sumOf } from './remap-text.ts'

type Options = DaemonOptions & { all?: boolean; dryRun?: boolean }

const partLinesMax = 20_000
const partLengthMax = 3 * 1024 * 1024

export async function importFile(
  file: string,
  ids: readonly string[],
  options: Options,
  io: CommandIo,
): Promise<ImportReport[]> {
  if (ids.length > 0 || options.all === true)
    throw new GatewayError('USAGE', {
      what: '--file is given together with ids or --all.',
      why: 'A file is imported as a whole.',
      act: 'Give one of them. Filter a file with grep or jq.',
    })
  const reports: ImportReport[] = []
  const path = `/control/dead-letters/import${options.dryRun === true ? '?dryRun=1' : ''}`
  for await (const { body, firstLine } of partsOf(file, io)) {
    try {
      const request = { path, method: 'POST', timeoutMs: Infinity, body } as const
      reports.push((await requestByOptions(options, io, request)) as ImportReport)
    } catch (error) {
      if (!(error instanceof GatewayError) || firstLine === 1) throw error
      const { code, what, act } = error
      const why = `${error.why} (Line 1 here is line ${firstLine} of the file. The lines before it are imported.)`
      throw new GatewayError(code, { what, why, act, cause: error })
    }
  }
  return reports
}

export function importText(reports: readonly ImportReport[], dryRun: boolean): string {
  const payloads = sumOf(reports.map((report) => report.payloads))
  const duplicates = sumOf(reports.map((report) => report.duplicates))
  const suspect = sumOf(reports.map((report) => report.suspect))
  const remaps = reports.flatMap(({ remap }) => (remap === null ? [] : [remap]))
  return textOfLines([
    ...(payloads > 0 || remaps.length === 0
      ? [`${plural(payloads, 'payload')} ${dryRun ? 'would' : 'will'} be sent to the ingestion API.`]
      : []),
    ...(duplicates > 0 ? [`  ${plural(duplicates, 'duplicate')} skipped: already in the spool`] : []),
    ...(suspect > 0
      ? [`  ${suspect} suspect left out. Check them, and remove \`suspect\` from their lines to import them.`]
      : []),
    ...remapLines(remaps, dryRun),
    ...(dryRun && remaps.length === 0 ? ['Nothing was changed.'] : []),
  ])
}

async function* partsOf(file: string, io: CommandIo): AsyncGenerator<{ body: string; firstLine: number }> {
  const input: Readable = file === '-' ? io.stdin : createReadStream(file)
  let lines: string[] = []
  let length = 0
  let firstLine = 1
  try {
    for await (const line of createInterface({ input, crlfDelay: Infinity })) {
      if (lines.length > 0 && (lines.length === partLinesMax || length + line.length > partLengthMax)) {
        yield { body: lines.join('\n'), firstLine }
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
      act: 'Give a file of `dead-letters export` or `spool salvage`.',
      cause: error,
    })
  }
  if (lines.length > 0) yield { body: lines.join('\n'), firstLine }
}
