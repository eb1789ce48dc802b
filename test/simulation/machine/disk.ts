// disk.ts: the simulated disk: the calls of the system on everything below /sim.
//
// The calls act at once and throw the errors of the system. later() makes them asynchronous: their effect is
// at a moment of virtual time, and there is none if the process ends before. What the end of the process and
// a power cut take:
//
//   processEnds   descriptors, watches, locks, and calls that have not taken effect
//   powerCut      also each write since the last sync of its file, and each entry made, renamed or removed
//                 since the last sync of its directory: kept, lost, or (writes) torn. See inode.ts, power-cut.ts
//
// What is older than `writebackMs` is durable without a sync, as the kernel writes it: this bounds the lists.
// Not simulated: rights of users (all calls are those of root), times and modes that a power cut takes back.

import { posix } from 'node:path'
import { DiskFaults, type EndFault, type Failure, type Stall } from './disk-faults.ts'
import { DiskWatches, type WatchListener } from './disk-watches.ts'
import { DiskWorld } from './disk-world.ts'
import { findInTree, namesOfInodes, type Found } from './directory-tree.ts'
import { FileStats } from './file-stats.ts'
import { blockBytes, type DirectoryNode, type FileNode, type Inode } from './inode.ts'
import { InodeTable, type Capacity } from './inode-table.ts'
import { drawChances, EntryJournal, type EntryChange } from './power-cut.ts'
import { systemError, type CallPlace, type DiskCall } from './system-error.ts'
import type { EpochMs } from '../../../src/std/clock.ts'

export type DiskDeps = {
  now(): EpochMs
  /** For the age of what was not synced, where steps of the clock are simulated. */
  monotonicMs?(): number
  random(): number
  /** Belongs to the running process: its end drops what is scheduled. */
  schedule(delayMs: number, run: () => void): void
}

export type DiskOptions = {
  /** Of each call, drawn between both. */
  latencyMs?: readonly [min: number, max: number]
  writebackMs?: number
  /** As ext4 does: each sync makes all changes of directories durable. */
  fsyncFileSyncsEntry?: boolean
  capacity?: Capacity
}

export type Entry = { name: string; kind: Inode['kind'] }

type OpenFile = {
  node: FileNode | DirectoryNode
  flags: number
  position: number
  /** As it was opened: for faults and watches. */
  path: string
  directory: DirectoryNode
  name: string
}

/** Far above the descriptors of the system. */
export const firstFd = 1 << 20

const { constants } = process.getBuiltinModule('node:fs')
const accessModes = constants.O_RDONLY | constants.O_WRONLY | constants.O_RDWR
const mountedDev = 64_768
const rootDev = 64_512

export function createDisk(deps: DiskDeps, options: DiskOptions = {}): SimDisk {
  return new SimDisk(deps, options)
}

export class SimDisk {
  readonly faults = new DiskFaults()
  /** What an operator, or another program, does on the disk. */
  readonly world = new DiskWorld(this)
  readonly #deps: DiskDeps
  readonly #options: Required<Omit<DiskOptions, 'capacity'>>
  readonly #inodes: InodeTable
  readonly #root: DirectoryNode
  readonly #journal = new EntryJournal()
  readonly #watches: DiskWatches
  readonly #locks = new Map<number, string>()
  readonly #virtual = new Map<string, () => string | Buffer>()
  #open = new Map<number, OpenFile>()
  #nextFd = firstFd

  constructor(deps: DiskDeps, options: DiskOptions) {
    this.#deps = deps
    const { latencyMs = [0.05, 0.05], writebackMs = 30_000, fsyncFileSyncsEntry = false } = options
    this.#options = { latencyMs, writebackMs, fsyncFileSyncsEntry }
    const now = () => deps.now()
    const monotonicMs = () => this.#monotonicMs()
    const capacity = options.capacity ?? { bytes: 100e9, files: 1e6 }
    this.#inodes = new InodeTable({ now, monotonicMs, writebackMs }, capacity)
    this.#watches = new DiskWatches((run) => deps.schedule(this.#latencyMs(), run))
    this.#root = this.#inodes.newDirectory(mountedDev, 0o755)
    this.#root.links = 1
  }

  // Time, faults and ends.

  /** The effect of a call, at a moment of virtual time. `path`: the one that stalls are compared with. */
  later<T>(call: DiskCall, path: string, effect: () => T): Promise<T> {
    return new Promise((resolve, reject) => {
      const run = () => {
        try {
          resolve(effect())
        } catch (error) {
          reject(error)
        }
      }
      this.#deps.schedule(this.#latencyMs(), () => {
        const delayMs = this.faults.delayMs(call, path, run)
        if (delayMs === 0) run()
        else if (delayMs !== null) this.#deps.schedule(delayMs, run)
      })
    })
  }

  /** Counts a call of the simulated database, and throws where a fault strikes it. */
  strike(call: DiskCall, path: string): void {
    this.#strike({ call, path }, path)
  }

  /** Text for the end of a temporary name. */
  randomName(): string {
    const letters = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789'
    return Array.from({ length: 6 }, () => letters[Math.floor(this.#deps.random() * letters.length)]).join('')
  }

  fail(fault: Failure): EndFault {
    return this.faults.fail(fault)
  }

  stall(fault: Stall): EndFault {
    return this.faults.stall(fault, (run) => this.#deps.schedule(0, run))
  }

  setCapacity(capacity: Partial<Capacity>): EndFault {
    const before = this.#inodes.capacity
    this.#inodes.capacity = { ...before, ...capacity }
    return () => {
      this.#inodes.capacity = before
    }
  }

  setReadOnly(isReadOnly: boolean): EndFault {
    const before = this.faults.isReadOnly
    this.faults.isReadOnly = isReadOnly
    return () => {
      this.faults.isReadOnly = before
    }
  }

  /** A bit of the file is another one, on the disk too. The offset is drawn where none is given. */
  flipBit(path: string, offset?: number): EndFault {
    const { body } = this.#fileAt(path)
    if (body.size === 0) return () => undefined
    const at = offset ?? Math.floor(this.#deps.random() * body.size)
    const bit = Math.floor(this.#deps.random() * 8)
    body.flip(at, bit)
    return () => {
      if (at < body.size) body.flip(at, bit)
    }
  }

  get counters(): { calls: Record<string, number>; struck: Record<string, number> } {
    return { calls: Object.fromEntries(this.faults.calls), struck: Object.fromEntries(this.faults.struck) }
  }

  get openDescriptors(): number {
    return this.#open.size
  }

  get usedBytes(): number {
    return this.#inodes.usedBytes
  }

  processEnds(): void {
    const ended = this.#open
    this.#open = new Map()
    for (const { node } of ended.values()) {
      node.opened -= 1
      this.#inodes.releaseUnused(node)
    }
    this.#watches.clear()
    this.#locks.clear()
    this.faults.forgetWaiting()
  }

  switchOff(): void {
    this.processEnds()
    this.#root.entries.clear()
    this.#journal.syncAll()
  }

  powerCut(): void {
    this.processEnds()
    const before = this.#monotonicMs() - this.#options.writebackMs
    const chances = drawChances(this.#deps.random)
    this.#journal.writeBack(before)
    this.#journal.cut(chances)
    const names = namesOfInodes(this.#root)
    for (const [node, links] of names) {
      node.links = links
      if (node.kind !== 'file') continue
      node.body.writeBack(before)
      node.body.cut(chances)
    }
    this.#inodes.recount(names.keys())
  }

  // Calls on paths.

  open(path: string, flags: number, mode = 0o666): number {
    const place: CallPlace = { call: 'open', path }
    this.#strike(place, path)
    const writes = (flags & accessModes) !== constants.O_RDONLY
    const creates = (flags & constants.O_CREAT) !== 0
    const isExclusive = creates && (flags & constants.O_EXCL) !== 0
    const found = this.#find(place, path, !isExclusive && (flags & constants.O_NOFOLLOW) === 0)
    let { node } = found
    if (node === null) {
      if (!creates) throw systemError('ENOENT', place)
      this.#refuseReadOnly(place)
      node = this.#newFile(place, found.directory, mode & ~0o022)
      this.#change([{ directory: found.directory, name: found.name, before: null, after: node }])
    } else if (isExclusive) throw systemError('EEXIST', place)
    if (node.kind === 'link') throw systemError('ELOOP', place)
    if (node.kind === 'socket') throw systemError('ENXIO', place)
    if (node.kind === 'directory' && (writes || creates)) throw systemError('EISDIR', place)
    if (node.kind === 'file' && (flags & constants.O_DIRECTORY) !== 0) throw systemError('ENOTDIR', place)
    if (writes) this.#refuseReadOnly(place)
    if (writes && node.kind === 'file' && (flags & constants.O_TRUNC) !== 0) this.#inodes.resize(node, 0)
    node.opened += 1
    const fd = this.#nextFd
    this.#nextFd += 1
    this.#open.set(fd, { node, flags, position: 0, path, directory: found.directory, name: found.name })
    return fd
  }

  stat(path: string, call: 'stat' | 'lstat' = 'stat'): FileStats {
    return new FileStats(this.#existing({ call, path }, path, call === 'stat').node)
  }

  exists(path: string): boolean {
    try {
      return this.#find({ call: 'access', path }, path, true).node !== null
    } catch {
      return false
    }
  }

  access(path: string, mode: number): void {
    const place: CallPlace = { call: 'access', path }
    const { node } = this.#existing(place, path, true)
    if ((mode & constants.X_OK) !== 0 && (node.mode & 0o111) === 0) throw systemError('EACCES', place)
    if ((mode & constants.W_OK) !== 0) this.#refuseReadOnly(place)
  }

  mkdir(path: string, mode = 0o777, call: 'mkdir' | 'mkdtemp' = 'mkdir'): void {
    const place: CallPlace = { call, path }
    this.#strike(place, path)
    const found = this.#find(place, path, false)
    if (found.node !== null) throw systemError('EEXIST', place)
    this.#claimFile(place)
    const node = this.#inodes.newDirectory(found.directory.dev, mode & ~0o022)
    this.#change([{ directory: found.directory, name: found.name, before: null, after: node }])
  }

  rmdir(path: string): void {
    const place: CallPlace = { call: 'rmdir', path }
    const found = this.#existing(place, path, false)
    if (found.node.kind !== 'directory') throw systemError('ENOTDIR', place)
    if (found.node.entries.size > 0) throw systemError('ENOTEMPTY', place)
    this.#refuseMount(place, found)
    this.#change([{ directory: found.directory, name: found.name, before: found.node, after: null }])
  }

  unlink(path: string): void {
    const place: CallPlace = { call: 'unlink', path }
    const found = this.#existing(place, path, false)
    if (found.node.kind === 'directory') throw systemError('EISDIR', place)
    this.#change([{ directory: found.directory, name: found.name, before: found.node, after: null }])
  }

  rename(path: string, dest: string): void {
    const place: CallPlace = { call: 'rename', path, dest }
    const from = this.#existing(place, path, false)
    const to = this.#find(place, dest, false)
    if (from.node === to.node) return
    this.#refuseMount(place, from)
    this.#refuseMount(place, to)
    if (from.directory.dev !== to.directory.dev) throw systemError('EXDEV', place)
    if (from.node.kind === 'directory') {
      if (to.node !== null && to.node.kind !== 'directory') throw systemError('ENOTDIR', place)
      if (to.realPath.startsWith(`${from.realPath}/`)) throw systemError('EINVAL', place)
    } else if (to.node?.kind === 'directory') throw systemError('EISDIR', place)
    if (to.node?.kind === 'directory' && to.node.entries.size > 0) throw systemError('ENOTEMPTY', place)
    this.#change([
      { directory: from.directory, name: from.name, before: from.node, after: null },
      { directory: to.directory, name: to.name, before: to.node, after: from.node },
    ])
  }

  link(path: string, dest: string): void {
    const place: CallPlace = { call: 'link', path, dest }
    const from = this.#existing(place, path, false)
    const to = this.#find(place, dest, false)
    if (to.node !== null) throw systemError('EEXIST', place)
    if (from.node.kind === 'directory') throw systemError('EPERM', place)
    if (from.node.dev !== to.directory.dev) throw systemError('EXDEV', place)
    this.#change([{ directory: to.directory, name: to.name, before: null, after: from.node }])
  }

  symlink(target: string, dest: string): void {
    const place: CallPlace = { call: 'symlink', path: target, dest }
    this.#strike(place, dest)
    const { directory, name, node } = this.#find(place, dest, false)
    if (node !== null) throw systemError('EEXIST', place)
    this.#claimFile(place)
    const after = this.#inodes.newLink(directory, target)
    this.#change([{ directory, name, before: null, after }])
  }

  readlink(path: string): string {
    const place: CallPlace = { call: 'readlink', path }
    const { node } = this.#existing(place, path, false)
    if (node.kind !== 'link') throw systemError('EINVAL', place)
    return node.target
  }

  realpath(path: string): string {
    return this.#existing({ call: 'realpath', path }, path, true).realPath
  }

  list(path: string, call: 'scandir' | 'opendir' = 'scandir'): Entry[] {
    const place: CallPlace = { call, path }
    const { node } = this.#existing(place, path, true)
    if (node.kind !== 'directory') throw systemError('ENOTDIR', place)
    return Array.from(node.entries, ([name, { kind }]) => ({ name, kind }))
  }

  chmod(path: string, mode: number): void {
    this.#inodes.change(this.#existing({ call: 'chmod', path }, path, true).node, { mode: mode & 0o7777 })
  }

  lchown(path: string, uid: number, gid: number): void {
    this.#inodes.change(this.#existing({ call: 'lchown', path }, path, false).node, { uid, gid })
  }

  setModified(path: string, mtimeMs: number): void {
    this.#inodes.change(this.#existing({ call: 'utime', path }, path, true).node, { mtimeMs })
  }

  statfs(path: string): { bavail: number; bfree: number; blocks: number; files: number; ffree: number } {
    this.#existing({ call: 'statfs', path }, path, true)
    const free = Math.floor(this.#inodes.freeBytes / blockBytes)
    const { bytes, files } = this.#inodes.capacity
    const ffree = this.#inodes.freeFiles
    return { bavail: free, bfree: free, blocks: Math.floor(bytes / blockBytes), files, ffree }
  }

  /** `bytesMax`: for a copy that a kill cuts. */
  copyFile(path: string, dest: string, flags: number, bytesMax = Infinity): void {
    const place: CallPlace = { call: 'copyfile', path, dest }
    const { node } = this.#existing(place, path, true)
    if (node.kind === 'directory') throw systemError('EISDIR', place)
    if (node.kind !== 'file') throw systemError('ENXIO', place)
    const to = this.#find(place, dest, true)
    if (to.node !== null && (flags & constants.COPYFILE_EXCL) !== 0) throw systemError('EEXIST', place)
    if (to.node !== null && to.node.kind !== 'file') throw systemError('EISDIR', place)
    if (to.node === node) return
    const target = to.node ?? this.#newFile(place, to.directory, node.mode)
    if (to.node === null)
      this.#change([{ directory: to.directory, name: to.name, before: null, after: target }])
    this.#inodes.resize(target, 0)
    const bytes = node.body.slice(0, bytesMax)
    if (this.#inodes.write(target, 0, bytes) < bytes.length) throw this.faults.refuse('ENOSPC', place)
    this.#watches.changed(to.directory, to.name, target)
  }

  watch(path: string, listener: WatchListener): { close(): void } {
    const { node, name } = this.#existing({ call: 'watch', path }, path, true)
    return this.#watches.add(node, name, listener)
  }

  // Calls on descriptors.

  close(fd: number): void {
    const { node } = this.#open.get(fd) ?? {}
    try {
      this.#opened(fd, 'close')
    } finally {
      // Also where it fails: Linux gives the descriptor back first.
      if (node !== undefined && this.#open.delete(fd)) {
        node.opened -= 1
        this.#inodes.releaseUnused(node)
      }
    }
  }

  fstat(fd: number): FileStats {
    return new FileStats(this.#opened(fd, 'fstat').node)
  }

  /** The path under which it was opened. */
  pathOf(fd: number): string {
    return this.#open.get(fd)?.path ?? ''
  }

  read(fd: number, into: Uint8Array, position: number | null): number {
    const open = this.#opened(fd, 'read')
    if (open.node.kind !== 'file') throw systemError('EISDIR', { call: 'read' })
    if ((open.flags & accessModes) === constants.O_WRONLY) throw systemError('EBADF', { call: 'read' })
    const from = position ?? open.position
    const bytes = open.node.body.read(into, from)
    if (position === null) open.position += bytes
    return bytes
  }

  /** Everything from the position of the descriptor on. */
  readAll(fd: number): Buffer {
    const { node, position } = this.#open.get(fd) ?? {}
    const bytes = Buffer.alloc(node?.kind === 'file' ? Math.max(0, node.body.size - (position ?? 0)) : 0)
    this.read(fd, bytes, null)
    return bytes
  }

  /** Bytes written: fewer than given where the disk is full. */
  write(fd: number, source: Uint8Array, position: number | null): number {
    const open = this.#opened(fd, 'write')
    const { node } = open
    if (node.kind !== 'file' || (open.flags & accessModes) === constants.O_RDONLY)
      throw systemError('EBADF', { call: 'write' })
    const isAppending = (open.flags & constants.O_APPEND) !== 0
    const at = isAppending ? node.body.size : (position ?? open.position)
    const written = this.#inodes.write(node, at, source)
    if (written === 0 && source.length > 0) throw this.faults.refuse('ENOSPC', { call: 'write' })
    if (position === null || isAppending) open.position = at + written
    this.#watches.changed(open.directory, open.name, node)
    return written
  }

  truncate(fd: number, size: number): void {
    const { node, flags, directory, name } = this.#opened(fd, 'ftruncate')
    if (node.kind !== 'file' || (flags & accessModes) === constants.O_RDONLY)
      throw systemError('EINVAL', { call: 'ftruncate' })
    this.#inodes.resize(node, size)
    this.#watches.changed(directory, name, node)
  }

  fchmod(fd: number, mode: number): void {
    this.#inodes.change(this.#opened(fd, 'fchmod').node, { mode: mode & 0o7777 })
  }

  setModifiedOpen(fd: number, mtimeMs: number): void {
    this.#inodes.change(this.#opened(fd, 'futime').node, { mtimeMs })
  }

  sync(fd: number, call: 'fsync' | 'fdatasync' = 'fsync'): void {
    const { node } = this.#open.get(fd) ?? {}
    try {
      this.#opened(fd, call)
    } catch (error) {
      if (node?.kind === 'file') node.body.dropUnsynced()
      throw error
    }
    if (this.#options.fsyncFileSyncsEntry) this.#journal.syncAll()
    if (node?.kind === 'directory') this.#journal.sync(node)
    else node?.body.sync()
  }

  // For other parts of the simulated machine.

  /** The database at `path` has synced its log: its directory, and those above, are durable. */
  databaseSynced(path: string): void {
    if (this.#options.fsyncFileSyncsEntry) return this.#journal.syncAll()
    for (let at = path; at !== '/'; at = posix.dirname(at)) {
      const found = this.#find({ call: 'fsync', path: at }, at, true)
      this.#journal.sync(found.directory)
      if (found.node?.kind === 'directory') this.#journal.sync(found.node)
    }
  }

  /** A socket that the simulated network listens on. Throws EADDRINUSE where the name is taken. */
  makeSocket(path: string, call: DiskCall = 'open'): void {
    const place: CallPlace = { call, path }
    const { directory, name, node } = this.#find(place, path, false)
    if (node !== null) throw systemError('EADDRINUSE', place)
    this.#refuseReadOnly(place)
    this.#claimFile(place)
    const after = this.#inodes.newSocket(directory)
    this.#change([{ directory, name, before: null, after }])
  }

  /** Stays the same while its path changes or shows another one. Without names (`links`) it is removed. */
  directoryAt(path: string): DirectoryNode {
    const place: CallPlace = { call: 'opendir', path }
    const { node } = this.#find(place, path, true)
    if (node?.kind !== 'directory') throw systemError(node === null ? 'ENOENT' : 'ENOTDIR', place)
    return node
  }

  /** The object of a directory, whatever its path was when it was attached. */
  attachment(path: string): unknown {
    return this.directoryAt(path).attachment
  }

  attach(path: string, value: unknown): void {
    this.directoryAt(path).attachment = value
  }

  /** Says how much the attached object takes. False, and nothing changes, where the disk has no room. */
  reserve(directory: string | DirectoryNode, bytes: number): boolean {
    return this.#inodes.reserve(
      typeof directory === 'string' ? this.directoryAt(directory) : directory,
      bytes,
    )
  }

  /** The lock of a file, as fcntl() gives it: null while another owner has it. Any release ends it. */
  lock(path: string, owner = 'daemon'): (() => void) | null {
    const { ino } = this.#existing({ call: 'open', path }, path, true).node
    if ((this.#locks.get(ino) ?? owner) !== owner) return null
    this.#locks.set(ino, owner)
    return () => {
      if (this.#locks.get(ino) === owner) this.#locks.delete(ino)
    }
  }

  /** A single file elsewhere, such as one below /proc. It wins over the real one. */
  virtualFile(path: string, content: () => string | Buffer): void {
    this.#virtual.set(path, content)
  }

  hasVirtualFile(path: string): boolean {
    return this.#virtual.has(path)
  }

  virtualContent(path: string): Buffer {
    return Buffer.from(this.#virtual.get(path)?.() ?? '')
  }

  /** Acts of the operator meet no faults and no limits, and are durable. */
  asOperator<T>(act: () => T): T {
    const before = this.#inodes.isOperator
    this.#inodes.isOperator = true
    try {
      return act()
    } finally {
      this.#inodes.isOperator = before
    }
  }

  /** The file system mounted at `path` is gone, as after `umount -l`: another directory is there. */
  hide(path: string): void {
    const directory = this.directoryAt(path)
    directory.underneath ??= this.#inodes.newDirectory(rootDev, directory.mode)
    directory.covering = directory.underneath
    directory.covering.links = 1
  }

  unhide(path: string): void {
    const place: CallPlace = { call: 'open', path }
    const { directory, name } = this.#find(place, path, false)
    const entry = directory.entries.get(name)
    if (entry?.kind === 'directory') entry.covering = null
  }

  // The rules below the calls.

  #monotonicMs(): number {
    return this.#deps.monotonicMs?.() ?? this.#deps.now()
  }

  #latencyMs(): number {
    const [min, max] = this.#options.latencyMs
    return min === max ? min : min + this.#deps.random() * (max - min)
  }

  #strike(place: CallPlace, path: string): void {
    if (!this.#inodes.isOperator) this.faults.strike(place, path)
  }

  #refuseReadOnly(place: CallPlace): void {
    if (this.faults.isReadOnly && !this.#inodes.isOperator) throw this.faults.refuse('EROFS', place)
  }

  #refuseMount(place: CallPlace, { directory, name }: Found): void {
    const entry = directory.entries.get(name)
    const isMount = entry?.kind === 'directory' && entry.underneath !== null
    if (name === '' || isMount) throw systemError('EBUSY', place)
  }

  #find(place: CallPlace, path: string, follow: boolean): Found {
    return findInTree(this.#root, path, { place, follow })
  }

  #existing(place: CallPlace, path: string, follow: boolean): Found & { node: Inode } {
    this.#strike(place, path)
    const found = this.#find(place, path, follow)
    if (found.node === null) throw systemError('ENOENT', place)
    return { ...found, node: found.node }
  }

  #fileAt(path: string): FileNode {
    const { node } = this.#find({ call: 'open', path }, path, true)
    if (node?.kind !== 'file') throw systemError('ENOENT', { call: 'open', path })
    return node
  }

  #opened(fd: number, call: DiskCall): OpenFile {
    const open = this.#open.get(fd)
    if (open === undefined) throw systemError('EBADF', { call })
    this.#strike({ call }, open.path)
    return open
  }

  #change(changes: readonly EntryChange[]): void {
    const at = this.#monotonicMs()
    const now = this.#deps.now()
    this.#journal.writeBack(at - this.#options.writebackMs)
    if (this.#inodes.isOperator) this.#journal.addDurable(changes)
    else this.#journal.add(at, changes)
    for (const { directory, name, before, after } of changes) {
      directory.mtimeMs = now
      directory.ctimeMs = now
      if (after !== null) after.links += 1
      if (before !== null) before.links -= 1
      for (const node of [before, after]) if (node !== null) node.ctimeMs = now
      this.#watches.renamed(directory, name, before)
    }
    for (const { before } of changes) if (before !== null) this.#inodes.releaseUnused(before)
  }

  #claimFile(place: CallPlace): void {
    if (!this.#inodes.hasFile) throw this.faults.refuse('ENOSPC', place)
  }

  #newFile(place: CallPlace, directory: DirectoryNode, mode: number): FileNode {
    this.#claimFile(place)
    return this.#inodes.newFile(directory, mode)
  }
}
