// service.ts: the ingestion service of the driver: the sandbox, which verifies each request, remembers each batchId and
// has faults. Of what it accepts it keeps what the oracle needs, also where no answer is sent.

import { randomUUID } from 'node:crypto'
import { idIn } from '../../../src/sandbox/received-payloads.ts'
import {
  createSandbox,
  requirements,
  sandboxAccount,
  type FaultsInput,
} from '../../../src/sandbox/sandbox.ts'
import type { SandboxStats } from '../../../src/sandbox/sandbox-stats.ts'
import { systemClock } from '../../../src/std/clock.ts'

/** A payload that the service accepted. */
export type Arrival = {
  batchId: string | null
  payloadId: string
  /** The carrier of the payload. */
  gateway: string
  device: string
  /** The time of the device. */
  ts: number
  /** What `contentOf` found. */
  content: string
}

export type Payload = {
  payloadId: string
  signalTimestamp: number
  gps?: { latitude: number; longitude: number; speed?: number; heading?: number; inMotion?: boolean }
  signals?: { type: string; value: string }[]
}

export type Service = AsyncDisposable & {
  readonly url: string
  /** In the order in which they were accepted. */
  readonly arrivals: readonly Arrival[]
  stats(): SandboxStats
  setFaults(faults: FaultsInput): void
  /** Called after a batch was accepted and before its answer is sent. */
  onAccepted(listener: (() => void) | null): void
  /** Device times of each batch, in the order in which they are in it. */
  batches(): Map<string, number[]>
  /** What no gateway may send, and what makes the record useless. */
  wrong(): string[]
}

export type ServiceOptions = {
  faults?: FaultsInput
  random?: () => number
  contentOf?: (payload: Payload) => string
}

export async function openService(options: ServiceOptions = {}): Promise<Service> {
  const { faults = [], random = Math.random, contentOf = () => '' } = options
  const arrivals: Arrival[] = []
  let listener: (() => void) | null = null
  const sandbox = createSandbox(
    { clock: systemClock, newId: () => randomUUID(), random },
    {
      accounts: [sandboxAccount],
      required: requirements,
      repeat: 'same',
      batchesRememberedMax: 5_000_000,
      bytesRememberedMax: 2 * 1024 ** 3,
      faults,
      onAccepted(batchId, { length: limit }) {
        for (const { payload } of sandbox.received({ limit }).toReversed()) {
          const { payloadId, signalTimestamp } = payload as Payload
          const [gateway, device] = [String(payload['carrier']), String(idIn(payload['deviceIdentifier']))]
          const content = contentOf(payload as Payload)
          arrivals.push({ batchId, payloadId, gateway, device, ts: signalTimestamp, content })
        }
        listener?.()
      },
    },
  )
  const { url } = await sandbox.listen({ host: '127.0.0.1', port: 0 })
  return {
    url,
    arrivals,
    stats: () => sandbox.stats(),
    setFaults: (next) => sandbox.setFaults(next),
    onAccepted(next) {
      listener = next
    },
    batches() {
      const batches = new Map<string, number[]>()
      for (const { batchId, payloadId, ts } of arrivals) {
        const key = batchId ?? `single ${payloadId}`
        const times = batches.get(key)
        if (times === undefined) batches.set(key, [ts])
        else times.push(ts)
      }
      return batches
    },
    wrong() {
      const { repeatsWithOtherBytes, internalErrors, payloadIdsNotKept, batchesForgotten, ...stats } =
        sandbox.stats()
      const mustBeZero = { repeatsWithOtherBytes, internalErrors, payloadIdsNotKept, batchesForgotten }
      const refusals = [stats.refusedSignatures, stats.refusedRequests]
      return [
        ...Object.entries(mustBeZero).flatMap(([name, count]) => (count === 0 ? [] : [`${name} ${count}`])),
        ...refusals
          .filter((one) => Object.keys(one).length > 0)
          .map((one) => `refused ${JSON.stringify(one)}`),
      ]
    },
    [Symbol.asyncDispose]: () => sandbox.close(),
  }
}
