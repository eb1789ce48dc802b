// commit-gathering.ts: has a write wait a moment for messages of other connections.
//
// A write costs a fifth of a millisecond of processor time, whatever it holds. Without a wait, a thousand
// vehicles with a message a second each need a thousand writes a second. So the first message of a write
// waits up to `gatherMs` for others.
//
// A client that sends its next message only after an ack would be slowed down by that. So a write does not
// wait
//
//   if a connection of its messages had another message in the last `commitsMin` commits
//   if the last write ended more than `recentMs` ago: hardly anything would come meanwhile
//   if it has `messagesMax` messages: its cost is shared already
//
// Seals, settles and everything else that is no message of a device never wait (committer.ts).

import type { CancelTimer, Clock } from '../../std/clock.ts'

/** At a thousand messages a second that saves half of the writes. Eight save few more and double the wait. */
const gatherMs = 4
const recentMs = 16
const messagesMax = 16
const commitsMin = 32

type Gathering = {
  /** A message joins the open group; so many commits after the last one of its connection. */
  add(commitsSince: number): void
  /** Whether a write of so many messages waits. Then `gathered` is called, unless a write starts before. */
  waits(messages: number): boolean
  /** A group is opened. */
  opened(): void
  /** A write starts, or none will. */
  started(): void
  /** A write has ended. */
  ended(): void
}

export function createGathering({ clock, gathered }: { clock: Clock; gathered: () => void }): Gathering {
  /** Every message of the open group may wait. */
  let patient = true
  let endedAtMs = Number.NEGATIVE_INFINITY
  let cancelTimer: CancelTimer | null = null

  return {
    add(commitsSince) {
      if (commitsSince <= commitsMin) patient = false
    },
    waits(messages) {
      if (!patient || messages === 0 || messages >= messagesMax) return false
      if (cancelTimer !== null) return true
      if (clock.monotonic() - endedAtMs > recentMs) return false
      cancelTimer = clock.after(gatherMs, gathered)
      return true
    },
    opened() {
      patient = true
    },
    started() {
      cancelTimer?.()
      cancelTimer = null
    },
    ended() {
      endedAtMs = clock.monotonic()
    },
  }
}
