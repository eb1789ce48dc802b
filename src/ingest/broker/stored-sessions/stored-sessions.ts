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
  newSession,
  type MessageDeps,
  type Session,
  type UnreleasedLimits,
} from './client-session.ts'
import { createSessionOwners } from './session-owners.ts'
import { recordOf, sessionName, unreleasedName, usedRecord } from './session-record-codec.ts'

export type StoredSessions = {
  /**
   * The session of a client; `present` where it was stored before. Rejects where it cannot be stored.
   * `owner`: see session-owners.ts.
   */
  open(clientId: string, owner: string): Promise<OpenedSession>
  /** The session of a connection with Clean Session; deletes the one that is stored. */
  openClean(clientId: string): Promise<OpenedSession>
  /** A connection with this session has ended. */
  closed(session: ClientSession): void
  /** The store is lost: nothing is stored until `restore`. */
  lost(): void
  restore(): Promise<void>
  counters(): SessionCounters
  close(): void
}

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
  /** The session that was used longest ago is first. */
  const sessions = new Map<string, Session>()
  const owners = createSessionOwners(sessionsMax)
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

  async function open(clientId: string, owner: string): Promise<OpenedSession> {
    let session = sessions.get(clientId)
    if (session !== undefined && isExpired(session)) {
      remove(session)
      expired += 1
      session = undefined
    }
    const present = session !== undefined
    if (session === undefined) {
      makeRoom(owner)
      session = newSession(clientId, messages, options)
      sessions.set(clientId, session)
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

  async function create(session: Session): Promise<void> {
    try {
      writeUse(session)
      await durable()
    } catch (error) {
      if (sessions.get(session.clientId) === session) sessions.delete(session.clientId)
      owners.removed(session)
      session.ended = true
      throw error
    }
  }

  async function openClean(clientId: string): Promise<OpenedSession> {
    const stored = sessions.get(clientId)
    if (stored !== undefined) {
      remove(stored)
      await durable()
    }
    return { session: newSession(null, messages, options), present: false }
  }

  function closed(session: ClientSession): void {
    const ended = session as Session
    ended.connections -= 1
    if (ended.stored && !ended.ended) touch(ended)
    else forgetAll(ended, messages)
  }

  function touch(session: Session): void {
    session.usedAtMs = clock.monotonic()
    sessions.delete(session.clientId)
    sessions.set(session.clientId, session)
    owners.touched(session)
    if (!restored || clock.monotonic() - session.writtenAtMs <= sessionExpiryMs * refreshShare) return
    try {
      writeUse(session)
    } catch {
      // The store is closed: this is the end of the process.
      restored = false
    }
  }

  function writeUse(session: Session): void {
    session.writtenAtMs = clock.monotonic()
    put(sessionName(session.clientId), usedRecord(ourTime.now()))
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

  function evict(session: Session, reason: EvictionReason): void {
    const owner = owners.ownerOf(session)
    remove(session)
    evicted += 1
    emit({ kind: 'session_evicted', clientId: session.clientId, owner, reason })
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
  function remove(session: Session): void {
    for (const messageId of session.unreleased.keys()) put(unreleasedName(session.clientId, messageId), null)
    put(sessionName(session.clientId), null)
    sessions.delete(session.clientId)
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
    const found = new Map<string, Session>()
    messages.total = 0
    for (const { unreleased } of sessions.values()) unreleased.clear()
    for await (const { key, value } of spool.sessionRecords()) {
      const record = recordOf(key, value)
      if (record === null) continue
      const session =
        found.get(record.clientId) ??
        sessions.get(record.clientId) ??
        newSession(record.clientId, messages, options)
      found.set(record.clientId, session)
      if (record.kind === 'session') {
        session.usedAt = record.usedAt
        if (!sessions.has(record.clientId)) session.usedAtMs = null
      } else {
        session.unreleased.set(record.messageId, record.checksum)
        messages.total += 1
      }
    }
    restored = true
    const before = new Set(sessions.values())
    sessions.clear()
    for (const session of [...found.values()].sort(byUse)) {
      sessions.set(session.clientId, session)
      if (!before.has(session)) owners.found(session)
    }
    for (const session of before) {
      if (found.has(session.clientId)) continue
      owners.removed(session)
      session.ended = true
    }
  }
}

/** Sessions of earlier processes first, each by the time of its last use. */
function byUse(a: Session, b: Session): number {
  return (a.usedAtMs ?? -1) - (b.usedAtMs ?? -1) || a.usedAt - b.usedAt
}
