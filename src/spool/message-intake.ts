// message-intake.ts: takes messages into the open group: the hot path of the spool. What the dedup window
// knows is not stored again. One instance serves all sessions; each call goes to the session that is open.

import type { HeldKeys } from './chunk-log/dedup-window.ts'
import type { OpenSession, Session } from './session-state.ts'
import type { MessageIntake, Stored } from './types.ts'

/**
 * `ended` is called after each message, `keptEnded` after one that is kept beside the lanes; both check the
 * limits.
 */
export function createMessageIntake(
  { current }: OpenSession,
  heldKeys: Readonly<HeldKeys>,
  { ended, keptEnded }: { ended: (session: Session) => void; keptEnded: (session: Session) => void },
): MessageIntake {
  let isKept = false
  return {
    append(payload) {
      const session = current()
      if (payload.duplicateRule === 'always' && addKey(session, heldKeys, payload.windowKey) === 'duplicate')
        return 'duplicate'
      session.committer.open().append(payload)
      return 'stored'
    },
    addDeadLetter(deadLetter) {
      current().committer.open().attachments().addDeadLetter(deadLetter)
      isKept = true
    },
    addWindowKey: (windowKey) => addKey(current(), heldKeys, windowKey),
    hasWindowKey(windowKey) {
      const { window } = current()
      window.load(windowKey)
      return window.has()
    },
    putState(key, value) {
      current().committer.open().attachments().putState(key, value)
    },
    putLateState(entry) {
      if (!entry.isWaiting) current().committer.open().attachments().putLateState(entry)
    },
    note(entry) {
      current().committer.open().note(entry)
    },
    putSession(key, value) {
      current().committer.open().attachments().putSession(key, value)
    },
    keepMessage(message) {
      current().committer.open().attachments().keepMessage(message)
      isKept = true
    },
    endMessage(ack, waitMs) {
      const session = current()
      session.committer.endMessage(ack, waitMs)
      ended(session)
      if (!isKept) return
      isKept = false
      keptEnded(session)
    },
  }
}

function addKey(
  { window, counters, committer }: Session,
  { from }: Readonly<HeldKeys>,
  windowKey: string,
): Stored {
  window.load(windowKey)
  const isKnown = window.has()
  // The message waits again for its acknowledgement: the key is held with it.
  if (!isKnown || from !== Infinity) committer.open().addKey()
  if (!isKnown) return 'stored'
  counters.duplicates += 1
  return 'duplicate'
}
