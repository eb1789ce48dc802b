// repeats.ts: what a batch or a payload may be sent again as, and when at the earliest.
//
//   A payload goes alone, by the single operation, only as long as it is not settled: also after a restart.
//   A batch waits as long as its last answer asked for, unless a person releases it or the process ended since.
//   A batch that the service knows already, or refuses although it may know it, waits for minutes.

import type { GatewayEvent } from '../../../src/domain/event.ts'
import type { Service, Submission } from '../world/service.ts'
import type { OperatorAct, Trouble } from './deliveries.ts'

/** When the daemon said that an endpoint is not available: its probes wait for nothing else. */
export type OutageEvents = {
  observe(event: GatewayEvent, atMs: number): void
  has(provider: string, fromMs: number, toMs: number): boolean
}

type Known = {
  acts: readonly OperatorAct[]
  troubles: readonly Trouble[]
  outages: OutageEvents
  /** A batch that is known there waits for a person. */
  holdsRepeated: (provider: string) => boolean
  isCopied: (payloadId: string) => boolean
}

/** Delay of the answer, and what is rounded. */
const slackMs = 100
/** `delivery.retry.probe_every` less its jitter. */
const holdMs = 480_000
const retryAfterMaxMs = 600_000

export function createOutageEvents(): OutageEvents {
  const outages: { provider: string; fromMs: number; toMs: number }[] = []
  const open = (provider: string) =>
    outages.find((one) => one.provider === provider && one.toMs === Number.POSITIVE_INFINITY)
  return {
    observe(event, atMs) {
      const { kind } = event
      if (kind === 'gateway_starting') for (const one of outages) one.toMs = Math.min(one.toMs, atMs)
      if (kind === 'endpoint_available') Object.assign(open(event.provider) ?? {}, { toMs: atMs })
      const begins =
        kind === 'endpoint_unavailable' || kind === 'endpoint_unauthorized' || kind === 'wrapper_refused'
      if (begins && open(event.provider) === undefined)
        outages.push({ provider: event.provider, fromMs: atMs, toMs: Number.POSITIVE_INFINITY })
    },
    has: (provider, fromMs, toMs) =>
      outages.some((one) => one.provider === provider && one.fromMs <= toMs && one.toMs >= fromMs),
  }
}

export function wrongRepeats(services: readonly Service[], known: Known): string[] {
  const { acts, troubles, outages, holdsRepeated, isCopied } = known
  return services.flatMap((service) => [...wrongSingles(service), ...wrongWaits(service)])

  function wrongSingles({ journal }: Service): string[] {
    const wrong: string[] = []
    const last = new Map<string, Submission>()
    for (const submission of journal) {
      const { batchId, payloadIds, atMs, isStale } = submission
      if (isStale) continue
      for (const id of payloadIds) {
        const before = last.get(id)
        last.set(id, submission)
        if (before === undefined || before.batchId !== null || batchId === null || isCopied(id)) continue
        // What the service answered may have ended it, or a person did.
        if ((before.status !== null && before.status < 500) || isActed(before.atMs, atMs)) continue
        wrong.push(`payload ${id} was sent alone, and in batch ${batchId} since`)
      }
    }
    return wrong
  }

  function wrongWaits({ provider, journal }: Service): string[] {
    const wrong: string[] = []
    const last = new Map<string, Submission>()
    for (const submission of journal) {
      const { batchId, atMs, life, isStale } = submission
      if (batchId === null || isStale) continue
      const before = last.get(batchId)
      last.set(batchId, submission)
      if (before === undefined || before.life !== life || before.heard !== 'yes') continue
      const fromMs = before.answeredMs ?? before.atMs
      const waitMs = waitOf(before, provider)
      if (atMs >= fromMs + waitMs - slackMs || outages.has(provider, fromMs, atMs)) continue
      if (isActed(fromMs - slackMs, atMs) || isTrouble(fromMs, atMs)) continue
      const waited = seconds(atMs - fromMs)
      wrong.push(`batch ${batchId} came again ${waited} after ${before.status}; it waits ${seconds(waitMs)}`)
    }
    return wrong
  }

  function waitOf({ status, retryAfterMs }: Submission, provider: string): number {
    if (status === 409 && holdsRepeated(provider)) return holdMs
    return status === 429 || status === 503 ? Math.min(retryAfterMs, retryAfterMaxMs) : 0
  }

  function isActed(fromMs: number, toMs: number): boolean {
    return acts.some(({ atMs }) => atMs >= fromMs && atMs <= toMs)
  }

  function isTrouble(fromMs: number, toMs: number): boolean {
    return troubles.some((one) => one.fromMs <= toMs && one.toMs >= fromMs)
  }
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(3)} s`
}
