// shares.ts: how much of a store of kept messages each device and each client uses. A message counts in two
// shares: that of its device and that of its client. The larger of the two decides where a full store makes
// room (eviction.ts), so neither many names of one client nor many clients with one name fill it for others.
//
// In memory only. What was stored before this session is counted by a walk when it is needed (eviction.ts).
//
// A client is its identity and its client id (clientNameOf): another identity with the client id of a device
// has a share of its own.
//
// Bounds: `namesMax` devices and as many clients, with short keys. All further names are one share, `others`.
// While `others` has messages, no new name gets a share of its own: so the share of a message is the same
// when it comes and when it goes.

import { hash } from 'node:crypto'

export type Share = {
  readonly kind: 'device' | 'client'
  /** Null: all names that have no share of their own. */
  readonly name: string | null
  messages: number
  bytes: number
  /** The store has no message of this share before this key; null where that is not known. */
  from: Buffer | null
}

export type Shares = {
  add(client: string, device: string | null, bytes: number): void
  remove(client: string, device: string | null, bytes: number): void
  /** Bytes of the larger one of the two shares that a message counts in. */
  weightOf(client: string, device: string | null): number
  /** Bytes of the largest share. */
  largest(): number
  /** Shares with more than `bytes`, largest first. */
  above(bytes: number): Share[]
  /** Names with a share of their own. */
  names(): { devices: number; clients: number }
}

/** Longer names are counted by a hash: a client id may have 64 KiB. */
const nameLengthMax = 128

export function createShares({ namesMax }: { namesMax: number }): Shares {
  const devices = createNames('device', namesMax)
  const clients = createNames('client', namesMax)
  return {
    add(client, device, bytes) {
      clients.change(client, 1, bytes)
      if (device !== null) devices.change(device, 1, bytes)
    },
    remove(client, device, bytes) {
      clients.change(client, -1, -bytes)
      if (device !== null) devices.change(device, -1, -bytes)
    },
    weightOf: (client, device) =>
      Math.max(clients.bytesOf(client), device === null ? 0 : devices.bytesOf(device)),
    largest: () => Math.max(clients.largest(), devices.largest()),
    above: (bytes) => [...clients.above(bytes), ...devices.above(bytes)].sort((a, b) => b.bytes - a.bytes),
    names: () => ({ devices: devices.size(), clients: clients.size() }),
  }
}

function createNames(kind: Share['kind'], namesMax: number) {
  const byName = new Map<string, Share>()
  const others: Share = { kind, name: null, messages: 0, bytes: 0, from: null }
  return { change, bytesOf, largest, above, size: () => byName.size }

  function change(name: string, messages: number, bytes: number): void {
    const key = keyOf(name)
    let share = byName.get(key)
    if (share === undefined) {
      if (messages > 0 && others.messages === 0 && byName.size < namesMax) {
        share = { kind, name: key, messages: 0, bytes: 0, from: null }
        byName.set(key, share)
      } else share = others
    }
    // Damaged messages leave without a name, so a share may count too much, and never less than nothing.
    share.messages = Math.max(0, share.messages + messages)
    share.bytes = share.messages === 0 ? 0 : Math.max(0, share.bytes + bytes)
    if (share.messages > 0) return
    if (share === others) others.from = null
    else byName.delete(key)
  }

  function bytesOf(name: string): number {
    return (byName.get(keyOf(name)) ?? others).bytes
  }

  function largest(): number {
    let most = others.bytes
    for (const { bytes } of byName.values()) if (bytes > most) most = bytes
    return most
  }

  function above(bytes: number): Share[] {
    const found = others.bytes > bytes ? [others] : []
    for (const share of byName.values()) if (share.bytes > bytes) found.push(share)
    return found
  }
}

function keyOf(name: string): string {
  return name.length <= nameLengthMax
    ? name
    : `${name.slice(0, 20)}#${hash('sha256', name, 'hex').slice(0, 32)}`
}
