// known-clients.ts: the clients of the embedded broker, and the last untimed message under each of their
// packet identifiers. untimed-resends.ts decides by them.
//
// Durable: each entry is noted in the journal of the spool, in the same write as its message, and read back
// after a start and after the store was reopened. Which acks were written, and PINGREQ and DISCONNECT, are
// not known then.
//
// Bounds: `entriesMax` entries of all clients and `windowMs`; what leaves for the first bound is counted
// (`identifiersForgotten`). `clientsMax` clients; the ones that disconnected first leave with their entries.

import { hash } from 'node:crypto'
import { clientNameOf } from '../../domain/message.ts'
import type { Clock } from '../../std/clock.ts'
import type { JournalEntries } from '../../spool/spool.ts'
import type { ClientEntry, ClientLink, IntakeSpool, KnownClient } from '../types.ts'

export type KnownClients = {
  /** A client has connected. Another identity with its client id is another client. */
  connect(clientId: string, identity: string | null): ClientLink
  /** `clean`: with DISCONNECT. */
  disconnect(link: ClientLink, clean: boolean): void
  /** Replaces the entry of its identifier, and notes it in the group that is open. */
  add(entry: ClientEntry): void
  /** The identifier is free; noted in the group that is open. */
  remove(entry: ClientEntry): void
  /** Replaces everything by what is durable. */
  restore(journal: AsyncIterable<JournalEntries>): Promise<void>
  /** Entries that were forgotten at a bound and not for their age. */
  forgotten(): number
}

export type KnownClientOptions = { windowMs: number; entriesMax: number; clientsMax: number }

const defaults: KnownClientOptions = { windowMs: 600_000, entriesMax: 200_000, clientsMax: 100_000 }

/** Looked at with each connection, to forget clients. */
const checkedPerConnect = 8

/** Of clients whose messages have a device time. Nothing is added to this one. */
const noEntries = new Map<number, ClientEntry>()

const hashBytes = 6
/** client (6), hash (6), connection (4), packet identifier (2), flags (1), 0 (1) */
const entryBytes = 20
const flagResent = 1
const flagReuses = 2
const flagOther = 4
const flagQoS2 = 8

export function createKnownClients(
  { clock, spool }: { clock: Clock; spool: Pick<IntakeSpool, 'note'> },
  options: KnownClientOptions = defaults,
): KnownClients {
  /** The clients that disconnected first are about first. */
  const clients = new Map<number, KnownClient>()
  /** In order of arrival from `first` on, those that were replaced since included. */
  let entries: ClientEntry[] = []
  let first = 0
  let lastConnection = 0
  let forgotten = 0
  const record = Buffer.alloc(entryBytes)
  return { connect, disconnect, add, remove, restore, forgotten: () => forgotten }

  // ---- connections

  function connect(clientId: string, identity: string | null): ClientLink {
    forgetClients()
    const digest = hash('sha256', clientNameOf({ clientId, identity }), 'hex')
    const client = clientOf(Number.parseInt(digest.slice(0, hashBytes * 2), 16))
    const { link: last } = client
    // Behind a connection on which nothing came, the one before it counts.
    const isLater = last !== null && last.received === 0 && !last.isHeard
    const previous = isLater ? last.previous : last
    const previousConnection = isLater ? last.previousConnection : client.lastConnection
    // Messages of the connection before it may still wait; older ones need it no longer.
    if (previous?.previous) previous.previous = null
    lastConnection += 1
    const numbers = {
      connection: lastConnection,
      received: 0,
      acked: 0,
      ackedAtPing: 0,
      confirmed: 0,
      ackedAtMs: clock.monotonic(),
    }
    const flags = { isLater, isHeard: false }
    const link: ClientLink = { client, previous, previousConnection, ...numbers, ...flags, session: null }
    client.link = link
    client.lastConnection = lastConnection
    client.closedAtMs = null
    return link
  }

  function clientOf(key: number): KnownClient {
    const known = clients.get(key)
    if (known !== undefined) return known
    const client: KnownClient = {
      key,
      link: null,
      lastConnection: 0,
      closedAtMs: clock.monotonic(),
      entries: noEntries,
      entered: 0,
      lastFirst: { messageId: 0, connection: 0 },
      firstBefore: { messageId: 0, connection: 0 },
      reuses: false,
      countsOn: false,
    }
    clients.set(key, client)
    return client
  }

  function disconnect(link: ClientLink, clean: boolean): void {
    if (clean) {
      link.confirmed = link.acked
      link.isHeard = true
    }
    const { client } = link
    if (client.link !== link) return
    client.closedAtMs = clock.monotonic()
    clients.delete(client.key)
    clients.set(client.key, client)
  }

  /** Forgets clients without entries that have been gone for a while, and others at the bound. */
  function forgetClients(): void {
    let checked = 0
    for (const [key, client] of clients) {
      if (checked === checkedPerConnect) return
      checked += 1
      const { closedAtMs } = client
      clients.delete(key)
      const isIdle =
        closedAtMs !== null && client.entries.size === 0 && clock.monotonic() - closedAtMs > options.windowMs
      const isTooMany = closedAtMs !== null && clients.size >= options.clientsMax
      if (isTooMany) {
        forgotten += client.entries.size
        client.entries.clear()
      }
      // Behind the others, so that the next call looks at those.
      if (!isIdle && !isTooMany) clients.set(key, client)
    }
  }

  // ---- entries

  function add(entry: ClientEntry): void {
    enter(entry)
    note(entry)
  }

  function remove(entry: ClientEntry): void {
    entry.client.entries.delete(entry.messageId)
    note({ ...entry, hash: null })
  }

  function enter(entry: ClientEntry): void {
    const { client } = entry
    client.entered += 1
    if (client.entries === noEntries) client.entries = new Map()
    client.entries.set(entry.messageId, entry)
    entries.push(entry)
    const { entriesMax, windowMs } = options
    for (; first < entries.length; first += 1) {
      const oldest = entries[first]!
      const isOld = entry.addedAtMs - oldest.addedAtMs > windowMs
      if (!isOld && entries.length - first <= entriesMax) break
      if (oldest.client.entries.get(oldest.messageId) !== oldest) continue
      oldest.client.entries.delete(oldest.messageId)
      if (!isOld) forgotten += 1
    }
    if (first < 1024 || first * 2 < entries.length) return
    entries = entries.slice(first)
    first = 0
  }

  // ---- the journal

  function note({ client, hash: content, connection, messageId, qos, resent }: ClientEntry): void {
    record.writeUIntBE(client.key, 0, hashBytes)
    record.writeUIntBE(content ?? 0, hashBytes, hashBytes)
    record.writeUInt32BE(connection, 12)
    record.writeUInt16BE(messageId, 16)
    record[18] =
      (resent ? flagResent : 0) |
      (client.reuses ? flagReuses : 0) |
      (content === null ? flagOther : 0) |
      (qos === 2 ? flagQoS2 : 0)
    spool.note(record)
  }

  async function restore(journal: AsyncIterable<JournalEntries>): Promise<void> {
    for (const client of clients.values()) client.entries.clear()
    entries = []
    first = 0
    for await (const { ageMs, entries: bytes } of journal) {
      const addedAtMs = clock.monotonic() - ageMs
      for (let at = 0; at + entryBytes <= bytes.length; at += entryBytes)
        enter(read(bytes.subarray(at, at + entryBytes), addedAtMs))
    }
  }

  function read(bytes: Buffer, addedAtMs: number): ClientEntry {
    const client = clientOf(bytes.readUIntBE(0, hashBytes))
    const flags = bytes[18] ?? 0
    const connection = bytes.readUInt32BE(12)
    const messageId = bytes.readUInt16BE(16)
    const resent = (flags & flagResent) !== 0
    client.reuses ||= (flags & flagReuses) !== 0
    client.lastConnection = Math.max(client.lastConnection, connection)
    lastConnection = Math.max(lastConnection, connection)
    if (!resent) noteFirst(client, messageId, connection)
    return {
      client,
      messageId,
      qos: (flags & flagQoS2) === 0 ? 1 : 2,
      hash: (flags & flagOther) === 0 ? bytes.readUIntBE(hashBytes, hashBytes) : null,
      connection,
      // Its ack may have been written.
      ordinal: -1,
      place: client.entered,
      resent,
      addedAtMs,
    }
  }
}

/** The client has used the identifier for a new message. */
export function noteFirst(client: KnownClient, messageId: number, connection: number): void {
  if (client.lastFirst.connection !== connection) client.firstBefore = { ...client.lastFirst }
  client.lastFirst.messageId = messageId
  client.lastFirst.connection = connection
}
