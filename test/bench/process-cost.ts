// process-cost.ts: what a process has used so far, as Linux counts it: processor time, context switches, bytes
// written; and the bytes that its disk has written, where the disk is one of its own.

import { execFile } from 'node:child_process'
import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { makeFolder } from './bench.ts'

export type Cost = {
  atMs: number
  cpuMs: number
  /** Of all threads. One that waits and goes on has switched once, so they are the wake-ups of an idle process. */
  switches: number
  /** Bytes of the pages that it made dirty. */
  writtenBytes: number
  /** Bytes that it gave to write(). */
  wcharBytes: number
  /** Bytes that the loop device of the spool has written; null where the spool is on a disk with others. */
  deviceBytes: number | null
}

export async function costOf(pid: number, device: string | null = null): Promise<Cost> {
  let cpuMs = 0
  let switches = 0
  for (const thread of await readdir(`/proc/${pid}/task`)) {
    const path = `/proc/${pid}/task/${thread}`
    cpuMs += Number((await readFile(`${path}/schedstat`, 'utf8')).split(' ')[0]) / 1e6
    const status = await readFile(`${path}/status`, 'utf8')
    for (const [, count] of status.matchAll(/^(?:non)?voluntary_ctxt_switches:\s+(\d+)$/gm))
      switches += Number(count)
  }
  const io = await readFile(`/proc/${pid}/io`, 'utf8')
  const ioOf = (name: string) => Number(new RegExp(`^${name}: (\\d+)$`, 'm').exec(io)?.[1])
  return {
    atMs: performance.now(),
    cpuMs,
    switches,
    writtenBytes: ioOf('write_bytes'),
    wcharBytes: ioOf('wchar'),
    deviceBytes: device === null ? null : await deviceBytes(device),
  }
}

/** What was used between two moments. */
export function costBetween(from: Cost, to: Cost): Omit<Cost, 'atMs'> & { tookMs: number } {
  return {
    tookMs: to.atMs - from.atMs,
    cpuMs: to.cpuMs - from.cpuMs,
    switches: to.switches - from.switches,
    writtenBytes: to.writtenBytes - from.writtenBytes,
    wcharBytes: to.wcharBytes - from.wcharBytes,
    deviceBytes:
      to.deviceBytes === null || from.deviceBytes === null ? null : to.deviceBytes - from.deviceBytes,
  }
}

const sectorBytes = 512

async function deviceBytes(device: string): Promise<number> {
  const counts = (await readFile(`/sys/block/${device}/stat`, 'utf8')).trim().split(/\s+/)
  return Number(counts[6]) * sectorBytes
}

const run = promisify(execFile)
const imageBytes = '2G'

/**
 * A folder on a file system of its own, on a loop device, so that what the disk writes can be counted. Without the
 * right to make one it is a plain folder, and `device` is null.
 */
export async function makeDisk(
  dir: string,
): Promise<AsyncDisposable & { path: string; device: string | null }> {
  await using made = new AsyncDisposableStack()
  const { path: folder } = made.use(await makeFolder(dir))
  const [image, path] = [join(folder, 'image'), join(folder, 'disk')]
  try {
    await run('truncate', ['-s', imageBytes, image])
    await run('mkfs.ext4', ['-q', '-m', '0', '-E', 'lazy_itable_init=0,lazy_journal_init=0', image])
    await run('mkdir', [path])
    await run('mount', ['-o', 'loop', image, path])
  } catch {
    const owned = made.move()
    return { path: folder, device: null, [Symbol.asyncDispose]: () => owned.disposeAsync() }
  }
  made.defer(async () => void (await run('umount', [path])))
  const { stdout } = await run('findmnt', ['-n', '-o', 'SOURCE', path])
  const device = stdout.trim().replace('/dev/', '')
  await stat(`/sys/block/${device}/stat`)
  const owned = made.move()
  return { path, device, [Symbol.asyncDispose]: () => owned.disposeAsync() }
}
