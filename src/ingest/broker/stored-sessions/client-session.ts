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
  /** Of a message that is durable. */
  know(messageId: number, checksum: number): void
  /** Open connections with it. */
  connections: number
  /** Last use: monotonic, or null and the wall clock of its record where that was before this process. */
  usedAtMs: number | null
  usedAt: number
  /** How long it is kept without a connection; Infinity where the setting decides, 0 where it is not. */
  expiryMs: number
  /** When its record was written last, monotonic. */
  writtenAtMs: number
  /** Resolves when its record is durable. */
  created: Promise<void>
  /** Discarded, expired or evicted: nothing of it is written any more. */
  ended: boolean
}

export type SessionClient = {
  clientId: string
  identity: string | null
  /** Pays for it at the bound: see session-owners.ts. */
  owner: string
  /** Clean Start; in MQTT 3.1.1 Clean Session. */
  start: 'clean' | 'resume'
  /** That the client asks for. 0: it ends with the connection. Infinity: as long as the setting. */
  expiryMs: number
}

/** `present` where it was stored before; `expiryMs` as granted. */
export type OpenedSession = { session: ClientSession; present: boolean; expiryMs: number }

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
  limits: UnreleasedLimits,
): Session & { readonly name: Name } {
  return new OpenSession(name, deps, limits)
}

const done = Promise.resolve()
/** Most clients never send QoS 2. Nothing is added to this one. */
const noMessages = new Map<number, number>()

/** A class, because there is one for each connection (gate.ts). */
class OpenSession<Name extends SessionName | null> implements Session {
  readonly name: Name
  unreleased = noMessages
  connections: number
  usedAtMs: number | null
  usedAt = 0
  expiryMs: number
  writtenAtMs = Number.NEGATIVE_INFINITY
  created: Promise<void> = done
  ended = false
  private readonly deps: MessageDeps
  private readonly limits: UnreleasedLimits

  constructor(name: Name, deps: MessageDeps, limits: UnreleasedLimits) {
    this.name = name
    this.connections = name === null ? 1 : 0
    this.usedAtMs = deps.clock.monotonic()
    this.expiryMs = name === null ? 0 : Number.POSITIVE_INFINITY
    this.deps = deps
    this.limits = limits
  }

  get stored(): boolean {
    return this.name !== null
  }

  get unreleasedCount(): number {
    return this.unreleased.size
  }

  isFull(messageId: number): boolean {
    const { deps, limits, unreleased } = this
    if (unreleased.has(messageId)) return false
    if (unreleased.size >= limits.unreleasedMax) return true
    if (deps.total >= limits.unreleasedTotalMax) deps.makeRoom()
    return deps.total >= limits.unreleasedTotalMax
  }

  holds(messageId: number, checksum: number): boolean {
    return this.unreleased.get(messageId) === checksum
  }

  add(messageId: number, checksum: number): void {
    if (this.ended) return
    if (!this.unreleased.has(messageId)) this.deps.total += 1
    this.know(messageId, checksum)
    if (this.name !== null)
      this.deps.put(unreleasedRecordName(this.name.key, messageId), checksumRecord(checksum))
  }

  know(messageId: number, checksum: number): void {
    if (this.unreleased === noMessages) this.unreleased = new Map()
    this.unreleased.set(messageId, checksum)
  }

  forget(messageId: number): void {
    forget(this, this.deps, messageId)
  }

  release(messageId: number): Promise<boolean> {
    return release(this, this.deps, messageId)
  }
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
