// delivery.ts: the door of delivery: batches out.
//
// What it promises
//   Sealed before sent. A batch goes out only after the spool has made its batchId, range and timestamp durable,
//   and after a timeout, a 500, an answer that nobody can read, a crash or a restart the very same bytes go
//   again under the same batchId, so that the service can tell that it has them already.
//   Nothing is final without verdict.ts, and nothing that it holds counts against a payload.
//   While the endpoint is not available, a submission starts only as the one probe (endpoint.ts, invariant 9).
//
// How it goes
//   One road for each provider (provider-pipeline.ts) with a p-queue of its own, so that a provider that hangs starves nobody;
//   a second queue bounds all of them together. A lane of a provider that the config does not have is left
//   untouched: its payloads stay in the spool.
//
//     scheduler  what goes next                        senderWorker  the thread that signs, sends and reads the answer
//     hand       sealed batches, how long each rests   submit   one HTTP attempt, always an outcome (in the thread)
//     endpoint   whether anything may go now           answer   what an HTTP answer means (in the thread)
//     roles      when what waits becomes backfill      isolation  who is guilty in a refused batch
//     limits     size-limit, rate-limit, concurrency   said     what was said of each payload
//     keyring    credentials, their refresh, changes   verdict  what follows from an outcome: the retry policy
//     service-clock  what time it is over there        settler  carries the verdict out
//     route, proxy, tunnel   how the service is reached    strangers  payloads of nobody that the config has
//
// What can go wrong, and what then happens
//   The service fails     the batch rests (full jitter, 1 s doubling to 60 s) and fewer go at once; after five
//                         failures in a row over two batches the road is closed but for one probe.
//   It says 401 or 403    the credentials are read again and the batch is sent once more at once; then the road
//                         is closed, with a probe every ten minutes.
//   No credentials        nothing is sealed; they are looked for again after 5 s, doubling to five minutes.
//   It refuses a batch    as such (400, 413): it is cut until the guilty payload is alone, which is then judged by the
//                         single operation (isolation.ts); others go on. A 409 goes by `on_repeat`.
//   It refuses everything after twelve requests in a row the road is closed but for a probe every ten minutes, and
//                         nothing is buried.
//   A backlog waits       what is fresh goes first, the backlog gets its share (backfill-policy.ts, scheduler.ts).
//   The spool is lost     running submissions are aborted and their answers ignored; when it is open again,
//                         everything begins with the batches that it has.
//   We stop               running submissions go on until the deadline, then are aborted; batches stay sealed.

import PQueue from 'p-queue'
import type { Clock, EpochMs } from '../std/clock.ts'
import type { Emit } from '../domain/event.ts'
import type { Spool } from '../spool/spool.ts'
import { createCredentials } from './credentials/credentials.ts'
import type { DeliveryOptions, ProviderOptions } from './delivery-options.ts'
import { createSenderWorker } from './transport/sender-worker.ts'
import type { SenderWorker } from './transport/sender-worker.ts'
import { createProviderPipeline } from './provider-pipeline/provider-pipeline.ts'
import { createOrphanedProviders } from './orphaned-providers.ts'
import { createDeliveryCounters } from './delivery-counters.ts'
import type { DeliveryCounters } from './delivery-counters.ts'
import type { ProviderView } from './provider-view.ts'

export type { DeliveryCounters } from './delivery-counters.ts'
export type { EndpointState } from './policy/endpoint.ts'
export type { DeliveryOptions } from './delivery-options.ts'
export type { ProviderView } from './provider-view.ts'
export { checkConnection, type ConnectionStep } from './transport/connection-check.ts'

export type Delivery = {
  /** Begins with the recovered batches. */
  start(): void
  /** No new submission starts; running ones get until `deadline` aborts, then are aborted; batches stay sealed. */
  stop(deadline: AbortSignal): Promise<void>
  /** Tries now what waits for a back-off or a slow probe (SIGHUP). */
  probe(): void
  providers(): readonly ProviderView[]
  counters(): DeliveryCounters
}

export type DeliveryDeps = {
  spool: Spool
  clock: Clock
  random: () => number
  emit: Emit
  /** Where `credentials: { source: environment }` looks. */
  env?: NodeJS.ProcessEnv
  /** The sending thread, where several deliveries of one process share it; whoever made it closes it. */
  senderWorker?: SenderWorker
}

export function createDelivery(deps: DeliveryDeps, options: DeliveryOptions): Delivery {
  const tally = createDeliveryCounters()
  const total = new PQueue({ concurrency: options.maxInFlightTotal })
  const senderWorker = deps.senderWorker ?? createSenderWorker({ ledger: options.ledger ?? false })
  const roadDeps = { ...deps, env: deps.env ?? process.env, tally, total, senderWorker }
  const roads = options.providers.map((provider) => createProviderPipeline(roadDeps, provider))
  const strangers = createOrphanedProviders(deps, { known: options.providers.map(({ name }) => name) })
  let unlisten = () => {}

  return {
    start() {
      unlisten = deps.spool.listen({
        payloadsAdded: () => {
          roads.forEach((road) => road.grown())
          strangers.look()
        },
        storeLost: () => roads.forEach((road) => road.lost()),
        storeReopened: () => roads.forEach((road) => road.reopened()),
        intakeChanged() {
          if (!deps.spool.deadLettersFull) for (const road of roads) road.roomMade()
        },
      })
      strangers.look()
      for (const road of roads) road.start()
    },
    async stop(deadline) {
      await Promise.all(roads.map((road) => road.stop(deadline)))
      if (deps.senderWorker === undefined) await senderWorker.close()
      unlisten()
    },
    probe: () => roads.forEach((road) => road.probe()),
    providers: () => roads.map((road) => road.view()),
    counters: () => tally.counters(),
  }
}

/** Finds the credentials of a provider as delivery would; rejects with CREDENTIALS_MISSING. The secret stays here. */
export async function findCredentials(
  { clock, env }: { clock: Clock; env: NodeJS.ProcessEnv },
  { credentials, proxy }: ProviderOptions,
): Promise<{ accessKeyId: string; expiresAt: EpochMs | null }> {
  const { accessKeyId, expiration } = await createCredentials({ clock, env, proxy }, credentials).current()
  return { accessKeyId, expiresAt: expiration?.getTime() ?? null }
}
