// file-calls.ts: the functions of node:fs that make several calls of the system, as steps. The synchronous
// module runs the steps at once; the one with promises runs each at a moment of virtual time, so that the
// process can end between two of them, as a file that writeFile() has emptied and not yet written.

import { posix } from 'node:path'
import type { SimDisk } from './disk.ts'
import { directoryRefused, systemError, type DiskCall } from './system-error.ts'

/** One call of the system. */
export type Step<T> = { call: DiskCall; path: string; effect: () => T }
export type Steps<T> = Generator<Step<unknown>, T, unknown>

export function runNow<T>(steps: Steps<T>): T {
  let next = steps.next()
  while (next.done !== true) {
    let result: unknown
    try {
      result = next.value.effect()
    } catch (error) {
      next = steps.throw(error)
      continue
    }
    next = steps.next(result)
  }
  return next.value
}

export async function runLater<T>(disk: SimDisk, steps: Steps<T>, signal?: AbortSignal | null): Promise<T> {
  throwIfAborted(signal)
  let next = steps.next()
  while (next.done !== true) {
    const { call, path, effect } = next.value
    let result: unknown
    try {
      result = await disk.later(call, path, effect)
      throwIfAborted(signal)
    } catch (error) {
      next = steps.throw(error)
      continue
    }
    next = steps.next(result)
  }
  return next.value
}

function throwIfAborted(signal: AbortSignal | null | undefined): void {
  if (signal?.aborted !== true) return
  const error = new Error('The operation was aborted', { cause: signal.reason })
  throw Object.assign(error, { name: 'AbortError', code: 'ABORT_ERR' })
}

/** Typed: the result of `yield*` is that of the effect. */
function* one<T>(call: DiskCall, path: string, effect: () => T): Steps<T> {
  return (yield { call, path, effect }) as T
}

/** As Node writes in pieces. */
const pieceBytes = 512 * 1024

const { constants } = process.getBuiltinModule('node:fs')
const flagBits: Readonly<Record<string, number>> = {
  r: constants.O_RDONLY,
  rs: constants.O_RDONLY | constants.O_SYNC,
  'r+': constants.O_RDWR,
  'rs+': constants.O_RDWR | constants.O_SYNC,
  w: constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC,
  wx: constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | constants.O_EXCL,
  'w+': constants.O_RDWR | constants.O_CREAT | constants.O_TRUNC,
  'wx+': constants.O_RDWR | constants.O_CREAT | constants.O_TRUNC | constants.O_EXCL,
  a: constants.O_WRONLY | constants.O_CREAT | constants.O_APPEND,
  ax: constants.O_WRONLY | constants.O_CREAT | constants.O_APPEND | constants.O_EXCL,
  'a+': constants.O_RDWR | constants.O_CREAT | constants.O_APPEND,
  'ax+': constants.O_RDWR | constants.O_CREAT | constants.O_APPEND | constants.O_EXCL,
}

export function flagsOf(flags: string | number | null | undefined, usual = 'r'): number {
  if (typeof flags === 'number') return flags
  const bits = flagBits[flags ?? usual]
  if (bits === undefined) throw new TypeError(`The flags ${String(flags)} are not simulated.`)
  return bits
}

export type WriteFileOptions = { flag?: string | number; mode?: number; flush?: boolean }

export function* readFileSteps(disk: SimDisk, path: string, flag?: string | number): Steps<Buffer> {
  const fd = yield* one('open', path, () => disk.open(path, flagsOf(flag)))
  return yield* thenClosed(disk, fd, () => one('read', path, () => disk.readAll(fd)))
}

export function* writeFileSteps(
  disk: SimDisk,
  { path, bytes, usualFlag }: { path: string; bytes: Uint8Array; usualFlag: 'w' | 'a' },
  { flag, mode, flush }: WriteFileOptions,
): Steps<void> {
  const fd = yield* one('open', path, () => disk.open(path, flagsOf(flag, usualFlag), mode))
  yield* thenClosed(disk, fd, function* () {
    yield* writeAllSteps(disk, fd, bytes)
    if (flush === true) yield* one('fsync', path, () => disk.sync(fd))
  })
}

/** In the state of the descriptor: from its position on. */
export function* writeAllSteps(disk: SimDisk, fd: number, bytes: Uint8Array): Steps<void> {
  for (let at = 0; at < bytes.length;) {
    const piece = bytes.subarray(at, at + pieceBytes)
    at += yield* one('write', disk.pathOf(fd), () => disk.write(fd, piece, null))
  }
}

function* thenClosed<T>(disk: SimDisk, fd: number, work: () => Steps<T>): Steps<T> {
  try {
    return yield* work()
  } finally {
    disk.close(fd)
  }
}

/** The first directory that it made; undefined where all were there. */
export function* mkdirSteps(disk: SimDisk, path: string, mode?: number): Steps<string | undefined> {
  const missing: string[] = []
  for (let at = posix.resolve(path); !disk.exists(at); at = posix.dirname(at)) missing.unshift(at)
  for (const directory of missing)
    yield* one('mkdir', directory, () => {
      // Another call can have made it meanwhile.
      if (!disk.exists(directory)) disk.mkdir(directory, mode)
    })
  if (missing.length > 0) return missing[0]
  yield* one('stat', path, () => {
    if (!disk.stat(path).isDirectory()) throw systemError('EEXIST', { call: 'mkdir', path })
  })
  return undefined
}

export function* removeSteps(
  disk: SimDisk,
  path: string,
  { recursive, force }: { recursive?: boolean | undefined; force?: boolean | undefined },
): Steps<void> {
  const found = yield* one('lstat', path, () => ifThere(() => disk.stat(path, 'lstat'), force === true))
  if (found === undefined) return
  if (!found.isDirectory()) {
    yield* one('unlink', path, () => ifThere(() => disk.unlink(path), force === true))
    return
  }
  if (recursive !== true) throw directoryRefused(path)
  yield* removeDirectorySteps(disk, path)
}

function* removeDirectorySteps(disk: SimDisk, path: string): Steps<void> {
  for (const { name, kind } of (yield* one('scandir', path, () => ifThere(() => disk.list(path)))) ?? []) {
    const entry = posix.join(path, name)
    if (kind === 'directory') yield* removeDirectorySteps(disk, entry)
    else yield* one('unlink', entry, () => ifThere(() => disk.unlink(entry)))
  }
  yield* one('rmdir', path, () => ifThere(() => disk.rmdir(path)))
}

function ifThere<T>(act: () => T, isForced = true): T | undefined {
  try {
    return act()
  } catch (error) {
    if (isForced && (error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

/** Paths below a directory, relative to it, those nearer first. Without `recursive` its own names only. */
export function* listSteps(
  disk: SimDisk,
  path: string,
  isRecursive: boolean,
): Steps<{ parent: string; name: string; kind: string }[]> {
  const found: { parent: string; name: string; kind: string }[] = []
  const open = [path]
  for (let parent = open.shift(); parent !== undefined; parent = open.shift()) {
    const at = parent
    // libuv sorts the names, unlike the system.
    const entries = yield* one('scandir', at, () => disk.list(at))
    for (const { name, kind } of entries.sort((one, other) => (one.name < other.name ? -1 : 1))) {
      found.push({ parent: at, name, kind })
      if (isRecursive && kind === 'directory') open.push(posix.join(at, name))
    }
  }
  return found
}

/** The copy is there and empty before it has its content. */
export function* copyFileSteps(
  disk: SimDisk,
  { from, to }: { from: string; to: string },
  flags: number,
): Steps<void> {
  yield* one('copyfile', to, () => disk.copyFile(from, to, flags, 0))
  yield* one('copyfile', to, () => disk.copyFile(from, to, flags & ~constants.COPYFILE_EXCL))
}

export function* makeTemporarySteps(disk: SimDisk, prefix: string): Steps<string> {
  return yield* one('mkdtemp', prefix, () => {
    const path = `${prefix}${disk.randomName()}`
    disk.mkdir(path, 0o700, 'mkdtemp')
    return path
  })
}
