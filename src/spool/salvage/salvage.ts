// salvage.ts: everything that can be read from a spool that nobody uses, damaged or not; and the plain readings of one
// that only rests: its dead letters, and a check of all its records.
//
//   copy of the files -> open -> scan -> (a part cannot be read: a second copy, repaired, where it shows more)
//                          '-> (cannot be opened: repaired)
//
// Salvage works on copies alone, so that the damaged files stay for whoever knows more. What LevelDB puts together again
// can hold payloads that were delivered before, where the record of their deletion was lost: they have their old payloadId.
// A chunk whose checksum is wrong is read as far as its frames make sense; such payloads are marked, since a flipped
// bit may be a digit of theirs.

import { copyFile, mkdir, readdir, rm, stat, statfs, symlink } from 'node:fs/promises'
import { constants } from 'node:fs'
import { join, resolve } from 'node:path'
import { codeOf, GatewayError, messageOf } from '../../std/gateway-error.ts'
import { formatSize } from '../../std/quantity.ts'
import { openExistingStore, openLevelStore, repairStore, type Store } from '../../storage/storage.ts'
import { letterIdOf, letterKeyOf, table, tableRange } from '../chunk-log/key-layout.ts'
import { letterRecord } from '../chunk-log/record-codec.ts'
import { createCheck, type SpoolCheck } from './spool-check.ts'
import { createSorting, type Salvaged } from './record-sorting.ts'
import { scan } from './damage-scan.ts'
import type { DeadLetterEntry, DeadLetterFilter, Spool } from '../spool.ts'

const everything = { gte: Buffer.from([0]), lt: Buffer.from([255]) }

/** A table file that is missing, or cut short, is as good as damaged. */
function isDamage(error: unknown): boolean {
  return ['LEVEL_CORRUPTION', 'LEVEL_IO_ERROR', 'LEVEL_NOT_FOUND'].includes(codeOf(error) ?? '')
}

/** A spool that no daemon uses. */
export type RestingSpool = Pick<Spool, 'deadLetters' | 'deadLetter'> & {
  check(signal: AbortSignal): Promise<SpoolCheck>
  close(): Promise<void>
}

/**
 * Opens a spool as the daemon would, without taking anything in or changing a record. Rejects with SPOOL_MISSING,
 * SPOOL_LOCKED or SPOOL_DAMAGED.
 */
export async function openRestingSpool(path: string): Promise<RestingSpool> {
  const store = await openExistingStore(await storeIn(path))
  return {
    deadLetters: (filter) => lettersOf(store, filter),
    async deadLetter(id) {
      if (!/^[0-9a-f]{32}$/.test(id)) return null
      const letter = letterRecord.decode(await store.get(letterKeyOf(id)))
      return letter === null ? null : { id, deadLetter: letter }
    },
    async check(signal) {
      const check = createCheck()
      for await (const page of scan(store, everything, isDamage)) {
        if (signal.aborted) throw stoppedFault()
        if (page.kind === 'gap') check.skip(page.from, messageOf(page.why))
        else for (const [key, value] of page.entries) check.see(key, value)
      }
      return check.finish()
    },
    close: () => store.close(),
  }
}

async function* lettersOf(store: Store, filter: DeadLetterFilter): AsyncGenerator<DeadLetterEntry> {
  let left = filter.limit
  for await (const page of scan(store, tableRange(table.deadLetters), isDamage)) {
    if (page.kind === 'gap') continue
    for (const [key, value] of page.entries) {
      const letter = letterRecord.decode(value)
      if (letter === null || (filter.stage ?? letter.stage) !== letter.stage) continue
      if ((filter.reason ?? letter.reason) !== letter.reason) continue
      if (left <= 0) return
      left -= 1
      yield { id: letterIdOf(key), deadLetter: letter }
    }
  }
}

export type Salvage = {
  /** What had to be done to read it at all, and what does not add up in it; for the report. */
  readonly steps: readonly string[]
  readonly problems: readonly string[]
  entries(signal: AbortSignal): AsyncGenerator<Salvaged>
  /** Closes the copy and deletes it. */
  close(): Promise<void>
}

/** `workPath` is a directory for the copies, made and deleted here. Rejects as openRestingSpool does. */
export async function openSalvage(path: string, workPath: string): Promise<Salvage> {
  const from = await storeIn(path)
  try {
    await refuseLocked(from, workPath)
    return await openCopy(from, workPath)
  } catch (error) {
    await rm(workPath, { recursive: true, force: true })
    throw error
  }
}

async function openCopy(from: string, workPath: string): Promise<Salvage> {
  const steps: string[] = []
  const first = join(workPath, 'copy')
  await copyStore(from, first)
  const opened = await openOrRepair(first, steps)
  let { store } = opened
  const { check, records } = await lookThrough(store)
  const problems = [...check.problems]
  if (!check.ok && !opened.repaired) {
    const repaired = await repairedCopy(from, join(workPath, 'repaired'), steps)
    const shown = repaired === null ? null : await lookThrough(repaired)
    const better = shown !== null && shown.records > records
    await (better ? store : repaired)?.close()
    if (better && repaired !== null) {
      store = repaired
      problems.push(...shown.check.problems)
    }
    const how = better ? 'is read instead' : 'shows no more and is left'
    if (shown !== null)
      steps.push(`A repaired copy has ${shown.records} records and the plain one ${records}: it ${how}.`)
  }
  return {
    steps,
    problems,
    entries: (signal) => entriesOf(store, signal),
    async close() {
      await store.close()
      await rm(workPath, { recursive: true, force: true })
    },
  }
}

/** Null where it cannot be repaired: the plain copy is there still. */
async function repairedCopy(from: string, to: string, steps: string[]): Promise<Store | null> {
  await copyStore(from, to)
  try {
    await repairStore(to)
    return await openExistingStore(to)
  } catch (error) {
    steps.push(`A second copy could not be repaired: ${messageOf(error)}`)
    return null
  }
}

async function openOrRepair(path: string, steps: string[]): Promise<{ store: Store; repaired: boolean }> {
  try {
    return { store: await openExistingStore(path), repaired: false }
  } catch (error) {
    steps.push(`The database could not be opened (${messageOf(error)}); a copy was repaired.`)
    await repairStore(path)
    return { store: await openExistingStore(path), repaired: true }
  }
}

type Seen = { records: number; check: SpoolCheck }

async function lookThrough(store: Store): Promise<Seen> {
  const check = createCheck()
  let records = 0
  for await (const page of scan(store, everything, isDamage)) {
    if (page.kind === 'gap') {
      check.skip(page.from, messageOf(page.why))
      continue
    }
    for (const [key, value] of page.entries) check.see(key, value)
    records += page.entries.length
  }
  return { records, check: check.finish() }
}

async function* entriesOf(store: Store, signal: AbortSignal): AsyncGenerator<Salvaged> {
  const sorting = createSorting()
  // The lanes stand before the chunks, so whose payloads they are is known by then.
  for await (const page of scan(store, everything, isDamage)) {
    if (signal.aborted) throw stoppedFault()
    if (page.kind === 'gap') {
      const { from, why } = page
      yield {
        kind: 'unreadable',
        key: from.toString('hex'),
        why: `cannot be read: ${messageOf(why)}`,
        raw: null,
      }
      continue
    }
    for (const [key, value] of page.entries) yield* sorting.sort(key, value)
  }
}

// ------------------------------------------------------------------ files

/** The directory of the database: that of a spool, or the database itself. Rejects with SPOOL_MISSING. */
async function storeIn(path: string): Promise<string> {
  for (const candidate of [join(path, 'store'), path]) {
    const names = await readdir(candidate).catch((error: unknown) => {
      if (['ENOENT', 'ENOTDIR'].includes(codeOf(error) ?? '')) return []
      throw unreadable(path, error)
    })
    if (names.some((name) => /^(CURRENT|MANIFEST-.*|\d+\.(ldb|sst|log))$/.test(name))) return candidate
  }
  throw new GatewayError('SPOOL_MISSING', {
    what: `There is no spool at ${path}.`,
    why: 'The directory is missing or holds no database.',
    act: 'Give the directory of spool.path, or the config with --config.',
  })
}

function stoppedFault(): GatewayError {
  return new GatewayError('SPOOL_CLOSED', {
    what: 'The spool was not read to its end.',
    why: 'Somebody ended the command.',
    act: 'Nothing was changed in the spool. Start it again.',
  })
}

function unreadable(path: string, error: unknown): GatewayError {
  return new GatewayError('SPOOL_UNWRITABLE', {
    what: `Cannot read the spool at ${path}.`,
    why: `${messageOf(error)}.`,
    act: 'Run this as the user of the gateway, or as root.',
    cause: error,
  })
}

/**
 * LevelDB locks the file LOCK. To open the database, only to see, would change it; so an empty one beside the copies is
 * opened, whose LOCK is that file. Only for a process of its own: to close the file gives up the lock of whoever in the same process
 * holds it.
 */
async function refuseLocked(path: string, workPath: string): Promise<void> {
  const lock = join(path, 'LOCK')
  if ((await stat(lock).catch(() => null)) === null) return
  const decoy = join(workPath, 'lock')
  await mkdir(decoy, { recursive: true })
  await symlink(resolve(lock), join(decoy, 'LOCK'))
  try {
    await (await openLevelStore(decoy)).close()
  } catch (error) {
    if (!(error instanceof GatewayError) || error.code !== 'SPOOL_LOCKED') throw error
    throw new GatewayError('SPOOL_LOCKED', {
      what: `Cannot salvage the spool at ${path}.`,
      why: 'A process uses it, so its files change while they are copied.',
      act: 'Stop the gateway first (`systemctl stop telemetry-gateway`).',
      cause: error,
    })
  } finally {
    await rm(decoy, { recursive: true, force: true })
  }
}

async function copyStore(from: string, to: string): Promise<void> {
  await mkdir(to, { recursive: true })
  const names: string[] = []
  let bytes = 0
  for (const entry of await readdir(from, { withFileTypes: true })) {
    if (!entry.isFile() || entry.name === 'LOCK') continue
    names.push(entry.name)
    bytes += (await stat(join(from, entry.name))).size
  }
  const { bavail, bsize } = await statfs(to)
  if (bavail * bsize < bytes * roomShare)
    throw new GatewayError('OUTPUT_UNWRITABLE', {
      what: `There is not enough room for a copy of the spool at ${to}.`,
      why: `The copy needs ${formatSize(bytes)}, and what is read from it as much again.`,
      act: 'Give --to on a file system with more room.',
    })
  for (const name of names)
    await copyFile(join(from, name), join(to, name), constants.COPYFILE_FICLONE).catch((error: unknown) => {
      // A sector that is bad for the disk itself: the other files are worth more than to stop here.
      if (codeOf(error) !== 'EIO') throw unreadable(from, error)
    })
}

/** The copy, and what it is unpacked to. */
const roomShare = 1.5
