// file-handle.ts: a file of the simulated disk as open() of node:fs/promises gives it. Streams and readLines()
// are not simulated: the daemon uses none.

import { runLater, writeAllSteps } from '../machine/file-calls.ts'
import type { SimDisk } from '../machine/disk.ts'
import type { FileStats } from '../machine/file-stats.ts'
import type { DiskCall } from '../machine/system-error.ts'
import { bytesOf, decoded, encodingOf, msOf, type GivenBytes, type GivenEncoding } from './simulated-paths.ts'

type Position = number | bigint | null | undefined
type ReadOptions = {
  buffer?: NodeJS.ArrayBufferView
  offset?: number
  length?: number | undefined
  position?: Position
}
type BytesRead<View> = { bytesRead: number; buffer: View }
type BytesWritten<View> = { bytesWritten: number; buffer: View }

export class SimFileHandle {
  readonly isSimulated = true
  readonly #disk: SimDisk
  #fd: number
  #closing: Promise<void> | null = null

  constructor(disk: SimDisk, fd: number) {
    this.#disk = disk
    this.#fd = fd
  }

  /** -1 after close(). */
  get fd(): number {
    return this.#fd
  }

  read(
    first?: NodeJS.ArrayBufferView | ReadOptions | null,
    second?: number | ReadOptions | null,
    third?: number | null,
    fourth?: Position,
  ): Promise<BytesRead<NodeJS.ArrayBufferView>> {
    const isView = ArrayBuffer.isView(first)
    const options: ReadOptions | null | undefined = isView
      ? typeof second === 'object' && second !== null
        ? second
        : { offset: second ?? 0, length: third ?? undefined, position: fourth }
      : first
    const buffer = isView ? first : (options?.buffer ?? Buffer.alloc(16_384))
    const into = part(buffer, options?.offset, options?.length)
    const at = positionOf(options?.position)
    return this.#later('read', () => ({ bytesRead: this.#disk.read(this.#fd, into, at), buffer }))
  }

  async readv(
    buffers: readonly NodeJS.ArrayBufferView[],
    position?: Position,
  ): Promise<{ bytesRead: number; buffers: readonly NodeJS.ArrayBufferView[] }> {
    return this.#later('read', () => ({ bytesRead: this.#each(buffers, position, 'read'), buffers }))
  }

  write<View extends GivenBytes>(
    source: View,
    second?: number | { offset?: number; length?: number; position?: Position } | null,
    third?: number | string | null,
    fourth?: Position,
  ): Promise<BytesWritten<View>> {
    const isText = typeof source === 'string'
    const options = typeof second === 'object' && second !== null ? second : null
    const bytes = isText
      ? bytesOf(source, third as BufferEncoding | null)
      : part(
          source,
          options?.offset ?? (second as number | null),
          options?.length ?? (third as number | null),
        )
    const at = positionOf(options === null ? (isText ? (second as number | null) : fourth) : options.position)
    return this.#later('write', () => ({
      bytesWritten: this.#disk.write(this.#fd, bytes, at),
      buffer: source,
    }))
  }

  async writev(
    buffers: readonly NodeJS.ArrayBufferView[],
    position?: Position,
  ): Promise<{ bytesWritten: number; buffers: readonly NodeJS.ArrayBufferView[] }> {
    return this.#later('write', () => ({ bytesWritten: this.#each(buffers, position, 'write'), buffers }))
  }

  async writeFile(
    content: GivenBytes,
    options?: GivenEncoding & { signal?: AbortSignal; flush?: boolean },
  ): Promise<void> {
    this.#refuseClosed('write')
    const bytes = bytesOf(content, encodingOf(options))
    await runLater(this.#disk, writeAllSteps(this.#disk, this.#fd, bytes), options?.signal)
  }

  appendFile(content: GivenBytes, options?: GivenEncoding): Promise<void> {
    return this.writeFile(content, options as GivenEncoding & { signal?: AbortSignal })
  }

  readFile(options?: GivenEncoding): Promise<string | Buffer> {
    return this.#later('read', () => decoded(this.#disk.readAll(this.#fd), options))
  }

  sync(): Promise<void> {
    return this.#later('fsync', () => this.#disk.sync(this.#fd))
  }

  datasync(): Promise<void> {
    return this.#later('fdatasync', () => this.#disk.sync(this.#fd, 'fdatasync'))
  }

  truncate(bytes = 0): Promise<void> {
    return this.#later('ftruncate', () => this.#disk.truncate(this.#fd, bytes))
  }

  stat(): Promise<FileStats> {
    return this.#later('fstat', () => this.#disk.fstat(this.#fd))
  }

  chmod(mode: number): Promise<void> {
    return this.#later('fchmod', () => this.#disk.fchmod(this.#fd, mode))
  }

  utimes(_accessed: number | string | Date, modified: number | string | Date): Promise<void> {
    return this.#later('futime', () => this.#disk.setModifiedOpen(this.#fd, msOf(modified)))
  }

  /** A second call waits for the first one. */
  close(): Promise<void> {
    if (this.#closing !== null) return this.#closing
    const { fd } = this
    const path = this.#disk.pathOf(fd)
    this.#closing = this.#disk.later('close', path, () => this.#disk.close(fd))
    this.#fd = -1
    return this.#closing
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  async #later<T>(call: DiskCall, effect: () => T): Promise<T> {
    this.#refuseClosed(call)
    return this.#disk.later(call, this.#disk.pathOf(this.#fd), effect)
  }

  #refuseClosed(syscall: string): void {
    if (this.#fd < 0) throw Object.assign(new Error('file closed'), { code: 'EBADF', syscall })
  }

  #each(buffers: readonly NodeJS.ArrayBufferView[], position: Position, how: 'read' | 'write'): number {
    const from = positionOf(position)
    let done = 0
    for (const buffer of buffers) {
      const bytes = this.#disk[how](this.#fd, bytesOf(buffer), from === null ? null : from + done)
      done += bytes
      if (bytes < buffer.byteLength) break
    }
    return done
  }
}

function part(view: NodeJS.ArrayBufferView, offset: number | null = 0, length?: number | null): Uint8Array {
  const from = offset ?? 0
  return bytesOf(view).subarray(from, from + (length ?? Infinity))
}

/** Null: from the position of the descriptor on. */
export function positionOf(position: Position): number | null {
  const at = Number(position ?? -1)
  return at < 0 ? null : at
}
