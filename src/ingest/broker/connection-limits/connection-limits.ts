// connection-limits.ts: how many connections there may be: in all, of one address, of one identity, and
// without an accepted CONNECT; and how many may be opened in a second (connect-rate.ts). The messages and
// bytes of one client are bounded in client-budget.ts; so is the time of a connection of a bridge.
//
//   socket accepted --admit--> opened --connectReceived--> checking --accept--> accepted --end--> ended
//                        |        |                            |           '-> refused by CONNACK
//                        '--------+------- closed at a bound --'
//
// Only connections without an accepted CONNECT are ever closed to make room, so nobody who connects can end
// the connection of a device. They have a bound of their own, and the rest of `connectionsMax` is the reserve
// of accepted ones.
//
// At a bound the newcomer is counted first. Then one connection without an accepted CONNECT is closed: of the
// address at its bound, or of the address that has most of them. Of that address it is the one that has been
// silent longest, because a device sends its CONNECT at once; where all have sent theirs, it is the newest,
// so that those whose password is being checked come to their end. The one to close may be the newcomer
// itself; where there is none to close, everybody is connected, and the newcomer is refused.
//
// Memory: one record per socket and one per address with a socket, so at most `connectionsMax` of each.

import { assert } from '../../../std/assert.ts'
import type { Clock } from '../../../std/clock.ts'
import { bounded } from '../../../std/quote.ts'
import type { Emit } from '../../../domain/event.ts'
import { refusals, type RefusalReason } from '../client-faults.ts'
import { shareKeyOf } from './address-share.ts'
import {
  createClientBudget,
  type BudgetLimit,
  type ClientBudget,
  type ClientBudgetOptions,
} from './client-budget.ts'
import { createConnectRate, type ConnectRateOptions } from './connect-rate.ts'
import { createMappingTurns } from './mapping-turns.ts'
import { createLimitReport } from './limit-report.ts'

export { plainAddress, shareKeyOf } from './address-share.ts'
export type { ClientBudget } from './client-budget.ts'

export type ConnectionLimitOptions = ConnectRateOptions &
  ClientBudgetOptions & {
    connectionsMax: number
    connectionsPerAddressMax: number
    connectionsPerIdentityMax: number
    /** Without an accepted CONNECT. */
    unauthenticatedMax: number
    unauthenticatedPerAddressMax: number
  }

const pauseDetails: Record<BudgetLimit, string> = {
  max_messages_per_s: 'The limit max_messages_per_s is reached.',
  max_bytes_per_s: 'The limit max_bytes_per_s is reached.',
  mapping_time: 'Its messages take long to map, so it is read in turns with others of this kind.',
}

const withoutRate: ClientBudgetOptions = { messagesPerS: Number.MAX_VALUE, bytesPerS: Number.MAX_VALUE }

/** One socket. */
export type Connection = {
  readonly address: string | null
  /** What its client may send; null before its CONNECT was accepted. */
  readonly budget: ClientBudget | null
  /** It was closed at a bound. */
  readonly isRefused: boolean
}

export type ConnectionLimits = {
  /** Whether the rate allows a connection from this address now. Counts it. */
  mayConnect(address: string | null): boolean
  /** A socket was accepted. Null where it is not admitted; then `close` was called. */
  admit(address: string | null, close: () => void): Connection | null
  /** The same for the socket of a trusted proxy, whose header names the client later. */
  admitProxy(address: string | null, close: () => void): Connection | null
  /** The header named the client. False where it is not admitted; then it was closed. */
  clientNamed(connection: Connection, address: string | null): boolean
  /** Its CONNECT came whole and is being checked. */
  connectReceived(connection: Connection): void
  /** Calls `refuse` in place of its `close`, where it is closed at a bound: it can be answered. */
  onRefused(connection: Connection, refuse: (reason: RefusalReason) => void): void
  /** Its CONNECT is right. Not accepted where the reason of a refusal is returned. */
  accept(connection: Connection, client: AcceptedClient): RefusalReason | null
  /** The socket is closed. */
  end(connection: Connection): void
  /** Of a connection of a bridge: it pays for its time like a client, and has no rate. */
  openBridgeBudget(name: string, reader: { resumeReading(): void }): ClientBudget
  /** Counts a connection that is refused before its CONNECT is answered. `found`: what it asked with. */
  refuse(reason: RefusalReason, address: string | null, found?: string | null): void
  counters(): ConnectionCounters
  close(): void
}

export type AcceptedClient = {
  clientId: string
  identity: string | null
  /** Called when its budget allows reading again. */
  reader: { resumeReading(): void }
}

export type ConnectionCounters = {
  /** Sockets without an accepted CONNECT. */
  unauthenticated: number
  /** Addresses with a socket. */
  addresses: number
  refused: ReadonlyMap<RefusalReason, number>
  /** How often a client was not read for a while because of its rate. */
  pauses: ReadonlyMap<BudgetLimit, number>
}

type Tracked = {
  address: string | null
  close: (reason: RefusalReason) => void
  stage: 'opened' | 'checking' | 'accepted' | 'ended'
  share: Share
  identity: string | null
  clientId: string
  budget: ClientBudget | null
  isRefused: boolean
}

/** The sockets of one address. The unauthenticated ones are in the order in which they came. */
type Share = { readonly key: string; isProxy: boolean; open: number; unauthenticated: Set<Tracked> }

export function createConnectionLimits(
  { clock, emit }: { clock: Clock; emit: Emit },
  options: ConnectionLimitOptions,
): ConnectionLimits {
  const shares = new Map<string, Share>()
  const sharesWithUnauthenticated = new Set<Share>()
  /** By identity, then by client id: a client that connects again takes the place of its old connection. */
  const identities = new Map<string, Map<string, Tracked>>()
  const rate = createConnectRate(clock, options)
  const report = createLimitReport<RefusalReason>(clock, (reason, count, top, found) =>
    emit({ kind: 'listener_refused', reason, detail: refusals[reason], found, count, top }),
  )
  const pauses = createLimitReport<BudgetLimit>(clock, (limit, count, top) =>
    emit({ kind: 'client_paused', reason: limit, detail: pauseDetails[limit], count, top }),
  )
  const budgetDeps = { clock, pausing: pauses.add, turns: createMappingTurns(clock) }
  let open = 0
  let unauthenticated = 0
  return {
    mayConnect: (address) => takesRate(shareKeyOf(address)),
    admit: (address, close) => admit(address, close, false),
    admitProxy: (address, close) => admit(address, close, true),
    clientNamed,
    connectReceived(connection) {
      const tracked = connection as Tracked
      if (tracked.stage === 'opened') tracked.stage = 'checking'
    },
    onRefused(connection, refuse) {
      const tracked = connection as Tracked
      tracked.close = refuse
    },
    accept,
    end: (connection) => remove(connection as Tracked),
    openBridgeBudget: (name, reader) => createClientBudget({ ...budgetDeps, name, reader }, withoutRate),
    refuse: (reason, address, found = null) =>
      report.add(reason, shareKeyOf(address), found && bounded(found)),
    counters: () => ({
      unauthenticated,
      addresses: shares.size,
      refused: report.counts(),
      pauses: pauses.counts(),
    }),
    close() {
      report.close()
      pauses.close()
    },
  }

  // ---- a socket comes

  function admit(address: string | null, close: () => void, isProxy: boolean): Connection | null {
    const share = shareOf(isProxy ? `proxy ${address}` : shareKeyOf(address), isProxy)
    const tracked: Tracked = {
      address,
      close,
      stage: 'opened',
      share,
      identity: null,
      clientId: '',
      budget: null,
      isRefused: false,
    }
    return enter(tracked) ? tracked : null
  }

  function clientNamed(connection: Connection, address: string | null): boolean {
    const tracked = connection as Tracked
    if (tracked.stage === 'ended') return false
    remove(tracked)
    tracked.address = address
    tracked.stage = 'opened'
    tracked.share = shareOf(shareKeyOf(address), false)
    if (takesRate(tracked.share.key)) return enter(tracked)
    tracked.stage = 'ended'
    tracked.close('max_connects_per_address_per_s')
    return false
  }

  function takesRate(key: string): boolean {
    const exceeded = rate.take(key)
    if (exceeded !== null) report.add(exceeded, key)
    return exceeded === null
  }

  function shareOf(key: string, isProxy: boolean): Share {
    return shares.get(key) ?? { key, isProxy, open: 0, unauthenticated: new Set() }
  }

  function enter(tracked: Tracked): boolean {
    const { share } = tracked
    add(tracked)
    if (!share.isProxy) {
      if (share.open > options.connectionsPerAddressMax) makeRoom(share, 'max_connections_per_address')
      else if (share.unauthenticated.size > options.unauthenticatedPerAddressMax)
        makeRoom(share, 'max_unauthenticated_per_address')
    }
    if (open > options.connectionsMax) makeRoom(largestShare(), 'max_connections')
    else if (unauthenticated > options.unauthenticatedMax) makeRoom(largestShare(), 'max_unauthenticated')
    return isOpen(tracked)
  }

  function add(tracked: Tracked): void {
    const { share } = tracked
    shares.set(share.key, share)
    sharesWithUnauthenticated.add(share)
    share.open += 1
    share.unauthenticated.add(tracked)
    open += 1
    unauthenticated += 1
  }

  // ---- a bound is reached

  /** The one with the most unauthenticated connections. There is one: that of the newcomer. */
  function largestShare(): Share {
    let largest: Share | null = null
    for (const share of sharesWithUnauthenticated)
      if (largest === null || share.unauthenticated.size > largest.unauthenticated.size) largest = share
    assert(largest !== null, 'the newcomer is not authenticated')
    return largest
  }

  function makeRoom(share: Share, reason: RefusalReason): void {
    let victim: Tracked | null = null
    for (const tracked of share.unauthenticated) {
      victim = tracked
      if (tracked.stage === 'opened') break
    }
    assert(victim !== null, 'a share at its bound has a connection without CONNECT')
    report.add(reason, share.key)
    victim.isRefused = true
    remove(victim)
    victim.close(reason)
  }

  // ---- its CONNECT, and its end

  function accept(connection: Connection, client: AcceptedClient): RefusalReason | null {
    const { identity, clientId, reader } = client
    const tracked = connection as Tracked
    if (!isOpen(tracked)) return null
    if (identity !== null) {
      const clients = identities.get(identity) ?? new Map<string, Tracked>()
      if (clients.size >= options.connectionsPerIdentityMax && !clients.has(clientId)) {
        report.add('max_connections_per_identity', identity)
        return 'max_connections_per_identity'
      }
      clients.set(clientId, tracked)
      identities.set(identity, clients)
      tracked.identity = identity
      tracked.clientId = clientId
    }
    leaveUnauthenticated(tracked)
    rate.accepted(tracked.share.key)
    tracked.stage = 'accepted'
    tracked.budget = createClientBudget({ ...budgetDeps, name: identity ?? clientId, reader }, options)
    return null
  }

  function leaveUnauthenticated(tracked: Tracked): void {
    const { share } = tracked
    if (!share.unauthenticated.delete(tracked)) return
    unauthenticated -= 1
    if (share.unauthenticated.size === 0) sharesWithUnauthenticated.delete(share)
  }

  function remove(tracked: Tracked): void {
    if (!isOpen(tracked)) return
    const { share, identity, clientId } = tracked
    leaveUnauthenticated(tracked)
    tracked.stage = 'ended'
    tracked.budget?.close()
    open -= 1
    share.open -= 1
    if (share.open === 0) shares.delete(share.key)
    const clients = identity === null ? undefined : identities.get(identity)
    if (identity === null || clients?.get(clientId) !== tracked) return
    clients.delete(clientId)
    if (clients.size === 0) identities.delete(identity)
  }
}

function isOpen(tracked: Tracked): boolean {
  return tracked.stage !== 'ended'
}
