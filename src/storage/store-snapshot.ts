// store-snapshot.ts: the files of a database as they are at one moment, in another directory.
//
// Tables never change, so hard links keep them. LevelDB's own thread may replace tables meanwhile: so the
// manifest is read before and after the links. If it is the same, every table that it names was there. Logs
// are copied. The caller makes sure that nothing is written meanwhile.

import { copyFileSync, linkSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { link, mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { codeOf } from '../std/gateway-error.ts'
import { syncDirectory } from './disk.ts'
import { openLevelFiles } from './level-files/level-files.ts'
import { copyDurably } from './level-repair/set-aside.ts'

/** A compaction replaces the manifest's tables now and then, never many times within milliseconds. */
const attemptsMax = 50

/**
 * Puts the files of a database into `stage`, a new directory on the same file system. Synchronous, so that no
 * write starts meanwhile. Throws errors of the file system, such as EPERM where it has no hard links.
 */
export function stageStore(storePath: string, stage: string): void {
  for (let attempt = 1; ; attempt += 1) {
    rmSync(stage, { recursive: true, force: true })
    mkdirSync(stage, { recursive: true })
    const before = manifestIn(storePath)
    for (const name of readdirSync(storePath)) {
      if (/^\d+\.(ldb|sst)$/.test(name)) unlessGone(() => linkSync(join(storePath, name), join(stage, name)))
      else if (/^\d+\.log$/.test(name))
        unlessGone(() => copyFileSync(join(storePath, name), join(stage, name)))
    }
    const after = manifestIn(storePath)
    if (before.name === after.name && before.content.equals(after.content)) {
      writeFileSync(join(stage, before.name), before.content)
      writeFileSync(join(stage, 'CURRENT'), `${before.name}\n`)
      return
    }
    if (attempt === attemptsMax) throw new Error('the tables of the database change all the time')
  }
}

function manifestIn(storePath: string): { name: string; content: Buffer } {
  const name = readFileSync(join(storePath, 'CURRENT'), 'utf8').trim()
  return { name, content: readFileSync(join(storePath, name)) }
}

/** A compaction deletes what the manifest does not name any more. */
function unlessGone(work: () => void): void {
  try {
    work()
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error
  }
}

export type Transferred = { tables: number; linked: number; bytes: number }

/**
 * Puts the live files of a database that nothing uses into `to`, durably: tables by hard links where that is
 * possible, else all by copies. Rejects with errors of the file system, and when `signal` aborts.
 */
export async function transferStore(from: string, to: string, signal: AbortSignal): Promise<Transferred> {
  const files = await openLevelFiles(from)
  const { tables, logs, manifest } = files
  await files.close()
  await mkdir(to, { recursive: true })
  const done: Transferred = { tables: tables.length, linked: 0, bytes: 0 }
  for (const { name, bytes } of tables) {
    signal.throwIfAborted()
    done.bytes += bytes
    if (await linked(join(from, name), join(to, name))) done.linked += 1
    else await copyDurably(join(from, name), join(to, name))
  }
  for (const { name, bytes } of logs) {
    done.bytes += bytes
    await copyDurably(join(from, name), join(to, name))
  }
  if (manifest !== null) await copyDurably(join(from, manifest.name), join(to, manifest.name))
  // The last one: without it the directory is no database.
  await copyDurably(join(from, 'CURRENT'), join(to, 'CURRENT'))
  await syncDirectory(to)
  return done
}

/** Bytes of the live files. */
export async function storeBytes(path: string): Promise<number> {
  const { tables, logs, close } = await openLevelFiles(path)
  await close()
  return [...tables, ...logs].reduce((sum, { bytes }) => sum + bytes, 0)
}

async function linked(file: string, to: string): Promise<boolean> {
  try {
    await link(file, to)
    return true
  } catch {
    // Another file system, or one without hard links.
    return false
  }
}
