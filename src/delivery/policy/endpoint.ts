// endpoint.ts: may a submission start now? Owner of invariant 9: while the endpoint is not available, a
// submission starts only as the one probe.
//
//                 5 failures in a row over two batches, 10 submissions without a success, an outage in a 200,
//                 or a service that refuses every batch as such
//    available  ------------------------------------------------------------------------->  unavailable
//     ^  |  ^                                                                                    |
//     |  |  '---------------------------- any success ------------------------------------------'
//     |  '--- 401 or 403 that fresh credentials did not mend, or no credentials at all -->  unauthorized
//     '---------------------------------- any success ------------------------------------------'
//
// available     everyone may send; a failure delays its own batch only, for one bad batch must not close the
//               road. A Retry-After that two different batches were answered in a row is kept by all.
// unavailable   one probe at a time, full jitter, 1 s doubling to 60 s; every 10 min where the service works and
//               refuses every batch as such (WRAPPER_REFUSED): no back-off mends that
// unauthorized  one probe at a time, every 10 min, or at once when asked (probe())
//
// A pass is taken before the batch is chosen and looked at again before the first byte is sent: between the
// two the road may have been closed by somebody else's answer.

import type { Clock, EpochMs } from '../../std/clock.ts'
import type { Emit } from '../../domain/event.ts'
import type { BatchId, ProviderName } from '../../domain/ids.ts'
import type { UnreachableReason } from '../../domain/outcome.ts'
import { around, fullJitter } from './backoff.ts'
import type { BackoffOptions } from '../delivery-options.ts'

export type EndpointState = 'available' | 'unavailable' | 'unauthorized'

/** The right to one submission. */
export type Pass = { probe: boolean; number: number }

export type Report =
  | { kind: 'success' }
  /** The service was asked and could not. `alone`: no other batch or payload exists that could be a witness. */
  | {
      kind: 'failure'
      batchId: BatchId
      why: string
      requestId: string | null
      retryAfterMs: number | null
      alone: boolean
      /** Where there was no answer: why, and what a person can do about it. */
      reason?: UnreachableReason
      act?: string
    }
  /** The service works and refused this batch. */
  | { kind: 'refused'; why: string; requestId: string | null }
  /** It refused this batch as such, which is being taken apart. */
  | { kind: 'isolating' }
  /** It refuses every batch as such. */
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
  /** Nothing was sent, or nothing is known. */
  | { kind: 'nothing' }

type EndpointView = { state: EndpointState; since: EpochMs; nextAttemptAt: EpochMs | null }

export type Endpoint = {
  view(): EndpointView
  /** A pass for one submission, or null while none may start. */
  enter(): Pass | null
  /** Still good, immediately before the first byte? */
  holds(pass: Pass): boolean
  /** Gives the pass back with what came of it. */
  leave(pass: Pass, report: Report): void
  /** When enter() can next succeed, on the monotonic clock; null while only an event can change that. */
  opensAt(): number | null
  /** Lets the next probe start now. */
  probeNow(): void
}

type Deps = { clock: Clock; random: () => number; emit: Emit }

export function createEndpoint(
  { clock, random, emit }: Deps,
  { provider, backoff }: { provider: ProviderName; backoff: BackoffOptions },
): Endpoint {
  let state: EndpointState = 'available'
  let since = clock.now()
  /** Monotonic; before it nobody starts. */
  let opensAtMs = clock.monotonic()
  let probing = false
  let probesFailed = 0
  let passes = 0
  /** Number of the youngest pass that came back with a success. */
  let lastSuccess = -1
  let failuresInRow = 0
  let fruitlessInRow = 0
  /** Two different batches are enough to know that it is not one batch's fault. */
  const failedBatches = new Set<BatchId>()
  let credentialsMissing = false
  /** What a person was told about why the road is closed; null where that is another story than a failure. */
  let told: UnreachableReason | 'answer' | null = null

  return { view, enter, holds, leave, opensAt, probeNow }

  function enter(): Pass | null {
    if (clock.monotonic() < opensAtMs) return null
    if (state === 'available') return { probe: false, number: passes++ }
    if (probing) return null
    probing = true
    return { probe: true, number: passes++ }
  }

  function holds(pass: Pass): boolean {
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
        failuresInRow = 0
        return state === 'available' ? undefined : stayClosed(pass, 0)
      case 'wrapper':
        return refusedAll(pass, report)
      case 'outage':
        return state === 'available' ? close(report) : stayClosed(pass, 0)
      case 'unauthorized':
      case 'no_credentials':
        // A late answer to a signature that was replaced since: the success after it knows better.
        if (pass.number < lastSuccess) return
        return forbid(report)
    }
  }

  function succeeded(pass: Pass): void {
    lastSuccess = Math.max(lastSuccess, pass.number)
    failuresInRow = 0
    fruitlessInRow = 0
    failedBatches.clear()
    credentialsMissing = false
    if (state === 'available') return
    const unavailableMs = Math.max(0, clock.now() - since)
    turn('available')
    probesFailed = 0
    opensAtMs = clock.monotonic()
    emit({ kind: 'endpoint_available', provider, unavailableMs })
  }

  function failed(pass: Pass, report: Extract<Report, { kind: 'failure' }>): void {
    failuresInRow += 1
    fruitlessInRow += 1
    if (failedBatches.size < 2) failedBatches.add(report.batchId)
    if (state !== 'available') {
      stayClosed(pass, report.retryAfterMs ?? 0)
      // Another cause than the one that a person was told of: what is to be done is another thing.
      if (pass.probe && told !== (report.reason ?? 'answer')) tellClosed(report)
      return
    }
    const witnessed = failedBatches.size >= 2 || report.alone
    if (
      (failuresInRow >= backoff.failuresToUnavailable && witnessed) ||
      fruitlessInRow >= backoff.submissionsToUnavailable
    )
      return close(report)
    if (report.retryAfterMs !== null && failedBatches.size >= 2)
      opensAtMs = Math.max(opensAtMs, clock.monotonic() + report.retryAfterMs)
  }

  function refused(pass: Pass, report: Extract<Report, { kind: 'refused' }>): void {
    failuresInRow = 0
    fruitlessInRow += 1
    if (state !== 'available') return stayClosed(pass, 0)
    if (fruitlessInRow >= backoff.submissionsToUnavailable) close(report)
  }

  function refusedAll(pass: Pass, report: Extract<Report, { kind: 'wrapper' }>): void {
    failuresInRow = 0
    const retryInMs = around(random, backoff.probeEveryMs, backoff.probeJitter)
    if (state === 'available') {
      turn('unavailable')
      probesFailed = 0
      opensAtMs = clock.monotonic() + retryInMs
    } else stayClosed(pass, pass.probe ? retryInMs : 0)
    emit({ kind: 'wrapper_refused', provider, why: report.why, requestId: report.requestId, retryInMs })
  }

  function close(report: Extract<Report, { kind: 'failure' | 'refused' | 'outage' }>): void {
    turn('unavailable')
    probesFailed = 0
    closeFor((report.kind === 'failure' ? report.retryAfterMs : null) ?? 0)
    tellClosed(report)
  }

  function tellClosed(report: Extract<Report, { kind: 'failure' | 'refused' | 'outage' }>): void {
    const { why, requestId } = report
    const { reason, act } = report.kind === 'failure' ? report : {}
    told = reason ?? 'answer'
    const failures = Math.max(failuresInRow, fruitlessInRow)
    const retryInMs = Math.max(0, opensAtMs - clock.monotonic())
    const shown = { provider, failures, why, requestId, retryInMs, ...(act === undefined ? {} : { act }) }
    emit({ kind: 'endpoint_unavailable', ...shown })
  }

  /** An answer of before the closing, or a failed probe; only the probe makes the next wait longer. */
  function stayClosed(pass: Pass, atLeastMs: number): void {
    if (state === 'unauthorized' && pass.probe) {
      // It got past the signature check, or nowhere: either way it is no longer a matter of minutes.
      turn('unavailable')
      probesFailed = 0
    }
    if (pass.probe) {
      probesFailed += 1
      closeFor(atLeastMs)
      return
    }
    opensAtMs = Math.max(opensAtMs, clock.monotonic() + atLeastMs)
  }

  function closeFor(atLeastMs: number): number {
    const bounds = { minMs: backoff.minMs, maxMs: backoff.maxMs }
    const waitMs = Math.max(atLeastMs, fullJitter(random, probesFailed + 1, bounds))
    opensAtMs = clock.monotonic() + waitMs
    return waitMs
  }

  function forbid(report: Extract<Report, { kind: 'unauthorized' | 'no_credentials' }>): void {
    const missing = report.kind === 'no_credentials'
    told = null
    if (state !== 'unauthorized' || missing !== credentialsMissing) probesFailed = 0
    if (state !== 'unauthorized') turn('unauthorized')
    credentialsMissing = missing
    probesFailed += 1
    const retryInMs = missing
      ? Math.min(backoff.credentialsMaxMs, backoff.credentialsMinMs * 2 ** Math.min(probesFailed - 1, 20))
      : around(random, backoff.probeEveryMs, backoff.probeJitter)
    opensAtMs = clock.monotonic() + retryInMs
    if (missing) {
      emit({ kind: 'credentials_failed', provider, why: report.why })
      return
    }
    const { status, requestId, message, clockOffsetMs, accessKeyId } = report
    emit({
      kind: 'endpoint_unauthorized',
      provider,
      status,
      requestId,
      message,
      clockOffsetMs,
      accessKeyId,
      retryInMs,
    })
  }

  function turn(next: EndpointState): void {
    state = next
    since = clock.now()
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
