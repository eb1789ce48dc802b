// disk-errors.ts: the words, the code and the cure for each way in which the directory of a database cannot
// be used. The cause is the code of a system call, or the text that LevelDB makes of it.

import { codeOf, GatewayError, messageOf, type ErrorCode } from '../std/gateway-error.ts'

type Explanation = { code: ErrorCode; why: string; act: string }

const permission: Explanation = {
  code: 'SPOOL_PERMISSION',
  why: 'The user of the gateway may not write there',
  act:
    'Give the directory to the user of the gateway (chown), or set spool.path to a directory that it may ' +
    'write. Under systemd, ReadWritePaths or StateDirectory must contain it.',
}

const notDirectory: Explanation = {
  code: 'SPOOL_NOT_DIRECTORY',
  why: 'A file is in the place of a directory of this path',
  act: 'Move that file away, or correct spool.path.',
}

const invalidPath: Explanation = {
  code: 'SPOOL_PATH_INVALID',
  why: 'The file system cannot have a directory of this name',
  act: 'Set spool.path to a shorter path without circular links.',
}

const notFile: Explanation = {
  code: 'SPOOL_UNWRITABLE',
  why: 'Something else is in the place of a file of the gateway',
  act: 'Move what is there out of the directory. The gateway tries again automatically.',
}

const diskFull: Explanation = {
  code: 'SPOOL_DISK_FULL',
  why: 'The file system has no free space, or no free inode',
  act:
    'See which with `df -h` and `df -i`. Free space on that file system, or delete files there, and no file of ' +
    'the spool. The gateway tries again automatically.',
}

const noDescriptors: Explanation = {
  code: 'SPOOL_UNWRITABLE',
  why: 'No file descriptor is left to open its files',
  act:
    'Raise the limit of open files (LimitNOFILE of the unit, fs.file-max of the machine), or use fewer ' +
    'connections. The gateway tries again automatically.',
}

const explanations: Record<string, Explanation> = {
  EROFS: {
    code: 'SPOOL_READ_ONLY',
    why: 'The file system is read-only',
    act:
      'Check `dmesg` and `mount`: Linux mounts a file system read-only after errors of the disk. Repair it and ' +
      'mount it writable, or correct spool.path.',
  },
  EACCES: permission,
  EPERM: permission,
  ENOENT: {
    code: 'SPOOL_PATH_MISSING',
    why: 'A directory above it does not exist and cannot be created',
    act: 'Check spool.path, and that its file system is mounted.',
  },
  ENOTDIR: notDirectory,
  EEXIST: notDirectory,
  EISDIR: notFile,
  ENXIO: notFile,
  ENOTREG: notFile,
  ENAMETOOLONG: invalidPath,
  ELOOP: invalidPath,
  EMFILE: noDescriptors,
  ENFILE: noDescriptors,
  ENOSPC: diskFull,
  EDQUOT: diskFull,
}

/** What LevelDB makes of the codes: it reports the text of strerror(3). */
const levelTexts: readonly [text: RegExp, code: string][] = [
  [/Read-only file system/, 'EROFS'],
  [/Permission denied|Operation not permitted/, 'EACCES'],
  [/Not a directory/, 'ENOTDIR'],
  [/Is a directory/, 'EISDIR'],
  [/File name too long/, 'ENAMETOOLONG'],
  [/Too many levels of symbolic links/, 'ELOOP'],
  [/No space left on device|Disk quota exceeded/, 'ENOSPC'],
  [/Too many open files/, 'EMFILE'],
]

/** The code of the system call that failed, also where LevelDB reports only its text. */
export function systemCodeOf(error: unknown): string | undefined {
  const code = codeOf(error)
  if (code !== undefined && code in explanations) return code
  const message = messageOf(error)
  return levelTexts.find(([text]) => text.test(message))?.[1] ?? code
}

/** The disk has no space for this write. */
export function isDiskFull(error: unknown): boolean {
  const code = systemCodeOf(error)
  return code === 'ENOSPC' || code === 'EDQUOT' || code === 'SPOOL_DISK_FULL'
}

/** Why the directory at `path` cannot be created or written. `what` says which step failed. */
export function explainDirectory(what: string, error: unknown): GatewayError {
  if (error instanceof GatewayError) return error
  const { code, why, act } = explanations[systemCodeOf(error) ?? ''] ?? {
    code: 'SPOOL_UNWRITABLE',
    why: 'The file system reports an error',
    act: 'Check the disk (dmesg, SMART), and that the gateway may write to the directory.',
  }
  return new GatewayError(code, { what, why: `${why}: ${messageOf(error)}.`, act, cause: error })
}
