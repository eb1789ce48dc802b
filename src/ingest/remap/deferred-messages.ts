// deferred-messages.ts: maps the messages that a version before 0.2 had put on shelves of their own, where
// they waited for the JSONata expression of their source. Nothing is put there any more.
//
//   shelf of a source -> read in order -> map by the mapping in force -> one exchange
//
// It runs once after the start. A message leaves its shelf in the write that adds its payloads, or its dead
// letter with the reason why the source cannot read it as it is now configured. Payloads of a device whose
// earlier messages are being released from quarantine are kept behind them.
//
//   the process dies      what was not taken is still there; the next start continues
//   there is no room      it waits, and continues when there is
//   the mapping changes   the next slice is mapped by the new one

import { correctedEnvelope } from '../../domain/arrival.ts'
import type { ShelfName } from '../../domain/kept-store.ts'
import type { Mapping } from '../../mapping/mapping.ts'
import { createUnmappableCounter } from '../intake/unmappable-counter.ts'
import type { ReleaseOrder } from '../types.ts'
import { inSlices } from './kept-slices.ts'
import { mapperFactory, retryUntilDone, waitForRoom } from './release-throttle.ts'
import { remapSlice } from './remap.ts'
import { exchangeSlice, type KeptWorkDeps, type RemapEntry, type SliceResult } from './slice-result.ts'

export type DeferredMessages = {
  start(): void
  counters(): DeferredCounters
  /** Resolves when no shelf has a message left. */
  idle(): Promise<void>
  stop(): Promise<void>
}

/** What became of the messages since the start. */
export type DeferredCounters = { payloads: number; dead: number }

type Deps = KeptWorkDeps & {
  mapping: () => Mapping
  releaseOrder: ReleaseOrder
}

const eventEveryMs = 1000

export function createDeferredMessages(deps: Deps): DeferredMessages {
  const { spool, mapped, clock, ourTime, emit, mapping, releaseOrder } = deps
  const stopping = new AbortController()
  const { signal } = stopping
  const deadBy = createUnmappableCounter({ clock, emit }, { eventEveryMs })
  const counts = { payloads: 0, dead: 0 }
  let working: Promise<unknown> = Promise.resolve()
  return { start, counters: () => ({ ...counts }), idle, stop }

  function start(): void {
    const shelves = spool.shelves().map(({ shelf }) => shelf)
    const deferred = shelves.filter((shelf) => shelf.startsWith('deferred:'))
    working = Promise.all(deferred.map((shelf) => retryUntilDone(() => mapShelf(shelf), clock, signal)))
  }

  async function mapShelf(shelf: ShelfName): Promise<void> {
    await inSlices({
      entries: entriesOf(shelf),
      map: async (entries, options) =>
        remapSlice(await mapperFactory(mapping(), spool), entries, { ...options, releaseOrder }),
      settle,
      signal,
    })
  }

  async function* entriesOf(shelf: ShelfName): AsyncGenerator<RemapEntry> {
    for await (const { id, message } of spool.keptMessages(shelf, null, { limit: Infinity })) {
      if (!(await waitForRoom(spool, clock, signal))) return
      yield { id, envelope: correctedEnvelope(message.envelope, ourTime) }
    }
  }

  async function settle(slice: SliceResult): Promise<void> {
    const { payloads } = await exchangeSlice({ spool, mapped }, slice, ourTime.now())
    counts.payloads += payloads
    counts.dead += slice.refused.length
    for (const one of slice.refused) deadBy.add(one, one.envelope.topic, one.envelope)
  }

  async function idle(): Promise<void> {
    await working
  }

  async function stop(): Promise<void> {
    stopping.abort()
    await idle()
  }
}
