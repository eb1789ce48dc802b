// endpoint.ts: may a submission start now? Owner of invariant 9: while the endpoint is not available, a
// submission starts only as the one probe.
//
//                 5 failures in a row over two batches, 10 submissions without a success, an outage in a 200,
//                 or a service that refuses every batch
//    available  ------------------------------------------------------------------------->  unavailable
//     ^  |  ^                                                                                    |
//     |  |  '---------------------------- any success ------------------------------------------'
//     |  '--- 401 or 403 also with credentials read again, or no credentials at all ----->  unauthorized
//     '---------------------------------- any success ------------------------------------------'
//
// available     every batch may be sent. A failure delays its own batch only: one bad batch must not stop the
// others.
//               A Retry-After in the answers to two different batches in a row delays all.
// unavailable   one probe at a time, full jitter, 1 s doubling to 60 s. Every 10 min where the service works
// and
//               refuses every batch (WRAPPER_REFUSED): no back-off helps there.
// unauthorized  one probe at a time, every 10 min, or at once when requested (probe())
//
// A pass is taken before the batch is chosen and checked again before the first byte is sent: between the two
// an answer to another batch may have changed the state.

import type { Clock, EpochMs } from '../../std/clock.ts'
import type { Emit } from '../../domain/event.ts'
import type { BatchId, ProviderName } from '../../domain/ids.ts'
import type { UnreachableReason } from '../../domain/outcome.ts'
import type { State } from '../../domain/condition-state.ts'
import type { BackoffOptions } from '../delivery-options.ts'
import type { EndpointState } from '../types.ts'
import { credentialsWait, fullJitter, probeInterval } from './backoff.ts'

/** The right to one submission. */
export type Pass = { probe: boolean; number: number }

export type Report =
  | { kind: 'success' }
  /**
   * The service could not answer as it should. `alone`: no other batch or due payload exists to compare with.
   */
  | {
      kind: 'failure'
      batchId: BatchId
      why: string
      requestId: string | null
      retryAfterMs: number | null
      alone: boolean
      /** Where there was no answer: why, and what a person can do. */
      reason?: UnreachableReason
      act?: string
    }
  /** The service works and refused this batch. */
  | { kind: 'refused'; why: string; requestId: string | null }
  /** It refused this batch, which is being taken apart. */
  | { kind: 'isolating'; why: string; requestId: string | null }
  /** It refuses every batch. */
  | { kind: 'wrapper'; why: string; requestId: string | null }
  | { kind: 'outage'; why: string; requestId: string | null }
  | {
      kind: 'unauthorized'
      status: number
      requestId: string | null
      message: string
      clockOffsetMs: number | null
      accessKeyId: string | null
    }
  | { kind: 'no_credentials'; why: string }
  /** Nothing was sent, or no result is known. */
  | { kind: 'nothing' }

type Unavailable = Extract<Report, { kind: 'failure' | 'refused' | 'isolating' | 'outage' }>

type EndpointView = { state: EndpointState; since: EpochMs; nextAttemptAt: EpochMs | null }

export type Endpoint = {
  view(): EndpointView
  /** A pass for one submission, or null while none may start. */
  enter(): Pass | null
  /** Whether the pass is still valid, immediately before the first byte. */
  isValid(pass: Pass): boolean
  /** Gives the pass back with the result. */
  leave(pass: Pass, report: Report): void
  /** When enter() can next succeed, on the monotonic clock; null while only an event can change that. */
  opensAt(): number | null
  /** Lets the next probe start now. */
  probeNow(): void
  states(): readonly State[]
}

type Deps = { clock: Clock; random: () => number; emit: Emit }

export function createEndpoint(
  { clock, random, emit }: Deps,
  { provider, backoff }: { provider: ProviderName; backoff: BackoffOptions },
): Endpoint {
  let state: EndpointState = 'available'
  let since = clock.now()
  /** Monotonic; no submission starts before it. */
  let opensAtMs = clock.monotonic()
  let probing = false
  let probesFailed = 0
  let passes = 0
  /** Number of the latest pass that came back with a success. */
  let lastSuccess = -1
  let failuresInRow = 0
  let unsuccessfulInRow = 0
  /** Two different batches show that it is not the fault of one batch. */
  const failedBatches = new Set<BatchId>()
  let credentialsMissing = false
  /** Why it is not available; null where the credentials say it. */
  let problem: State | null = null
  /** The reason of the last `endpoint_changed`. */
  let reported: UnreachableReason | 'answer' | null = null

  const states = () => (problem === null ? [] : [problem])
  return { view, enter, isValid, leave, opensAt, probeNow, states }

  function enter(): Pass | null {
    if (clock.monotonic() < opensAtMs) return null
    if (state === 'available') return { probe: false, number: passes++ }
    if (probing) return null
    probing = true
    return { probe: true, number: passes++ }
  }

  function isValid(pass: Pass): boolean {
    return pass.probe || (state === 'available' && clock.monotonic() >= opensAtMs)
  }

  function leave(pass: Pass, report: Report): void {
    if (pass.probe) probing = false
    switch (report.kind) {
      case 'nothing':
        return
      case 'success':
        return succeeded(pass)
      case 'failure':
        return failed(pass, report)
      case 'refused':
        return refused(pass, report)
      case 'isolating':
        return isolating(pass, report)
      case 'wrapper':
        return refusedAll(pass, report)
      case 'outage':
        if (state === 'available') return becomeUnavailable(report)
        stayUnavailable(pass, 0)
        return stillUnavailable(pass, report)
      case 'unauthorized':
      case 'no_credentials':
        // A late answer to a signature that was replaced since: a later request succeeded.
        if (pass.number < lastSuccess) return
        return becomeUnauthorized(report)
    }
  }

  function succeeded(pass: Pass): void {
    lastSuccess = Math.max(lastSuccess, pass.number)
    failuresInRow = 0
    unsuccessfulInRow = 0
    failedBatches.clear()
    credentialsMissing = false
    if (state === 'available') return
    setState('available', 'A submission succeeded.')
    problem = null
    probesFailed = 0
    opensAtMs = clock.monotonic()
  }

  function failed(pass: Pass, report: Extract<Report, { kind: 'failure' }>): void {
    failuresInRow += 1
    unsuccessfulInRow += 1
    if (failedBatches.size < 2) failedBatches.add(report.batchId)
    if (state !== 'available') {
      stayUnavailable(pass, report.retryAfterMs ?? 0)
      return stillUnavailable(pass, report)
    }
    const severalFail = failedBatches.size >= 2 || report.alone
    if (
      (failuresInRow >= backoff.failuresToUnavailable && severalFail) ||
      unsuccessfulInRow >= backoff.unsuccessfulToUnavailable
    )
      return becomeUnavailable(report)
    if (report.retryAfterMs !== null && failedBatches.size >= 2)
      opensAtMs = Math.max(opensAtMs, clock.monotonic() + report.retryAfterMs)
  }

  function refused(pass: Pass, report: Extract<Report, { kind: 'refused' }>): void {
    failuresInRow = 0
    unsuccessfulInRow += 1
    if (state !== 'available') {
      stayUnavailable(pass, 0)
      return stillUnavailable(pass, report)
    }
    if (unsuccessfulInRow >= backoff.unsuccessfulToUnavailable) becomeUnavailable(report)
  }

  function isolating(pass: Pass, report: Extract<Report, { kind: 'isolating' }>): void {
    failuresInRow = 0
    if (state === 'available') return
    const wasUnauthorized = state === 'unauthorized' && pass.probe
    stayUnavailable(pass, 0)
    // What was said of the credentials is over, and still nothing is accepted.
    if (wasUnauthorized) noteUnavailable(report)
  }

  function refusedAll(pass: Pass, report: Extract<Report, { kind: 'wrapper' }>): void {
    failuresInRow = 0
    const retryInMs = probeInterval(random, backoff)
    if (state === 'available') {
      setState('unavailable', report.why)
      probesFailed = 0
      opensAtMs = clock.monotonic() + retryInMs
    } else stayUnavailable(pass, pass.probe ? retryInMs : 0)
    const { why, requestId } = report
    problem = { code: 'WRAPPER_REFUSED', provider, why, requestId, probeEveryMs: backoff.probeEveryMs }
    reported = 'answer'
  }

  function becomeUnavailable(report: Unavailable): void {
    reported = reasonOf(report)
    setState('unavailable', report.why)
    probesFailed = 0
    waitForProbe((report.kind === 'failure' ? report.retryAfterMs : null) ?? 0)
    noteUnavailable(report)
  }

  function stillUnavailable(pass: Pass, report: Unavailable): void {
    if (!pass.probe) return
    noteUnavailable(report)
  }

  function noteUnavailable(report: Unavailable): void {
    const { why, requestId } = report
    const { act = null } = report.kind === 'failure' ? report : {}
    const failures = Math.max(failuresInRow, unsuccessfulInRow)
    problem = { code: 'ENDPOINT_UNAVAILABLE', provider, failures, why, requestId, act }
    // Another reason than the reported one: what a person can do has changed.
    if (reported === reasonOf(report)) return
    reported = reasonOf(report)
    emit({ kind: 'endpoint_changed', provider, state, why })
  }

  /** A late answer of the time before, or a failed probe; only the probe makes the next wait longer. */
  function stayUnavailable(pass: Pass, atLeastMs: number): void {
    if (state === 'unauthorized' && pass.probe) {
      // The probe passed the signature check, or got no answer: neither needs the long probe interval.
      state = 'unavailable'
      since = clock.now()
      probesFailed = 0
    }
    if (pass.probe) {
      probesFailed += 1
      waitForProbe(atLeastMs)
      return
    }
    opensAtMs = Math.max(opensAtMs, clock.monotonic() + atLeastMs)
  }

  function waitForProbe(atLeastMs: number): void {
    const bounds = { minMs: backoff.minMs, maxMs: backoff.maxMs }
    opensAtMs = clock.monotonic() + Math.max(atLeastMs, fullJitter(random, probesFailed + 1, bounds))
  }

  function becomeUnauthorized(report: Extract<Report, { kind: 'unauthorized' | 'no_credentials' }>): void {
    const missing = report.kind === 'no_credentials'
    reported = null
    if (state !== 'unauthorized' || missing !== credentialsMissing) probesFailed = 0
    if (state !== 'unauthorized')
      setState('unauthorized', missing ? report.why : `The service answers ${report.status}.`)
    credentialsMissing = missing
    probesFailed += 1
    const retryInMs = missing ? credentialsWait(probesFailed, backoff) : probeInterval(random, backoff)
    opensAtMs = clock.monotonic() + retryInMs
    const { kind: _kind, ...facts } = report
    // Without credentials, the keyring says it.
    const { probeEveryMs } = backoff
    problem = 'status' in facts ? { code: 'ENDPOINT_UNAUTHORIZED', provider, probeEveryMs, ...facts } : null
  }

  function setState(next: EndpointState, why: string): void {
    state = next
    since = clock.now()
    emit({ kind: 'endpoint_changed', provider, state, why })
  }

  function opensAt(): number | null {
    return state !== 'available' && probing ? null : opensAtMs
  }

  function probeNow(): void {
    opensAtMs = clock.monotonic()
  }

  function view(): EndpointView {
    const waitMs = opensAtMs - clock.monotonic()
    const waiting = state !== 'available' || waitMs > 0
    return { state, since, nextAttemptAt: waiting ? clock.now() + Math.max(0, Math.round(waitMs)) : null }
  }
}

/** Of an answer, what a person can do is always the same. */
function reasonOf(report: Unavailable): UnreachableReason | 'answer' {
  return ('reason' in report ? report.reason : undefined) ?? 'answer'
}
