// folder-watch.ts: what watch() of node:fs gives for a file or directory of the simulated disk.

import { EventEmitter } from 'node:events'
import type { SimDisk } from '../machine/disk.ts'

type Listener = (event: string, name: string) => void
export type WatchOptions =
  | { persistent?: boolean; recursive?: boolean; signal?: AbortSignal }
  | BufferEncoding
  | Listener
  | null
  | undefined

export class SimFolderWatch extends EventEmitter {
  readonly #watch: { close(): void }
  readonly #disk: SimDisk
  readonly #path: string
  #isClosed = false

  constructor(
    disk: SimDisk,
    path: string,
    { options, listener }: { options: WatchOptions; listener: Listener | undefined },
  ) {
    super()
    this.#disk = disk
    this.#path = path
    const { recursive, signal } = typeof options === 'object' && options !== null ? options : {}
    if (recursive === true) throw new Error('watch() with `recursive` is not simulated')
    const given = typeof options === 'function' ? options : listener
    if (given !== undefined) this.on('change', given)
    this.#watch = watched(disk, path, (event, name) => this.emit('change', event, name))
    if (signal?.aborted === true) this.close()
    else signal?.addEventListener('abort', () => this.close(), { once: true })
  }

  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#watch.close()
    // Nobody waits for it, and an end of the process takes it.
    void this.#disk.later('close', this.#path, () => this.emit('close'))
  }

  ref(): this {
    return this
  }

  unref(): this {
    return this
  }
}

function watched(disk: SimDisk, path: string, report: Listener): { close(): void } {
  try {
    return disk.watch(path, report)
  } catch (error) {
    throw Object.assign(error as Error, { filename: path })
  }
}
