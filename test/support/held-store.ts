// held-store.ts: real LevelDB whose writes wait until a test releases them. Those of the ledger and of the device records,
// which come at times of their own, do not wait.

import { basename } from 'node:path'
import { openLevelStore, type OpenStore } from '../../src/storage/storage.ts'

export type HeldStore = {
  openStore: OpenStore
  hold(): void
  release(): void
  /** Releases the first waiting write. */
  releaseOne(): void
  /** Writes that wait. */
  waiting(): number
}

const recordsName = 'records'

export function createHeldStore(): HeldStore {
  let held: { resolve: () => void }[] | null = null
  return {
    async openStore(path) {
      const store = await openLevelStore(path)
      if (basename(path) === recordsName) return store
      return {
        ...store,
        async write(ops, options) {
          const line = held
          if (line !== null) {
            await new Promise<void>((resolve) => {
              line.push({ resolve })
            })
          }
          await store.write(ops, options)
        },
      }
    },
    hold() {
      held ??= []
    },
    release() {
      const line = held ?? []
      held = null
      for (const { resolve } of line) resolve()
    },
    releaseOne() {
      held?.shift()?.resolve()
    },
    waiting: () => held?.length ?? 0,
  }
}
