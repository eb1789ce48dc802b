// engine-queues.ts: stores entries in queues of the engine, and tries again where it does not confirm them.
// Nothing is removed from the spool before.
//
// With several bridges the first one that confirms has them: each message is in one engine then, and which
// one does not matter. A try ends after 30 s. After a failure the next one waits, 1 s doubling to 30 s;
// CUSTODY_STORE_FAILED says why. The window of the sources bounds what waits meanwhile.

import type { Clock } from '../../std/clock.ts'
import type { State } from '../../domain/condition-state.ts'
import { messageOf } from '../../std/gateway-error.ts'
import type { CustodyQueue, MessageSource, StoredEntry } from '../message-sources/types.ts'

export type EngineQueues = {
  /** Rejects with the last fault where no engine has confirmed all of it. */
  store(queue: CustodyQueue, entries: readonly StoredEntry[], signal: AbortSignal): Promise<void>
  /** False for some time after a failure. */
  mayStore(): boolean
  /** Nothing waits to be stored: failures of before are over. */
  idle(): void
  failures(): number
  states(): readonly State[]
}

const tryMs = 30_000
const firstPauseMs = 1000
const pauseMsMax = 30_000

export function createEngineQueues({
  clock,
  sources,
}: {
  clock: Clock
  sources: () => readonly MessageSource[]
}): EngineQueues {
  let failures = 0
  /** Why the last try of a bridge failed. */
  const failing = new Map<string, { queue: CustodyQueue; why: string }>()
  let pauseMs = firstPauseMs
  let nextTryMs = 0

  async function store(
    queue: CustodyQueue,
    entries: readonly StoredEntry[],
    signal: AbortSignal,
  ): Promise<void> {
    let fault: unknown = new Error('no bridge can store it')
    for (const { name, custody } of sources()) {
      if (custody === undefined) continue
      try {
        await within(signal, (either) => custody.store(queue, entries, either))
        failing.delete(name)
        pauseMs = firstPauseMs
        nextTryMs = 0
        return
      } catch (error) {
        signal.throwIfAborted()
        fault = error
        failures += 1
        failing.set(name, { queue, why: messageOf(error) })
      }
    }
    nextTryMs = clock.monotonic() + pauseMs
    pauseMs = Math.min(pauseMs * 2, pauseMsMax)
    throw fault
  }

  async function within(signal: AbortSignal, work: (either: AbortSignal) => Promise<void>): Promise<void> {
    const limit = new AbortController()
    const cancel = clock.after(tryMs, () =>
      limit.abort(new Error('the engine has not confirmed it within 30 s')),
    )
    const either = AbortSignal.any([signal, limit.signal])
    try {
      await Promise.race([
        work(either),
        new Promise<never>((_, reject) =>
          either.addEventListener('abort', () => reject(either.reason as Error), { once: true }),
        ),
      ])
    } finally {
      cancel()
    }
  }

  return {
    store,
    mayStore: () => clock.monotonic() >= nextTryMs,
    idle: () => failing.clear(),
    failures: () => failures,
    states() {
      const retryInMs = Math.max(0, nextTryMs - clock.monotonic())
      return [...failing].map(([messageSource, found]) => ({
        code: 'CUSTODY_STORE_FAILED',
        messageSource,
        ...found,
        retryInMs,
      }))
    },
  }
}
