// dead-letters-edit-command.ts: `dead-letters edit`: corrects the payload of a dead letter, in an editor or
// from a file, and sends it.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import type { Command } from 'commander'
import { readUtf8, utf8Text } from '../../std/file-system/utf8-text.ts'
import { GatewayError, unreadable } from '../../std/gateway-error.ts'
import type { EditReport } from '../../dead-letters/dead-letters.ts'
import type { DeadLetterEntry } from '../../spool/spool.ts'
import { requestByOptions, type DaemonOptions } from '../daemon-client/daemon-options.ts'
import { operationNamed } from '../../ops/ops.ts'
import { printOperation, type GivenParameters } from '../operation-command.ts'
import type { CommandIo, ExitStatus } from '../terminal/terminal.ts'

type Options = DaemonOptions & { file?: string }
/** `savedAs` is the file of the editor. */
type Edited = { body: string; savedAs: string | null }

export function withEditOptions(command: Command): Command {
  return command.option(
    '--file <file>',
    'take the corrected payload from this file and not from $EDITOR; - is stdin',
  )
}

export async function editInstead(
  options: Options,
  { params }: GivenParameters,
  io: CommandIo,
): Promise<ExitStatus> {
  const id = params.get('id') ?? ''
  const edited =
    options.file === undefined ? await fromEditor(id, options, io) : await fromFile(options.file, io)
  if (edited === null) {
    io.stdout.write(
      'Nothing was changed, so nothing is sent. To send the payload as it is: dead-letters requeue.\n',
    )
    return 0
  }
  const report = await send(id, edited, options, io)
  if (edited.savedAs !== null) await rm(dirname(edited.savedAs), { recursive: true, force: true })
  printOperation(operationNamed('dead-letters/edit'), report, { values: {}, options, io })
  return 0
}

async function send(
  id: string,
  { body, savedAs }: Edited,
  options: Options,
  io: CommandIo,
): Promise<EditReport> {
  const path = `/control/dead-letters/edit?id=${encodeURIComponent(id)}`
  try {
    const request = { path, method: 'POST', timeoutMs: Infinity, body } as const
    return (await requestByOptions(options, io, request)) as EditReport
  } catch (error) {
    if (!(error instanceof GatewayError) || savedAs === null) throw error
    const { code, what, why } = error
    const act = `${error.act} Your text is in ${savedAs}: dead-letters edit ${id} --file ${savedAs}`
    throw new GatewayError(code, { what, why, act, cause: error })
  }
}

async function fromFile(file: string, io: CommandIo): Promise<Edited> {
  try {
    return { body: file === '-' ? utf8Text(await buffer(io.stdin)) : await readUtf8(file), savedAs: null }
  } catch (error) {
    throw unreadable(file, error, 'Give a file with the corrected payload as JSON.')
  }
}

/** Null where the text was not changed. */
async function fromEditor(id: string, options: Options, io: CommandIo): Promise<Edited | null> {
  const path = `/control/dead-letters/show?id=${encodeURIComponent(id)}`
  const entry = (await requestByOptions(options, io, { path, method: 'POST' })) as DeadLetterEntry
  const { stage, payload } = entry.deadLetter
  if (stage !== 'delivery')
    throw new GatewayError('DEAD_LETTER_INVALID', {
      what: `Dead letter ${id} has no payload to edit.`,
      why: 'It is a message that could not be mapped.',
      act: `Correct the mapping, then: telemetry-gateway dead-letters requeue ${id}`,
    })
  const before = `${JSON.stringify(payload, null, 2)}\n`
  const folder = await mkdtemp(join(tmpdir(), 'dead-letter-'))
  const file = join(folder, `${id}.json`)
  await writeFile(file, before, { mode: 0o600 })
  const editor = io.env['VISUAL'] ?? io.env['EDITOR'] ?? 'vi'
  // Through the shell, because $EDITOR may have arguments. The file name is passed beside the command text.
  const child = spawn('sh', ['-c', `${editor} "$1"`, 'sh', file], { stdio: 'inherit', env: io.env })
  const [status] = (await once(child, 'exit')) as [number | null]
  const { body } = await fromFile(file, io)
  if (status === 0 && body !== before) return { body, savedAs: file }
  await rm(folder, { recursive: true, force: true })
  if (status === 0) return null
  throw new GatewayError('INPUT_UNREADABLE', {
    what: `The editor ${JSON.stringify(editor)} failed with status ${status ?? 'unknown'}.`,
    why: 'The editor is the environment variable VISUAL or EDITOR, else vi.',
    act: 'Set EDITOR, or give the corrected payload with --file.',
  })
}
