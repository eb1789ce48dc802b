// message-intake.ts: takes messages into the open group: the hot path of the spool. What the dedup window
// knows is not stored again. One instance serves all sessions; each call goes to the session that is open.

import type { OpenSession, Session } from './session-state.ts'
import type { MessageIntake, Stored } from './types.ts'

/** `ended` is called after each message, to check the limits. */
export function createMessageIntake(
  { current }: OpenSession,
  ended: (session: Session) => void,
): MessageIntake {
  return {
    append(payload, dup) {
      const session = current()
      if (isDuplicate(session, payload.windowKey, payload.duplicateRule === 'always' || dup))
        return 'duplicate'
      const group = session.committer.open
      group.addKey()
      group.append(payload)
      return 'stored'
    },
    addDeadLetter(deadLetter, windowKey, dup) {
      const session = current()
      if (windowKey !== null && addKey(session, windowKey, dup) === 'duplicate') return 'duplicate'
      session.committer.open.attachments().addDeadLetter(deadLetter)
      return 'stored'
    },
    addWindowKey: (windowKey, dup) => addKey(current(), windowKey, dup),
    putState(key, value) {
      current().committer.open.attachments().putState(key, value)
    },
    note(entry) {
      current().committer.open.note(entry)
    },
    putSession(key, value) {
      current().committer.open.attachments().putSession(key, value)
    },
    keepMessage(message, windowKey, dup) {
      const session = current()
      if (addKey(session, windowKey, dup) === 'duplicate') return 'duplicate'
      session.committer.open.attachments().keepMessage(message)
      return 'stored'
    },
    endMessage(ack) {
      const session = current()
      session.committer.endMessage(ack)
      ended(session)
    },
  }
}

function addKey(session: Session, windowKey: string, dup: boolean): Stored {
  if (isDuplicate(session, windowKey, dup)) return 'duplicate'
  session.committer.open.addKey()
  return 'stored'
}

/** Loads the key into the window's scratch buffer. Whether the window holds it only matters if `mayBe`. */
function isDuplicate({ window, counters }: Session, windowKey: string, mayBe: boolean): boolean {
  window.load(windowKey)
  if (!mayBe || !window.has()) return false
  counters.duplicates += 1
  return true
}
