// clients.ts: what a person wants to know of a client, by its id: whether it is connected, how its last
// connection ended, and what the gateway refused. For the device list; never on the hot path.
//
//   connected      it has a connection
//   disconnected   it ended its connection with DISCONNECT
//   lost           its connection ended in another way: a will says so, and so does a silent network
//   refused        it was never admitted since the start
//
// A client id belongs to the identity of its open connection: another identity cannot take it over. An
// anonymous client has no identity, so a client that proves one may take over from it. The same identity may
// always: that is how a device comes back whose old connection is still open. Two devices with one client id
// take over from each other without end; `sharedMin` times in `sharedWindowMs` raise a condition.
//
// Bounds: clients with a connection are bounded by max_connections. Of the others, `closedMax` are kept, and
// `refusedMax` of those that were never admitted; at the bound, the one that changed first is forgotten.

import type { Clock, EpochMs } from '../../../std/clock.ts'
import type { Emit } from '../../../domain/event.ts'
import type { Sender } from '../../../domain/message.ts'

export type ClientState = 'connected' | 'disconnected' | 'lost' | 'refused'

export type ClientView = {
  readonly clientId: string
  readonly identity: string | null
  readonly address: string | null
  readonly state: ClientState
  /** Since when it has this state. */
  readonly since: EpochMs
  /** Its will came when it was last lost. */
  readonly willCame: boolean
  /** How often it connected while its earlier connection was open. */
  readonly takeOvers: number
  /** Messages that a rule did not allow. */
  readonly refusedMessages: number
  /** The last fault that the gateway found. */
  readonly fault: ClientFault | null
}

/** `reason` is a stable code; `count` faults since the start, of any kind. */
export type ClientFault = { reason: string; detail: string; at: EpochMs; count: number }

type Fault = { reason: string; detail: string }

export type Clients = {
  /** Whether a client with this identity may have the client id. */
  mayConnect(clientId: string, identity: string | null): boolean
  /** It was admitted; an earlier connection with its id is about to end. */
  connected(sender: Sender, address: string | null): void
  ended(sender: Sender, withDisconnect: boolean): void
  willCame(sender: Sender): void
  /** Its CONNECT was refused. */
  refused(clientId: string, address: string | null, fault: Fault): void
  /** The gateway closed its connection. */
  dropped(sender: Sender, fault: Fault): void
  /** A rule did not allow its message. */
  messageRefused(sender: Sender, fault: Fault): void
  find(clientId: string): ClientView | null
  /** At most `most` clients with a fault, the latest fault first. */
  withFaults(most: number): readonly ClientView[]
  takeOvers(): number
}

type Client = { -readonly [Key in keyof ClientView]: ClientView[Key] } & {
  /** Of the last connection. */
  sender: Sender | null
  /** Take-overs since `windowFromMs`, monotonic. */
  recentTakeOvers: number
  windowFromMs: number
}

const closedMax = 20_000
const refusedMax = 1000
const sharedMin = 6
const sharedWindowMs = 600_000

export function createClients({ clock, emit }: { clock: Clock; emit: Emit }): Clients {
  const open = new Map<string, Client>()
  /** The client that changed first is first. */
  const closed = new Map<string, Client>()
  const neverAdmitted = new Map<string, Client>()
  let takeOvers = 0
  return {
    mayConnect,
    connected,
    ended,
    willCame,
    refused,
    dropped,
    messageRefused,
    find(clientId) {
      const client = found(clientId)
      return client === null ? null : viewOf(client)
    },
    withFaults,
    takeOvers: () => takeOvers,
  }

  function found(clientId: string): Client | null {
    return open.get(clientId) ?? closed.get(clientId) ?? neverAdmitted.get(clientId) ?? null
  }

  function mayConnect(clientId: string, identity: string | null): boolean {
    const holder = open.get(clientId)
    return holder === undefined || holder.identity === null || holder.identity === identity
  }

  function connected(sender: Sender, address: string | null): void {
    const { clientId, identity } = sender
    const client = found(clientId) ?? newClient(clientId)
    closed.delete(clientId)
    neverAdmitted.delete(clientId)
    open.set(clientId, client)
    const isTakeOver = client.state === 'connected'
    Object.assign(client, {
      sender,
      identity,
      address,
      state: 'connected',
      since: clock.now(),
      willCame: false,
    })
    if (isTakeOver) countTakeOver(client)
  }

  function countTakeOver(client: Client): void {
    takeOvers += 1
    client.takeOvers += 1
    const now = clock.monotonic()
    if (now - client.windowFromMs > sharedWindowMs) {
      client.windowFromMs = now
      client.recentTakeOvers = 0
    }
    client.recentTakeOvers += 1
    const { clientId, identity, address, recentTakeOvers } = client
    emit({ kind: 'client_taken_over', clientId, identity, address })
    if (recentTakeOvers < sharedMin) return
    emit({ kind: 'client_id_shared', clientId, identity, address, takeOvers: recentTakeOvers })
    client.recentTakeOvers = 0
    client.windowFromMs = now
  }

  function ended(sender: Sender, withDisconnect: boolean): void {
    const client = open.get(sender.clientId)
    // The connection of another one that took over stays.
    if (client?.sender !== sender) return
    open.delete(sender.clientId)
    client.state = withDisconnect ? 'disconnected' : 'lost'
    client.since = clock.now()
    keep(closed, client, closedMax)
  }

  function willCame(sender: Sender): void {
    const client = found(sender.clientId)
    // Just before or after the end of its connection. After a take-over it says nothing.
    if (client?.sender === sender) client.willCame = true
  }

  function refused(clientId: string, address: string | null, fault: Fault): void {
    const client = found(clientId) ?? newClient(clientId)
    note(client, fault)
    if (client.state !== 'refused') return
    client.address = address
    keep(neverAdmitted, client, refusedMax)
  }

  function dropped({ clientId }: Sender, fault: Fault): void {
    const client = found(clientId)
    if (client !== null) note(client, fault)
  }

  function messageRefused({ clientId }: Sender, fault: Fault): void {
    const client = found(clientId)
    if (client === null) return
    client.refusedMessages += 1
    note(client, fault)
  }

  function note(client: Client, { reason, detail }: Fault): void {
    client.fault = { reason, detail, at: clock.now(), count: (client.fault?.count ?? 0) + 1 }
  }

  function withFaults(most: number): readonly ClientView[] {
    const faulty: Client[] = []
    for (const clients of [open, closed, neverAdmitted])
      for (const client of clients.values()) if (client.fault !== null) faulty.push(client)
    return faulty
      .sort((a, b) => b.fault!.at - a.fault!.at)
      .slice(0, most)
      .map(viewOf)
  }

  function newClient(clientId: string): Client {
    return {
      clientId,
      identity: null,
      address: null,
      state: 'refused',
      since: clock.now(),
      willCame: false,
      takeOvers: 0,
      refusedMessages: 0,
      fault: null,
      sender: null,
      recentTakeOvers: 0,
      windowFromMs: clock.monotonic(),
    }
  }
}

function viewOf({
  sender: _sender,
  recentTakeOvers: _recent,
  windowFromMs: _from,
  ...view
}: Client): ClientView {
  return view
}

/** Behind the others; forgets the first at the bound. */
function keep(clients: Map<string, Client>, client: Client, most: number): void {
  clients.delete(client.clientId)
  clients.set(client.clientId, client)
  if (clients.size <= most) return
  for (const first of clients.keys()) {
    clients.delete(first)
    return
  }
}
