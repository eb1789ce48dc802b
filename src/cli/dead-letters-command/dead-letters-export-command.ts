// dead-letters-export-command.ts: `dead-letters export`: dead letters as NDJSON, for other programs and for `requeue --file`.

import { createWriteStream } from 'node:fs'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { Command } from 'commander'
import { GatewayError, messageOf } from '../../std/gateway-error.ts'
import { exportLine, selectDeadLetters, type DeadLetterQuery } from '../../dead-letters/dead-letters.ts'
import { toDeadLetterParams } from '../../ops/ops.ts'
import type { RestingSpool } from '../../spool/spool.ts'
import { requestDaemonLines } from '../daemon-client.ts'
import { countOf } from '../terminal/result-text.ts'
import {
  requestOrRead,
  withFilterOptions,
  withSpoolOptions,
  queryOf,
  type FilterOptions,
  type PlaceOptions,
} from './dead-letter-options.ts'
import type { CommandIo, ExitStatus } from '../terminal/terminal.ts'

type Options = PlaceOptions & FilterOptions & { to?: string }

export function exportCommand(io: CommandIo, done: (status: ExitStatus) => void): Command {
  return withFilterOptions(withSpoolOptions(new Command('export')))
    .argument('[id...]')
    .description('dead letters as NDJSON, one a line; they stay where they are')
    .option('--to <file>', 'instead of stdout; must not be there yet')
    .action(async (ids: string[], options: Options) => {
      const query: DeadLetterQuery = { ...queryOf(options), ...(ids.length === 0 ? {} : { ids }) }
      const params = toDeadLetterParams(query)
      params.set('all', '1')
      const path = `/control/dead-letters/export?${params.toString()}`
      const count = await requestOrRead(
        options,
        io,
        (url) => write(requestDaemonLines({ url, path, stop: io.stop }), options.to, io),
        (spool) => write(linesOf(spool, query), options.to, io),
      )
      if (options.to !== undefined) io.stdout.write(`${countOf(count, 'letter')} in ${options.to}\n`)
      const missing = Math.max(0, new Set(ids).size - count)
      if (missing > 0) io.stderr.write(`${missing} of the ids are no such dead letters.\n`)
      done(missing > 0 ? 1 : 0)
    })
}

async function* linesOf(spool: RestingSpool, query: DeadLetterQuery): AsyncGenerator<string> {
  for await (const entry of selectDeadLetters(spool, query)) yield exportLine(entry)
}

/** Gives how many lines were written. The file is made with the first line, or at the end of none. */
async function write(lines: AsyncIterable<string>, to: string | undefined, io: CommandIo): Promise<number> {
  let count = 0
  const iterator = lines[Symbol.asyncIterator]()
  const first = await iterator.next()
  async function* counted(): AsyncGenerator<string> {
    for (let next = first; next.done !== true; next = await iterator.next()) {
      count += 1
      yield next.value
    }
  }
  if (to === undefined) {
    for await (const line of counted()) if (!io.stdout.write(line)) await drained(io)
    return count
  }
  try {
    await pipeline(Readable.from(counted()), createWriteStream(to, { flags: 'wx', mode: 0o600, flush: true }))
  } catch (error) {
    if (error instanceof GatewayError) throw error
    throw new GatewayError('OUTPUT_UNWRITABLE', {
      what: `Cannot write ${to}.`,
      why: `${messageOf(error)}.`,
      act: 'Give a file that is not there yet, on a disk with room.',
      cause: error,
    })
  }
  return count
}

function drained({ stdout, stop }: CommandIo): Promise<unknown> {
  return new Promise((resolve) => {
    stdout.once('drain', resolve)
    stdout.once('close', resolve)
    stop.addEventListener('abort', resolve, { once: true })
  })
}
