// open-conditions.ts: conditions of delivery are open while their causes hold, and not when they are over; and what else
// the status says of payloads that wait.
//
//   dead letters are kept          DEAD_LETTERS or DEAD_LETTERS_WAITING, also those of before the start
//   a service accepts everything   no NOTHING_ACCEPTED
//   the store is lost              no message is taken in
//   batches were held              they are held after the next start
//   the endpoint is unavailable    probes are sent
//   payloads wait                  they have bytes, and nothing else has
//   a batch is held                the config says that its reason is for a person
//   one payload is refused alone   it waits for nothing but the next batch that is accepted
//   the endpoint is available      what failed before waits for nothing but a place

import type { Flips } from '../acts/flip-acts.ts'
import type { GatewayEvent } from '../../../src/domain/event.ts'
import type { Status } from '../../../src/ops/status-schema/status-schema.ts'
import type { Service, Submission } from '../world/service.ts'
import type { Trouble } from './deliveries.ts'
import { acceptsNow } from './endpoint-watch.ts'

type Now = { atMs: number; life: number }

export type OpenConditions = {
  wrong: string[]
  /** Call it every 10 s. */
  look(status: Status, now: Now): void
  observe(event: GatewayEvent, now: Now): void
}

type Held = { count: number; payloads: number; atMs: number }

type Known = {
  troubles: readonly Trouble[]
  /** When a person last changed something. */
  changedMs: () => number
  /** `on_repeat` and `on_refused_repeat`. */
  mayHold: (provider: string, reason: string) => boolean
  flips: Flips
  /** Between two probes of an endpoint that is unavailable, with its answer. */
  probesMs: number
  /** A request without an answer ends so soon. */
  timeoutMs: number
}

const opensMs = 30_000
/** A held batch is durable so soon after it was reported. */
const durableMs = 5000
/** For so long batches were accepted, and so many. */
const acceptedMs = 40_000
const acceptedMin = 3
/** Where no submission ran for so long, there is a place. */
const placeMs = 1000
/** By then what was released has a place, where there is one. */
const sentMs = 2000
/** A service may ask to wait for ten minutes. */
const waitMaxMs = 900_000

export function createOpenConditions(
  services: readonly Service[],
  { troubles, changedMs, mayHold, flips, probesMs, timeoutMs }: Known,
): OpenConditions {
  const wrong: string[] = []
  const deadSince: Now & { isOpen: boolean } = { atMs: 0, life: -1, isOpen: false }
  const unavailableSince = new Map<string, Now>()
  /** At the last look at which it was not, by provider. */
  const notAvailableMs = new Map<string, number>()
  const availableSince = new Map<string, Now>()
  /** By provider and reason: in the process before, and first and last in this one. */
  const before = new Map<string, Held>()
  let firstHeld = new Map<string, number>()
  let lastHeld = new Map<string, Held>()
  let aliveMs = 0
  let observedLife = -1
  return { wrong, look, observe }

  function look(status: Status, now: Now): void {
    aliveMs = now.atMs
    const codes = status.conditions.map(({ code }) => code)
    const at = `at ${seconds(now.atMs)}`
    const isOpen = codes.includes('DEAD_LETTERS') || codes.includes('DEAD_LETTERS_WAITING')
    if (isOpen || status.spool.deadLetters === 0 || deadSince.life !== now.life) Object.assign(deadSince, now)
    else if (now.atMs - deadSince.atMs > opensMs)
      wrong.push(`${status.spool.deadLetters} dead letters are kept, and no condition says so, ${at}`)
    if (codes.includes('NOTHING_ACCEPTED') && services.every((service) => acceptsNow(service, now)))
      wrong.push(`the service accepted the last batch, and NOTHING_ACCEPTED is open, ${at}`)
    if (codes.includes('STORE_LOST') && status.ready)
      wrong.push(`the store is lost, and messages are taken in, ${at}`)
    for (const { bytes, pending, sealed, held, urgency, provider } of status.lanes) {
      const payloads = pending + sealed + held
      // Of a damaged chunk at the end of a lane nobody knows the size.
      if (payloads === 0 ? bytes > 0 : bytes === 0 && payloads > flips.payloads.length)
        wrong.push(`${payloads} ${urgency} payloads of ${provider} have ${bytes} bytes, ${at}`)
    }
    for (const { name, endpoint } of status.providers) ofProvider(name, { endpoint, status, now, at })
  }

  function ofProvider(
    name: string,
    { endpoint, status, now, at }: { endpoint: string; status: Status; now: Now; at: string },
  ): void {
    const service = services.find(({ provider }) => provider === name)
    const refused = lastHeld.get(`${name} not_accepted`)
    // One of several payloads was cut in twelve refusals in a row, and waits longer.
    const alone = refused?.count === refused?.payloads ? refused : undefined
    if (endpoint !== 'available') notAvailableMs.set(name, now.atMs)
    // In an outage it waits for the next probe, whatever was accepted before.
    const fromMs = Math.max(alone?.atMs ?? 0, notAvailableMs.get(name) ?? 0)
    if (service !== undefined && alone !== undefined && alone.count > 0 && now.atMs - fromMs > acceptedMs)
      if (acceptsAll(service, now))
        wrong.push(
          `${name} accepted batches for ${acceptedMs / 1000} s, and one refused alone still waits, ${at}`,
        )
    const own = status.lanes.filter(({ provider }) => provider === name)
    const mayWaitOn = endpoint !== 'available' || own.every(({ sealed }) => sealed === 0)
    const isHeld = own.some(({ held }) => held > 0)
    const waiting = service === undefined || mayWaitOn || isHeld ? null : failedBefore(service, now)
    if (waiting !== null) wrong.push(`${name} is available again, and batch ${waiting} is not sent, ${at}`)
    const since = unavailableSince.get(name)
    // What failed before waits for its delay first, and what is held, which is sealed as well, for its time.
    const waits = status.lanes.some(
      ({ provider, urgency, pending, sealed, held }) =>
        provider === name && urgency !== 'retry' && pending + sealed > held,
    )
    const isStill = endpoint === 'unavailable' && waits && since?.life === now.life
    // Where everything is refused, the next try is ten minutes later.
    const isRefused = status.conditions.some(({ code }) => code === 'WRAPPER_REFUSED')
    if (!isStill || isRefused || service === undefined || mayWait(service, now)) {
      unavailableSince.set(name, now)
      return
    }
    const lastMs = Math.max(since.atMs, service.disturbedMs, service.journal.at(-1)?.atMs ?? 0)
    if (now.atMs - lastMs > probesMs)
      wrong.push(`${name} is unavailable, and no probe was sent in ${probesMs / 1000} s, ${at}`)
  }

  function observe(event: GatewayEvent, { atMs, life }: Now): void {
    if (life !== observedLife) started()
    observedLife = life
    aliveMs = atMs
    if (event.kind === 'held_batches_changed') {
      const key = `${event.provider} ${event.reason}`
      if (event.batches > 0 && !mayHold(event.provider, event.reason))
        wrong.push(`a batch of ${event.provider} is held as ${event.reason}, at ${seconds(atMs)}`)
      if (!firstHeld.has(key)) firstHeld.set(key, event.batches)
      lastHeld.set(key, { count: event.batches, payloads: event.payloads, atMs })
    }
    if (event.kind === 'endpoint_changed' && event.state === 'available')
      availableSince.set(event.provider, { atMs, life })
    if (event.kind !== 'gateway_ready') return
    for (const [key, { count }] of before) {
      const now = firstHeld.get(key) ?? 0
      if (count !== now && flips.batches === 0 && !isTrouble(atMs - durableMs, atMs))
        wrong.push(`${count} batches were held (${key}), and ${now} after the start of ${seconds(atMs)}`)
    }
    before.clear()
  }

  /** What the process before knew for sure. */
  function started(): void {
    // What was written just before the end may not have been reported.
    const sinceMs = aliveMs - durableMs
    const isQuiet =
      changedMs() < sinceMs &&
      services.every(({ journal }) => journal.every((one) => (one.answeredMs ?? one.atMs) < sinceMs))
    for (const [key, held] of lastHeld)
      if (isQuiet && held.atMs < sinceMs && !isTrouble(held.atMs, held.atMs + durableMs))
        before.set(key, held)
      else before.delete(key)
    firstHeld = new Map()
    lastHeld = new Map()
  }

  /** A batch that only failed before the endpoint was available, and was not sent since, although there is a place. */
  function failedBefore(
    { provider, journal, disturbedMs }: Service,
    { atMs: nowMs, life }: Now,
  ): string | null {
    const since = availableSince.get(provider)
    if (since?.life !== life || nowMs - since.atMs < sentMs || disturbedMs > since.atMs) return null
    if (isTrouble(since.atMs, nowMs)) return null
    const failed = new Map<string, boolean>()
    const struck = new Set(flips.payloads.map(({ payloadId }) => payloadId))
    for (const { life: of, batchId, payloadIds, atMs, answeredMs, status, retryAfterMs } of journal) {
      const endMs = answeredMs ?? atMs + timeoutMs + durableMs
      if (retryAfterMs > 0 || endMs > nowMs - placeMs) return null
      if (of !== life || batchId === null) continue
      // What was sent from memory is read from the disk later, and what is left of it has another batchId.
      if (payloadIds.some((id) => struck.has(id))) continue
      // A person may have settled it since.
      const isFailure = (status === null || status >= 500) && endMs < since.atMs && endMs > changedMs()
      failed.set(batchId, isFailure && failed.get(batchId) !== false)
    }
    return [...failed].find(([, hasOnlyFailed]) => hasOnlyFailed)?.[0] ?? null
  }

  /** Of the disk; an end of the process has no length. */
  function isTrouble(fromMs: number, toMs: number): boolean {
    return troubles.some((one) => one.toMs > one.fromMs && one.fromMs <= toMs && one.toMs >= fromMs)
  }
}

/** Batches were accepted, and nothing else than an acceptance or a refusal was answered. */
function acceptsAll({ journal, disturbedMs }: Service, { atMs, life }: Now): boolean {
  const since = journal.filter((one) => one.atMs > atMs - acceptedMs)
  const isUsual = ({ status, heard }: Submission) =>
    heard === 'yes' && status !== null && [200, 202, 400, 413].includes(status)
  const accepted = since.filter(({ batchId, results, payloadIds }) => {
    const all = [...(results?.values() ?? [])]
    return batchId !== null && all.length === payloadIds.length && all.includes('accepted')
  })
  return (
    disturbedMs < atMs - acceptedMs &&
    accepted.length >= acceptedMin &&
    since.every((one) => one.life === life && isUsual(one))
  )
}

/** It asked to wait, or the last answer to a batch was a 403: others show whom that is about, or the next try does. */
function mayWait({ journal }: Service, { atMs }: Now): boolean {
  const recent = journal.filter((one) => one.atMs > atMs - waitMaxMs)
  const last = new Map(recent.map((one) => [one.batchId ?? one.payloadIds[0], one.status]))
  return recent.some(({ retryAfterMs }) => retryAfterMs > 0) || [...last.values()].includes(403)
}

function seconds(ms: number): string {
  return (ms / 1000).toFixed(3)
}
