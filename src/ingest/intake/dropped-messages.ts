// dropped-messages.ts: reports QoS 0 messages that were dropped: at most one event in `eventEveryMs` while
// the reason stays the same, and every message in one of the events (invariant 10). The intake counts them at
// once.

import type { CancelTimer, Clock } from '../../std/clock.ts'
import type { DropReason, Emit } from '../../domain/event.ts'

const details: Record<DropReason, string> = {
  spool_full: 'The spool is full.',
  disk_low: 'The disk of the spool is nearly full.',
  dead_letters_full: 'The dead letters have reached their limit.',
  quarantine_full: 'The quarantine is full.',
  clock_full: 'The quarantine of messages of devices whose clock is ahead is full.',
  unlisted_dead_letters_full: 'The dead letters of devices that are not listed have reached their limit.',
  part_dead_letters_full: 'The dead letters of collected records have reached their limit.',
  state_full: 'The state of the mapping has reached its limit.',
  store_lost: 'The store of the spool is being reopened.',
  waiting_full: 'The messages that wait for the spool have reached their limit.',
}

export type DropReporter = {
  add(reason: DropReason): void
  /** Reports what is not reported yet. */
  close(): void
}

export function createDropReporter(
  { clock, emit }: { clock: Clock; emit: Emit },
  { eventEveryMs }: { eventEveryMs: number },
): DropReporter {
  let count = 0
  let countReason: DropReason = 'spool_full'
  let reportedAtMs = Number.NEGATIVE_INFINITY
  let cancelTimer: CancelTimer | null = null
  return { add, close: report }

  function add(reason: DropReason): void {
    if (count > 0 && reason !== countReason) report()
    count += 1
    countReason = reason
    if (cancelTimer !== null) return
    const sinceMs = clock.monotonic() - reportedAtMs
    if (sinceMs >= eventEveryMs) report()
    else cancelTimer = clock.after(eventEveryMs - sinceMs, report)
  }

  function report(): void {
    cancelTimer?.()
    cancelTimer = null
    if (count === 0) return
    reportedAtMs = clock.monotonic()
    const event = {
      kind: 'messages_dropped',
      reason: countReason,
      detail: details[countReason],
      count,
    } as const
    count = 0
    emit(event)
  }
}
