// session-owners.ts: whose session is removed when there is room for no more. The owner of a session is the
// identity that it belongs to, or the address that used it last where the client has none. Sessions without
// an identity that were used before this process have one owner together, until their clients connect again.
//
// An owner with more than a hundredth of all sessions loses one of its own. A new session of another owner
// takes the place of one of the owner with most. So a client that connects under ever new client ids removes
// its own sessions, and not those of the fleet.

import { assert } from '../../../std/assert.ts'
import type { Session } from './client-session.ts'

export type SessionOwners<Stored extends Session> = {
  /** It was used by this owner just now. */
  used(session: Stored, owner: string): void
  /** It was read from the spool. */
  found(session: Stored, identity: string | null): void
  /** The same, by the owner that it has. */
  touched(session: Stored): void
  removed(session: Stored): void
  /** Null where it has no identity and was used before this process only. */
  ownerOf(session: Stored): string | null
  /** The one to remove for a new session of `owner`; null where all are connected. */
  oldestFor(owner: string): Stored | null
}

/** Of sessions without an identity that were read from the spool. */
const unknownOwner = ''

export function createSessionOwners<Stored extends Session>(sessionsMax: number): SessionOwners<Stored> {
  const ownMax = sessionsMax / 100
  /** The session that its owner used longest ago is first. */
  const owners = new Map<string, Set<Stored>>()
  const ownerOf = new Map<Stored, string>()
  return {
    used,
    found: (session, identity) => used(session, identity ?? unknownOwner),
    touched(session) {
      const owner = ownerOf.get(session)
      if (owner !== undefined) used(session, owner)
    },
    removed,
    ownerOf: (session) => ownerOf.get(session) || null,
    oldestFor,
  }

  function used(session: Stored, owner: string): void {
    removed(session)
    ownerOf.set(session, owner)
    const sessions = owners.get(owner)
    if (sessions === undefined) owners.set(owner, new Set([session]))
    else sessions.add(session)
  }

  function removed(session: Stored): void {
    const owner = ownerOf.get(session)
    if (owner === undefined) return
    ownerOf.delete(session)
    const sessions = owners.get(owner)
    assert(sessions !== undefined, 'the owner of a session has sessions')
    sessions.delete(session)
    if (sessions.size === 0) owners.delete(owner)
  }

  function oldestFor(owner: string): Stored | null {
    const own = owners.get(owner)
    if (own !== undefined && own.size > ownMax) {
      const oldest = oldestOf(own)
      if (oldest !== null) return oldest
    }
    let largest: Set<Stored> | null = null
    let oldestOfLargest: Stored | null = null
    for (const sessions of owners.values()) {
      if (largest !== null && sessions.size <= largest.size) continue
      const oldest = oldestOf(sessions)
      if (oldest === null) continue
      largest = sessions
      oldestOfLargest = oldest
    }
    return oldestOfLargest
  }
}

/** Without a connection. */
function oldestOf<Stored extends Session>(sessions: ReadonlySet<Stored>): Stored | null {
  for (const session of sessions) if (session.connections === 0) return session
  return null
}
