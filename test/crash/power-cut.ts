// power-cut.ts: power cuts at the level of files. kill -9 does not show a missing fsync, because the page
// cache survives the process. So every fsync of the daemon is recorded with the size of its file
// (fsync-recorder.c). After signal 9 each file of the spool is cut back to what was synced; a file that was
// never synced is empty.
//
// Limit: a file that was created, renamed or deleted stays so, whether or not its directory was synced.

import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { readdir, readFile, stat, truncate } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

export type Power = {
  /** For the environment of the daemon. */
  env: Record<string, string>
  /** Truncates every file below `path`; the daemon must have ended. Returns the number of bytes lost. */
  cut(path: string): Promise<number>
}

export type PowerSetup = { kind: 'ready'; power: Power } | { kind: 'unavailable'; why: string }

/** Compiles the recorder into `folder` and checks that it records. */
export async function preparePower(folder: string): Promise<PowerSetup> {
  const record = join(folder, 'synced')
  const env = { LD_PRELOAD: '', FSYNC_RECORD: record }
  try {
    env.LD_PRELOAD = await compileRecorder(folder)
    await tryOut(join(folder, 'tried'), env)
  } catch (error) {
    return { kind: 'unavailable', why: `the recorder of fsync does not work here: ${String(error)}` }
  }
  const sizes = await syncedSizes(record)
  const { dev, ino } = await stat(join(folder, 'tried'), { bigint: true })
  if (sizes.get(`${dev} ${ino}`) !== 5)
    return { kind: 'unavailable', why: 'the recorder of fsync is loaded and sees nothing' }
  return { kind: 'ready', power: { env, cut: (path) => cutBack(path, record) } }
}

/** Resolves with the path of the library. */
export async function compileRecorder(folder: string): Promise<string> {
  const library = join(folder, 'fsync-recorder.so')
  const source = join(import.meta.dirname, 'fsync-recorder.c')
  await run('cc', ['-shared', '-fPIC', '-O2', '-Wall', '-o', library, source, '-ldl'])
  return library
}

/** Five bytes that are synced and one that is not, by a process like the daemon's. */
async function tryOut(path: string, env: Record<string, string>): Promise<void> {
  const script = `const fs = require('node:fs'); const fd = fs.openSync(process.argv[1], 'w')
    fs.writeSync(fd, '12345'); fs.fdatasyncSync(fd); fs.writeSync(fd, '6')`
  await run(process.execPath, ['-e', script, path], { env: { ...process.env, ...env } })
}

async function syncedSizes(record: string): Promise<Map<string, number>> {
  const sizes = new Map<string, number>()
  for (const line of (await readFile(record, 'latin1')).split('\n')) {
    const [dev, ino, size] = line.split(' ')
    if (size !== undefined) sizes.set(`${dev} ${ino}`, Math.max(0, Number(size)))
  }
  return sizes
}

async function cutBack(path: string, record: string): Promise<number> {
  // The daemon was killed before it made one.
  if (!existsSync(path)) return 0
  const sizes = await syncedSizes(record)
  let lost = 0
  for (const entry of await readdir(path, { withFileTypes: true, recursive: true })) {
    if (!entry.isFile()) continue
    const file = join(entry.parentPath, entry.name)
    const { dev, ino, size } = await stat(file, { bigint: true })
    const keep = Math.min(Number(size), sizes.get(`${dev} ${ino}`) ?? 0)
    lost += Number(size) - keep
    if (keep < Number(size)) await truncate(file, keep)
  }
  return lost
}
