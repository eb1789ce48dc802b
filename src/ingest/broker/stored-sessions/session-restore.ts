// session-restore.ts: reads the records of stored sessions from the spool, at the start and after the store
// was lost. What the spool does not have ends.

import type { IntakeSpool } from '../../types.ts'
import { forgetAll, type MessageDeps, type StoredSession } from './client-session.ts'
import type { SessionOwners } from './session-owners.ts'
import { recordOf, type SessionName } from './session-record-codec.ts'

type Deps = {
  /** Those that this process knows, by their keys. */
  sessions: Map<string, StoredSession>
  owners: SessionOwners<StoredSession>
  messages: MessageDeps
  create: (name: SessionName) => StoredSession
}

type Spool = Pick<IntakeSpool, 'sessionRecords'>

export async function restoreSessions(spool: Spool, deps: Deps): Promise<void> {
  const { sessions, owners, messages } = deps
  for (const session of sessions.values()) forgetAll(session, messages)
  const found = await readSessions(spool, deps)
  const before = new Set(sessions.values())
  sessions.clear()
  for (const session of [...found.values()].sort(byUse)) {
    sessions.set(session.name.key, session)
    if (!before.has(session)) owners.found(session, session.name.identity)
  }
  for (const session of before) {
    if (found.has(session.name.key)) continue
    owners.removed(session)
    session.ended = true
  }
}

async function readSessions(
  spool: Spool,
  { sessions, messages, create }: Deps,
): Promise<Map<string, StoredSession>> {
  const found = new Map<string, StoredSession>()
  for await (const { key: recordName, value } of spool.sessionRecords()) {
    const record = recordOf(recordName, value)
    if (record === null) continue
    const { key } = record.name
    const known = sessions.get(key)
    const session = found.get(key) ?? known ?? create(record.name)
    found.set(key, session)
    if (record.kind === 'unreleased') {
      if (!session.unreleased.has(record.messageId)) messages.total += 1
      session.know(record.messageId, record.checksum)
      continue
    }
    const isWritten = session.expiryMs === record.expiryMs && session.usedAt === record.usedAt
    session.usedAt = record.usedAt
    if (known === undefined) {
      session.usedAtMs = null
      session.expiryMs = record.expiryMs
    } else if (!isWritten) session.writtenAtMs = Number.NEGATIVE_INFINITY
  }
  return found
}

/** Sessions of earlier processes first, each by the time of its last use. */
function byUse(a: StoredSession, b: StoredSession): number {
  return (a.usedAtMs ?? -1) - (b.usedAtMs ?? -1) || a.usedAt - b.usedAt
}
