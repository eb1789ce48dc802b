// delivery.ts: the entry file of delivery: batches out.
//
// What it guarantees
//   Sealed before sent. A batch is sent only after the spool has made its batchId, range and timestamp
//   durable. After a timeout, a 500, an unreadable answer, a crash or a restart the same bytes are sent again
//   under the same batchId, so that the service can recognize them.
//   Nothing becomes final without policy/verdict.ts, and nothing that is held counts an attempt of a payload.
//   While the endpoint is not available, a submission starts only as the one probe (invariant 9).
//
// How it works
//   Each provider has a pipeline with a p-queue of its own, so that a provider that hangs does not delay the
//   others. total-share.ts bounds the submissions of all, and reserves places for each. Lanes of providers
//   that are not in the config stay in the spool.
//
//     provider-pipeline/  acts: takes a batch, sends it, settles or holds it
//     batch-operations/   what an operator does with sealed batches
//     returns/            gives payloads back to the server that their messages came from
//     policy/             decides: what goes next, whether, when again, what an answer means
//     pacing/             decides: how large a batch is, how many go at once, how long each may take
//     watch/              says what stands still: late answers, waits, a service that accepts nothing
//     transport/          sends: a thread that signs, sends and reads the answer; proxy, connection check
//     credentials/        the keys that sign: found, refreshed, renewed after a 401 or 403
//
// What can go wrong, and what then happens
//   The service fails     the batch waits (full jitter, 1 s doubling to 60 s) and fewer are sent at once.
//                         After five failures in a row over two batches the endpoint is unavailable. One
//                         probe at a time is sent then.
//   Options change        renew() puts them in force, and renewed secrets for the next connections
//                         (provider-pipeline/options-renewal.ts). Queues and sealed batches stay.
//   It answers 401, 403   the credentials are read again and the batch is sent once more at once; then the
//                         endpoint is unauthorized, with a probe every ten minutes.
//   No credentials        nothing is sealed. The next look is after 5 s, doubling to five minutes.
//   It refuses a batch    (400, 413) the batch is cut until the payload at fault is alone, which is then
//                         judged by the single operation (policy/refusals.ts). Others go on. A 409 follows
//                         `on_repeat`.
//   It refuses all        after twelve refusals in a row the endpoint is unavailable, with a probe every ten
//                         minutes, and nothing becomes a dead letter.
//   A backlog waits       fresh data goes first, the backlog gets its share (policy/backfill-policy.ts).
//   The spool is lost     running submissions are aborted and their answers ignored. When it is open again,
//                         delivery starts with the batches that the spool has.
//   The thread is lost    (transport/sender-worker.ts) its batches are sent once more, by a new one.
//   The daemon stops      running submissions continue until the deadline, then are aborted; batches stay
//                         sealed.

import type { Clock } from '../std/clock.ts'
import { GatewayError } from '../std/gateway-error.ts'
import type { Emit } from '../domain/event.ts'
import type { State } from '../domain/condition-state.ts'
import { type Spool, isUnknown } from '../spool/spool.ts'
import { whyNoKeys } from './credentials/credentials-reader.ts'
import type { DeliveryOptions } from './delivery-options.ts'
import { createSenderWorker, type SenderWorker } from './transport/sender-worker.ts'
import { appliedFromMs } from './transport/service-clock.ts'
import { ownOptions } from './provider-pipeline/options-renewal.ts'
import { createProviderPipeline } from './provider-pipeline/provider-pipeline.ts'
import { TotalShare } from './total-share.ts'
import { createDeliveryCounters } from './delivery-counters.ts'
import { createBatchOperations } from './batch-operations/batch-operations.ts'
import { createReturns } from './returns/returns.ts'
import type { Returns } from './returns/types.ts'
import type { BatchOperations, DeliveryCounters, ProviderView, SettledBatch } from './types.ts'
import type { ProviderName } from '../domain/ids.ts'

export type { DeliveryOptions, ProxyOptions } from './delivery-options.ts'
export type { SenderWorker } from './transport/sender-worker.ts'
export { createTunnel } from './transport/proxy-tunnel.ts'
export { isLoopback as isLoopbackUrl, proxyFor, type Environment } from './proxy.ts'
export { checkCompression } from './compression-check.ts'
export { checkConnection } from './transport/connection-check.ts'
export type { ReturnedPayload, Returns } from './returns/types.ts'
export { findSigningKeys, sendSignedRequest, type SigningKeys } from './signed-request.ts'

export type Delivery = {
  /** Starts with the recovered batches. */
  start(): void
  /** Starts no new submission. Running ones continue until `deadline` aborts. Batches stay sealed. */
  stop(deadline: AbortSignal): Promise<void>
  /** Ends all waits: tries now (SIGHUP, `probe`). */
  probe(): void
  /**
   * Puts other options, certificates, keys of the config and the login at the proxy in force, for the same
   * providers and services.
   */
  renew(options: DeliveryOptions): void
  providers(): readonly ProviderView[]
  /** What is wrong now. */
  states(): Iterable<State>
  /** How far the clock of the services is ahead of ours. Null: no answer has said it, or two disagree. */
  clockOffsetMs(): number | null
  counters(): DeliveryCounters
  /** What an operator does with sealed batches. */
  readonly batches: BatchOperations
  /** Gives payloads back to the server that their messages came from. */
  readonly returns: Returns
}

export type DeliveryDeps = {
  spool: Spool
  clock: Clock
  random: () => number
  emit: Emit
  /** For `credentials: { source: environment }`. */
  env?: NodeJS.ProcessEnv
  /** Receives each settled batch. */
  settled?: (batch: SettledBatch) => void
  /** Shared by several deliveries of one process; the creator closes it. */
  senderWorker?: SenderWorker
}

/** Of the spool, for payloads that wait for room in the dead letters. */
const waitingShare = 0.05

export function createDelivery(deps: DeliveryDeps, options: DeliveryOptions): Delivery {
  const { ledger = false } = options
  const counters = createDeliveryCounters()
  const { maxInFlightTotal, providers } = options
  const total = new TotalShare(maxInFlightTotal)
  const senderWorker =
    deps.senderWorker ?? createSenderWorker(deps, { ledger: ledger || deps.settled !== undefined })
  const waitingBytesMax = () => (waitingShare * deps.spool.totals().bytesMax) / providers.length
  const env = deps.env ?? process.env
  const pipelineDeps = { ...deps, env, counters, total, senderWorker, ledger, waitingBytesMax }
  const pipelines = providers.map((provider) => createProviderPipeline(pipelineDeps, ownOptions(provider)))
  const known = providers.map(({ name }) => name)
  const views = () => pipelines.map((pipeline) => pipeline.view())
  const controls = pipelines.map(({ batchControl }) => batchControl)
  let unlisten = () => {}

  return {
    start() {
      unlisten = deps.spool.listen({
        payloadsAdded: (payloads) => pipelines.forEach((pipeline) => pipeline.payloadsAdded(payloads)),
        storeLost: () => pipelines.forEach((pipeline) => pipeline.lost()),
        // Its batches are new to the pipeline, like those after an opening.
        laneAssigned: (provider) =>
          pipelines.find((pipeline) => pipeline.view().name === provider)?.reopened(),
        storeReopened: () => pipelines.forEach((pipeline) => pipeline.reopened()),
        intakeChanged() {
          if (!deps.spool.deadLettersFull()) for (const pipeline of pipelines) pipeline.deadLettersHaveRoom()
        },
      })
      for (const pipeline of pipelines) pipeline.start()
    },
    async stop(deadline) {
      await Promise.all(pipelines.map((pipeline) => pipeline.stop(deadline)))
      if (deps.senderWorker === undefined) await senderWorker.close()
      unlisten()
    },
    probe: () => pipelines.forEach((pipeline) => pipeline.probe()),
    renew(next) {
      total.resize(next.maxInFlightTotal)
      next.providers.forEach((provider, index) => pipelines[index]?.renew(provider))
    },
    providers: views,
    *states() {
      for (const pipeline of pipelines) yield* pipeline.states()
      yield* orphanedProviders(deps.spool, known)
    },
    clockOffsetMs() {
      const offsets = pipelines.map((pipeline) => pipeline.clockOffsetMs()).filter((one) => one !== null)
      const [first = null] = offsets
      // By the wrong one of two, messages of both would be kept in quarantine.
      return Math.max(...offsets) - Math.min(...offsets) >= appliedFromMs ? null : first
    },
    counters: () => ({ ...counters.read(), senderThreadsLost: senderWorker.threadsLost() }),
    returns: createReturns({ ...deps, pipelines }),
    batches: createBatchOperations({ ...deps, controls, endpoints: views }),
  }
}

/**
 * Rejects with CREDENTIALS_MISSING where there are no keys for any provider yet. Keys that cannot be read
 * or are wrong are no reason: they were given, so devices may rely on the gateway, which keeps their data.
 */
export async function requireKeys(env: NodeJS.ProcessEnv, { providers }: DeliveryOptions): Promise<void> {
  const reasons = await Promise.all(providers.map(({ credentials }) => whyNoKeys(env, credentials)))
  if (reasons.some((reason) => reason === null)) return
  throw new GatewayError('CREDENTIALS_MISSING', {
    what: 'The gateway has no keys of the ingestion API, so it does not start.',
    why: [...new Set(reasons)].join('\n'),
    act:
      'Run `sudo telemetry-gateway init`, or write {"accessKeyId": "...", "secretAccessKey": "..."} into the file. ' +
      'Then run `sudo systemctl start telemetry-gateway`.',
  })
}

// Providers that have payloads in the spool and are not in the config (any more).
// Their payloads stay in the spool. A lane whose provider is lost is a state of the spool.

function orphanedProviders(spool: Pick<Spool, 'lanes'>, known: readonly ProviderName[]): State[] {
  const waiting = new Map<ProviderName, number>()
  for (const { id, provider, open } of spool.lanes())
    if (open > 0 && !known.includes(provider) && !isUnknown({ id, provider }))
      waiting.set(provider, (waiting.get(provider) ?? 0) + open)
  return [...waiting].map(([provider, payloads]) => ({ code: 'PROVIDER_UNKNOWN', provider, payloads }))
}
