// power-cuts.ts: repeats one history of the spool, each time with a power cut before another of its writes.

import type { Spool } from '../../src/spool/spool.ts'
import type { OpenStore } from '../../src/storage/storage.ts'
import { createFakeClock, turn } from './fake-clock.ts'
import { createMemoryDisk } from './memory-store.ts'
import { openSpoolWorld, type SpoolWorld, type WorldOptions } from './open-spool.ts'
import { emptyDisk } from './spool-world.ts'

export type PowerCuts = {
  options?: Pick<WorldOptions, 'changes' | 'isLate'>
  /** The steps of the history, each durable before the next. `done` is passed to `check`, also after a cut. */
  history: (world: SpoolWorld, done: string[]) => Promise<void>
  /** Checks the spool after the power cut. `done` is what was durable for the history. */
  check: (spool: Spool, done: readonly string[]) => Promise<void>
}

/** Returns how many writes the history took; the last check is of the whole history. */
export async function atEachPowerCut({ options = {}, history, check }: PowerCuts): Promise<number> {
  for (let writes = 0; ; writes += 1) {
    const disk = createMemoryDisk()
    const clock = createFakeClock()
    let left = Number.POSITIVE_INFINITY
    let gone: () => void = () => undefined
    const powerGoes = new Promise<boolean>((resolve) => {
      gone = () => resolve(true)
    })
    const boot = disk.boot()
    const openStore: OpenStore = async (path) => {
      const store = await boot(path)
      return {
        ...store,
        write(ops, how) {
          if (left > 0) {
            left -= 1
            return store.write(ops, how)
          }
          disk.crash({ keepRunning: false })
          gone()
          return new Promise(() => undefined)
        },
      }
    }
    const world = await openSpoolWorld({ ...options, clock, openStore, disk: emptyDisk, crashes: true })
    left = writes
    const done: string[] = []
    const ended = history(world, done).then(() => false)
    const wasCut = await Promise.race([ended, powerGoes])
    await turn()
    if (!wasCut) disk.crash({ keepRunning: false })
    const again = await openSpoolWorld({
      ...options,
      clock,
      openStore: disk.boot(),
      disk: emptyDisk,
      crashes: true,
    })
    await check(again.spool, done)
    await again.spool.close()
    if (!wasCut) return writes
  }
}
