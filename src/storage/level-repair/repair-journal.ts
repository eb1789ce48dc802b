// repair-journal.ts: what a repair in progress has begun, in a file beside the database. All its files have a
// number of the journal or a larger one, so the next repair knows the files of an interrupted one.
//
//   CURRENT as before            interrupted before the switch: its files are deleted, the repair begins anew
//   CURRENT names its manifest   switched: only what follows the switch is left to do
//   anything else                another program has opened the database since: the journal means nothing

import { open, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { codeOf } from '../../std/gateway-error.ts'
import { syncDirectory } from '../disk.ts'
import { manifestName } from '../level-files/manifest.ts'
import { listFiles } from '../level-files/store-directory.ts'
import { openRegular, unreadableText } from '../../std/file-system/regular-file.ts'

export type RepairJournal = {
  startedAt: string
  /** Directory of the files that were set aside. */
  asidePath: string
  /** Content of CURRENT before; null where there was none. */
  current: string | null
  firstNumber: number
  /** A directory to move into `asidePath` behind the switch; null if there is none. */
  moved: string | null
}

export type InterruptedRepair = RepairJournal & { isSwitched: boolean }

/** Null where no repair was interrupted. */
export async function readJournal(file: string, path: string): Promise<InterruptedRepair | null> {
  const text = await textOf(file)
  const journal = text === null ? null : parse(text)
  if (journal === null) return null
  const current = await textOf(join(path, 'CURRENT'))
  const isSwitched = current === `${manifestName(journal.firstNumber)}\n`
  return isSwitched || current === journal.current ? { ...journal, isSwitched } : null
}

/** Durable when it resolves. */
export async function writeJournal(file: string, journal: RepairJournal): Promise<void> {
  const draft = await open(`${file}.new`, 'w', 0o600)
  try {
    await draft.writeFile(`${JSON.stringify(journal)}\n`)
    await draft.sync()
  } finally {
    await draft.close()
  }
  await rename(`${file}.new`, file)
  await syncDirectory(dirname(file))
}

export async function removeJournal(file: string): Promise<void> {
  await rm(file, { force: true })
  await syncDirectory(dirname(file))
}

/** Deletes the files of a repair that was interrupted before its switch. */
export async function removeLeftovers(path: string, { firstNumber }: RepairJournal): Promise<void> {
  const { tables, logs, manifests } = await listFiles(path, Infinity)
  for (const { number, name } of [...tables, ...logs]) if (number >= firstNumber) await rm(join(path, name))
  for (const number of manifests) if (number >= firstNumber) await rm(join(path, manifestName(number)))
  await syncDirectory(path)
}

/** The content of CURRENT; null where it cannot be read. */
export function currentText(path: string): Promise<string | null> {
  return textOf(join(path, 'CURRENT'))
}

async function textOf(file: string): Promise<string | null> {
  try {
    const opened = await openRegular(file)
    try {
      return await opened.readFile('latin1')
    } finally {
      await opened.close()
    }
  } catch (error) {
    if (codeOf(error) === 'ENOENT' || unreadableText(error) !== null) return null
    throw error
  }
}

/** Null for a file that is no journal: it is written by rename, so only damage makes one. */
function parse(text: string): RepairJournal | null {
  try {
    const journal = JSON.parse(text) as Partial<RepairJournal> | null
    const { startedAt, asidePath, current, firstNumber, moved } = journal ?? {}
    if (typeof startedAt !== 'string' || typeof asidePath !== 'string') return null
    if (typeof firstNumber !== 'number' || current === undefined) return null
    return { startedAt, asidePath, current, firstNumber, moved: moved ?? null }
  } catch {
    return null
  }
}
