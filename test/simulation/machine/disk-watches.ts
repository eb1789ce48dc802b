// disk-watches.ts: the watches on files and directories, as inotify reports them through fs.watch().

import type { DirectoryNode, Inode } from './inode.ts'

export type WatchListener = (event: 'rename' | 'change', name: string) => void

type Watch = { name: string; listener: WatchListener; isClosed: boolean }

export class DiskWatches {
  readonly #byInode = new Map<Inode, Set<Watch>>()
  readonly #schedule: (run: () => void) => void

  constructor(schedule: (run: () => void) => void) {
    this.#schedule = schedule
  }

  /** `name`: what events on the inode itself are reported with. */
  add(node: Inode, name: string, listener: WatchListener): { close(): void } {
    const watch = { name, listener, isClosed: false }
    const own = this.#byInode.get(node) ?? new Set()
    this.#byInode.set(node, own.add(watch))
    return {
      close: () => {
        watch.isClosed = true
        own.delete(watch)
        if (own.size === 0) this.#byInode.delete(node)
      },
    }
  }

  clear(): void {
    for (const own of this.#byInode.values()) for (const watch of own) watch.isClosed = true
    this.#byInode.clear()
  }

  /** An entry was made, renamed or removed. `node`: what had the name before. */
  renamed(directory: DirectoryNode, name: string, node: Inode | null): void {
    this.#report(directory, 'rename', name)
    if (node !== null) this.#report(node, 'rename', null)
  }

  changed(directory: DirectoryNode, name: string, node: Inode): void {
    this.#report(directory, 'change', name)
    this.#report(node, 'change', null)
  }

  #report(node: Inode, event: 'rename' | 'change', name: string | null): void {
    for (const watch of this.#byInode.get(node) ?? [])
      this.#schedule(() => {
        if (!watch.isClosed) watch.listener(event, name ?? watch.name)
      })
  }
}
