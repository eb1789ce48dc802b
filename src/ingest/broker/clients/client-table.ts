// client-table.ts: what is kept of each client, by its id, or by its address where it has none: the clients
// with a connection, those without, and those that were never admitted. Each kind has a bound; at the bound,
// the one that changed first is forgotten.

import type { Clock, EpochMs } from '../../../std/clock.ts'
import type { Sender } from '../../../domain/message.ts'
import { createChangedClients, type ChangedClient, type StoredClient } from './changed-clients.ts'
import type { ClientTraffic, ClientView, UnnamedMessages } from './types.ts'

export type Client = { -readonly [Key in keyof ClientView]: ClientView[Key] } & {
  traffic: ClientTraffic
  unnamed: UnnamedMessages | null
  key: string
  /** It is on the disk, or is being written. */
  isStored: boolean
  /** Of the last connection. */
  sender: Sender | null
  /** Take-overs since `windowFromMs`, monotonic. */
  recentTakeOvers: number
  windowFromMs: number
}

export type ClientTable = {
  find(key: string): Client | null
  /** Creates it without keeping it. */
  create(clientId: string, key: string): Client
  /** It has a connection. */
  open(client: Client): void
  /** It has none. */
  close(client: Client): void
  changed(client: Client): void
  all(): Iterable<Client>
  takeChanged(most: number): readonly ChangedClient[]
  restore(clients: Iterable<StoredClient>): void
  forgetBefore(before: EpochMs): void
  clockStepped(byMs: number): void
  /** Clients that were forgotten at a bound. */
  forgotten(): number
}

const closedMax = 20_000
const refusedMax = 1000

export function createClientTable({ clock }: { clock: Clock }): ClientTable {
  const opened = new Map<string, Client>()
  /** The client that changed first is first. */
  const closed = new Map<string, Client>()
  const neverAdmitted = new Map<string, Client>()
  const withoutId = new Map<string, Client>()
  const changes = createChangedClients()
  let forgotten = 0
  let startedAt = clock.now()
  return {
    find,
    create,
    open(client) {
      closed.delete(client.key)
      neverAdmitted.delete(client.key)
      opened.set(client.key, client)
    },
    close,
    changed: changes.changed,
    all,
    takeChanged,
    restore,
    forgetBefore,
    clockStepped,
    forgotten: () => forgotten,
  }

  function find(key: string): Client | null {
    return opened.get(key) ?? closed.get(key) ?? neverAdmitted.get(key) ?? withoutId.get(key) ?? null
  }

  function close(client: Client): void {
    opened.delete(client.key)
    if (client.state !== 'refused') keep(closed, client, closedMax)
    else keep(client.clientId === '' ? withoutId : neverAdmitted, client, refusedMax)
  }

  function* all(): Generator<Client> {
    for (const clients of [opened, closed, neverAdmitted, withoutId])
      for (const client of clients.values()) yield client
  }

  function takeChanged(most: number): readonly ChangedClient[] {
    return changes.take(most, (key) => {
      const client = find(key)
      if (client === null) return null
      client.isStored = true
      return viewOf(client)
    })
  }

  function restore(clients: Iterable<StoredClient>): void {
    for (const { key, view, savedAt } of clients) {
      if (find(key) !== null) continue
      const client = Object.assign(create(view.clientId, key), view, { isStored: true })
      // Its connection ended with the process, when nobody noted it.
      if (client.state === 'connected')
        Object.assign(client, { state: 'disconnected', since: Math.max(view.since, savedAt) })
      close(client)
    }
  }

  function forgetBefore(before: EpochMs): void {
    for (const clients of [closed, neverAdmitted, withoutId])
      for (const client of clients.values()) {
        if (Math.max(client.since, client.fault?.at ?? 0) >= before) continue
        clients.delete(client.key)
        changes.forgotten(client)
      }
  }

  /** Earlier times are of another process, and later ones of a clock that was ahead. */
  function clockStepped(byMs: number): void {
    const [fromAt, untilAt] = [startedAt, clock.now() - byMs]
    let isMoved = false
    const moved = (at: EpochMs | null) => {
      if (at === null || at < fromAt || at > untilAt) return at
      isMoved = true
      return at + byMs
    }
    startedAt += byMs
    for (const client of all()) {
      isMoved = false
      const { since, fault, unnamed } = client
      Object.assign(client, {
        since: moved(since),
        sharedAt: moved(client.sharedAt),
        sharedFirstAt: moved(client.sharedFirstAt),
        messageRefusedFirstAt: moved(client.messageRefusedFirstAt),
        messageRefusedAt: moved(client.messageRefusedAt),
        refusedFirstAt: moved(client.refusedFirstAt),
        refusedAt: moved(client.refusedAt),
        fault: fault && { ...fault, at: moved(fault.at) },
        unnamed: unnamed && { ...unnamed, firstAt: moved(unnamed.firstAt), at: moved(unnamed.at) },
      })
      if (isMoved) changes.changed(client)
    }
  }

  /** Behind the others; forgets the first at the bound. */
  function keep(clients: Map<string, Client>, client: Client, most: number): void {
    clients.delete(client.key)
    clients.set(client.key, client)
    if (clients.size <= most) return
    for (const first of clients.values()) {
      clients.delete(first.key)
      changes.forgotten(first)
      forgotten += 1
      return
    }
  }

  function create(clientId: string, key: string): Client {
    return {
      key,
      isStored: false,
      clientId,
      identity: null,
      userName: null,
      address: null,
      protocol: null,
      connect: null,
      certificate: null,
      state: 'refused',
      since: clock.now(),
      willCame: false,
      takeOvers: 0,
      sharedAt: null,
      sharedFirstAt: null,
      refusedMessages: 0,
      messageRefusedFirstAt: null,
      messageRefusedAt: null,
      refusedFirstAt: null,
      refusedAt: null,
      fault: null,
      traffic: { messages: 0, subscriptions: 0 },
      unnamed: null,
      sender: null,
      recentTakeOvers: 0,
      windowFromMs: clock.monotonic(),
    }
  }
}

export function viewOf({
  key: _key,
  isStored: _isStored,
  sender: _sender,
  recentTakeOvers: _recent,
  windowFromMs: _from,
  ...view
}: Client): ClientView {
  // They go on to change.
  return { ...view, traffic: { ...view.traffic }, unnamed: view.unnamed && { ...view.unnamed } }
}

/** No client id has a null character. */
export function addressKey(address: string): string {
  return `\0${address}`
}
