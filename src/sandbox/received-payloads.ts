// received-payloads.ts: the last accepted payloads, for people and tests. Bounded by number and by the bytes
// of the request bodies; at the bound the oldest are dropped.

import { isJsonObject, type JsonObject } from './payload-check.ts'

export type ReceivedPayload = {
  receivedAt: number
  requestId: string
  /** Null for a single submission. */
  batchId: string | null
  /** X-Provider-Key of the request; null without one. */
  provider: string | null
  payload: JsonObject
}

export type ReceivedQuery = {
  /** Only payloads of this deviceIdentifier.id or assetIdentifier.id. */
  device?: string
  limit: number
}

export type Received = {
  push(received: ReceivedPayload, bytes: number): void
  /** Newest first. */
  list(query: ReceivedQuery): ReceivedPayload[]
}

export function createReceived(limits: { payloadsMax: number; bytesMax: number }): Received {
  // A ring: payload n since the start is at n modulo the bound.
  const ring: ({ received: ReceivedPayload; bytes: number } | undefined)[] = []
  let first = 0
  let next = 0
  let bytes = 0

  function dropOldest(): void {
    const at = first % limits.payloadsMax
    bytes -= ring[at]?.bytes ?? 0
    ring[at] = undefined
    first += 1
  }

  return {
    push(received, itsBytes) {
      if (limits.payloadsMax === 0) return
      if (next - first === limits.payloadsMax) dropOldest()
      ring[next % limits.payloadsMax] = { received, bytes: itsBytes }
      next += 1
      bytes += itsBytes
      while (bytes > limits.bytesMax && next - first > 1) dropOldest()
    },
    list({ device, limit }) {
      const found: ReceivedPayload[] = []
      for (let at = next - 1; at >= first && found.length < limit; at -= 1) {
        const received = ring[at % limits.payloadsMax]?.received
        if (received && (device === undefined || isOf(received.payload, device))) found.push(received)
      }
      return found
    },
  }
}

function isOf(payload: JsonObject, device: string): boolean {
  return idIn(payload['deviceIdentifier']) === device || idIn(payload['assetIdentifier']) === device
}

export function idIn(identifier: unknown): unknown {
  return isJsonObject(identifier) ? identifier['id'] : undefined
}
