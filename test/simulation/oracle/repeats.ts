// repeats.ts: what a batch or a payload may be sent again as, and when at the earliest.
//
//   A payload goes alone, by the single operation, only as long as it is not settled: also after a restart.
//   A batch waits as long as its last answer asked for, unless a person releases it or the process ended since.
//   A batch that the service knows already, or refuses although it may know it, waits for minutes.
//   A batch keeps its batchId where it is refused although it may have been processed (on_refused_repeat: hold), and
//   where only its key was refused.

import type { GatewayEvent } from '../../../src/domain/event.ts'
import type { Service, Submission } from '../world/service.ts'
import type { OperatorAct, Trouble } from './deliveries.ts'

/** When the daemon said that an endpoint is not available: its probes wait for nothing else. */
export type OutageEvents = {
  observe(event: GatewayEvent, atMs: number): void
  has(provider: string, fromMs: number, toMs: number): boolean
}

export type RepeatRules = {
  acts: readonly OperatorAct[]
  troubles: readonly Trouble[]
  outages: OutageEvents
  /** A batch that is known there waits for a person. */
  holdsRepeated: (provider: string) => boolean
  /** So does one that is refused although it may have been processed. */
  holdsRefused: boolean
  isCopied: (payloadId: string) => boolean
}

/** By its answers so far. `keeps`: why it is not sent under another name. */
type Batch = {
  batchId: string
  keeps: 'refused' | 'key' | null
  /** By the first of these answers. */
  refusedMs: number
  mayBeProcessed: boolean
  wasForbidden: boolean
  /** An answer said something of its payloads. */
  isNamed: boolean
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
      if (kind !== 'endpoint_changed') return
      if (event.state === 'available') Object.assign(open(event.provider) ?? {}, { toMs: atMs })
      else if (open(event.provider) === undefined)
        outages.push({ provider: event.provider, fromMs: atMs, toMs: Number.POSITIVE_INFINITY })
    },
    has: (provider, fromMs, toMs) =>
      outages.some((one) => one.provider === provider && one.fromMs <= toMs && one.toMs >= fromMs),
  }
}

export function wrongRepeats(services: readonly Service[], known: RepeatRules): string[] {
  const { acts, troubles, outages, holdsRepeated, holdsRefused, isCopied } = known
  return services.flatMap((service) => [
    ...wrongSingles(service),
    ...wrongWaits(service),
    ...wrongNames(service),
  ])

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

  function wrongNames({ journal }: Service): string[] {
    const wrong: string[] = []
    const batches = new Map<string, Batch>()
    const last = new Map<string, Batch>()
    /** Payloads that were in a batch that was forbidden by itself: each 403 may be about them since. */
    const suspects = new Set<string>()
    let isSizeRefused = false
    for (const submission of journal) {
      const { batchId, payloadIds, atMs, isStale } = submission
      if (isStale) continue
      for (const id of payloadIds) {
        const before = last.get(id)
        if (before === undefined || before.batchId === batchId || isCopied(id)) continue
        const wasSuspect = suspects.has(id)
        // The next 403 to a part of it is one about the part.
        if (before.wasForbidden) suspects.add(id)
        if (isActed(before.refusedMs - slackMs, atMs)) continue
        const isCut = isSizeRefused || wasSuspect || hasAccepted(before.refusedMs, atMs)
        const why = before.keeps === 'key' && isCut ? null : before.keeps
        // Its parts are cut on.
        if (before.keeps === 'key' && isCut) suspects.add(id)
        if (why !== null)
          wrong.push(
            `payload ${id} of batch ${before.batchId}, which keeps its name (${why}), went as ${batchId}`,
          )
      }
      isSizeRefused ||= submission.status === 413
      const isForbidden = submission.status === 401 || (submission.status === 403 && !submission.isKeyRefused)
      if (isForbidden) for (const id of payloadIds) suspects.add(id)
      if (batchId === null) {
        for (const id of payloadIds) last.delete(id)
        continue
      }
      const batch = batches.get(batchId) ?? {
        batchId,
        keeps: null,
        refusedMs: 0,
        mayBeProcessed: false,
        wasForbidden: false,
        isNamed: false,
      }
      batches.set(batchId, batch)
      for (const id of payloadIds) last.set(id, batch)
      answered(batch, submission)
    }
    return wrong

    /** Something that was sent since, so that a 403 is about the batch. */
    function hasAccepted(fromMs: number, toMs: number): boolean {
      return journal.some(
        // A 409 passed the check of the keys, too, and may count as delivered.
        ({ atMs, status }) =>
          atMs >= fromMs && atMs <= toMs && (status === 200 || status === 202 || status === 409),
      )
    }
  }

  function answered(
    batch: Batch,
    { status, heard, results, isKeyRefused, answeredMs, atMs }: Submission,
  ): void {
    const isRefused = status === 400 || status === 413
    batch.wasForbidden ||= status === 403
    batch.isNamed ||= status === 409 || (status === 200 && results !== null && results.size > 0)
    batch.keeps = null
    if (batch.isNamed || heard === 'no') {
      batch.mayBeProcessed ||= !isRefused && status !== 403 && status !== 401
      return
    }
    if (batch.mayBeProcessed && isRefused && heard === 'yes' && holdsRefused) batch.keeps = 'refused'
    if (!batch.mayBeProcessed && isKeyRefused) batch.keeps = 'key'
    if (batch.refusedMs === 0) batch.refusedMs = answeredMs ?? atMs
    if (!isRefused && status !== 401 && status !== 403) batch.mayBeProcessed = true
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
