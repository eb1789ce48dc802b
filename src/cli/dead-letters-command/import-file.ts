// import-file.ts: `dead-letters requeue --file`: imports a file of `export` or `spool salvage` in parts that
// the daemon accepts in one request.
//
// The file is read twice, in stretches of about a million payloads: the daemon first learns the payloadIds of
// a stretch and compares them with the spool and the ledger, then it imports what is new. A part is a range
// of bytes, so both times it is the same; memory holds one part. What is read from stdin goes to a temporary
// file first.

import { createWriteStream } from 'node:fs'
import { mkdtemp, open, rm, type FileHandle } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import type { Command } from 'commander'
import { utf8Text } from '../../std/file-system/utf8-text.ts'
import { GatewayError, unreadable } from '../../std/gateway-error.ts'
import { plural } from '../../std/quantity.ts'
import { textOfLines } from '../../std/text-table/text-lines.ts'
import type { ImportCheck, ImportReport, ImportStart } from '../../dead-letters/dead-letters.ts'
import { remapLines, sumOf } from '../../ops/ops.ts'
import { requestByOptions, type DaemonOptions } from '../daemon-client/daemon-options.ts'
import { withProgress, type ReportAmount } from '../terminal/progress.ts'
import type { CommandIo, ExitStatus } from '../terminal/terminal.ts'
import type { GivenParameters } from '../operation-command.ts'

type ImportOptions = DaemonOptions & { dryRun?: boolean; file?: string; withoutLedger?: boolean }

export function withImportOptions(command: Command): Command {
  return command
    .option('--file <file>', 'import this file of `export` or `spool salvage` instead; - is stdin')
    .option('--without-ledger', 'with --file: import also what the ledger may have as delivered')
}

/** Null without --file. */
export function importInstead(
  options: ImportOptions,
  { params }: GivenParameters,
  io: CommandIo,
): Promise<ExitStatus> | null {
  const { file, dryRun = false, json } = options
  if (file === undefined) return null
  if ([...params.keys()].some((name) => name !== 'dryRun'))
    throw new GatewayError('USAGE', {
      what: '--file is given together with ids, a filter or --all.',
      why: 'A file is imported as a whole.',
      act: 'Give one of them. Filter a file with grep or jq.',
    })
  return importFile(file, options, io).then((reports) => {
    const lines = reports.map((report) => `${JSON.stringify(report)}\n`).join('')
    io.stdout.write(json ? lines : importText(reports, dryRun))
    return 0
  })
}

const partBytesMax = 3 * 1024 * 1024
/** Ends a stretch. The daemon accepts four times as many. */
const plannedMax = 1_000_000

/** Whole lines of the file. */
type Part = { body: string; from: number; end: number; firstLine: number }

async function importFile(file: string, options: ImportOptions, io: CommandIo): Promise<ImportReport[]> {
  return withProgress(io, { what: 'Importing' }, (report) => {
    if (file === '-') return fromStdin(io, (path) => importPath(path, options, { io, report }))
    return importPath(file, options, { io, report })
  })
}

async function fromStdin<Result>(
  { stdin, stop }: CommandIo,
  work: (path: string) => Promise<Result>,
): Promise<Result> {
  const folder = await mkdtemp(join(tmpdir(), 'telemetry-gateway-import-'))
  try {
    const path = join(folder, 'stdin.ndjson')
    await pipeline(stdin, createWriteStream(path, { mode: 0o600 }), { signal: stop })
    return await work(path)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

async function importPath(
  path: string,
  options: ImportOptions,
  { io, report }: { io: CommandIo; report: ReportAmount },
): Promise<ImportReport[]> {
  const file = await reading(path, () => open(path, 'r'))
  const { size: total } = await file.stat()
  /** Each byte is read twice: to plan and to import. */
  let bytesRead = 0
  const countBytes = (bytes: number) => {
    bytesRead += bytes
    report({ done: bytesRead / 2, total, unit: 'bytes' })
  }
  try {
    const reports: ImportReport[] = []
    let start = { from: 0, firstLine: 1 }
    for (;;) {
      const plan = await planStretch(file)(start)
      if (plan === null) return reports
      await checkStretch(plan.token)
      for (const part of plan.parts) {
        reports.push(await importPart(await readAgain(file, part), plan.token))
        countBytes(part.end - part.from)
      }
      start = plan.next
    }
  } finally {
    await file.close()
  }

  function planStretch(handle: FileHandle) {
    return async (from: { from: number; firstLine: number }) => {
      let token: string | null = null
      const parts: Omit<Part, 'body'>[] = []
      let next = from
      for (;;) {
        const part: Part | null = await reading(path, () => partAt(handle, next))
        if (part === null) break
        const start: ImportStart = await send(`import-plan${token === null ? '' : `?import=${token}`}`, part)
        token = start.import
        countBytes(part.end - part.from)
        const { body, ...range } = part
        parts.push(range)
        next = { from: part.end, firstLine: part.firstLine + linesIn(body) }
        if (start.planned >= plannedMax) break
      }
      return token === null ? null : { token, parts, next }
    }
  }

  function checkStretch(token: string): Promise<ImportCheck> {
    const query = options.withoutLedger === true ? '&withoutLedger=1' : ''
    return send(`import-check?import=${token}${query}`, null)
  }

  async function readAgain(handle: FileHandle, range: Omit<Part, 'body'>): Promise<Part> {
    const body = await reading(path, () => textAt(handle, range.from, range.end - range.from))
    return { ...range, body }
  }

  function importPart(part: Part, token: string): Promise<ImportReport> {
    return send(`import?import=${token}${options.dryRun === true ? '&dryRun=1' : ''}`, part)
  }

  async function send<Answer>(name: string, part: Part | null): Promise<Answer> {
    const request = { path: `/control/dead-letters/${name}`, method: 'POST', timeoutMs: Infinity } as const
    try {
      const body = part === null ? {} : { body: part.body }
      return (await requestByOptions(options, io, { ...request, ...body })) as Answer
    } catch (error) {
      if (!(error instanceof GatewayError) || part === null) throw error
      throw withLine(error, part.firstLine, name.startsWith('import?'))
    }
  }
}

/** The daemon counts the lines of a part. */
function withLine(error: GatewayError, firstLine: number, imports: boolean): GatewayError {
  const { code, what } = error
  const line = firstLine === 1 ? '' : ` (Line 1 here is line ${firstLine} of the file.)`
  const act = imports
    ? `Lines before line ${firstLine} are imported. Give the same command again: it continues where it stopped.`
    : error.act
  return new GatewayError(code, { what, why: `${error.why.replace(/\.?$/, '.')}${line}`, act, cause: error })
}

/** Null at the end of the file. A line that is longer than a part is a part of its own. */
async function partAt(
  file: FileHandle,
  { from, firstLine }: { from: number; firstLine: number },
): Promise<Part | null> {
  for (let bytesMax = partBytesMax; ; bytesMax *= 2) {
    const bytes = await bytesAt(file, from, bytesMax)
    if (bytes.length === 0) return null
    const isLast = bytes.length < bytesMax
    const length = isLast ? bytes.length : bytes.lastIndexOf('\n') + 1
    if (length === 0) continue
    return { body: utf8Text(bytes.subarray(0, length), firstLine), from, end: from + length, firstLine }
  }
}

async function textAt(file: FileHandle, from: number, length: number): Promise<string> {
  return (await bytesAt(file, from, length)).toString('utf8')
}

/** Fewer bytes only at the end of the file. */
async function bytesAt(file: FileHandle, from: number, length: number): Promise<Buffer> {
  const bytes = Buffer.allocUnsafe(length)
  let filled = 0
  while (filled < length) {
    const { bytesRead } = await file.read(bytes, filled, length - filled, from + filled)
    if (bytesRead === 0) break
    filled += bytesRead
  }
  return bytes.subarray(0, filled)
}

function linesIn(body: string): number {
  let lines = 0
  for (let at = body.indexOf('\n'); at >= 0; at = body.indexOf('\n', at + 1)) lines += 1
  return lines
}

async function reading<Result>(path: string, read: () => Promise<Result>): Promise<Result> {
  try {
    return await read()
  } catch (error) {
    throw unreadable(path, error, 'Give a file of `dead-letters export` or `spool salvage`.')
  }
}

function importText(reports: readonly ImportReport[], dryRun: boolean): string {
  const payloads = sumOf(reports.map((report) => report.payloads))
  const duplicates = sumOf(reports.map((report) => report.duplicates))
  const delivered = sumOf(reports.map((report) => report.delivered))
  const suspect = sumOf(reports.map((report) => report.suspect))
  const remaps = reports.flatMap(({ remap }) => (remap === null ? [] : [remap]))
  return textOfLines([
    ...(payloads > 0 || duplicates + delivered > 0 || remaps.length === 0
      ? [`${plural(payloads, 'payload')} ${dryRun ? 'would' : 'will'} be sent to the ingestion API.`]
      : []),
    ...(duplicates > 0 ? [`  ${plural(duplicates, 'duplicate')} skipped: already in the spool`] : []),
    ...(delivered > 0 ? [`  ${plural(delivered, 'payload')} skipped: already delivered, by the ledger`] : []),
    ...(suspect > 0
      ? [`  ${suspect} suspect left out. Check them, and remove \`suspect\` from their lines to import them.`]
      : []),
    ...remapLines(remaps, dryRun),
    ...(dryRun ? ['Nothing was changed.'] : []),
  ])
}
