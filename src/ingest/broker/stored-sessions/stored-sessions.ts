// stored-sessions.ts: the sessions of clients that connect without Clean Session (MQTT 3.1.1, 3.1.2.4), or
// with a Session Expiry Interval (MQTT 5, 3.1.2.11.2), and the QoS 2 messages that were received and not
// released. Nothing else of a session exists in a gateway that sends nothing to its clients.
//
// Invariants
//   Until PUBREL the same packet identifier with the same content is the same message (MQTT 4.3.3, method B).
//   Content is compared by a checksum: a device that lost its memory starts again at identifier 1.
//   The identifier is in the same write as its message, so PUBREC, which follows that write, promises both.
//   PUBCOMP follows the write that deletes the identifier. Before that, a crash leaves an identifier that the
//   client releases again; after it, the client may use it for another message.
//   CONNACK says that a session is present exactly where one is stored and not expired [MQTT-3.2.2-2]:
//   clients forget their unacknowledged messages where it is not. So a new session is durable before its
//   CONNACK, and a refusal is the answer where it cannot be (CONNACK 3, in MQTT 5 0x88). So is a changed
//   expiry, and the use of a session that was long unused: after a power cut it would have expired by the use
//   before. A clean start deletes what was stored before its CONNACK.
//
//   CONNECT --open--> record durable --> CONNACK      PUBLISH --> message + identifier durable --> PUBREC
//   CONNECT (clean) --remove--> deletion durable --> CONNACK         PUBREL --> deletion durable --> PUBCOMP
//
//   start, expiry    what is stored                    session present    MQTT 3.1.1
//   clean, 0         is deleted                        no                 Clean Session 1
//   clean, above 0   is deleted, and a new one begins  no
//   resume, above 0  goes on, or a new one begins      where it goes on   Clean Session 0: the setting
//   resume, 0        goes on until the connection ends where it goes on
//
// The last CONNECT decides the expiry, whichever version it has; a DISCONNECT of MQTT 5 may change it. No
// answer waits for this change: a crash before it is durable leaves the expiry of the CONNECT.
//
// The messages of a session that is not stored are in memory, and end with its connection.
//
// A session belongs to an identity and a client id together: another identity with the same client id has a
// session of its own, and neither releases nor deletes what the first one stored. A client whose user name
// was changed starts a new session; the old one expires. Anonymous clients with one client id share one.
//
// Bounds: `sessionsMax` sessions. At the bound a session without a connection is removed, reported and
// counted (session-owners.ts chooses it). One that was not used for its expiry is removed, and counted
// (session-expiry.ts). client-session.ts bounds the messages.
//
// After the store was lost, everything is read again: a failed write may be on the disk or not.

import { timeUnknown, type OurTime } from '../../../domain/arrival.ts'
import type { Emit } from '../../../domain/event.ts'
import type { GatewayError } from '../../../std/gateway-error.ts'
import { every, type Clock } from '../../../std/clock.ts'
import type { ClientSession, IntakeSpool } from '../../types.ts'
import {
  forgetAll,
  isStored,
  newSession,
  type MessageDeps,
  type OpenedSession,
  type Session,
  type SessionClient,
  type StoredSession,
  type UnreleasedLimits,
} from './client-session.ts'
import { createSessionExpiry, sweepMs } from './session-expiry.ts'
import { createSessionOwners } from './session-owners.ts'
import {
  sessionNameOf,
  sessionRecordName,
  unreleasedRecordName,
  usedRecord,
  type SessionName,
} from './session-record-codec.ts'
import { restoreSessions } from './session-restore.ts'
import { createSessionRoom } from './session-room.ts'

export type StoredSessions = {
  /** The session of a connection. Rejects where it cannot be stored, or what is stored cannot be deleted. */
  open(client: SessionClient): Promise<OpenedSession>
  /**
   * A DISCONNECT has changed the expiry; returns the granted one. It must not be above 0 where the CONNECT
   * had 0. Of a session that a later connection has taken over nothing changes.
   */
  changeExpiry(session: ClientSession, expiryMs: number): number
  /** A connection with this session has ended. */
  closed(session: ClientSession): void
  /** The store is lost: nothing is stored until `restore`. */
  lost(): void
  restore(): Promise<void>
  counters(): SessionCounters
  close(): void
}

export type { OpenedSession, SessionClient } from './client-session.ts'

export type SessionCounters = {
  /** Stored now. */
  sessions: number
  sessionsEvicted: number
  sessionsExpired: number
}

export type SessionOptions = UnreleasedLimits & { sessionsMax: number; sessionExpiryMs: number }

type Deps = {
  spool: Pick<IntakeSpool, 'putSession' | 'sessionRecords' | 'endMessage'>
  clock: Clock
  ourTime: Pick<OurTime, 'now' | 'offsetMs'>
  emit: Emit
}

export function createStoredSessions(deps: Deps, options: SessionOptions): StoredSessions {
  const { spool, clock, emit } = deps
  /** By their keys. The session that was used longest ago is first. */
  const sessions = new Map<string, StoredSession>()
  const owners = createSessionOwners<StoredSession>(options.sessionsMax)
  const expiry = createSessionExpiry(deps, options)
  const messages: MessageDeps = {
    put,
    durable,
    clock,
    total: 0,
    makeRoom: () => restored && room.makeMessageRoom(),
  }
  const room = createSessionRoom({ sessions, owners, messages, remove, emit }, options)
  let restored = false
  let expired = 0
  const endSweeps = every(clock, Math.min(sweepMs, options.sessionExpiryMs), () => {
    if (restored) attempt(sweep)
  })
  return {
    open,
    changeExpiry,
    closed,
    lost() {
      restored = false
    },
    restore,
    counters: () => ({ sessions: sessions.size, sessionsEvicted: room.evicted(), sessionsExpired: expired }),
    close: endSweeps,
  }

  // ---- connections

  async function open({ start, expiryMs: askedMs, ...client }: SessionClient): Promise<OpenedSession> {
    const name = sessionNameOf(client.clientId, client.identity)
    const expiryMs = expiry.granted(askedMs)
    const stored = sessions.get(name.key)
    const found = start === 'resume' && stored !== undefined && goesOn(stored) ? stored : null
    if (stored !== undefined && found === null) {
      if (start === 'resume' && expiry.isExpired(stored)) expired += 1
      remove(stored)
    }
    if (found === null && expiryMs === 0) {
      if (stored !== undefined) await durable()
      return { session: newSession(null, messages, options), present: false, expiryMs }
    }
    const session = found ?? create(name, client.owner, expiryMs)
    await connect(session, client.owner, expiryMs)
    return { session, present: found !== null, expiryMs: expiry.of(session) }
  }

  /** A session with expiry 0 ends when another connection takes over from its own. */
  function goesOn(session: StoredSession): boolean {
    return session.expiryMs > 0 && !expiry.isExpired(session)
  }

  function create(name: SessionName, owner: string, expiryMs: number): StoredSession {
    room.makeRoom(owner)
    const session = newSession(name, messages, options)
    session.expiryMs = expiryMs
    sessions.set(name.key, session)
    session.created = writeNew(session)
    return session
  }

  async function writeNew(session: StoredSession): Promise<void> {
    try {
      await writeDurably(session)
    } catch (error) {
      if (sessions.get(session.name.key) === session) sessions.delete(session.name.key)
      owners.removed(session)
      session.ended = true
      throw error
    }
  }

  async function connect(session: StoredSession, owner: string, expiryMs: number): Promise<void> {
    const before = session.expiryMs
    session.connections += 1
    owners.used(session, owner)
    session.expiryMs = expiryMs
    const written = before === expiryMs && !isUseOld(session) ? null : writeDurably(session)
    touch(session)
    try {
      await Promise.all([session.created, written])
    } catch (error) {
      session.connections -= 1
      session.expiryMs = before
      throw error
    }
  }

  function changeExpiry(session: ClientSession, expiryMs: number): number {
    const changed = session as Session
    if (isStored(changed) && !changed.ended && changed.connections === 1) {
      changed.expiryMs = expiry.granted(expiryMs)
      write(() => writeUse(changed))
    }
    return expiry.of(changed)
  }

  function closed(session: ClientSession): void {
    const ended = session as Session
    ended.connections -= 1
    if (!isStored(ended) || ended.ended) forgetAll(ended, messages)
    else if (ended.expiryMs === 0 && ended.connections === 0) write(() => remove(ended))
    else touch(ended)
  }

  function touch(session: StoredSession): void {
    session.usedAtMs = clock.monotonic()
    sessions.delete(session.name.key)
    sessions.set(session.name.key, session)
    owners.touched(session)
    if (restored && isUseOld(session)) attempt(() => writeUse(session))
  }

  /** The time of use on the disk is older than is allowed for after a restart (session-expiry.ts). */
  function isUseOld(session: StoredSession): boolean {
    return clock.monotonic() - session.writtenAtMs > expiry.refreshMs(session)
  }

  function writeUse(session: StoredSession): void {
    session.writtenAtMs = clock.monotonic()
    session.usedAt = expiry.usedAtOf(session)
    put(sessionRecordName(session.name.key), usedRecord(session.usedAt, session.expiryMs))
  }

  async function writeDurably(session: StoredSession): Promise<void> {
    writeUse(session)
    await durable()
  }

  // ---- the end of a session

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

  function sweep(): void {
    for (const session of Array.from(sessions.values())) {
      if (expiry.isExpired(session)) {
        remove(session)
        expired += 1
        continue
      }
      if (session.connections > 0) touch(session)
      if (session.usedAt === timeUnknown && deps.ourTime.offsetMs() !== null) writeUse(session)
    }
    endGroup()
  }

  // ---- the spool

  /** Throws where the store is lost. */
  function put(name: string, value: Buffer | null): void {
    if (!restored) throw new Error('the sessions are not read again yet')
    spool.putSession(name, value)
  }

  function write(change: () => void): void {
    if (!restored) return
    attempt(() => {
      change()
      endGroup()
    })
  }

  /** No caller waits. If the write fails, all entries are read from the store again. */
  function endGroup(): void {
    spool.endMessage(() => {}, Infinity)
  }

  function attempt(change: () => void): void {
    try {
      change()
    } catch {
      // The store is closed: this is the end of the process.
      restored = false
    }
  }

  function durable(): Promise<void> {
    return new Promise((resolve, reject) => {
      spool.endMessage((fault: GatewayError | null) => (fault === null ? resolve() : reject(fault)))
    })
  }

  async function restore(): Promise<void> {
    const create = (name: SessionName) => newSession(name, messages, options)
    await restoreSessions(spool, { sessions, owners, messages, create })
    restored = true
  }
}
