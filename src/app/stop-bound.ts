// stop-bound.ts: ends the process where a stop passes its deadline. A thread that hangs in the disk keeps the
// stop from ending, and `process.exit` as well.

import type { CancelTimer, Clock } from '../std/clock.ts'
import type { Emit } from '../domain/event.ts'

export type StopBound = { begin(this: void): void; end(): void }

/** Closing takes a moment after the deadline, where nothing hangs. */
const overdueMs = 2000

export function createStopBound(
  { clock, emit, endAtOnce }: { clock: Clock; emit: Emit; endAtOnce?: () => void },
  deadlineMs: number,
): StopBound {
  let cancel: CancelTimer | null = null
  return {
    begin() {
      cancel ??= clock.after(deadlineMs + overdueMs, () => {
        emit({ kind: 'gateway_stop_overdue', deadlineMs })
        endAtOnce?.()
      })
    },
    end: () => cancel?.(),
  }
}
