// stored-sessions.ts: the sessions of clients that connect without Clean Session (MQTT 3.1.2.4), and the QoS
// 2 messages that were received and not released. Nothing else of a session exists in a gateway that sends
// nothing to its clients.
//
// Invariants
//   Until PUBREL the same packet identifier with the same content is the same message (MQTT 4.3.3, method B).
//   Content is compared by a checksum: a device that lost its memory starts again at identifier 1.
//   The identifier is in the same write as its message, so PUBREC, which follows that write, promises both.
//   PUBCOMP follows the write that deletes the identifier. Before that, a crash leaves an identifier that the
//   client releases again; after it, the client may use it for another message.
//   CONNACK says that a session is present exactly where one is stored and not expired [MQTT-3.2.2-2]:
//   clients forget their unacknowledged messages where it is not. So a new session is durable before its
//   CONNACK, and CONNACK 3 is the answer where it cannot be. A clean session deletes what was stored before
//   its CONNACK.
//
//   CONNECT --open--> record durable --> CONNACK      PUBLISH --> message + identifier durable --> PUBREC
//   CONNECT (clean) --discard--> deletion durable --> CONNACK        PUBREL --> deletion durable --> PUBCOMP
//
// The messages of a clean session are in memory, and end with its connection.
//
// A session belongs to an identity and a client id together: another identity with the same client id has a
// session of its own, and neither releases nor deletes what the first one stored. A client whose user name
// was changed starts a new session; the old one expires. Anonymous clients with one client id share one.
//
// Bounds: `sessionsMax` sessions. At the bound a session without a connection is removed, reported and
// counted (session-owners.ts chooses it). One that was not used for `sessionExpiryMs` expires, and is
// counted. The time of use on the disk may be a twentieth of that old, since it is not written at each use.
// client-session.ts bounds the messages.
//
// After the store was lost, everything is read again: a failed write may be on the disk or not.

import type { OurTime } from '../../../domain/arrival.ts'
import type { Emit, EventOf } from '../../../domain/event.ts'
import type { GatewayError } from '../../../std/gateway-error.ts'
import type { CancelTimer, Clock } from '../../../std/clock.ts'
import type { ClientSession, IntakeSpool } from '../../types.ts'
import {
  forgetAll,
  isStored,
  newSession,
  type MessageDeps,
  type Session,
  type StoredSession,
  type UnreleasedLimits,
} from './client-session.ts'
import { createSessionOwners } from './session-owners.ts'
import {
  recordOf,
  sessionNameOf,
  sessionRecordName,
  unreleasedRecordName,
  usedRecord,
} from './session-record-codec.ts'

export type StoredSessions = {
  /** The session of a client; `present` where it was stored before. Rejects where it cannot be stored. */
  open(client: SessionClient): Promise<OpenedSession>
  /** The session of a connection with Clean Session; deletes the one that is stored. */
  openClean(client: SessionClient): Promise<OpenedSession>
  /** A connection with this session has ended. */
  closed(session: ClientSession): void
  /** The store is lost: nothing is stored until `restore`. */
  lost(): void
  restore(): Promise<void>
  counters(): SessionCounters
  close(): void
}

/** `owner` pays for it at the bound: see session-owners.ts. */
export type SessionClient = { clientId: string; identity: string | null; owner: string }

export type OpenedSession = { session: ClientSession; present: boolean }

export type SessionCounters = {
  /** Stored now. */
  sessions: number
  sessionsEvicted: number
  sessionsExpired: number
}

export type SessionOptions = UnreleasedLimits & { sessionsMax: number; sessionExpiryMs: number }

type EvictionReason = EventOf<'session_evicted'>['reason']

type Deps = {
  spool: Pick<IntakeSpool, 'putSession' | 'sessionRecords' | 'endMessage'>
  clock: Clock
  ourTime: Pick<OurTime, 'now' | 'offsetMs'>
  emit: Emit
}

const sweepMs = 60_000
/** Share of the expiry after which the time of use is written again. */
const refreshShare = 1 / 20

export function createStoredSessions(deps: Deps, options: SessionOptions): StoredSessions {
  const { spool, clock, ourTime, emit } = deps
  const { sessionsMax, sessionExpiryMs } = options
  /** By their keys. The session that was used longest ago is first. */
  const sessions = new Map<string, StoredSession>()
  const owners = createSessionOwners<StoredSession>(sessionsMax)
  const messages: MessageDeps = { put, durable, clock, total: 0, makeRoom: makeMessageRoom }
  let restored = false
  let evicted = 0
  let expired = 0
  let cancelSweep: CancelTimer = scheduleSweep()
  return {
    open,
    openClean,
    closed,
    lost() {
      restored = false
    },
    restore,
    counters: () => ({ sessions: sessions.size, sessionsEvicted: evicted, sessionsExpired: expired }),
    close: () => cancelSweep(),
  }

  // ---- connections

  async function open({ clientId, identity, owner }: SessionClient): Promise<OpenedSession> {
    const name = sessionNameOf(clientId, identity)
    let session = sessions.get(name.key)
    if (session !== undefined && isExpired(session)) {
      remove(session)
      expired += 1
      session = undefined
    }
    const present = session !== undefined
    if (session === undefined) {
      makeRoom(owner)
      session = newSession(name, messages, options)
      sessions.set(name.key, session)
      session.created = create(session)
    }
    session.connections += 1
    owners.used(session, owner)
    touch(session)
    try {
      await session.created
    } catch (error) {
      session.connections -= 1
      throw error
    }
    return { session, present }
  }

  async function create(session: StoredSession): Promise<void> {
    try {
      writeUse(session)
      await durable()
    } catch (error) {
      if (sessions.get(session.name.key) === session) sessions.delete(session.name.key)
      owners.removed(session)
      session.ended = true
      throw error
    }
  }

  async function openClean({ clientId, identity }: SessionClient): Promise<OpenedSession> {
    const stored = sessions.get(sessionNameOf(clientId, identity).key)
    if (stored !== undefined) {
      remove(stored)
      await durable()
    }
    return { session: newSession(null, messages, options), present: false }
  }

  function closed(session: ClientSession): void {
    const ended = session as Session
    ended.connections -= 1
    if (isStored(ended) && !ended.ended) touch(ended)
    else forgetAll(ended, messages)
  }

  function touch(session: StoredSession): void {
    session.usedAtMs = clock.monotonic()
    sessions.delete(session.name.key)
    sessions.set(session.name.key, session)
    owners.touched(session)
    if (!restored || clock.monotonic() - session.writtenAtMs <= sessionExpiryMs * refreshShare) return
    try {
      writeUse(session)
    } catch {
      // The store is closed: this is the end of the process.
      restored = false
    }
  }

  function writeUse(session: StoredSession): void {
    session.writtenAtMs = clock.monotonic()
    put(sessionRecordName(session.name.key), usedRecord(ourTime.now()))
  }

  // ---- bounds

  function makeRoom(owner: string): void {
    if (sessions.size < sessionsMax) return
    const session = owners.oldestFor(owner)
    if (session === null) return
    evict(session, 'max_sessions')
  }

  /** A twentieth at once, those with most first: sorting costs as much as thousands of messages. */
  function makeMessageRoom(): void {
    if (!restored) return
    const target = options.unreleasedTotalMax * (1 - 1 / 20)
    const idle = [...sessions.values()].filter((one) => one.connections === 0 && one.unreleased.size > 0)
    for (const session of idle.sort((a, b) => b.unreleased.size - a.unreleased.size)) {
      if (messages.total <= target) return
      evict(session, 'max_unreleased_messages_total')
    }
  }

  function evict(session: StoredSession, reason: EvictionReason): void {
    const owner = owners.ownerOf(session)
    remove(session)
    evicted += 1
    emit({ kind: 'session_evicted', clientId: session.name.clientId, owner, reason })
  }

  function isExpired(session: Session): boolean {
    if (session.connections > 0) return false
    const { usedAtMs, usedAt } = session
    if (usedAtMs !== null) return clock.monotonic() - usedAtMs > sessionExpiryMs
    const offsetMs = ourTime.offsetMs()
    // While our time is not known, nothing is judged by it.
    return offsetMs !== null && ourTime.now() + offsetMs - usedAt > sessionExpiryMs
  }

  /** The deletions go into the group that is open. */
  function remove(session: StoredSession): void {
    const { key } = session.name
    for (const messageId of session.unreleased.keys()) put(unreleasedRecordName(key, messageId), null)
    put(sessionRecordName(key), null)
    sessions.delete(key)
    owners.removed(session)
    session.ended = true
    forgetAll(session, messages)
  }

  function scheduleSweep(): CancelTimer {
    return clock.after(Math.min(sweepMs, sessionExpiryMs), () => {
      if (restored) sweep()
      cancelSweep = scheduleSweep()
    })
  }

  function sweep(): void {
    for (const session of Array.from(sessions.values())) {
      if (isExpired(session)) {
        remove(session)
        expired += 1
      } else if (session.connections > 0) touch(session)
    }
    // No caller waits for this write. If it fails, all entries are read from the store again.
    spool.endMessage(() => {})
  }

  // ---- the spool

  /** Throws where the store is lost. */
  function put(name: string, value: Buffer | null): void {
    if (!restored) throw new Error('the sessions are not read again yet')
    spool.putSession(name, value)
  }

  function durable(): Promise<void> {
    return new Promise((resolve, reject) => {
      spool.endMessage((fault: GatewayError | null) => (fault === null ? resolve() : reject(fault)))
    })
  }

  async function restore(): Promise<void> {
    const found = new Map<string, StoredSession>()
    messages.total = 0
    for (const { unreleased } of sessions.values()) unreleased.clear()
    for await (const { key, value } of spool.sessionRecords()) {
      const record = recordOf(key, value)
      if (record === null) continue
      const { name } = record
      const session = found.get(name.key) ?? sessions.get(name.key) ?? newSession(name, messages, options)
      found.set(name.key, session)
      if (record.kind === 'session') {
        session.usedAt = record.usedAt
        if (!sessions.has(name.key)) session.usedAtMs = null
      } else {
        session.know(record.messageId, record.checksum)
        messages.total += 1
      }
    }
    restored = true
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
}

/** Sessions of earlier processes first, each by the time of its last use. */
function byUse(a: Session, b: Session): number {
  return (a.usedAtMs ?? -1) - (b.usedAtMs ?? -1) || a.usedAt - b.usedAt
}
