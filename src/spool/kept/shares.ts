// shares.ts: how much of a store of kept messages each device and each client uses. A message counts in two
// shares: that of its device and that of its client. The larger of the two decides where a full store makes
// room (eviction.ts), so neither many names of one client nor many clients with one name fill it for others.
//
// Invented names. A sender with many names has a small share under each, and an honest sender with one name
// would have the largest. So the small shares count together, as one: all that are smaller than
// `pooledBelow`, but not those of the first `firstMax` names that the store has. Of what counts together the
// oldest messages go first.
//
// In memory only. What was stored before this session is counted by a walk when it is needed (eviction.ts).
//
// A client is its identity and its client id (clientNameOf): another identity with the client id of a device
// has a share of its own.
//
// Bounds: `namesMax` devices and as many clients, with short keys. All further names are in the pool. While
// it has messages of such names, no new name gets a share of its own: so the share of a message is the same
// when it comes and when it goes.

import { hash } from 'node:crypto'

export type Share = {
  readonly kind: 'device' | 'client'
  /** Null: the small shares together, and all names that have no share of their own. */
  readonly name: string | null
  messages: number
  bytes: number
  /** The store has no message of this share before this key; null where that is not known. */
  from: Buffer | null
}

export type Shares = {
  /** `canBeFirst`: no older message of the store waits to be counted. */
  add(client: string, device: string | null, bytes: number, canBeFirst: boolean): void
  remove(client: string, device: string | null, bytes: number): void
  /** Bytes of the larger one of the two shares that a message counts in, the pool for a small one. */
  weightOf(client: string, device: string | null): number
  /** The same without the pool: bytes under the name alone. */
  bytesOf(client: string, device: string | null): number
  /** Bytes of the largest share. */
  largest(): number
  /** Shares with more than `bytes`, largest first. */
  above(bytes: number): Share[]
  /** Names with a share of their own. */
  names(): { devices: number; clients: number }
}

/** Longer names are counted by a hash: a client id may have 64 KiB. */
const nameLengthMax = 128

export type SharesOptions = {
  namesMax: number
  firstMax: number
  pooledBelow: number
}

export function createShares(options: SharesOptions): Shares {
  const devices = createNames('device', options)
  const clients = createNames('client', options)
  return {
    add(client, device, bytes, canBeFirst) {
      clients.add(client, bytes, canBeFirst)
      if (device !== null) devices.add(device, bytes, canBeFirst)
    },
    remove(client, device, bytes) {
      clients.remove(client, bytes)
      if (device !== null) devices.remove(device, bytes)
    },
    weightOf: (client, device) =>
      Math.max(clients.counted(client).bytes, device === null ? 0 : devices.counted(device).bytes),
    bytesOf: (client, device) =>
      Math.max(clients.named(client).bytes, device === null ? 0 : devices.named(device).bytes),
    largest: () => Math.max(clients.largest(), devices.largest()),
    above: (bytes) => [...clients.above(bytes), ...devices.above(bytes)].sort((a, b) => b.bytes - a.bytes),
    names: () => ({ devices: devices.size(), clients: clients.size() }),
  }
}

type NamedShare = Share & { isFirst: boolean }

function createNames(kind: Share['kind'], { namesMax, firstMax, pooledBelow }: SharesOptions) {
  const byName = new Map<string, NamedShare>()
  let firstNames = 0
  /** Of names without a share of their own. */
  const others: NamedShare = { kind, name: null, messages: 0, bytes: 0, from: null, isFirst: false }
  /** Those, and the small shares. */
  const pool: Share = { kind, name: null, messages: 0, bytes: 0, from: null }
  return { add, remove, named, counted, largest, above, size: () => byName.size }

  function add(name: string, bytes: number, canBeFirst: boolean): void {
    const key = keyOf(name)
    const share = byName.get(key) ?? newShare(key)
    const isFirst = share.isFirst || (canBeFirst && share !== others && firstNames < firstMax)
    change(share, 1, bytes, isFirst)
  }

  function remove(name: string, bytes: number): void {
    const key = keyOf(name)
    const share = byName.get(key) ?? others
    change(share, -1, -bytes, share.isFirst && share.messages > 1)
    if (share !== others && share.messages === 0) byName.delete(key)
  }

  function newShare(key: string): NamedShare {
    if (others.messages > 0 || byName.size >= namesMax) return others
    const share = { kind, name: key, messages: 0, bytes: 0, from: null, isFirst: false }
    byName.set(key, share)
    return share
  }

  function change(share: NamedShare, messages: number, bytes: number, isFirst: boolean): void {
    if (isPooled(share)) addTo(pool, -share.messages, -share.bytes)
    firstNames += Number(isFirst) - Number(share.isFirst)
    share.isFirst = isFirst
    addTo(share, messages, bytes)
    if (isPooled(share)) addTo(pool, share.messages, share.bytes)
  }

  // Damaged messages leave without a name, so a share may count too much, and never less than nothing.
  function addTo(share: Share, messages: number, bytes: number): void {
    share.messages = Math.max(0, share.messages + messages)
    share.bytes = share.messages === 0 ? 0 : Math.max(0, share.bytes + bytes)
    if (share.messages === 0) share.from = null
  }

  function isPooled(share: NamedShare): boolean {
    return share === others || (!share.isFirst && share.bytes < pooledBelow)
  }

  function named(name: string): NamedShare {
    return byName.get(keyOf(name)) ?? others
  }

  function counted(name: string): Share {
    const share = named(name)
    return isPooled(share) ? pool : share
  }

  function* all(): Generator<Share> {
    yield pool
    for (const share of byName.values()) if (!isPooled(share)) yield share
  }

  function largest(): number {
    let most = 0
    for (const { bytes } of all()) if (bytes > most) most = bytes
    return most
  }

  function above(bytes: number): Share[] {
    return [...all()].filter((share) => share.bytes > bytes)
  }
}

function keyOf(name: string): string {
  return name.length <= nameLengthMax
    ? name
    : `${name.slice(0, 20)}#${hash('sha256', name, 'hex').slice(0, 32)}`
}
