// set-aside.ts: keeps files by hard links in another directory of the same file system; where links are not
// possible, by copies.

import { constants } from 'node:fs'
import { copyFile, link, lstat, mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { codeOf } from '../../std/gateway-error.ts'
import { syncDirectory } from '../disk.ts'
import { unreadableText } from '../../std/file-system/regular-file.ts'

/** The file under another name. A name that exists is left as it is: an interrupted repair made it. */
export async function linkOrCopy(file: string, to: string): Promise<void> {
  try {
    await link(file, to)
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return
    await copyDurably(file, to)
  }
}

/** Under its name only when it is complete. Rejects with EIO where the disk cannot read the file. */
export async function copyDurably(file: string, to: string): Promise<void> {
  const draft = `${to}.part`
  await copyFile(file, draft, constants.COPYFILE_FICLONE)
  const copy = await open(draft)
  try {
    await copy.sync()
  } finally {
    await copy.close()
  }
  await rename(draft, to)
}

/**
 * Links files of a directory into another one. Those that do not exist are left out. What is no file is
 * moved: a directory in the place of CURRENT cannot be replaced.
 */
export async function setFilesAside(path: string, names: Iterable<string>, to: string): Promise<void> {
  await mkdir(to, { recursive: true })
  for (const name of names) {
    try {
      if (await isNoFile(join(path, name))) await rename(join(path, name), join(to, name))
      else await linkOrCopy(join(path, name), join(to, name))
    } catch (error) {
      // A file of which the disk reads nothing.
      if (codeOf(error) !== 'ENOENT' && unreadableText(error) === null) throw error
    }
  }
  await syncDirectory(path)
  await syncDirectory(to)
  await syncDirectory(dirname(to))
}

/** Also a link to nothing that can be read. */
async function isNoFile(file: string): Promise<boolean> {
  if ((await lstat(file)).isSymbolicLink()) return !(await stat(file).catch(() => null))?.isFile()
  return !(await lstat(file)).isFile()
}

/** True if files of a directory can be linked. */
export async function canLink(path: string): Promise<boolean> {
  const probe = join(path, 'link-probe')
  const other = join(path, 'link-probe-2')
  try {
    await rm(other, { force: true })
    await (await open(probe, 'w')).close()
    await link(probe, other)
    return true
  } catch {
    return false
  } finally {
    await rm(probe, { force: true })
    await rm(other, { force: true })
  }
}

/** Copies all files of a directory, durably. Files of which the disk reads nothing are left out. */
export async function copyFiles(from: string, to: string): Promise<void> {
  for (const entry of await readdir(from, { withFileTypes: true })) {
    if (!entry.isFile() || entry.name === 'LOCK') continue
    await copyDurably(join(from, entry.name), join(to, entry.name)).catch((error: unknown) => {
      if (codeOf(error) !== 'EIO') throw error
    })
  }
  await syncDirectory(to)
}
