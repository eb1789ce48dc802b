// system-error.ts: errors of system calls as Node makes them, and the names of the calls.

import { getSystemErrorMap } from 'node:util'

/**
 * The names of the calls in the errors of Node. `db-...`: calls of the simulated database, which consults the
 * faults of the disk too.
 */
export type DiskCall =
  | 'access'
  | 'chmod'
  | 'close'
  | 'copyfile'
  | 'fchmod'
  | 'fdatasync'
  | 'fstat'
  | 'fsync'
  | 'ftruncate'
  | 'futime'
  | 'lchown'
  | 'link'
  | 'lstat'
  | 'mkdir'
  | 'mkdtemp'
  | 'open'
  | 'opendir'
  | 'read'
  | 'readlink'
  | 'realpath'
  | 'rename'
  | 'rmdir'
  | 'scandir'
  | 'stat'
  | 'statfs'
  | 'symlink'
  | 'unlink'
  | 'utime'
  | 'watch'
  | 'write'
  | `db-${string}`

/** What an error says of a call: calls on a descriptor name no path. */
export type CallPlace = { call: DiskCall; path?: string; dest?: string }

export type SystemError = NodeJS.ErrnoException & { dest?: string }

const known = new Map([...getSystemErrorMap()].map(([errno, [code, text]]) => [code, { errno, text }]))

export function systemError(code: string, { call, path, dest }: CallPlace): SystemError {
  const { errno, text } = known.get(code) ?? { errno: -1, text: 'unknown error' }
  const target = dest === undefined ? '' : ` -> '${dest}'`
  const place = path === undefined ? '' : ` '${path}'${target}`
  return Object.assign(new Error(`${code}: ${text}, ${call}${place}`), {
    errno,
    code,
    syscall: call,
    ...(path !== undefined && { path }),
    ...(dest !== undefined && { dest }),
  })
}

/** What rm() says of a directory without `recursive`. */
export function directoryRefused(path: string): SystemError {
  const what = `Path is a directory: rm returned EISDIR (is a directory) ${path}`
  return Object.assign(new Error(what), {
    name: 'SystemError',
    code: 'ERR_FS_EISDIR',
    errno: 21,
    syscall: 'rm',
    path,
    info: { code: 'EISDIR', message: 'is a directory', path, syscall: 'rm', errno: 21 },
  })
}
