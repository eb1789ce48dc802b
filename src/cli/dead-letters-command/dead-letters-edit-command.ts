// dead-letters-edit-command.ts: `dead-letters edit`: mends the payload of a dead letter in an editor, or from a file, and sends it.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { Command } from 'commander'
import { GatewayError, messageOf } from '../../std/gateway-error.ts'
import type { EditReport } from '../../dead-letters/dead-letters.ts'
import type { DeadLetterEntry } from '../../spool/spool.ts'
import { requestDaemon } from '../daemon-client.ts'
import { withDaemonOptions, type PlaceOptions } from './dead-letter-options.ts'
import type { CommandIo, ExitStatus } from '../terminal/terminal.ts'
import { daemonUrl } from '../status-command.ts'

type Options = PlaceOptions & { file?: string }
type Mended = { body: string; kept: string | null }

export function editCommand(io: CommandIo, done: (status: ExitStatus) => void): Command {
  return withDaemonOptions(new Command('edit'))
    .argument('<id>', 'of a payload that the service refused')
    .description('mends the payload of a dead letter in $EDITOR and sends it')
    .option('--file <file>', 'the mended payload, `-` for stdin, instead of an editor')
    .addHelpText(
      'after',
      '\nThe payloadId stays as long as it is the same reading; with another device or time it gets a new one.',
    )
    .action(async (id: string, options: Options) => {
      const url = await daemonUrl(options, io)
      const mended =
        options.file === undefined ? await inEditor(url, id, io) : await fromFile(options.file, io)
      if (mended === null) {
        io.stdout.write(
          'Nothing was changed, so nothing is sent. To send it as it is: dead-letters requeue.\n',
        )
        done(0)
        return
      }
      const report = await send(url, id, mended, io)
      if (mended.kept !== null) await rm(join(mended.kept, '..'), { recursive: true, force: true })
      io.stdout.write(options.json ? `${JSON.stringify(report)}\n` : textOf(report))
      done(0)
    })
}

async function send(url: string, id: string, { body, kept }: Mended, io: CommandIo): Promise<EditReport> {
  const path = `/control/dead-letters/edit?id=${encodeURIComponent(id)}`
  try {
    return (await requestDaemon({
      url,
      path,
      method: 'POST',
      stop: io.stop,
      untimed: true,
      body,
    })) as EditReport
  } catch (error) {
    if (!(error instanceof GatewayError) || kept === null) throw error
    // What somebody typed is not thrown away with the fault.
    const act = `${error.act} What you wrote is in ${kept}: dead-letters edit ${id} --file ${kept}`
    throw new GatewayError(error.code, { what: error.what, why: error.why, act, cause: error })
  }
}

async function fromFile(file: string, io: CommandIo): Promise<Mended> {
  try {
    return { body: file === '-' ? await text(io.stdin) : await readFile(file, 'utf8'), kept: null }
  } catch (error) {
    throw new GatewayError('INPUT_UNREADABLE', {
      what: `Cannot read ${file}.`,
      why: `${messageOf(error)}.`,
      act: 'Give a file with the mended payload as JSON.',
      cause: error,
    })
  }
}

/** Null where nothing was changed. */
async function inEditor(url: string, id: string, io: CommandIo): Promise<Mended | null> {
  const path = `/control/dead-letters/show?id=${encodeURIComponent(id)}`
  const { deadLetter: letter } = (await requestDaemon({
    url,
    path,
    method: 'POST',
    stop: io.stop,
  })) as DeadLetterEntry
  if (letter.stage !== 'delivery')
    throw new GatewayError('DEAD_LETTER_INVALID', {
      what: `Dead letter ${id} has no payload to edit.`,
      why: 'It is a message that could not be mapped.',
      act: `Mend the mapping, then: telemetry-gateway dead-letters requeue ${id}`,
    })
  const before = `${JSON.stringify(letter.payload, null, 2)}\n`
  const folder = await mkdtemp(join(tmpdir(), 'dead-letter-'))
  const file = join(folder, `${id}.json`)
  await writeFile(file, before, { mode: 0o600 })
  const editor = io.env['VISUAL'] ?? io.env['EDITOR'] ?? 'vi'
  // By the shell, since $EDITOR may have arguments; the file stands beside it and is no part of the text.
  const child = spawn('sh', ['-c', `${editor} "$1"`, 'sh', file], { stdio: 'inherit', env: io.env })
  const [status] = (await once(child, 'exit')) as [number | null]
  const body = await readFile(file, 'utf8')
  if (status === 0 && body !== before) return { body, kept: file }
  await rm(folder, { recursive: true, force: true })
  if (status === 0) return null
  throw new GatewayError('INPUT_UNREADABLE', {
    what: `The editor ${JSON.stringify(editor)} failed with status ${status ?? 'unknown'}.`,
    why: 'It is taken from VISUAL or EDITOR, else it is vi.',
    act: 'Set EDITOR, or give the mended payload with --file.',
  })
}

function textOf({ payloadId, previousPayloadId: was }: EditReport): string {
  if (payloadId === was) return `It goes to the ingestion API again, as payload ${payloadId}.\n`
  return `It goes to the ingestion API as payload ${payloadId}: it is another reading than ${was} was.\n`
}
