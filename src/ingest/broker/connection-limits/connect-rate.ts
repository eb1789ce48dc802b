// connect-rate.ts: how many connections are accepted in a second, in all and from one address.
// Measured in time of the only thread: a TLS handshake takes 480 us, a CONNECT that is refused 160 us,
// closing a connection at accept 30 us.
//
// Both limits are token buckets that hold the connections of one second. Of the bucket for all, a quarter is
// reserved for known addresses, where a client was accepted lately, and another quarter for these and for
// quiet addresses, without an admitted connection in the last `quietMs`. So a flood leaves room for devices,
// also one from ever new addresses.

import type { Clock } from '../../../std/clock.ts'

export type ConnectRateOptions = {
  connectsPerS: number
  connectsPerAddressPerS: number
}

export type ConnectRate = {
  /** Counts a connection; the limit that it exceeds, or null. */
  take(key: string): 'max_connects_per_s' | 'max_connects_per_address_per_s' | null
  /** A client at this address was accepted. */
  accepted(key: string): void
}

type Bucket = { tokens: number; atMs: number }
type AddressBucket = Bucket & { takenAtMs: number }

const quietMs = 10_000
/** Addresses with a bucket, and known ones. Beyond that, the one that connected longest ago is forgotten. */
const addressesMax = 10_000

export function createConnectRate(clock: Clock, options: ConnectRateOptions): ConnectRate {
  const all: Bucket = { tokens: options.connectsPerS, atMs: clock.monotonic() }
  /** The address that connected longest ago is first. */
  const byAddress = new Map<string, AddressBucket>()
  /** The address where a client was accepted longest ago is first. */
  const known = new Set<string>()
  return { take, accepted }

  function take(key: string): ReturnType<ConnectRate['take']> {
    // A reload changes the options, so they are read at each decision.
    const { connectsPerS, connectsPerAddressPerS } = options
    const now = clock.monotonic()
    const bucket = byAddress.get(key) ?? {
      tokens: connectsPerAddressPerS,
      atMs: now,
      takenAtMs: Number.NEGATIVE_INFINITY,
    }
    refill(bucket, connectsPerAddressPerS, now)
    keep(key, bucket)
    if (bucket.tokens < 1) return 'max_connects_per_address_per_s'
    refill(all, connectsPerS, now)
    if (all.tokens < 1 + reservedFor(key, now - bucket.takenAtMs)) return 'max_connects_per_s'
    bucket.tokens -= 1
    bucket.takenAtMs = now
    all.tokens -= 1
    return null
  }

  /** What it must leave to others. */
  function reservedFor(key: string, silentMs: number): number {
    if (known.has(key)) return 0
    const reservedForKnown = Math.floor(options.connectsPerS / 4)
    return silentMs >= quietMs ? reservedForKnown : 2 * reservedForKnown
  }

  function keep(key: string, bucket: AddressBucket): void {
    byAddress.delete(key)
    byAddress.set(key, bucket)
    forgetOldest(byAddress)
  }

  function accepted(key: string): void {
    known.delete(key)
    known.add(key)
    forgetOldest(known)
  }
}

function forgetOldest(addresses: Map<string, unknown> | Set<string>): void {
  if (addresses.size <= addressesMax) return
  for (const oldest of addresses.keys()) {
    addresses.delete(oldest)
    return
  }
}

function refill(bucket: Bucket, perS: number, now: number): void {
  bucket.tokens = Math.min(perS, bucket.tokens + ((now - bucket.atMs) / 1000) * perS)
  bucket.atMs = now
}
