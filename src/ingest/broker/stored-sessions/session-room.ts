// session-room.ts: removes stored sessions at the bounds of sessions and of their messages, and reports and
// counts them. session-owners.ts chooses whose session makes room for a new one.

import type { Emit, EventOf } from '../../../domain/event.ts'
import type { MessageDeps, StoredSession } from './client-session.ts'
import type { SessionOwners } from './session-owners.ts'

type Deps = {
  sessions: ReadonlyMap<string, StoredSession>
  owners: SessionOwners<StoredSession>
  messages: Pick<MessageDeps, 'total'>
  /** Throws where the store is lost. */
  remove: (session: StoredSession) => void
  emit: Emit
}

type Options = { sessionsMax: number; unreleasedTotalMax: number }

export type SessionRoom = {
  /** For a new session of this owner. */
  makeRoom(owner: string): void
  /** For a message. A twentieth at once: sorting costs as much as thousands of messages. */
  makeMessageRoom(): void
  evicted(): number
}

export function createSessionRoom(
  { sessions, owners, messages, remove, emit }: Deps,
  { sessionsMax, unreleasedTotalMax }: Options,
): SessionRoom {
  let evicted = 0
  return { makeRoom, makeMessageRoom, evicted: () => evicted }

  function makeRoom(owner: string): void {
    if (sessions.size < sessionsMax) return
    const session = owners.oldestFor(owner)
    if (session !== null) evict(session, 'max_sessions')
  }

  /** Those with most messages first. */
  function makeMessageRoom(): void {
    const target = unreleasedTotalMax * (1 - 1 / 20)
    const idle = [...sessions.values()].filter((one) => one.connections === 0 && one.unreleased.size > 0)
    for (const session of idle.sort((a, b) => b.unreleased.size - a.unreleased.size)) {
      if (messages.total <= target) return
      evict(session, 'max_unreleased_messages_total')
    }
  }

  function evict(session: StoredSession, reason: EventOf<'session_evicted'>['reason']): void {
    const owner = owners.ownerOf(session)
    remove(session)
    evicted += 1
    emit({ kind: 'session_evicted', clientId: session.name.clientId, owner, reason })
  }
}
