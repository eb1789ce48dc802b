// endpoint-watch.ts: whether the daemon says how the service is, while it is so: the state of each endpoint against what
// the service answered and the network let through, and the conditions against that state.

import type { Status } from '../../../src/ops/status-schema/status-schema.ts'
import type { Results, Service } from '../world/service.ts'
import type { Trouble } from './deliveries.ts'

/** Of a provider, at one look. */
type Look = {
  atMs: number
  life: number
  endpoint: string
  /** A condition says so, where it is not available. */
  isSaid: boolean
  isCut: boolean
  isWaiting: boolean
}

/** Since then. */
type WasUnavailable = (sinceMs: number) => boolean

export type EndpointWatch = {
  wrong: string[]
  /** Call it every `everyMs`; `isCut`: the network refuses all connections to the host. */
  look(status: Status, now: { atMs: number; life: number; isCut: (host: string) => boolean }): void
  /** Call it `toldMs` after the daemon said that an endpoint is not available. */
  told(status: Status, provider: string, atMs: number): void
  /** The daemon says that an endpoint is not available since nothing was accepted. */
  outage(provider: string, now: { atMs: number; life: number }, was: WasUnavailable): void
  /** The daemon says that an endpoint is available again. */
  available(provider: string, now: { atMs: number; life: number }): void
}

export const toldMs = 1000

export const everyMs = 10_000
/** A condition is open so soon after its cause began, and closed so soon after it ended. */
const opensMs = 15_000
const closesMs = 120_000
/** Five failures of one batch take 31 s of back-offs at most, and each has a deadline. */
const unavailableMs = 180_000
const answeredMs = 5000
const lookedAtMs = 1000
const failuresMin = 5
const emptyToOutage = 3
/** An answer has arrived so soon, and what is heard of it is known. */
const arrivesMs = 20
const hangsMs = 120_000
/** Each look at an outage reads all answers so far: in a week there are thousands of both. */
const outageLooksMax = 100

const ofState: Readonly<Record<string, readonly string[]>> = {
  unavailable: ['ENDPOINT_UNAVAILABLE', 'WRAPPER_REFUSED', 'NOTHING_ACCEPTED'],
  // The first request with new keys may wait for its answer.
  unauthorized: ['ENDPOINT_UNAUTHORIZED', 'CREDENTIALS_MISSING', 'SERVICE_HANGING'],
}
const ofEndpoints = ['ENDPOINT_UNAVAILABLE', 'ENDPOINT_UNAUTHORIZED', 'WRAPPER_REFUSED']

/** `troubles`: a store that is refused and opened again begins with an endpoint that is available. */
export function createEndpointWatch(
  services: readonly Service[],
  troubles: readonly Trouble[],
): EndpointWatch {
  const wrong: string[] = []
  const looks = new Map<string, Look[]>()
  let outageLooks = 0
  return { wrong, look, told, outage, available }

  /** The third live batch in a row of which nothing is accepted shows it. */
  function outage(
    provider: string,
    { atMs, life }: { atMs: number; life: number },
    wasUnavailable: WasUnavailable,
  ): void {
    const service = services.find((one) => one.provider === provider)
    if (service === undefined || (outageLooks += 1) > outageLooksMax) return
    const sinceMs = Math.max(service.disturbedMs, ...troubles.map(({ toMs }) => toMs))
    const { count, fromMs } = emptyInRow(service, { sinceMs, atMs: atMs - arrivesMs, life })
    if (count >= emptyToOutage && !wasUnavailable(fromMs))
      wrong.push(
        `${provider} accepted none of ${count} live batches before it was unavailable, at ${(atMs / 1000).toFixed(3)}`,
      )
  }

  function available(provider: string, { atMs, life }: { atMs: number; life: number }): void {
    const answers = services
      .flatMap((service) => (service.provider === provider ? service.journal : []))
      .filter((one) => one.life === life && (one.answeredMs ?? 0) > atMs - answeredMs)
    if (answers.length > 0 && answers.every(({ isHalf }) => isHalf))
      wrong.push(`${provider} is available again after half an answer, at ${(atMs / 1000).toFixed(3)}`)
  }

  function told({ providers, conditions }: Status, provider: string, atMs: number): void {
    const endpoint = providers.find(({ name }) => name === provider)?.endpoint ?? ''
    const state = ofState[endpoint]
    if (state !== undefined && !conditions.some(({ code }) => state.includes(code)))
      wrong.push(`${provider} is ${endpoint}, and no condition says so, at ${(atMs / 1000).toFixed(3)}`)
  }

  function look(status: Status, { atMs, life, isCut }: Parameters<EndpointWatch['look']>[1]): void {
    const at = `at ${(atMs / 1000).toFixed(3)}`
    const codes = status.conditions.map(({ code }) => code)
    for (const service of services) {
      const { provider, host } = service
      const endpoint = status.providers.find(({ name }) => name === provider)?.endpoint
      // The spool is not open.
      if (endpoint === undefined) continue
      const isWaiting = status.lanes.some((lane) => lane.provider === provider && lane.sealed > 0)
      const all = looks.get(provider) ?? []
      looks.set(provider, all)
      const state = ofState[endpoint]
      const isSaid = state === undefined || state.some((code) => codes.includes(code))
      all.push({ atMs, life, endpoint, isSaid, isCut: isCut(host), isWaiting })
      const longest = (ms: number, is: (look: Look) => boolean) => holdsFor(all, { atMs, life, ms }, is)
      // One may end before the next begins: there are keys again, and their first request hangs.
      if (longest(opensMs, (one) => one.endpoint === endpoint && !one.isSaid))
        wrong.push(`${provider} is ${endpoint} for ${opensMs / 1000} s, and no condition says so, ${at}`)
      if (endpoint === 'available' && longest(unavailableMs, (one) => one.isCut && one.isWaiting))
        wrong.push(
          `${provider} refuses connections for ${unavailableMs / 1000} s, and counts as available, ${at}`,
        )
      if (
        endpoint === 'available' &&
        !mayHold(status, provider) &&
        hasFailed(service, { atMs, life, sinceMs: lastTroubleMs(troubles) })
      )
        wrong.push(
          `${provider} failed ${failuresMin} times in a row over two batches, and counts as available, ${at}`,
        )
      if (endpoint === 'available' && isToldOutage(service, { atMs, life, sinceMs: lastTroubleMs(troubles) }))
        wrong.push(
          `${provider} accepted none of the last ${emptyToOutage} live batches, and counts as available, ${at}`,
        )
      // Without keys nothing more is sent, whatever was accepted.
      const hasKeys = !codes.includes('CREDENTIALS_MISSING')
      if (endpoint !== 'available' && hasKeys && acceptsNow(service, { atMs, life }))
        wrong.push(`${provider} accepted the last batch, and counts as ${endpoint}, ${at}`)
    }
    const isAllAvailable = [...looks.values()].every((all) =>
      holdsFor(all, { atMs, life, ms: closesMs }, (one) => one.endpoint === 'available'),
    )
    const open = codes.filter((code) => ofEndpoints.includes(code))
    if (isAllAvailable && open.length > 0)
      wrong.push(
        `all endpoints are available for ${closesMs / 1000} s, and ${open.join(', ')} is open, ${at}`,
      )
  }
}

/**
 * The last live batches whose answers were complete and accepted nothing; those of Validation alone show no outage. What
 * an earlier batch did not deliver, named as failed or left out, comes again in a retry lane.
 */
function emptyInRow(
  { journal }: Service,
  { sinceMs, atMs, life }: { sinceMs: number; atMs: number; life: number },
): { count: number; fromMs: number } {
  /** The batch in which a payload failed first. */
  const failed = new Map<string, string | null>()
  let count = 0
  let fromMs = atMs
  const endOf = (one: { answeredMs: number | null; atMs: number }) => one.answeredMs ?? one.atMs
  for (const one of journal.toSorted((a, b) => endOf(a) - endOf(b))) {
    const { batchId, payloadIds, results, heard, status, answeredMs } = one
    const answers = [...(results?.values() ?? [])]
    const isLive = payloadIds.every((id) => (failed.get(id) ?? batchId) === batchId)
    if (results !== null)
      for (const id of payloadIds)
        if (results.get(id) !== 'accepted' && !failed.has(id)) failed.set(id, batchId)
    if (one.life !== life || answeredMs === null || answeredMs < sinceMs || answeredMs > atMs) continue
    const isWhole = heard === 'yes' && status === 200 && answers.length === payloadIds.length
    const isEmpty = answers.every((result) => result !== 'accepted' && result.errorType !== 'Validation')
    if (isWhole && isEmpty && isLive) {
      count += 1
      if (count === 1) fromMs = one.atMs
    } else if (answers.includes('accepted') || status === 409) count = 0
  }
  return { count, fromMs }
}

/** Failures of a held batch show nothing of the service. During a stop the status has no lanes. */
function mayHold({ lanes, notReady }: Status, name: string): boolean {
  const isStopping = notReady?.startsWith('stopping') === true
  return isStopping || lanes.some(({ provider, held }) => provider === name && held > 0)
}

/** The last answers that this process heard, each of which is a failure. */
function hasFailed(
  { journal }: Service,
  { atMs, life, sinceMs }: { atMs: number; life: number; sinceMs: number },
): boolean {
  const answered = journal.filter((one) => one.life === life && (one.answeredMs ?? 0) > sinceMs)
  const failed = new Set<string | null>()
  let failures = 0
  for (const one of answered.sort((a, b) => (b.answeredMs ?? 0) - (a.answeredMs ?? 0))) {
    const { status, heard, answeredMs: since, batchId } = one
    const isRefused = status !== null && (status >= 500 || status === 408 || status === 429)
    // Half an answer may name the rest of what an earlier half named. Then the batch does not come again.
    const isHalf = one.isHalf && answered.some((next) => next.batchId === batchId && next.atMs > one.atMs)
    if (!isHalf && (!isRefused || heard !== 'yes')) break
    // What came just now may not have been looked at.
    if ((since ?? atMs) > atMs - lookedAtMs) continue
    failures += 1
    failed.add(batchId)
  }
  return failures >= failuresMin && failed.size > 1
}

/**
 * The last answers that this process heard accepted nothing, not only for Validation, and so many of them were to live
 * batches, each the first one that named something.
 */
function isToldOutage(
  { journal }: Service,
  { atMs, life, sinceMs }: { atMs: number; life: number; sinceMs: number },
): boolean {
  // In most looks, and without a sum over a week.
  if (journal.slice(-emptyToOutage).some(({ results }) => hasAccepted(results))) return false
  const answered = journal.filter((one) => one.life === life && (one.answeredMs ?? 0) > sinceMs)
  let live = 0
  for (const one of answered.sort((a, b) => (b.answeredMs ?? 0) - (a.answeredMs ?? 0))) {
    const { status, heard, answeredMs, batchId, payloadIds, results } = one
    if (status !== 200 || heard !== 'yes' || results === null || results.size < payloadIds.length) break
    const isEmpty = [...results.values()].every(
      (result) => result !== 'accepted' && result.errorType !== 'Validation',
    )
    // What came just now may not have been looked at.
    if (!isEmpty || (answeredMs ?? atMs) > atMs - lookedAtMs) break
    const isLive = journal.every(
      (other) =>
        other === one ||
        other.atMs > one.atMs ||
        !other.payloadIds.some((id) => payloadIds.includes(id)) ||
        (other.batchId === batchId && other.status === null),
    )
    if (isLive) live += 1
  }
  return live >= emptyToOutage
}

function hasAccepted(results: Results | null): boolean {
  return [...(results?.values() ?? [])].includes('accepted')
}

function lastTroubleMs(troubles: readonly Trouble[]): number {
  return Math.max(0, ...troubles.map(({ toMs }) => toMs))
}

/** At all looks of this process since `ms` before. */
function holdsFor(
  looks: readonly Look[],
  { atMs, life, ms }: { atMs: number; life: number; ms: number },
  is: (look: Look) => boolean,
): boolean {
  const since = looks.filter((one) => one.life === life && one.atMs >= atMs - ms - everyMs)
  const [first] = since
  return first !== undefined && first.atMs <= atMs - ms && since.every(is)
}

/** The last answer named all payloads and accepted something, some seconds ago, and nothing was sent since or still waits for an answer. */
export function acceptsNow(
  { journal, disturbedMs }: Service,
  { atMs, life }: { atMs: number; life: number },
): boolean {
  const last = journal.at(-1)
  if (last === undefined || last.life !== life || last.answeredMs === null || last.heard !== 'yes')
    return false
  if (disturbedMs >= last.atMs) return false
  if (last.batchId === null || last.status !== 200 || last.answeredMs > atMs - answeredMs) return false
  const results = [...(last.results?.values() ?? [])]
  if (!results.includes('accepted') || results.length < last.payloadIds.length) return false
  return journal.every((one) => one === last || (one.answeredMs ?? one.atMs + hangsMs) <= last.atMs)
}
