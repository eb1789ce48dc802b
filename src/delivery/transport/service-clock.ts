// service-clock.ts: the clock of the service, learned from its answers, and the time that signatures are made
// with.
//
// A Date counts only where it cannot be forged in transit: over TLS, which is always verified, or loopback.
// It has whole seconds, so the offset is exact to about a second; below a minute it is shown and not applied.
// A service refuses signatures that are about five minutes off. An error page may come from a proxy, whose
// clock may be wrong too. So it depends on the answer how much its Date counts:
//
//   200 or 202 in the shape of the service   at once; where it contradicts one before, or the clock of this
//                                            machine, by a minute or more, with another one that agrees: a
//                                            single wrong Date must not send all messages to quarantine,
//                                            after which no answer would come
//   401 or 403                               with another one that agrees, which is asked for at once
//   any other                                with two others that agree, while nothing else is known
//
// Two agree if they are at most five seconds apart. One that disagrees with those before it begins anew.
//
// The offset is void when our wall clock steps against the monotonic one: the time was set, which usually
// corrects it, or the machine slept. The next answer gives a new one.

import type { Clock, EpochMs } from '../../std/clock.ts'
import type { Outcome } from '../../domain/outcome.ts'
import type { State } from '../../domain/condition-state.ts'
import type { ProviderOptions } from '../delivery-options.ts'
import { isLoopback } from '../proxy.ts'

export type ServiceClock = {
  /** The wall clock, corrected where it is known to be wrong. */
  signingAt(): EpochMs
  /** What signatures made now add to the wall clock. */
  appliedMs(): number
  /** Learns from the Date header of an answer that just arrived, `tookMs` after its request. */
  answered(date: string | null, tookMs: number, outcome: Outcome): void
  /**
   * A request signed with `appliedMs` was answered 401 or 403: a further one is signed with another time, or
   * shows whether the time is at fault.
   */
  mayCorrect(appliedMs: number): boolean
  /** Service minus ours; null while unknown. */
  offsetMs(): number | null
  states(): readonly State[]
}

type Deps = { clock: Clock }

export const appliedFromMs = 60_000
/** Below this the clock is right again. Lower than the threshold above, so that it does not flap. */
const rightBelowMs = 45_000
/** A smaller difference comes from a slewed clock, or from reading the two clocks one after the other. */
const stepMs = 2000
/** Dates that agree differ by this at most. */
const agreeMs = 5000
/** Answers that agree, where one is not enough. */
const agreeing = { service: 2, unauthorized: 2, other: 3 }

type AnswerKind = keyof typeof agreeing
/** The Date was written at an unknown moment of the request: after a longer one the error is too large. */
const tookMaxMs = 60_000

/** Date is written after the request has arrived: of a long request, most is the upload. */
const answerMaxMs = 1000

/** A Date before this code was written, or in the next century, is ignored. */
const earliest: EpochMs = Date.UTC(2025, 0, 1)
const latest: EpochMs = Date.UTC(2100, 0, 1)

export function createServiceClock(
  { clock }: Deps,
  { name, baseUrl, proxy }: Pick<ProviderOptions, 'name' | 'baseUrl' | 'proxy'>,
): ServiceClock {
  const url = new URL(baseUrl)
  // The loopback address behind a configured proxy is that of the proxy's machine.
  const trusted = url.protocol === 'https:' || (isLoopback(url) && proxy.from !== 'config')
  let learned: { offsetMs: number; wallMinusMonotonicMs: number; kind: AnswerKind } | null = null
  /** Offsets that agree and do not count yet, at most as many as are needed. */
  let unproven: { offsetMs: number; kind: AnswerKind }[] = []
  let off: State<'CLOCK_OFF'> | null = null

  return {
    offsetMs() {
      return offsetNow()
    },
    states: () => (off === null ? [] : [off]),
    signingAt: () => clock.now() + appliedNow(),
    appliedMs: appliedNow,
    answered,
    mayCorrect(appliedMs) {
      const isOff = (offsetMs: number) => Math.abs(offsetMs - appliedMs) >= appliedFromMs
      return (
        isOff(appliedNow()) ||
        unproven.some(({ kind, offsetMs }) => kind === 'unauthorized' && isOff(offsetMs))
      )
    },
  }

  function appliedNow(): number {
    const offsetMs = offsetNow() ?? 0
    return Math.abs(offsetMs) >= appliedFromMs ? offsetMs : 0
  }

  function offsetNow(): number | null {
    if (learned !== null && Math.abs(wallMinusMonotonic() - learned.wallMinusMonotonicMs) >= stepMs)
      learned = null
    return learned?.offsetMs ?? null
  }

  function wallMinusMonotonic(): number {
    return clock.now() - clock.monotonic()
  }

  function answered(date: string | null, tookMs: number, outcome: Outcome): void {
    if (!trusted || date === null || tookMs > tookMaxMs) return
    const served = Date.parse(date)
    if (!(served >= earliest && served < latest)) return
    // The header is cut to the second, so on average it is half a second behind.
    const offsetMs = Math.round(served + 500 - (clock.now() - Math.min(tookMs / 2, answerMaxMs)))
    if (!isProven(offsetMs, outcome)) return
    learned = { offsetMs, wallMinusMonotonicMs: wallMinusMonotonic(), kind: kindOf(outcome) }
    unproven = []
    const isOff = Math.abs(offsetMs) >= (off === null ? appliedFromMs : rightBelowMs)
    off = isOff ? { code: 'CLOCK_OFF', provider: name, offsetMs } : null
  }

  function isProven(offsetMs: number, outcome: Outcome): boolean {
    const kind = kindOf(outcome)
    const known = offsetNow()
    // An offset that was learned from refusals counts less than this answer.
    const expected = learned?.kind === 'service' ? known : known === null ? 0 : null
    const contradicts = expected !== null && Math.abs(expected - offsetMs) >= appliedFromMs
    if (kind === 'service' && !contradicts) return true
    const agrees = (other: number) => Math.abs(other - offsetMs) <= agreeMs
    unproven = [...unproven.filter((one) => agrees(one.offsetMs)), { offsetMs, kind }].slice(-agreeing.other)
    const ofKind = unproven.filter((one) => one.kind === kind)
    if (kind !== 'other' && ofKind.length >= agreeing[kind]) return true
    if (known !== null && learned?.kind === 'other' && !agrees(known)) learned = null
    return learned === null && unproven.length >= agreeing.other
  }
}

function kindOf({ kind }: Outcome): AnswerKind {
  if (kind === 'answered' || kind === 'accepted_single') return 'service'
  return kind === 'unauthorized' ? kind : 'other'
}
