// dropped-messages.ts: tells of lost messages: counted by the intake at once, told at most once in `eventEveryMs`, never
// not at all (invariant 10).

import type { CancelTimer, Clock } from '../../std/clock.ts'
import type { Emit, HoldReason } from '../../domain/event.ts'

/** Why a message that nobody else could keep was lost. */
export type DropReason = HoldReason | 'waiting_full' | 'dead_letters_full'

const sentences: Record<DropReason, string> = {
  spool_full: 'the spool is full',
  disk_low: 'the disk of the spool is nearly full',
  dead_letters_full: 'the dead letters are full',
  quarantine_full: 'the quarantine is full',
  deferred_full: 'too many messages wait to be mapped',
  state_full: 'the state of the mapping is full',
  store_lost: 'the store of the spool is being reopened',
  waiting_full: 'too many messages wait for the spool',
}

export type DropReporter = {
  add(reason: DropReason): void
  /** Tells what is not told yet. */
  close(): void
}

export function createDropReporter(
  { clock, emit }: { clock: Clock; emit: Emit },
  { eventEveryMs }: { eventEveryMs: number },
): DropReporter {
  let untold = 0
  let untoldReason: DropReason = 'spool_full'
  let toldAtMs = Number.NEGATIVE_INFINITY
  let cancelTimer: CancelTimer | null = null

  function add(reason: DropReason): void {
    if (untold > 0 && reason !== untoldReason) tell()
    untold += 1
    untoldReason = reason
    if (cancelTimer !== null) return
    const sinceMs = clock.monotonic() - toldAtMs
    if (sinceMs >= eventEveryMs) tell()
    else cancelTimer = clock.after(eventEveryMs - sinceMs, tell)
  }

  function tell(): void {
    cancelTimer?.()
    cancelTimer = null
    if (untold === 0) return
    toldAtMs = clock.monotonic()
    const count = untold
    untold = 0
    emit({ kind: 'messages_dropped', reason: sentences[untoldReason], count })
  }

  return { add, close: tell }
}
