// write-waits.ts: readers wait for the moment between two writes. Others wait until nothing is left to be
// written. Entry file of this folder; write-deadline.ts says how long a write waits.
//
// The committer calls `betweenWrites` before it puts a write together, and `isIdle` when nothing is left.
// After a failure both are called, so nothing waits for ever.

export { WriteDeadline } from './write-deadline.ts'

export type WriteWaits = {
  /** A write must not be delayed now. */
  any(): boolean
  /** Resolves with what `look` sees, or with null if `signal` aborts or the committer fails first. */
  look<Seen>(look: () => Seen, signal: AbortSignal): Promise<Seen | null>
  idle(): Promise<void>
  betweenWrites(): void
  isIdle(): void
}

export function createWriteWaits({ failed }: { failed: () => boolean }): WriteWaits {
  let lookers: (() => void)[] = []
  let idlers: (() => void)[] = []

  return {
    any() {
      return lookers.length > 0 || idlers.length > 0
    },
    look(look, signal) {
      return new Promise((resolve) => {
        const giveUp = () => resolve(null)
        signal.addEventListener('abort', giveUp, { once: true })
        lookers.push(() => {
          signal.removeEventListener('abort', giveUp)
          resolve(failed() || signal.aborted ? null : look())
        })
      })
    },
    idle: () => new Promise((resolve) => void idlers.push(resolve)),
    betweenWrites() {
      const released = lookers
      lookers = []
      for (const look of released) look()
    },
    isIdle() {
      const released = idlers
      idlers = []
      for (const resolve of released) resolve()
    },
  }
}
