// connect-rate.ts: how many connections are accepted in a second, in all and from one address.
// Measured in time of the only thread: a TLS handshake takes 480 us, a CONNECT that is refused 160 us,
// closing a connection at accept 30 us.
//
// Both limits are token buckets that hold the connections of one second. Half of the bucket for all is
// reserved for quiet addresses: those without an admitted connection in the last `quietMs`. So a flood from
// some addresses leaves room for devices at others.

import type { Clock } from '../../../std/clock.ts'

export type ConnectRateOptions = {
  connectsPerS: number
  connectsPerAddressPerS: number
}

export type ConnectRate = {
  /** Counts a connection; the limit that it exceeds, or null. */
  take(key: string): 'max_connects_per_s' | 'max_connects_per_address_per_s' | null
}

type Bucket = { tokens: number; atMs: number }
type AddressBucket = Bucket & { takenAtMs: number }

const quietMs = 10_000
/** Addresses with a bucket. Beyond that, the one that connected longest ago is forgotten and starts anew. */
const addressesMax = 10_000

export function createConnectRate(clock: Clock, options: ConnectRateOptions): ConnectRate {
  const { connectsPerS, connectsPerAddressPerS } = options
  const reserved = Math.floor(connectsPerS / 2)
  const all: Bucket = { tokens: connectsPerS, atMs: clock.monotonic() }
  /** The address that connected longest ago is first. */
  const byAddress = new Map<string, AddressBucket>()
  return { take }

  function take(key: string): ReturnType<ConnectRate['take']> {
    const now = clock.monotonic()
    const bucket = byAddress.get(key) ?? {
      tokens: connectsPerAddressPerS,
      atMs: now,
      takenAtMs: Number.NEGATIVE_INFINITY,
    }
    const isQuiet = now - bucket.takenAtMs >= quietMs
    refill(bucket, connectsPerAddressPerS, now)
    keep(key, bucket)
    if (bucket.tokens < 1) return 'max_connects_per_address_per_s'
    refill(all, connectsPerS, now)
    if (all.tokens < 1 + (isQuiet ? 0 : reserved)) return 'max_connects_per_s'
    bucket.tokens -= 1
    bucket.takenAtMs = now
    all.tokens -= 1
    return null
  }

  function keep(key: string, bucket: AddressBucket): void {
    byAddress.delete(key)
    byAddress.set(key, bucket)
    if (byAddress.size <= addressesMax) return
    for (const oldest of byAddress.keys()) {
      byAddress.delete(oldest)
      return
    }
  }
}

function refill(bucket: Bucket, perS: number, now: number): void {
  bucket.tokens = Math.min(perS, bucket.tokens + ((now - bucket.atMs) / 1000) * perS)
  bucket.atMs = now
}
