// waiting-command.ts: `spool waiting`: what in a spool is not delivered. The package asks before it deletes a
// spool. Exit status 0: nothing waits, so the spool may be deleted; 1: something waits, or cannot be read.

import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { Command } from 'commander'
import { codeOf, GatewayError } from '../../std/gateway-error.ts'
import { plural } from '../../std/quantity.ts'
import { withProgress } from '../terminal/progress.ts'
import { printAnswer, type BuildCommand, type CommandIo } from '../terminal/terminal.ts'
import { notes } from '../terminal/text-format.ts'
import { spoolPathOf, type SpoolPathOptions } from './spool-path.ts'

type Waiting = {
  path: string
  payloads: number
  deadLetters: number
  /** In quarantine, or waiting for their expression. */
  messages: number
  /** Values that wait for others to become one payload. */
  openMessages: number
  /** Records that cannot be read, and problems of the files. */
  damaged: number
  /** Databases and files that were set aside; nothing reads them. */
  setAside: readonly string[]
}

export const waitingCommand: BuildCommand = (io, done) =>
  new Command('waiting')
    .description('Say what in a spool is not delivered.')
    .option('--path <dir>', 'spool directory, which no daemon may use')
    .option('--config <file>', 'use spool.path of this config')
    .option('--json', 'print the counts as JSON')
    .addHelpText(
      'after',
      notes('Exit status 1: something waits, or cannot be read. 0: nothing, or no spool.'),
    )
    .action(async (options: SpoolPathOptions & { json?: boolean }) => {
      const waiting = await waitingIn(await spoolPathOf(options, io), io)
      printAnswer(io, options, waiting, waitingText)
      done(waitsIn(waiting).length > 0 ? 1 : 0)
    })

async function waitingIn(path: string, io: CommandIo): Promise<Waiting> {
  const waiting = { path, payloads: 0, deadLetters: 0, messages: 0, openMessages: 0, damaged: 0 }
  // Loaded late: it brings the database.
  const { missingStoreFault, openSalvage } = await import('../../spool/spool.ts')
  const { messageOfStateEntry } = await import('../../mapping/mapping.ts')
  try {
    await withProgress(io, { what: 'Reading the spool' }, async (count) => {
      const salvage = await openSalvage(path, io.stop, count)
      try {
        waiting.damaged = salvage.check.problems.length + salvage.check.problemsHidden
        for await (const found of salvage.entries(io.stop)) {
          if (found.kind === 'payload') waiting.payloads += found.isSettled ? 0 : 1
          else if (found.kind === 'deadLetter') waiting.deadLetters += 1
          else if (found.kind === 'message') waiting.messages += 1
          else if (found.kind === 'unreadable') waiting.damaged += 1
          else if (messageOfStateEntry(found.key, found.value) !== null) waiting.openMessages += 1
        }
      } finally {
        await salvage.close()
      }
    })
  } catch (error) {
    if (!(error instanceof GatewayError) || error.code !== 'SPOOL_MISSING') throw error
    // A store that was moved away may hold anything.
    const fault = await missingStoreFault(path)
    if (fault !== null) throw fault
  }
  return { ...waiting, setAside: await setAsideIn(path) }
}

/** What a repair, a restore or `on_damage: set_aside` left beside the database. */
async function setAsideIn(path: string): Promise<string[]> {
  try {
    const names = await readdir(path)
    return names.filter((name) => /^(store\.|damaged$)/.test(name)).map((name) => join(path, name))
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes(codeOf(error) ?? '')) return []
    throw error
  }
}

function waitsIn({ payloads, deadLetters, messages, openMessages, damaged, setAside }: Waiting): string[] {
  const counts: [number, string][] = [
    [payloads, plural(payloads, 'payload')],
    [deadLetters, plural(deadLetters, 'dead letter')],
    [messages, plural(messages, 'kept message')],
    [openMessages, plural(openMessages, 'open message')],
    [damaged, plural(damaged, 'damaged record')],
  ]
  return [...counts.filter(([count]) => count > 0).map(([, text]) => text), ...setAside]
}

function waitingText(waiting: Waiting): string {
  const waits = waitsIn(waiting)
  if (waits.length === 0) return `Nothing waits in ${waiting.path}.\n`
  return `Not delivered in ${waiting.path}: ${waits.join(', ')}.\n`
}
