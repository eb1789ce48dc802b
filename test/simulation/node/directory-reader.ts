// directory-reader.ts: an open directory of the simulated disk, as opendir() gives it. It reads 32 entries at
// a time, as Node does: what is made or removed meanwhile can be seen or not.

import { theDisk, direntOf } from './simulated-paths.ts'
import type { Dirent } from 'node:fs'

const entriesAtOnce = 32

export class DirectoryReader {
  readonly path: string
  readonly #seen = new Set<string>()
  #ready: Dirent[] = []
  #isClosed = false

  constructor(path: string) {
    this.path = path
  }

  async read(): Promise<Dirent | null> {
    if (this.#isClosed) throw closedError()
    const ready = this.#ready.shift()
    if (ready !== undefined) return ready
    this.#ready = await theDisk().later('scandir', this.path, () => this.#next())
    return this.#ready.shift() ?? null
  }

  async close(): Promise<void> {
    if (this.#isClosed) throw closedError()
    this.#isClosed = true
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Dirent> {
    try {
      for (let entry = await this.read(); entry !== null; entry = await this.read()) yield entry
    } finally {
      if (!this.#isClosed) await this.close()
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#isClosed) await this.close()
  }

  #next(): Dirent[] {
    const found: Dirent[] = []
    for (const { name, kind } of theDisk().list(this.path)) {
      if (this.#seen.has(name)) continue
      this.#seen.add(name)
      found.push(direntOf(name, kind, this.path))
      if (found.length === entriesAtOnce) break
    }
    return found
  }
}

function closedError(): Error {
  return Object.assign(new Error('Directory handle was closed'), { code: 'ERR_DIR_CLOSED' })
}
