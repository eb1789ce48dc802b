// inode-table.ts: makes the inodes of the simulated disk, changes files, and counts the room that they take.

import { FileBody, type DirectoryNode, type FileNode, type Inode, type SocketNode } from './inode.ts'
import type { EpochMs } from '../../../src/std/clock.ts'

export type Capacity = { bytes: number; files: number }

type TableDeps = { now(): EpochMs; monotonicMs(): number; writebackMs: number }

const [uid, gid] = [process.getuid?.() ?? 0, process.getgid?.() ?? 0]

export class InodeTable {
  capacity: Capacity
  /** Another program acts: nothing is refused to it, and what it writes is durable. */
  isOperator = false
  #usedBytes = 0
  #usedFiles = 0
  #nextIno = 2
  readonly #deps: TableDeps

  constructor(deps: TableDeps, capacity: Capacity) {
    this.#deps = deps
    this.capacity = capacity
  }

  get usedBytes(): number {
    return this.#usedBytes
  }

  get freeBytes(): number {
    return Math.max(0, this.capacity.bytes - this.#usedBytes)
  }

  get freeFiles(): number {
    return Math.max(0, this.capacity.files - this.#usedFiles)
  }

  /** Room for one inode more. */
  get hasFile(): boolean {
    return this.isOperator || this.freeFiles > 0
  }

  newFile({ dev }: DirectoryNode, mode: number): FileNode {
    return { ...this.#common(dev, mode), kind: 'file', body: new FileBody() }
  }

  newDirectory(dev: number, mode: number): DirectoryNode {
    const own = { entries: new Map(), covering: null, underneath: null, attachment: null, reservedBytes: 0 }
    return { ...this.#common(dev, mode), kind: 'directory', ...own }
  }

  newLink({ dev }: DirectoryNode, target: string): Inode {
    return { ...this.#common(dev, 0o777), kind: 'link', target }
  }

  newSocket({ dev }: DirectoryNode): SocketNode {
    return { ...this.#common(dev, 0o755), kind: 'socket' }
  }

  /** Bytes written: fewer than given where the disk is full. */
  write(node: FileNode, at: number, source: Uint8Array): number {
    const room = node.body.blocksBytes + (this.isOperator ? Infinity : this.freeBytes) - at
    const bytes = source.length <= room ? source : source.subarray(0, Math.max(0, room))
    if (bytes.length > 0) this.#alter(node, (now) => node.body.write(at, bytes, now))
    return bytes.length
  }

  resize(node: FileNode, size: number): void {
    this.#alter(node, (at) => node.body.resize(size, at))
  }

  /** False, and nothing changes, where the disk has no room. */
  reserve(node: DirectoryNode, bytes: number): boolean {
    const more = bytes - node.reservedBytes
    if (more > this.freeBytes) return false
    node.reservedBytes = bytes
    // A removed directory has no room any more.
    if (node.links > 0) this.#usedBytes += more
    return true
  }

  change(node: Inode, change: Partial<Pick<Inode, 'mode' | 'uid' | 'gid' | 'mtimeMs'>>): void {
    Object.assign(node, change)
    node.ctimeMs = this.#deps.now()
  }

  /** Gives the room of an inode without names and descriptors back. */
  releaseUnused(node: Inode): void {
    if (node.links > 0 || node.opened > 0) return
    this.#usedFiles -= 1
    this.#usedBytes -= roomOf(node)
  }

  /** Counts everything again. */
  recount(nodes: Iterable<Inode>): void {
    this.#usedBytes = 0
    this.#usedFiles = 0
    for (const node of nodes) {
      this.#usedFiles += 1
      this.#usedBytes += roomOf(node)
    }
  }

  #alter(node: FileNode, change: (at: number) => void): void {
    const at = this.#deps.monotonicMs()
    const before = node.body.blocksBytes
    node.body.writeBack(at - this.#deps.writebackMs)
    change(at)
    if (this.isOperator) node.body.sync()
    node.mtimeMs = this.#deps.now()
    node.ctimeMs = node.mtimeMs
    this.#usedBytes += node.body.blocksBytes - before
  }

  #common(dev: number, mode: number) {
    const now = this.#deps.now()
    this.#usedFiles += 1
    const ino = this.#nextIno
    this.#nextIno += 1
    return { ino, dev, mode, uid, gid, links: 0, opened: 0, mtimeMs: now, ctimeMs: now, birthtimeMs: now }
  }
}

function roomOf(node: Inode): number {
  if (node.kind === 'directory') return node.reservedBytes
  return node.kind === 'file' ? node.body.blocksBytes : 0
}
