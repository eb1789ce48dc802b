// fs-promises.ts: node:fs/promises with the simulated disk below /sim. All other paths are those of the real
// disk.

import {
  copyFileSteps,
  flagsOf,
  listSteps,
  makeTemporarySteps,
  mkdirSteps,
  readFileSteps,
  removeSteps,
  runLater,
  writeFileSteps,
  type WriteFileOptions,
} from '../machine/file-calls.ts'
import type { DiskCall } from '../machine/system-error.ts'
import { DirectoryReader } from './directory-reader.ts'
import { SimFileHandle } from './file-handle.ts'
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
  type GivenEncoding,
  type GivenMode,
  type GivenPath,
} from './simulated-paths.ts'
import { relative } from 'node:path'

const real = process.getBuiltinModule('node:fs/promises')

type GivenFile = GivenPath | SimFileHandle
type FileOptions = (WriteFileOptions & { encoding?: BufferEncoding | null; signal?: AbortSignal }) | null

const simulated = {
  access: (path: GivenPath, mode = 0) =>
    later('access', pathText(path), (text) => theDisk().access(text, mode)),
  appendFile: (file: GivenFile, content: GivenBytes, options?: FileOptions | BufferEncoding) =>
    written(file, { content, usualFlag: 'a' }, options),
  chmod: (path: GivenPath, mode: GivenMode) =>
    later('chmod', pathText(path), (text) => theDisk().chmod(text, modeOf(mode) ?? 0)),
  copyFile: (from: GivenPath, to: GivenPath, flags = 0) =>
    runLater(theDisk(), copyFileSteps(theDisk(), { from: pathText(from), to: pathText(to) }, flags)),
  lchown: (path: GivenPath, uid: number, gid: number) =>
    later('lchown', pathText(path), (text) => theDisk().lchown(text, uid, gid)),
  link: (from: GivenPath, to: GivenPath) =>
    later('link', pathText(from), (text) => theDisk().link(text, pathText(to))),
  lstat: (path: GivenPath) => later('lstat', pathText(path), (text) => theDisk().stat(text, 'lstat')),
  async mkdir(path: GivenPath, options?: { recursive?: boolean; mode?: GivenMode } | GivenMode) {
    const text = pathText(path)
    const { recursive, mode } = typeof options === 'object' && options !== null ? options : { mode: options }
    if (recursive === true) return runLater(theDisk(), mkdirSteps(theDisk(), text, modeOf(mode)))
    return later('mkdir', text, () => theDisk().mkdir(text, modeOf(mode)))
  },
  mkdtemp: (prefix: GivenPath) => runLater(theDisk(), makeTemporarySteps(theDisk(), pathText(prefix))),
  open: (path: GivenPath, flags?: string | number, mode?: GivenMode) =>
    later('open', pathText(path), (text) => {
      return new SimFileHandle(theDisk(), theDisk().open(text, flagsOf(flags), modeOf(mode)))
    }),
  opendir: (path: GivenPath) =>
    later('opendir', pathText(path), (text) => {
      theDisk().list(text, 'opendir')
      return new DirectoryReader(text)
    }),
  async readFile(file: GivenFile, options?: FileOptions | BufferEncoding) {
    if (file instanceof SimFileHandle) return file.readFile(options)
    const path = pathText(file)
    const { flag, signal } = fileOptions(options)
    const virtual = theDisk().hasVirtualFile(path)
    if (virtual) return later('read', path, () => decoded(theDisk().virtualContent(path), options))
    return decoded(await runLater(theDisk(), readFileSteps(theDisk(), path, flag), signal), options)
  },
  async readdir(path: GivenPath, options?: { withFileTypes?: boolean; recursive?: boolean } | string | null) {
    const { withFileTypes, recursive } = typeof options === 'object' && options !== null ? options : {}
    const top = pathText(path)
    const entries = await runLater(theDisk(), listSteps(theDisk(), top, recursive === true))
    return entries.map(({ parent, name, kind }) =>
      withFileTypes === true ? direntOf(name, kind, parent) : relative(top, `${parent}/${name}`),
    )
  },
  readlink: (path: GivenPath) => later('readlink', pathText(path), (text) => theDisk().readlink(text)),
  realpath: (path: GivenPath) => later('realpath', pathText(path), (text) => theDisk().realpath(text)),
  rename: (from: GivenPath, to: GivenPath) =>
    later('rename', pathText(from), (text) => theDisk().rename(text, pathText(to))),
  rm: (path: GivenPath, options: { recursive?: boolean; force?: boolean } = {}) =>
    runLater(theDisk(), removeSteps(theDisk(), pathText(path), options)),
  rmdir: (path: GivenPath) => later('rmdir', pathText(path), (text) => theDisk().rmdir(text)),
  stat: (path: GivenPath) => later('stat', pathText(path), (text) => theDisk().stat(text)),
  statfs: (path: GivenPath) => later('statfs', pathText(path), (text) => statfsOf(theDisk(), text)),
  symlink: (target: string, path: GivenPath) =>
    later('symlink', pathText(path), (text) => theDisk().symlink(target, text)),
  async truncate(path: GivenPath, bytes = 0) {
    await using file = await simulated.open(path, 'r+')
    await file.truncate(bytes)
  },
  unlink: (path: GivenPath) => later('unlink', pathText(path), (text) => theDisk().unlink(text)),
  utimes: (path: GivenPath, _accessed: unknown, modified: number | string | Date) =>
    later('utime', pathText(path), (text) => theDisk().setModified(text, msOf(modified))),
  writeFile: (file: GivenFile, content: GivenBytes, options?: FileOptions | BufferEncoding) =>
    written(file, { content, usualFlag: 'w' }, options),
}

function later<T>(call: DiskCall, path: string, effect: (path: string) => T): Promise<T> {
  return theDisk().later(call, path, () => effect(path))
}

function fileOptions(options: FileOptions | BufferEncoding | undefined): NonNullable<FileOptions> {
  return typeof options === 'object' && options !== null ? options : {}
}

async function written(
  file: GivenFile,
  { content, usualFlag }: { content: GivenBytes; usualFlag: 'w' | 'a' },
  options?: FileOptions | BufferEncoding,
): Promise<void> {
  const { signal, ...own } = fileOptions(options)
  const encoding: GivenEncoding = options
  if (file instanceof SimFileHandle) return file.writeFile(content, own)
  const bytes = bytesOf(content, encodingOf(encoding))
  const steps = writeFileSteps(theDisk(), { path: pathText(file), bytes, usualFlag }, own)
  return runLater(theDisk(), steps, signal)
}

const all = routed(real, {
  simulated,
  async failed(error) {
    throw error
  },
})

export const {
  access,
  appendFile,
  chmod,
  chown,
  constants,
  copyFile,
  cp,
  glob,
  lchmod,
  lchown,
  link,
  lstat,
  lutimes,
  mkdir,
  mkdtemp,
  mkdtempDisposable,
  open,
  opendir,
  readFile,
  readdir,
  readlink,
  realpath,
  rename,
  rm,
  rmdir,
  stat,
  statfs,
  symlink,
  truncate,
  unlink,
  utimes,
  watch,
  writeFile,
} = all
export default all
export { all as 'module.exports' }
