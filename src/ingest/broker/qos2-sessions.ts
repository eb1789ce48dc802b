// qos2-sessions.ts: the session store for aedes, reduced to what a gateway without subscribers needs.
//
// Of a session only the QoS 2 messages matter that were received and not released yet. Until PUBREL the same
// packet identifier with the same content is the same message (MQTT 4.3.3, method B), so it must have no
// second effect. Content is compared by a fingerprint: a device that lost its memory starts again at
// identifier 1, and its new message must not count as the old one. After a restart of the gateway this store
// is empty; then the dedup window of the spool recognises a DUP.
//
// Wills, retained messages and subscriptions are not stored: a will is taken when its connection breaks, and
// nothing is ever sent to a client. Everything else that aedes asks for is answered with "none".

import { Readable } from 'node:stream'
import { crc32 } from 'node:zlib'

/** A QoS 2 message compared with its session; `too many` where the session is full. */
export type Arrival = 'new' | 'known' | 'too many'

export type Sessions = {
  arrive(clientId: string, messageId: number, topic: string, bytes: Buffer): Arrival
  /** The message was not stored after all: the next one with this identifier is new. */
  forget(clientId: string, messageId: number): void
  /** The persistence for aedes. */
  persistence: Persistence
}

type SessionsOptions = {
  /** Of one client. A packet identifier has 16 bits, so this bounds memory, not correctness. */
  unreleasedMax: number
  /** Of all clients: beyond it the oldest session is forgotten. */
  unreleasedTotalMax: number
}

const defaults: SessionsOptions = { unreleasedMax: 10_000, unreleasedTotalMax: 1_000_000 }

type Named = { id: string }
type Numbered = { messageId: number }

type Persistence = ReturnType<typeof persistenceOver>

export function createSessions(options: SessionsOptions = defaults): Sessions {
  const sessions = new Map<string, Map<number, number>>()
  let total = 0

  function arrive(clientId: string, messageId: number, topic: string, bytes: Buffer): Arrival {
    const fingerprint = crc32(bytes, crc32(topic))
    let session = sessions.get(clientId)
    const known = session?.get(messageId)
    if (known === fingerprint) return 'known'
    if (session === undefined) {
      session = new Map()
      sessions.set(clientId, session)
    }
    if (known === undefined) {
      if (session.size >= options.unreleasedMax) return 'too many'
      total += 1
    }
    session.set(messageId, fingerprint)
    if (total > options.unreleasedTotalMax) forgetOldest(clientId)
    return 'new'
  }

  function forgetOldest(clientId: string): void {
    for (const oldest of sessions.keys()) {
      if (oldest === clientId) continue
      end(oldest)
      return
    }
  }

  function release(clientId: string, messageId: number): void {
    const session = sessions.get(clientId)
    if (!session?.delete(messageId)) return
    total -= 1
    if (session.size === 0) sessions.delete(clientId)
  }

  function end(clientId: string): void {
    total -= sessions.get(clientId)?.size ?? 0
    sessions.delete(clientId)
  }

  const persistence = persistenceOver({
    has: (clientId, messageId) => sessions.get(clientId)?.has(messageId) ?? false,
    release,
    end,
  })
  return { arrive, forget: release, persistence }
}

type Store = {
  has(clientId: string, messageId: number): boolean
  release(clientId: string, messageId: number): void
  end(clientId: string): void
}

/** The part of aedes-persistence that aedes 1.2 calls without subscriptions. */
function persistenceOver(store: Store) {
  return {
    async setup() {},
    async subscriptionsByClient() {
      return []
    },
    async cleanSubscriptions() {},
    async removeSubscriptions() {},
    async putWill() {},
    async delWill() {},
    streamWill: () => Readable.from([]),
    outgoingStream: () => Readable.from([]),
    /** A reply to a message that was never sent. */
    async outgoingClearMessageId() {},
    async outgoingUpdate() {},
    async incomingGetPacket(client: Named, packet: Numbered) {
      return store.has(client.id, packet.messageId) ? packet : undefined
    },
    async incomingDelPacket(client: Named, packet: Numbered) {
      store.release(client.id, packet.messageId)
    },
    /** [MQTT-3.1.2-6]: a clean session begins and ends with its connection. */
    async cleanIncoming(client: Named) {
      store.end(client.id)
    },
  }
}
