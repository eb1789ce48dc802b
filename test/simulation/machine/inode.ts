// inode.ts: what the simulated disk has under its names: files, directories, links and sockets.
//
// A file holds the bytes that programs see, and a list of changes that a power cut can take: writes and
// changes of the size since the last sync. A change keeps only the bytes that it replaced, so an append costs
// nothing but itself. At a power cut the changes are undone from the last to the first, and each that
// survives is done again. A size change that is lost takes all later changes with it, as the journal of a
// file system does.

import { FilePages } from './file-pages.ts'
import type { CutChances } from './power-cut.ts'

type Common = {
  readonly ino: number
  readonly dev: number
  mode: number
  uid: number
  gid: number
  /** Names that lead to it. */
  links: number
  /** Open descriptors. An inode without names and descriptors is gone. */
  opened: number
  mtimeMs: number
  ctimeMs: number
  readonly birthtimeMs: number
}

export type DirectoryNode = Common & {
  readonly kind: 'directory'
  readonly entries: Map<string, Inode>
  /** The file system mounted here is gone: its name leads to this other directory. */
  covering: DirectoryNode | null
  /** What covers it when it is hidden again. */
  underneath: DirectoryNode | null
  attachment: unknown
  /** Bytes that the attached object takes on the disk. */
  reservedBytes: number
}
export type FileNode = Common & { readonly kind: 'file'; readonly body: FileBody }
export type LinkNode = Common & { readonly kind: 'link'; readonly target: string }
export type SocketNode = Common & { readonly kind: 'socket' }
export type Inode = DirectoryNode | FileNode | LinkNode | SocketNode

/** `dropped`: a sync failed. As Linux does, later syncs succeed without writing it. */
type ChangeState = 'open' | 'synced' | 'dropped'
type Change = { at: number; state: ChangeState; sizeBefore: number; before: Buffer } & (
  { kind: 'write'; offset: number; length: number } | { kind: 'size'; size: number }
)

export const sectorBytes = 512
export const blockBytes = 4096
const noBytes = Buffer.alloc(0)

export class FileBody {
  readonly #pages = new FilePages()
  #changes: Change[] = []

  get size(): number {
    return this.#pages.size
  }

  /** Bytes that the file system gives it. */
  get blocksBytes(): number {
    return Math.ceil(this.size / blockBytes) * blockBytes
  }

  /** Bytes read: fewer than asked at the end of the file. */
  read(into: Uint8Array, offset: number): number {
    return this.#pages.copyTo(into, offset)
  }

  slice(offset: number, length: number): Buffer {
    return this.#pages.slice(offset, length)
  }

  write(offset: number, source: Uint8Array, at: number): void {
    const before = this.slice(offset, source.length)
    const { size: sizeBefore } = this
    this.#changes.push({
      kind: 'write',
      at,
      state: 'open',
      sizeBefore,
      before,
      offset,
      length: source.length,
    })
    this.#pages.put(offset, source)
  }

  resize(size: number, at: number): void {
    if (size === this.size) return
    const before = this.slice(size, Infinity)
    this.#changes.push({ kind: 'size', at, state: 'open', sizeBefore: this.size, before, size })
    this.#pages.resize(size)
  }

  sync(): void {
    for (const change of this.#changes) if (change.state === 'open') change.state = 'synced'
    this.#trim()
  }

  /** The sync failed: what it should have written stays in doubt for good. */
  dropUnsynced(): void {
    for (const change of this.#changes)
      if (change.state === 'open' && change.kind === 'write') change.state = 'dropped'
  }

  /** The kernel has written what is older. */
  writeBack(before: number): void {
    if ((this.#changes[0]?.at ?? before) >= before) return
    for (const change of this.#changes) {
      if (change.at >= before) break
      if (change.state === 'open') change.state = 'synced'
    }
    this.#trim()
  }

  flip(offset: number, bit: number): void {
    this.#pages.flip(offset, bit)
  }

  cut(chances: CutChances): void {
    const written = this.#changes.map((): Buffer => noBytes)
    for (let index = this.#changes.length - 1; index >= 0; index -= 1) {
      const change = this.#changes[index] as Change
      if (change.kind === 'write') written[index] = this.slice(change.offset, change.length)
      this.#pages.resize(change.sizeBefore)
      this.#pages.put(change.kind === 'write' ? change.offset : change.size, change.before)
    }
    for (const [index, change] of this.#changes.entries()) {
      const outcome = change.state === 'synced' ? 'kept' : chances.ofWrite()
      if (change.kind === 'write') {
        const bytes = written[index] ?? noBytes
        if (outcome === 'kept') this.#pages.put(change.offset, bytes)
        else if (outcome !== 'lost') this.#tear(change.offset, bytes, outcome, chances)
      } else if (outcome === 'kept') this.#pages.resize(change.size)
      else break
    }
    this.#changes = []
  }

  #tear(offset: number, bytes: Buffer, how: 'prefix' | 'scattered', chances: CutChances): void {
    const { size } = this
    let reached = size
    const first = Math.floor(offset / sectorBytes)
    const sectors = Math.ceil((offset + bytes.length) / sectorBytes) - first
    const prefix = chances.below(sectors)
    for (let index = 0; index < sectors; index += 1) {
      if (how === 'prefix' ? index >= prefix : chances.below(2) === 0) continue
      const from = Math.max(offset, (first + index) * sectorBytes)
      const to = Math.min(offset + bytes.length, (first + index + 1) * sectorBytes)
      this.#pages.put(from, bytes.subarray(from - offset, to - offset))
      reached = Math.max(reached, to)
    }
    // The size can be durable before the bytes: they read as zeros then.
    const isSizeKept = chances.below(4) === 0
    this.#pages.resize(isSizeKept ? Math.max(size, offset + bytes.length) : reached)
  }

  #trim(): void {
    let durable = 0
    while (this.#changes[durable]?.state === 'synced') durable += 1
    if (durable > 0) this.#changes.splice(0, durable)
  }
}
