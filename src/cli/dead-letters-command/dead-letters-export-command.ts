// dead-letters-export-command.ts: `dead-letters export`: dead letters as NDJSON, for other programs and for
// `requeue --file`.

import { createWriteStream } from 'node:fs'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { Command } from 'commander'
import { GatewayError, unwritable } from '../../std/gateway-error.ts'
import { plural } from '../../std/quantity.ts'
import { textOfLines } from '../../std/text-table/text-lines.ts'
import { exportLine, selectDeadLetters, type DeadLetterQuery } from '../../dead-letters/dead-letters.ts'
import type { RestingSpool } from '../../spool/spool.ts'
import { audited } from '../daemon-client/audited-change.ts'
import { requestDaemonLines } from '../daemon-client/daemon-client.ts'
import { changeRequest } from '../daemon-client/daemon-options.ts'
import { fromDaemonOrSpool, withSpoolOptions, type SpoolOptions } from '../daemon-client/spool-access.ts'
import { withProgress, type ReportAmount } from '../terminal/progress.ts'
import { printAnswer, write, type BuildCommand, type CommandIo } from '../terminal/terminal.ts'
import { deadLetterQueryOf, operationNamed } from '../../ops/ops.ts'
import { checked, parametersOf, timesLine, withParameters } from '../operation-command.ts'
import { notes } from '../terminal/text-format.ts'

const operation = operationNamed('dead-letters/export')

type Options = SpoolOptions & { to?: string }

export const exportCommand: BuildCommand = (io, done) => {
  const command = withParameters(withSpoolOptions(new Command('export')), operation)
  return command
    .description(operation.summary)
    .option('--to <file>', 'write into this new file; - is stdout, the default')
    .addHelpText('after', notes('Without a selection, all are written. Exit status 1: an id does not exist.'))
    .action(async (ids: string[]) => {
      const options = command.opts<Options>()
      const to = options.to === '-' ? undefined : options.to
      const given = parametersOf(command, operation)
      // It changes nothing, so it needs no --all.
      if (given.params.size === 0) [given.raw['all'], given.params] = ['1', new URLSearchParams({ all: '1' })]
      const { params } = given
      checked(operation, given)
      const work = { what: 'Writing dead letters', streams: to === undefined }
      const count = await withProgress(io, work, (report) => {
        const save = (lines: AsyncIterable<string>) => writeLines(counting(lines, report), to, io)
        return fromDaemonOrSpool(
          options,
          io,
          (daemon) =>
            save(
              requestDaemonLines({ ...changeRequest('dead-letters/export', params), daemon, stop: io.stop }),
            ),
          async (spool, spoolPath) => {
            const change = { spoolPath, change: 'dead-letters/export', request: params.toString() }
            // In the zone of the config, which is known now.
            const query = deadLetterQueryOf(checked(operation, given).values as Selection)
            const write = async () => ({ lines: await save(linesOf(spool, query)) })
            return (await audited(io, change, write)).lines
          },
        )
      })
      if (to !== undefined)
        printAnswer(io, options, { deadLetters: count, to }, (answer) =>
          textOfLines([
            ...timesLine(operation, checked(operation, given).values),
            `${plural(count, 'dead letter')} written to ${answer.to}.`,
          ]),
        )
      const missing = Math.max(0, new Set(ids).size - count)
      if (missing > 0) throw notFound(missing)
      done(0)
    })
}

type Selection = Parameters<typeof deadLetterQueryOf>[0]

function notFound(missing: number): GatewayError {
  return new GatewayError('SPOOL_ENTRY_GONE', {
    what: `${plural(missing, 'id')} not found.`,
    why: 'There is no such dead letter, or another command took it. The others were written.',
    act: '`dead-letters list` shows the ids.',
  })
}

async function* linesOf(spool: RestingSpool, query: DeadLetterQuery): AsyncGenerator<string> {
  for await (const entry of selectDeadLetters(spool, query)) yield exportLine(entry).trimEnd()
}

async function* counting(lines: AsyncIterable<string>, report: ReportAmount): AsyncGenerator<string> {
  let done = 0
  for await (const line of lines) {
    done += 1
    report({ done, unit: 'lines' })
    yield line
  }
}

/** Resolves with the number of lines. Creates the file with the first line, or at the end without one. */
async function writeLines(
  lines: AsyncIterable<string>,
  to: string | undefined,
  io: CommandIo,
): Promise<number> {
  let count = 0
  const iterator = lines[Symbol.asyncIterator]()
  const first = await iterator.next()
  async function* counted(): AsyncGenerator<string> {
    for (let next = first; next.done !== true; next = await iterator.next()) {
      count += 1
      yield `${next.value}\n`
    }
  }
  if (to === undefined) {
    for await (const line of counted()) await write(io, line)
    return count
  }
  try {
    await pipeline(Readable.from(counted()), createWriteStream(to, { flags: 'wx', mode: 0o600, flush: true }))
  } catch (error) {
    if (error instanceof GatewayError) throw error
    throw unwritable(to, error, 'Give a file that does not exist yet, on a disk with space.')
  }
  return count
}
