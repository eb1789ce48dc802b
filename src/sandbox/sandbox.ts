// sandbox.ts: the door of the sandbox: the Telemetry Ingestion Service of ingestion-api.md as a server of its
// own, for trying out, for tests, and as the judge of the gateway's delivery.
//
// What it promises
//
//   - Both operations with every rule that the specification shows. A request that the specification forbids
//     gets the status that the specification names, with the field or the header that is wrong. What is "not
//     shown" (limits, required fields, the treatment of a repeated batchId) is an option with a careful
//     default, see sandbox-options.ts.
//   - Every request must be signed by a registered account. There is no way to switch that off. It verifies
//     SigV4a by itself (signature.ts, on node:crypto alone) and shares no code with the gateway's signer: two
//     mistakes that are the same would hide each other.
//   - A batch is taken in one turn of the event loop, or not at all. The same batchId again gets the same
//     breakdown and has no second effect (`repeat`).
//   - It counts what a judge wants to know: distinct payloadIds, what took effect twice and under which ids,
//     repeats with other bytes, refusals by reason. With `acceptedPath` each accepted payload is a line in a
//     file before the answer leaves, so that the judge may be killed too.
//   - It can be told to misbehave, at a rate or as a script (fault-plan.ts), at the start and while it runs.
//     Chance comes from `random`, so a seed tells the same story again.
//
// What goes where
//
//   http-server.ts       sockets: request-body.ts, reply.ts, and the faults of the connection
//   ingestion-service.ts    from request to answer: signature.ts, batch-wrapper.ts, payload-check.ts, payload-verdicts.ts
//   memory        answered-batches.ts (batches), id-table.ts (payloadIds), received-payloads.ts (the last payloads)
//   disk          accepted-file.ts
//   sandbox-control.ts    /sandbox/stats, /sandbox/received, /sandbox/faults
//
// What can go wrong, and what then happens
//
//   - The accepted file cannot be written: nothing of the request is taken, it gets 500, `internalErrors`
//     goes up.
//   - Memory is bounded. Beyond the bounds the oldest received payloads go; the oldest batches are forgotten
//     and taken for new ones when they come again (`batchesForgotten`); payloadIds are no longer told apart
//     (`payloadIdsNotKept`). A judge should look at these three before it believes the others.
//   - It restarts: it forgets everything but the accepted file.

import type { Clock } from '../std/clock.ts'
import { GatewayError } from '../std/gateway-error.ts'
import { registerAccounts } from './signature/accounts.ts'
import { openAcceptedFile, type AcceptedFile } from './accepted-file.ts'
import { readFaults, type FaultPlan, type FaultsInput } from './fault-plan.ts'
import { createHttp } from './http-server/http-server.ts'
import { createIdTable } from './id-table.ts'
import { listening } from './http-server/port-listener.ts'
import { createMischiefMaker } from './fault-injection.ts'
import { defaults, type SandboxOptions } from './sandbox-options.ts'
import { createReceived, type ReceivedPayload, type ReceivedQuery } from './received-payloads.ts'
import { createRepeats } from './answered-batches.ts'
import { createService } from './ingestion-service.ts'
import { createTally, type SandboxStats } from './sandbox-stats.ts'

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
  /** Ends all connections, also those that hang on purpose. */
  close(): Promise<void>
  stats(): SandboxStats
  received(query: ReceivedQuery): ReceivedPayload[]
  /** Replaces all plans; throws GatewayError CONFIG_INVALID, and changes nothing, where they have problems. */
  setFaults(faults: FaultsInput): void
}

export function createSandbox(deps: SandboxDeps, options: SandboxOptions): Sandbox {
  const settings = { ...defaults, ...options }
  const { clock, newId, random } = deps
  const startedAt = clock.now()
  const stop = new AbortController()
  const tally = createTally()
  const mischief = createMischiefMaker(random, plansOf(options.faults ?? []))
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
      tally,
      seen,
      repeats,
      received,
      file: () => file,
      listener: options,
    },
    settings,
  )
  const control = { stats, received: (query: ReceivedQuery) => received.list(query), faults: mischief }
  const server = createHttp(
    { clock, newId, service, mischief, control, tally, listener: options, stop: stop.signal },
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
    setFaults: (faults) => mischief.set(plansOf(faults)),
  }

  function closeFile(): void {
    file?.close()
    file = null
  }

  function stats(): SandboxStats {
    return {
      startedAt,
      ...tally.counts,
      byStatus: tally.byStatus.show(),
      distinctPayloadIds: seen.size,
      payloadIdsNotKept: seen.overflow,
      batchesRemembered: repeats.size,
      batchesForgotten: repeats.forgotten,
      refusedSignatures: tally.refusedSignatures.show(),
      refusedRequests: tally.refusedRequests.show(),
      faultsInjected: tally.faultsInjected.show(),
    }
  }
}

function plansOf(faults: FaultsInput): readonly FaultPlan[] {
  const reading = readFaults(faults)
  if (reading.kind === 'faults') return reading.plans
  throw new GatewayError('CONFIG_INVALID', {
    what: 'The faults have problems.',
    why: reading.problems.map(({ path, message }) => `${path.join('.')}: ${message}.`).join(' '),
    act: 'Mend them; nothing was changed.',
  })
}
