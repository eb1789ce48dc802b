// clients.ts: what a person wants to know of a client, by its id: whether it is connected, how its last
// connection ended, and what the gateway refused. For the device list; never on the hot path.
//
//   connected      it has a connection
//   disconnected   it ended its connection with DISCONNECT
//   lost           its connection ended in another way: a will says so, and so does a silent network
//   refused        it was never admitted
//
// Two connections belong to one client only if both client id and identity are equal. So one identity
// cannot keep another one out, and cannot take over its connection. The same identity may always take over: a
// device comes back while its old connection is still open. An anonymous client has no identity: one
// that proves an identity takes over from it, and it cannot take over from one that has. Two devices
// with one client id and one identity, or none, take over from each other without end; `sharedMin`
// times in `sharedWindowMs` raise a condition, which each further one keeps open.
//
// The record of a client has its client id as its key. Where another identity is connected with that id,
// it is the name of both (`clientNameOf`).
//
// A connection that ends before its CONNECT was read has no client id: it is known by its address.
//
// Bounds: clients with a connection are bounded by max_connections, the others in client-table.ts. What is
// known is written to the disk at intervals and restored (changed-clients.ts).
//
// `clock` is our time, as that of the devices is: a refusal before the last message of a device is over.

import type { Clock, EpochMs } from '../../../std/clock.ts'
import { quote } from '../../../std/quote.ts'
import type { Emit } from '../../../domain/event.ts'
import { clientNameOf, type Sender, type UnnamedMessage } from '../../../domain/message.ts'
import type { ChangedClient, StoredClient } from './changed-clients.ts'
import { addressKey, createClientTable, viewOf, type Client } from './client-table.ts'
import type { ClientTraffic, ClientView } from './types.ts'

export type { ClientConnect, ClientView } from './types.ts'

type Fault = { reason: string; detail: string }
type Named = Pick<Sender, 'clientId' | 'identity'>

/** Of a connection. */
export type Protocol = Pick<ClientView, 'protocol' | 'connect' | 'certificate'>

export type Clients = {
  /** Not while one with an identity has the client id, and this one has none. */
  mayConnect(clientId: string, identity: string | null): boolean
  /** It was admitted; an earlier connection with its id is about to end. The result counts what it sends. */
  connected(sender: Sender, address: string | null, used?: Partial<Protocol>): ClientTraffic
  ended(sender: Sender, withDisconnect: boolean): void
  /** Whether this connection of it is open, and no later one took over. */
  isConnected(sender: Sender): boolean
  /** Whether it has another connection than this one. */
  isBack(sender: Sender): boolean
  willCame(sender: Sender): void
  /** Its CONNECT was refused, or the connection ended before it. */
  refused(client: RefusedClient, fault: Fault): void
  /** The gateway closed its connection. */
  dropped(sender: Sender, fault: Fault): void
  /** A rule did not allow its message. */
  messageRefused(sender: Sender, fault: Fault): void
  /** It sent a message that gave no payload and names no device. */
  unnamed(sender: Sender, message: UnnamedMessage): void
  /** `identity`: where several have the client id, the one that proved it. */
  find(clientId: string, identity?: string | null): ClientView | null
  /** The one with this user name or identity that connected, or was refused, last. */
  findUser(name: string): ClientView | null
  /** What is known of an address without a client id. */
  findAddress(address: string): ClientView | null
  /**
   * Those that may be a device of which nothing else is known: their CONNECT or a message was refused, a
   * message of theirs names no device, or they are connected and have sent nothing.
   */
  withoutDevice(): Iterable<ClientView>
  /** Those that changed since the last call, and those that were forgotten. */
  takeChanged(most: number): readonly ChangedClient[]
  /** Those of an earlier process; one that is known by now is left as it is. */
  restore(clients: Iterable<StoredClient>): void
  /** Forgets those without a connection that did not change since `before`. */
  forgetBefore(before: EpochMs): void
  /** `clock` was set, or is corrected: what this process noted goes with it. */
  clockStepped(byMs: number): void
  /** Those that have or had a connection whose CONNECT was accepted. */
  admitted(): Iterable<Pick<ClientView, 'clientId' | 'address' | 'state' | 'certificate'>>
  /** At most `most` clients with a fault, the latest fault first. */
  withFaults(most: number): readonly ClientView[]
  takeOvers(): number
  /** Clients without a connection that were forgotten, because there were too many. */
  forgotten(): number
}

/** What is known of a client that was not admitted. */
export type RefusedClient = {
  clientId: string | null
  /** What it has proved. */
  identity?: string | null
  userName?: string | null
  address: string | null
}

const sharedMin = 6
const sharedWindowMs = 600_000
/** From the last one on; as long as the condition CLIENT_ID_SHARED stays. */
const sharedMs = sharedWindowMs
const textLengthMax = 256

export function createClients({ clock, emit }: { clock: Clock; emit: Emit }): Clients {
  const table = createClientTable({ clock })
  let takeOvers = 0
  return {
    mayConnect,
    connected,
    ended,
    isConnected: (sender) => connectedAs(sender)?.sender === sender,
    isBack,
    willCame,
    refused,
    dropped,
    messageRefused,
    unnamed,
    find(clientId, identity = null) {
      const client = recordOf({ clientId, identity })
      return client === null ? null : viewOf(client)
    },
    findUser(name) {
      const last = lastOf(name)
      return last === null ? null : viewOf(last)
    },
    findAddress: (address) => viewAt(addressKey(address)),
    withFaults,
    *withoutDevice() {
      for (const client of table.all()) if (seemsWithoutDevice(client)) yield viewOf(client)
    },
    *admitted() {
      for (const client of table.all()) if (client.state !== 'refused') yield client
    },
    takeChanged: table.takeChanged,
    restore: table.restore,
    forgetBefore: table.forgetBefore,
    clockStepped: table.clockStepped,
    takeOvers: () => takeOvers,
    forgotten: table.forgotten,
  }

  function viewAt(key: string): ClientView | null {
    const client = table.find(key)
    return client === null ? null : viewOf(client)
  }

  function lastOf(name: string): Client | null {
    let last: Client | null = null
    for (const client of table.all()) {
      if (client.userName !== name && client.identity !== name) continue
      if (last === null || client.since > last.since) last = client
    }
    return last
  }

  function mayConnect(clientId: string, identity: string | null): boolean {
    return identity !== null || (connectedAs({ clientId, identity })?.identity ?? null) === null
  }

  function recordOf({ clientId, identity }: Named): Client | null {
    const own = identity === null ? null : table.find(clientNameOf({ clientId, identity }))
    if (own !== null) return own
    const first = table.find(clientId)
    const isOther = first?.state === 'connected' && identity !== null && first.identity !== null
    return isOther && first.identity !== identity ? null : first
  }

  function recordFor(client: Named): Client {
    const known = recordOf(client)
    if (known !== null) return known
    const { clientId } = client
    return table.create(clientId, table.find(clientId) === null ? clientId : clientNameOf(client))
  }

  function connectedAs(client: Named): Client | null {
    const record = recordOf(client)
    return record?.state === 'connected' ? record : null
  }

  function connected(
    sender: Sender,
    address: string | null,
    { protocol = null, connect = null, certificate = null }: Partial<Protocol> = {},
  ): ClientTraffic {
    const { identity, userName } = sender
    const client = recordFor(sender)
    const isTakeOver = client.state === 'connected'
    Object.assign(client, {
      sender,
      identity,
      userName,
      address,
      protocol,
      connect,
      certificate,
      state: 'connected',
      since: clock.now(),
      willCame: false,
      refusedFirstAt: null,
      refusedAt: null,
      traffic: { messages: 0, subscriptions: 0 },
    })
    table.open(client)
    table.changed(client)
    if (isTakeOver) countTakeOver(client)
    return client.traffic
  }

  function countTakeOver(client: Client): void {
    takeOvers += 1
    client.takeOvers += 1
    const now = clock.monotonic()
    const at = clock.now()
    const goesOn = client.sharedAt !== null && Math.abs(at - client.sharedAt) < sharedMs
    if (now - client.windowFromMs > sharedWindowMs && !goesOn) {
      client.windowFromMs = now
      client.recentTakeOvers = 0
    }
    client.recentTakeOvers += 1
    const { clientId, identity, address, recentTakeOvers } = client
    emit({ kind: 'client_taken_over', clientId, identity, address })
    if (recentTakeOvers < sharedMin) return
    if (!goesOn) client.sharedFirstAt = at
    client.sharedAt = at
    emit({ kind: 'client_id_shared', clientId, identity, address, takeOvers: recentTakeOvers })
  }

  function ended(sender: Sender, withDisconnect: boolean): void {
    const client = connectedAs(sender)
    // The connection of another one that took over stays.
    if (client?.sender !== sender) return
    client.state = withDisconnect ? 'disconnected' : 'lost'
    client.since = clock.now()
    table.close(client)
    table.changed(client)
  }

  function isBack(sender: Sender): boolean {
    const holder = connectedAs(sender)
    return holder !== null && holder.sender !== sender && holder.identity === sender.identity
  }

  function willCame(sender: Sender): void {
    const client = recordOf(sender)
    // Just before or after the end of its connection. After a take-over it says nothing.
    if (client?.sender !== sender) return
    client.willCame = true
    table.changed(client)
  }

  function refused(
    { clientId, identity = null, userName = null, address }: RefusedClient,
    fault: Fault,
  ): void {
    const id = clientId ?? ''
    if (id === '' && address === null) return
    const client = id === '' ? atAddress(address ?? '') : recordFor({ clientId: id, identity })
    if (client.state === 'connected') {
      refusedOther(client, { identity, address }, fault)
      return
    }
    note(client, fault)
    client.refusedAt = clock.now()
    client.refusedFirstAt ??= client.refusedAt
    client.userName = userName
    if (client.state !== 'refused') return
    client.address = address
    client.since = client.refusedAt
    table.close(client)
  }

  /** Another client tried to use the id of this one. It is the one that does not get in. */
  function refusedOther(
    client: Client,
    { identity, address }: { identity: string | null; address: string | null },
    { reason, detail }: Fault,
  ): void {
    const other = holderText({ identity, address })
    note(client, { reason, detail: other === '' ? detail : `${detail} Another client came with it${other}.` })
  }

  function atAddress(address: string): Client {
    const key = addressKey(address)
    return table.find(key) ?? table.create('', key)
  }

  function dropped(sender: Sender, fault: Fault): void {
    const client = recordOf(sender)
    if (client !== null) note(client, fault)
  }

  function messageRefused(sender: Sender, fault: Fault): void {
    const client = recordOf(sender)
    if (client === null) return
    client.refusedMessages += 1
    note(client, fault)
    client.messageRefusedAt = client.fault?.at ?? null
    client.messageRefusedFirstAt ??= client.messageRefusedAt
  }

  function unnamed(sender: Sender, { topic, detail, ...message }: UnnamedMessage): void {
    const client = recordOf(sender)
    if (client === null) return
    const at = clock.now()
    client.unnamed ??= {
      count: 0,
      firstAt: at,
      at,
      topic: '',
      source: null,
      became: 'dead',
      reason: '',
      detail: '',
    }
    client.unnamed.count += 1
    Object.assign(client.unnamed, message, { at, topic: cut(topic), detail: cut(detail) })
    table.changed(client)
  }

  function note(client: Client, { reason, detail }: Fault): void {
    client.fault = { reason, detail, at: clock.now(), count: (client.fault?.count ?? 0) + 1 }
    table.changed(client)
  }

  function withFaults(most: number): readonly ClientView[] {
    return [...table.all()]
      .filter(({ fault }) => fault !== null)
      .sort((a, b) => b.fault!.at - a.fault!.at)
      .slice(0, most)
      .map(viewOf)
  }
}

/** By two that close the connections of each other. */
export function isShared({ sharedAt }: Pick<ClientView, 'sharedAt'>, now: EpochMs): boolean {
  return sharedAt !== null && Math.abs(now - sharedAt) < sharedMs
}

/** ` as "spare" from 10.0.0.9`. */
function holderText({ identity, address }: Pick<ClientView, 'identity' | 'address'>): string {
  const as = identity === null ? '' : ` as ${quote(identity, 64)}`
  return address === null ? as : `${as} from ${address}`
}

function seemsWithoutDevice({ refusedAt, messageRefusedAt, unnamed, state, traffic }: Client): boolean {
  if (refusedAt !== null || messageRefusedAt !== null || unnamed !== null) return true
  return state === 'connected' && traffic.messages === 0
}

/** A client chooses these texts. */
function cut(text: string): string {
  return text.length <= textLengthMax ? text : `${text.slice(0, textLengthMax).toWellFormed()}…`
}
