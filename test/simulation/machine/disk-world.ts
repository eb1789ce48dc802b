// disk-world.ts: what an operator, or another program, does on the simulated disk. At once and durable.

import { posix } from 'node:path'
import type { EndFault } from './disk-faults.ts'
import type { Entry, SimDisk } from './disk.ts'

const { constants } = process.getBuiltinModule('node:fs')

export class DiskWorld {
  readonly #disk: SimDisk

  constructor(disk: SimDisk) {
    this.#disk = disk
  }

  /** Creates the directories that are missing. A file that is there keeps its inode. */
  write(path: string, content: string | Uint8Array): void {
    this.makeDirectory(posix.dirname(path))
    const { O_WRONLY, O_CREAT, O_TRUNC } = constants
    this.#within(path, O_WRONLY | O_CREAT | O_TRUNC, (fd) => {
      this.#disk.write(fd, typeof content === 'string' ? Buffer.from(content) : content, null)
    })
  }

  read(path: string): Buffer {
    return this.#within(path, constants.O_RDONLY, (fd) => this.#disk.readAll(fd))
  }

  exists(path: string): boolean {
    return this.#disk.exists(path)
  }

  list(path: string): Entry[] {
    return this.#disk.asOperator(() => this.#disk.list(path))
  }

  rename(path: string, dest: string): void {
    this.#disk.asOperator(() => this.#disk.rename(path, dest))
  }

  makeDirectory(path: string): void {
    if (this.exists(path)) return
    this.makeDirectory(posix.dirname(path))
    this.#disk.asOperator(() => this.#disk.mkdir(path))
  }

  /** A directory with everything in it. Nothing happens where there is nothing. */
  remove(path: string): void {
    this.#disk.asOperator(() => {
      const entry = this.#entry(path)
      if (entry === undefined) return
      if (entry.kind !== 'directory') return this.#disk.unlink(path)
      for (const { name } of this.#disk.list(path)) this.remove(posix.join(path, name))
      this.#disk.rmdir(path)
    })
  }

  /** Everything at `path` is out of sight, as after `umount -l`; an empty directory is there. */
  hide(path: string): EndFault {
    this.#disk.hide(path)
    return () => this.unhide(path)
  }

  unhide(path: string): void {
    this.#disk.unhide(path)
  }

  #entry(path: string): Entry | undefined {
    const directory = posix.dirname(path)
    if (!this.exists(directory)) return undefined
    return this.#disk.list(directory).find(({ name }) => name === posix.basename(path))
  }

  #within<T>(path: string, flags: number, act: (fd: number) => T): T {
    return this.#disk.asOperator(() => {
      const fd = this.#disk.open(path, flags)
      try {
        return act(fd)
      } finally {
        this.#disk.close(fd)
      }
    })
  }
}
