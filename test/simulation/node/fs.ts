// fs.ts: node:fs with the simulated disk below /sim. All other paths are those of the real disk. The functions
// with callbacks are not simulated: the daemon uses none.

import {
  copyFileSteps,
  flagsOf,
  listSteps,
  makeTemporarySteps,
  mkdirSteps,
  readFileSteps,
  removeSteps,
  runNow,
  writeAllSteps,
  writeFileSteps,
  type WriteFileOptions,
} from '../machine/file-calls.ts'
import { SimFolderWatch, type WatchOptions } from './folder-watch.ts'
import promisesModule from './fs-promises.ts'
import { positionOf } from './file-handle.ts'
import {
  bytesOf,
  decoded,
  direntOf,
  encodingOf,
  modeOf,
  msOf,
  pathText,
  routed,
  statfsOf,
  theDisk,
  type GivenBytes,
  type GivenMode,
  type GivenPath,
} from './simulated-paths.ts'
import { relative } from 'node:path'

const real = process.getBuiltinModule('node:fs')

type FileOptions = (WriteFileOptions & { encoding?: BufferEncoding | null }) | BufferEncoding | null
type Position = number | bigint | null

const simulated = {
  accessSync: (path: GivenPath, mode = 0) => theDisk().access(pathText(path), mode),
  appendFileSync: (file: GivenPath | number, content: GivenBytes, options?: FileOptions) =>
    written(file, { content, usualFlag: 'a' }, options),
  chmodSync: (path: GivenPath, mode: GivenMode) => theDisk().chmod(pathText(path), modeOf(mode) ?? 0),
  closeSync: (fd: number) => theDisk().close(fd),
  copyFileSync: (from: GivenPath, to: GivenPath, flags = 0) =>
    runNow(copyFileSteps(theDisk(), { from: pathText(from), to: pathText(to) }, flags)),
  existsSync: (path: GivenPath) => theDisk().exists(pathText(path)),
  fchmodSync: (fd: number, mode: GivenMode) => theDisk().fchmod(fd, modeOf(mode) ?? 0),
  fdatasyncSync: (fd: number) => theDisk().sync(fd, 'fdatasync'),
  fstatSync: (fd: number) => theDisk().fstat(fd),
  fsyncSync: (fd: number) => theDisk().sync(fd),
  ftruncateSync: (fd: number, bytes = 0) => theDisk().truncate(fd, bytes),
  linkSync: (from: GivenPath, to: GivenPath) => theDisk().link(pathText(from), pathText(to)),
  lstatSync: (path: GivenPath, options?: StatOptions) => statOf(path, 'lstat', options),
  mkdirSync(path: GivenPath, options?: { recursive?: boolean; mode?: GivenMode } | GivenMode) {
    const { recursive, mode } = typeof options === 'object' && options !== null ? options : { mode: options }
    if (recursive === true) return runNow(mkdirSteps(theDisk(), pathText(path), modeOf(mode)))
    return theDisk().mkdir(pathText(path), modeOf(mode))
  },
  mkdtempSync: (prefix: GivenPath) => runNow(makeTemporarySteps(theDisk(), pathText(prefix))),
  openSync: (path: GivenPath, flags?: string | number, mode?: GivenMode) =>
    theDisk().open(pathText(path), flagsOf(flags), modeOf(mode)),
  readFileSync(file: GivenPath | number, options?: FileOptions) {
    if (typeof file === 'number') return decoded(theDisk().readAll(file), options)
    const path = pathText(file)
    if (theDisk().hasVirtualFile(path)) return decoded(theDisk().virtualContent(path), options)
    return decoded(runNow(readFileSteps(theDisk(), path, optionsOf(options).flag)), options)
  },
  readSync(
    fd: number,
    buffer: NodeJS.ArrayBufferView,
    offset: number | { offset?: number; length?: number; position?: Position } = 0,
    length?: number,
    position?: Position,
  ) {
    const place = typeof offset === 'object' ? offset : { offset, length, position }
    const from = place.offset ?? 0
    const to = place.length === undefined ? undefined : from + place.length
    return theDisk().read(fd, bytesOf(buffer).subarray(from, to), positionOf(place.position))
  },
  readdirSync(path: GivenPath, options?: { withFileTypes?: boolean; recursive?: boolean } | string | null) {
    const { withFileTypes, recursive } = typeof options === 'object' && options !== null ? options : {}
    const top = pathText(path)
    return runNow(listSteps(theDisk(), top, recursive === true)).map(({ parent, name, kind }) =>
      withFileTypes === true ? direntOf(name, kind, parent) : relative(top, `${parent}/${name}`),
    )
  },
  readlinkSync: (path: GivenPath) => theDisk().readlink(pathText(path)),
  realpathSync: (path: GivenPath) => theDisk().realpath(pathText(path)),
  renameSync: (from: GivenPath, to: GivenPath) => theDisk().rename(pathText(from), pathText(to)),
  rmSync: (path: GivenPath, options: { recursive?: boolean; force?: boolean } = {}) =>
    runNow(removeSteps(theDisk(), pathText(path), options)),
  rmdirSync: (path: GivenPath) => theDisk().rmdir(pathText(path)),
  statSync: (path: GivenPath, options?: StatOptions) => statOf(path, 'stat', options),
  statfsSync: (path: GivenPath) => statfsOf(theDisk(), pathText(path)),
  symlinkSync: (target: string, path: GivenPath) => theDisk().symlink(target, pathText(path)),
  unlinkSync: (path: GivenPath) => theDisk().unlink(pathText(path)),
  utimesSync: (path: GivenPath, _accessed: unknown, modified: number | string | Date) =>
    theDisk().setModified(pathText(path), msOf(modified)),
  watch: (path: GivenPath, options?: WatchOptions, listener?: (event: string, name: string) => void) =>
    new SimFolderWatch(theDisk(), pathText(path), { options, listener }),
  writeFileSync: (file: GivenPath | number, content: GivenBytes, options?: FileOptions) =>
    written(file, { content, usualFlag: 'w' }, options),
  writeSync(
    fd: number,
    source: GivenBytes,
    offset?: number | null | { offset?: number; length?: number; position?: Position },
    length?: number | BufferEncoding | null,
    position?: Position,
  ) {
    if (typeof source === 'string') {
      const bytes = bytesOf(source, length as BufferEncoding | null)
      return theDisk().write(fd, bytes, positionOf(offset as number | null))
    }
    const place = typeof offset === 'object' && offset !== null ? offset : { offset, length, position }
    const from = place.offset ?? 0
    const to = from + Number(place.length ?? Infinity)
    return theDisk().write(fd, bytesOf(source).subarray(from, to), positionOf(place.position))
  },
}

type StatOptions = { throwIfNoEntry?: boolean; bigint?: boolean }

function statOf(path: GivenPath, call: 'stat' | 'lstat', options?: StatOptions) {
  if (options?.bigint === true) throw new Error('bigint is not simulated')
  try {
    return theDisk().stat(pathText(path), call)
  } catch (error) {
    if (options?.throwIfNoEntry === false && (error as NodeJS.ErrnoException).code === 'ENOENT')
      return undefined
    throw error
  }
}

function optionsOf(options: FileOptions | undefined): WriteFileOptions {
  return typeof options === 'object' && options !== null ? options : {}
}

function written(
  file: GivenPath | number,
  { content, usualFlag }: { content: GivenBytes; usualFlag: 'w' | 'a' },
  options?: FileOptions,
): void {
  const bytes = bytesOf(content, encodingOf(options))
  if (typeof file === 'number') return runNow(writeAllSteps(theDisk(), file, bytes))
  return runNow(writeFileSteps(theDisk(), { path: pathText(file), bytes, usualFlag }, optionsOf(options)))
}

/** The names that the types of Node do not have. */
type Untyped = 'FileReadStream' | 'FileWriteStream' | 'Utf8Stream' | '_toUnixTimestamp'

const all = routed(real as typeof real & Record<Untyped, unknown>, {
  simulated,
  failed(error) {
    throw error
  },
})
all.promises = promisesModule

export const {
  Dir,
  Dirent,
  FileReadStream,
  FileWriteStream,
  ReadStream,
  Stats,
  Utf8Stream,
  WriteStream,
  _toUnixTimestamp,
  access,
  accessSync,
  appendFile,
  appendFileSync,
  chmod,
  chmodSync,
  chown,
  chownSync,
  close,
  closeSync,
  constants,
  copyFile,
  copyFileSync,
  cp,
  cpSync,
  createReadStream,
  createWriteStream,
  exists,
  existsSync,
  fchmod,
  fchmodSync,
  fchown,
  fchownSync,
  fdatasync,
  fdatasyncSync,
  fstat,
  fstatSync,
  fsync,
  fsyncSync,
  ftruncate,
  ftruncateSync,
  futimes,
  futimesSync,
  glob,
  globSync,
  lchmod,
  lchmodSync,
  lchown,
  lchownSync,
  link,
  linkSync,
  lstat,
  lstatSync,
  lutimes,
  lutimesSync,
  mkdir,
  mkdirSync,
  mkdtemp,
  mkdtempDisposableSync,
  mkdtempSync,
  open,
  openAsBlob,
  openSync,
  opendir,
  opendirSync,
  promises,
  read,
  readFile,
  readFileSync,
  readSync,
  readdir,
  readdirSync,
  readlink,
  readlinkSync,
  readv,
  readvSync,
  realpath,
  realpathSync,
  rename,
  renameSync,
  rm,
  rmSync,
  rmdir,
  rmdirSync,
  stat,
  statSync,
  statfs,
  statfsSync,
  symlink,
  symlinkSync,
  truncate,
  truncateSync,
  unlink,
  unlinkSync,
  unwatchFile,
  utimes,
  utimesSync,
  watch,
  watchFile,
  write,
  writeFile,
  writeFileSync,
  writeSync,
  writev,
  writevSync,
} = all
export default all
export { all as 'module.exports' }
