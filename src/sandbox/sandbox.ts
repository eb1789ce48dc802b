// sandbox.ts: the entry file of the sandbox: the Telemetry Ingestion Service of ingestion-api.md as a server
// of its own, for trying out, for tests, and to judge the gateway's delivery independently.
//
// Guarantees
//
//   - Both operations with every rule that the specification shows. A forbidden request gets the status that
//   the
//     specification names, with the wrong field or header. What is "not shown" (limits, required fields, a
//     repeated batchId) is an option with a careful default (sandbox-options.ts).
//   - Every request must be signed by a registered account; this cannot be switched off. The sandbox verifies
//     SigV4a itself (signature.ts, on node:crypto alone) and shares no code with the gateway's signer,
//     because
//     the same mistake on both sides would stay hidden.
//   - A batch is processed in one turn of the event loop or not at all. The same batchId gets the same
//   breakdown
//     again, without a second effect (`repeat`).
//   - It counts distinct payloadIds, second effects and under which ids, repeats with other bytes, and
//   refusals
//     by reason. With `acceptedPath` each accepted payload is in a file before the answer leaves, so the
//     sandbox
//     itself may be killed in a test.
//   - Faults are injected at a rate or as a script (fault-plan.ts), at the start and while it runs. Random
//   numbers
//     come from `random`, so a seed repeats the same faults.
//
// Files
//
//   http-server.ts        sockets: request-body.ts, reply.ts, faults of the connection
//   ingestion-service.ts  from request to answer: signature.ts, batch-wrapper.ts, payload-check.ts,
//                         payload-verdicts.ts
//   memory                answered-batches.ts, id-table.ts (payloadIds), received-payloads.ts
//   disk                  accepted-file.ts
//   sandbox-control.ts    /sandbox/stats, /sandbox/received, /sandbox/faults
//
// Failures
//
//   - The accepted file cannot be written: the request has no effect and gets 500, `internalErrors` is
//   counted.
//   - Memory is bounded. At the bounds the oldest received payloads are dropped; the oldest batches are
//   forgotten
//     and treated as new when they come again (`batchesForgotten`); new payloadIds are not remembered
//     (`payloadIdsNotKept`). Check these counters before you rely on the others.
//   - A restart forgets everything but the accepted file.

import type { Clock } from '../std/clock.ts'
import { GatewayError } from '../std/gateway-error.ts'
import { registerAccounts } from './signature/accounts.ts'
import { openAcceptedFile, type AcceptedFile } from './accepted-file.ts'
import { readFaults, type FaultPlan, type FaultsInput } from './fault-plan.ts'
import { createHttp } from './http-server/http-server.ts'
import { createIdTable } from './id-table.ts'
import { listening } from './http-server/port-listener.ts'
import { createFaultInjector } from './fault-injection.ts'
import { defaults, type SandboxOptions } from './sandbox-options.ts'
import { createReceived, type ReceivedPayload, type ReceivedQuery } from './received-payloads.ts'
import { createRepeats } from './answered-batches.ts'
import { createService } from './ingestion-service.ts'
import { createCounters, type SandboxStats } from './sandbox-stats.ts'

export { sandboxAccount, type SandboxAccount } from './signature/accounts.ts'
export { readFaults, type FaultsInput } from './fault-plan.ts'
export { repeatModes, type Answered, type SandboxOptions } from './sandbox-options.ts'
export { requirements } from './payload-check.ts'

export type SandboxDeps = { clock: Clock; newId: () => string; random: () => number }

export type Sandbox = {
  /**
   * Rejects with GatewayError ADDRESS_IN_USE, ADDRESS_UNAVAILABLE or OUTPUT_UNWRITABLE. The URL is the base
   * URL for the gateway, with the port that the system chose where 0 was asked for.
   */
  listen(address: { host: string; port: number }): Promise<{ url: string }>
  /** Ends all connections, hanging ones included. */
  close(): Promise<void>
  stats(): SandboxStats
  received(query: ReceivedQuery): ReceivedPayload[]
  /** Replaces all plans. Throws GatewayError CONFIG_INVALID where they are not valid, and changes nothing. */
  setFaults(faults: FaultsInput): void
}

export function createSandbox(deps: SandboxDeps, options: SandboxOptions): Sandbox {
  const settings = { ...defaults, ...options }
  const { clock, newId, random } = deps
  const startedAt = clock.now()
  const stop = new AbortController()
  const counters = createCounters()
  const faultInjector = createFaultInjector(random, plansOf(options.faults ?? []))
  const seen = createIdTable(settings.payloadIdsMax)
  const repeats = createRepeats({
    batchesMax: settings.batchesRememberedMax,
    bytesMax: settings.bytesRememberedMax,
  })
  const received = createReceived({ payloadsMax: settings.receivedMax, bytesMax: settings.receivedBytesMax })
  let file: AcceptedFile | null = null

  const service = createService(
    {
      now: () => clock.now(),
      newId,
      random,
      accounts: registerAccounts(options.accounts),
      counters,
      seen,
      repeats,
      received,
      file: () => file,
      listener: options,
    },
    settings,
  )
  const control = { stats, received: (query: ReceivedQuery) => received.list(query), faults: faultInjector }
  const server = createHttp(
    { clock, newId, service, faultInjector, control, counters, listener: options, stop: stop.signal },
    settings,
  )

  return {
    async listen({ host, port }) {
      if (options.acceptedPath !== undefined)
        file = openAcceptedFile(options.acceptedPath, { sync: options.acceptedSync ?? false })
      const bound = await listening(server, { host, port }).catch((error: unknown) => {
        closeFile()
        throw error
      })
      return { url: `http://${host.includes(':') ? `[${host}]` : host}:${bound}${settings.basePath}` }
    },
    close() {
      stop.abort()
      return new Promise((resolve) => {
        server.close(() => {
          closeFile()
          resolve()
        })
        server.closeAllConnections()
      })
    },
    stats,
    received: (query) => received.list(query),
    setFaults: (faults) => faultInjector.set(plansOf(faults)),
  }

  function closeFile(): void {
    file?.close()
    file = null
  }

  function stats(): SandboxStats {
    return {
      startedAt,
      ...counters.counts,
      byStatus: counters.byStatus.show(),
      distinctPayloadIds: seen.size,
      payloadIdsNotKept: seen.overflow,
      batchesRemembered: repeats.size,
      batchesForgotten: repeats.forgotten,
      refusedSignatures: counters.refusedSignatures.show(),
      refusedRequests: counters.refusedRequests.show(),
      faultsInjected: counters.faultsInjected.show(),
    }
  }
}

function plansOf(faults: FaultsInput): readonly FaultPlan[] {
  const reading = readFaults(faults)
  if (reading.kind === 'faults') return reading.plans
  throw new GatewayError('CONFIG_INVALID', {
    what: 'The faults are not valid.',
    why: reading.problems.map(({ path, message }) => `${path.join('.')}: ${message}.`).join(' '),
    act: 'Correct them. Nothing was changed.',
  })
}
