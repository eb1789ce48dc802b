// client-session.ts: the session of one client, and its QoS 2 messages that were received and not released.
// stored-sessions.ts has the invariants.
//
// Bounds: `unreleasedMax` messages of one client, and `unreleasedTotalMax` of all. At the bound of one client
// its connection is closed (publish-handler.ts); what is known stays. At the bound of all, `makeRoom` removes
// sessions without a connection first.

import type { Clock } from '../../../std/clock.ts'
import type { ClientSession } from '../../types.ts'
import { checksumRecord, unreleasedRecordName, type SessionName } from './session-record-codec.ts'

export type Session = ClientSession & {
  /** Whose it is; null for a clean session. */
  readonly name: SessionName | null
  /** Checksums by packet identifier. */
  readonly unreleased: Map<number, number>
  /** Open connections with it. */
  connections: number
  /** Last use: monotonic, or null and the wall clock of its record where that was before this process. */
  usedAtMs: number | null
  usedAt: number
  /** When its record was written last, monotonic. */
  writtenAtMs: number
  /** Resolves when its record is durable. */
  created: Promise<void>
  /** Discarded, expired or evicted: nothing of it is written any more. */
  ended: boolean
}

/** One that the spool has. */
export type StoredSession = Session & { readonly name: SessionName }

export type MessageDeps = {
  /** Puts a record into the group that is open; throws where the store is lost. */
  put: (name: string, value: Buffer | null) => void
  /** Resolves when that group is durable. */
  durable: () => Promise<void>
  clock: Clock
  /** Messages of all sessions. */
  total: number
  /** Called at the bound of all. */
  makeRoom: () => void
}

/** A packet identifier has 16 bits, so both bound memory, not correctness. */
export type UnreleasedLimits = { unreleasedMax: number; unreleasedTotalMax: number }

/** `name` is null for a clean session. */
export function newSession<Name extends SessionName | null>(
  name: Name,
  deps: MessageDeps,
  { unreleasedMax, unreleasedTotalMax }: UnreleasedLimits,
): Session & { readonly name: Name } {
  const unreleased = new Map<number, number>()
  const session: Session & { readonly name: Name } = {
    name,
    stored: name !== null,
    unreleased,
    get unreleasedCount() {
      return unreleased.size
    },
    connections: name === null ? 1 : 0,
    usedAtMs: deps.clock.monotonic(),
    usedAt: 0,
    writtenAtMs: Number.NEGATIVE_INFINITY,
    created: Promise.resolve(),
    ended: false,
    isFull(messageId) {
      if (unreleased.has(messageId)) return false
      if (unreleased.size >= unreleasedMax) return true
      if (deps.total >= unreleasedTotalMax) deps.makeRoom()
      return deps.total >= unreleasedTotalMax
    },
    holds: (messageId, checksum) => unreleased.get(messageId) === checksum,
    add(messageId, checksum) {
      if (session.ended) return
      if (!unreleased.has(messageId)) deps.total += 1
      unreleased.set(messageId, checksum)
      if (name !== null) deps.put(unreleasedRecordName(name.key, messageId), checksumRecord(checksum))
    },
    forget: (messageId) => void forget(session, deps, messageId),
    release: (messageId) => release(session, deps, messageId),
  }
  return session
}

export function isStored(session: Session): session is StoredSession {
  return session.name !== null
}

export function forgetAll({ unreleased }: Session, deps: MessageDeps): void {
  deps.total -= unreleased.size
  unreleased.clear()
}

function forget({ unreleased }: Session, deps: MessageDeps, messageId: number): boolean {
  const known = unreleased.delete(messageId)
  if (known) deps.total -= 1
  return known
}

async function release(session: Session, deps: MessageDeps, messageId: number): Promise<boolean> {
  const checksum = session.unreleased.get(messageId)
  if (checksum === undefined) return false
  if (session.name !== null && !session.ended) {
    deps.put(unreleasedRecordName(session.name.key, messageId), null)
    await deps.durable()
    // It is known until the deletion is durable: PUBREL may come again before.
    if (session.unreleased.get(messageId) !== checksum) return false
  }
  return forget(session, deps, messageId)
}
