// untimed-resends.ts: decides whether a message without a device time that arrives with DUP is a duplicate.
//
// A payload with a device time has a key of its own in the dedup window. A message without one has none: a
// parked van sends the same bytes again and again, and each is a reading. Only the packet identifier tells
// two of them apart, and clients use identifiers again. So every such message is entered here under its
// client and packet identifier, with a hash of topic and bytes. "Untimed" includes what is kept whole: dead
// letters, and quarantined messages.
//
// DUP says that the client sent the message before, not that it arrived. If its first transmission was lost,
// an older message under the same identifier can look the same. Nothing is lost within a connection, so a
// mistake needs a client that got the ack of the older message, used its identifier again for equal bytes on
// the same connection, and lost that connection before the new message arrived here.
//
// A DUP is a duplicate if it equals the last message under its identifier, and
//   that one came on this connection: TCP keeps the order, so no other one was sent between, or
//   that one came on the client's previous connection and its ack was never written, or
//   that one came on the client's previous connection, or before our restart, and nothing shows that its ack
//   has arrived or that its identifier may have been used again:
//     the client disconnected with DISCONNECT
//     the client sent a PINGREQ after the PINGRESP that followed the ack
//     the client used an identifier twice within a connection: it takes free identifiers again at once, so
//     each of its identifiers may stand for a later message
//     the message was a DUP itself, and the client's new identifiers have come close to its own since: it
//     counts from 1 on each connection
//   A connection on which nothing came is skipped for this, if the client has shown that it goes on to count
//   over connections: the identifier can stand for no other message then.
// With QoS 2 the identifier is in use until PUBREL, so nothing is open there: a DUP that equals the last
// message under its identifier is a duplicate until PUBREL came.
// Everything else is stored, and counted as `resendsStored`: a second reading is better than a lost one.
//
// What stays open: the first message that a client ever sends under an identifier that it uses again at once,
// where that connection breaks right then. Nothing on the wire tells it from a lost ack.
//
// known-clients.ts holds the entries: durable with their messages, and bounded.

import { assertNever } from '../../std/assert.ts'
import type { Clock } from '../../std/clock.ts'
import { messageKeyOf, type MapResult } from '../../mapping/mapping.ts'
import type { ClientEntry, ClientLink, IntakeSpool, KnownClient, ReceivedMessage } from '../types.ts'
import { createKnownClients, noteFirst, type KnownClientOptions, type KnownClients } from './known-clients.ts'

export type UntimedResends = Pick<KnownClients, 'connect' | 'disconnect' | 'restore'> & {
  /** Whether a message with DUP was stored before. */
  isDuplicate(message: ReceivedMessage): boolean
  /** The message was stored (`untimed`, `other`), or is a duplicate; noted in the group that is open. */
  enter(message: ReceivedMessage, what: Entered): void
  /**
   * The client has released its QoS 2 message. Resolves when that is durable: the client may use the
   * identifier again after PUBCOMP only. Null where no entry is released.
   */
  release(link: ClientLink, messageId: number): Promise<void> | null
  counters(): ResendCounters
}

type Entered = 'untimed' | 'other' | 'duplicate'

export type ResendCounters = {
  /** Messages without a device time that arrived with DUP and were stored: some may be second copies. */
  resendsStored: number
  /** Entries that were forgotten at the bound and not for their age. */
  identifiersForgotten: number
}

/** A client that counts its identifiers up uses one again after 65,535 messages; sooner shows another way. */
const roundMessages = 30_000
/** How many messages a client may have in flight that counts from 1 on each connection. */
const aheadMax = 64
const identifiers = 65_535
/** Digits of a hash that an entry holds: 48 bits. */
const hashDigits = 12

export function createUntimedResends(
  { clock, spool }: { clock: Clock; spool: Pick<IntakeSpool, 'note' | 'endMessage'> },
  options?: KnownClientOptions,
): UntimedResends {
  const known = createKnownClients({ clock, spool }, options)
  let resendsStored = 0
  return {
    connect: known.connect,
    disconnect: known.disconnect,
    restore: known.restore,
    isDuplicate,
    enter,
    release,
    counters: () => ({ resendsStored, identifiersForgotten: known.forgotten() }),
  }

  function isDuplicate(message: ReceivedMessage): boolean {
    const { link, messageId = 0 } = message
    const entry = link?.client.entries.get(messageId)
    if (!link || entry === undefined || entry.qos !== message.qos) return false
    if (entry.hash !== hashOf(message)) return false
    if (entry.qos === 2 || entry.connection === link.connection) return true
    if (entry.connection !== link.previousConnection) return false
    const { client, previous } = link
    if (link.isLater && !client.countsOn) return false
    if (previous !== null && entry.ordinal >= previous.acked) return true
    if (client.reuses || (previous !== null && Math.max(0, entry.ordinal) < previous.confirmed)) return false
    return !(entry.resent && comesClose(client, entry))
  }

  /** The client may have counted up to the identifier again on the connection of the entry. */
  function comesClose({ lastFirst, firstBefore }: KnownClient, entry: ClientEntry): boolean {
    const last = [lastFirst, firstBefore].find(({ connection }) => connection === entry.connection)
    const ahead = (entry.messageId - (last?.messageId ?? 0) + identifiers) % identifiers
    return ahead >= 1 && ahead <= aheadMax
  }

  function enter(message: ReceivedMessage, what: Entered): void {
    const { link, messageId = 0, dup } = message
    if (dup && what === 'untimed') resendsStored += 1
    if (!link) return
    const { client } = link
    const before = client.entries.get(messageId)
    // Other messages matter only where they take the identifier of an untimed one.
    if (what === 'other' && before === undefined) return
    if (!dup) {
      if (before?.connection === link.connection && client.entered - before.place < roundMessages)
        client.reuses = true
      noteWay(client, message)
      noteFirst(client, messageId, link.connection)
    }
    const entry: ClientEntry = {
      client,
      messageId,
      qos: message.qos,
      hash: what === 'other' ? null : hashOf(message),
      connection: link.connection,
      ordinal: message.ordinal ?? 0,
      place: client.entered,
      resent: dup,
      addedAtMs: clock.monotonic(),
    }
    known.add(entry)
  }

  /** Whether the client goes on to count over connections: the first message of each shows it. */
  function noteWay(client: KnownClient, { link, messageId, ordinal }: ReceivedMessage): void {
    const { connection, messageId: last } = client.lastFirst
    if (connection === 0 || connection === link?.connection) return
    client.countsOn = messageId === (last % identifiers) + 1 && (ordinal === 0 || client.countsOn)
  }

  function release({ client, connection }: ClientLink, messageId: number): Promise<void> | null {
    const entry = client.entries.get(messageId)
    // A release that waited for the store may come after a message of the next connection.
    if (entry?.qos !== 2 || entry.connection > connection) return null
    known.remove(entry)
    // If the write fails, all entries are read from the store again.
    return new Promise((resolve, reject) => {
      spool.endMessage((fault) => (fault === null ? resolve() : reject(fault)))
    })
  }
}

/** A PINGREQ of the client: it has read the PINGRESP before it, and every ack before that. */
export function notePing(link: ClientLink): void {
  link.isHeard = true
  link.confirmed = link.ackedAtPing
  link.ackedAtPing = link.acked
}

function hashOf(message: ReceivedMessage): number {
  return Number.parseInt(messageKeyOf(message).slice(0, hashDigits), 16)
}

/** Part of it has no device time, or is kept: its packet identifier tells whether it was resent. */
export function isUntimed(result: MapResult): boolean {
  if (result.rest !== undefined) return true
  switch (result.kind) {
    case 'payloads':
      for (const { duplicateRule } of result.payloads) if (duplicateRule === 'resend') return true
      return false
    case 'part':
      return result.duplicateRule === 'resend'
    case 'ignored':
      return false
    case 'quarantined':
    case 'unmappable':
      return true
    default:
      return assertNever(result)
  }
}

/** Whether the dedup window knows all that the message becomes. */
export function isStored(result: MapResult, spool: Pick<IntakeSpool, 'hasWindowKey'>): boolean {
  if (result.kind !== 'payloads' && result.kind !== 'part') return false
  const all = result.kind === 'part' ? [result] : result.payloads
  return (
    all.length > 0 &&
    all.every(({ duplicateRule, windowKey }) => duplicateRule === 'always' && spool.hasWindowKey(windowKey))
  )
}
