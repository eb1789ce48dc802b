// skipped-messages.ts: compares a delivery with the stream: what the partition has there before it, and what
// did not come, is taken from the stream.
//
// The numbers of the deliveries do not show it all. After all nodes were killed at once, nats-server 2.10.27
// gave a delivery a number that it had given before: a message that went to a pull which was lost left no
// gap. The acknowledgement of the next one would have covered it.
//
//   next = first message of the partition in the stream behind the last known place
//     before the delivery    skipped: it is taken, then the one behind it is looked for
//     the delivery           nothing was skipped
//     behind it, or none     the node that answers does not have the message yet: asks again, for some time
//
// The delivery and those behind it wait meanwhile, at most a window.

import type { StoredMsg } from '@nats-io/jetstream'
import { pause, type Clock } from '../../../std/clock.ts'

export type Comparison = {
  /** Both are places in the stream; everything up to `from` is known, `to` was delivered. Ascending. */
  begin(from: number, to: number): void
  /** Deliveries from this place on must wait. */
  limit(): number
  stop(): void
}

type Deps = {
  clock: Clock
  /** The first message of the partition behind a place. */
  next: (behind: number) => Promise<StoredMsg | null>
  /** There is room, and all before this delivery was taken. */
  isNext: (to: number) => boolean
  take: (skipped: StoredMsg) => void
  /** One more was compared. */
  done: () => void
  failed: () => void
}

const askAgainMs = 300
/** How long a message that was delivered is looked for in the stream. */
const unknownMs = 15_000

export function createComparison({ clock, next, isNext, take, done, failed }: Deps): Comparison {
  const stopping = new AbortController()
  const { signal } = stopping
  /** At most one for each delivery that waits. */
  let open: { from: number; to: number }[] = []

  async function compare(from: number, to: number): Promise<void> {
    const sinceMs = clock.monotonic()
    for (let behind = from; ;) {
      const found = await next(behind)
      if (signal.aborted || found?.seq === to) return
      if (found !== null && found.seq < to) {
        while (!isNext(to)) if (!(await pause(clock, askAgainMs, signal))) return
        take(found)
        behind = found.seq
        continue
      }
      if (clock.monotonic() - sinceMs >= unknownMs) return
      if (!(await pause(clock, askAgainMs, signal))) return
    }
  }

  async function run(): Promise<void> {
    for (let range = open[0]; range !== undefined && !signal.aborted; range = open[0]) {
      await compare(range.from, range.to)
      if (signal.aborted) return
      open = open.slice(1)
      done()
    }
  }

  return {
    begin(from, to) {
      open.push({ from, to })
      if (open.length > 1) return
      run().catch(() => {
        if (!signal.aborted) failed()
      })
    },
    limit: () => open[0]?.to ?? Infinity,
    stop: () => stopping.abort(),
  }
}
