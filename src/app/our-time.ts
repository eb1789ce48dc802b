// our-time.ts: what is known of the time. The wall clock of a gateway may be wrong for hours (no battery, no
// network at the start, a clock that was set by hand), and what is judged by it would be wrong too.
//
//   known by    kernel    something keeps the clock of this machine synchronised (kernel-clock.ts)
//               config    clocks.trust_local: the operator says that it is right
//               devices   most devices agree with the wall clock, and the service says that it is ahead
//               service   the Date of the service, over verified TLS or loopback
//               else it is unknown, and nothing is judged by it
//
// The service alone could stop all intake: with a Date of yesterday each message is from the future, all are
// kept in quarantine, and no request goes out whose answer could correct it. Clocks of devices are
// independent of each other, so where they agree with the wall clock, it counts as right. The other direction
// proves nothing: devices that are behind may bring a backlog.
//
// Where the clock of this machine counts as right and the service says otherwise, one of both is wrong.
// Device times are then judged by the later of both, which accepts more, by a day at most: by a Date of next
// year all of them would be too old. What deletes or sorts by age waits.
//
// When the wall clock steps against the monotonic one, what the kernel and the service said is void, and both
// are asked again. A machine that slept does not step: the time that it slept is added (kernel-clock.ts). A
// step is noticed with the first message after it, or within a second.
//
// The true time of a moment on the monotonic clock does not depend on the wall clock. When it becomes known,
// or changes by more than its error, the listener corrects what was judged before (ingest/quarantine).

import { every, type CancelTimer, type Clock, type EpochMs } from '../std/clock.ts'
import {
  correctedFromMs,
  misjudgedFromMs,
  type KnownBy,
  type OurTime,
  type TimeView,
} from '../domain/arrival.ts'
import type { State, StateSource } from '../domain/condition-state.ts'
import type { Emit } from '../domain/event.ts'
import type { Arrival, Message } from '../domain/message.ts'
import type { Delivery } from '../delivery/delivery.ts'
import type { KernelClock } from './kernel-clock.ts'

export type GatewayTime = OurTime &
  StateSource & {
    /** For what deletes or sorts by age: true time minus the wall clock, null while unknown or disputed. */
    wallOffsetMs(this: void): number | null
    view(): TimeView
    /** What `now` adds to the wall clock: mostly 0. */
    correctionMs(): number
    /** `listener` is called when our time becomes known, or is another than was known before. */
    onCorrection(listener: () => void): void
    /** `listener` is called with the ms by which `now` steps: the clock was set, or is corrected. */
    onStep(listener: (byMs: number) => void): void
    setTrustLocal(trustLocal: boolean): void
    /** Most devices agree that our time is off by this, in ms; below zero they are ahead of us. */
    comparedToDevices(skewMs: number): void
    /** Asks the kernel from now on. */
    start(): void
    /** From now on the service is asked through this delivery. */
    follow(delivery: Pick<Delivery, 'clockOffsetMs'>): void
    stop(): void
  }

type Known = { by: KnownBy; offsetMs: number; isDisputed: boolean }

type Deps = { clock: Clock; emit: Emit; kernel: KernelClock }

const refreshEveryMs = 1000
/** A smaller difference comes from reading the two clocks one after the other. */
const stepMs = 2000
/** Lower than the difference from which times are corrected, so that they do not change back and forth. */
const correctedUntilMs = 45_000
/** By more, a service that denies the time of this machine does not change what is too old. */
const disputedMostMs = 86_400_000
const askKernelMs = { known: 300_000, unknown: 20_000 }
/** After a start or a step it takes a moment until the time is known. */
const reportUnknownMs = 120_000

export function createOurTime({ clock, emit, kernel }: Deps, options: { trustLocal: boolean }): GatewayTime {
  const { bootId } = kernel
  let { trustLocal } = options
  let isSynchronised = false
  let steppedAt: EpochMs | null = null
  /** Ends questions to the kernel that were asked before a step. */
  let steps = 0
  let delivery: Pick<Delivery, 'clockOffsetMs'> = { clockOffsetMs: () => null }
  /** What the service says of our clock, and devices do not confirm. */
  let refutedMs: number | null = null
  let known: Known | null = null
  /** To add to the wall clock, and what is missing then. */
  let isCorrected = false
  let correctionMs = 0
  let restMs: number | null = null
  let sleptMs = kernel.sleptMs()
  let wallMinusMonotonicMs = clock.now() - clock.monotonic()
  let refreshedAtMs = clock.monotonic()
  /** True minus monotonic time, as the listeners know it. */
  let correctedBy: number | null = null
  let unknownSinceMs = refreshedAtMs
  let listener: () => void = () => {}
  /** Our time minus the monotonic one, at the last look. */
  let oursMinusMonotonicMs = wallMinusMonotonicMs - sleptMs
  let stepListener: (byMs: number) => void = () => {}
  let cancelRefresh: CancelTimer = () => {}
  let cancelAsking: CancelTimer = () => {}
  let isStopped = false
  learn()

  return {
    now: () => {
      const wallMs = clock.now()
      check(wallMs, clock.monotonic())
      return wallMs + correctionMs
    },
    offsetMs() {
      check(clock.now(), clock.monotonic())
      return restMs
    },
    correctionMs() {
      check(clock.now(), clock.monotonic())
      return correctionMs
    },
    stamp,
    trueTimeOf,
    wallOffsetMs: () => (known === null || known.isDisputed ? null : known.offsetMs),
    view: () => known ?? { by: null, offsetMs: null, isDisputed: false },
    states,
    onCorrection(next) {
      listener = next
      if (known !== null) listener()
    },
    onStep(next) {
      stepListener = next
    },
    setTrustLocal(next) {
      trustLocal = next
      learn()
    },
    comparedToDevices(skewMs) {
      if (!isCorrected || correctionMs > 0 || known?.by !== 'service') return
      if (Math.abs(skewMs - correctionMs) >= correctedFromMs) return
      refutedMs = correctionMs
      learn()
    },
    start() {
      void askKernel() // Never rejects.
      cancelRefresh = every(clock, refreshEveryMs, () => refresh(clock.now(), clock.monotonic()))
    },
    follow(next) {
      delivery = next
      learn()
    },
    stop() {
      isStopped = true
      cancelRefresh()
      cancelAsking()
    },
  }

  function stamp(message: Message, wallMs: EpochMs): void {
    const monotonicMs = clock.monotonic()
    check(wallMs, monotonicMs)
    const arrival = (message.arrival ??= { bootId, monotonicMs: 0, offsetMs: null })
    arrival.monotonicMs = Math.round(monotonicMs + sleptMs)
    arrival.offsetMs = restMs
    message.arrivedAt = wallMs + correctionMs
  }

  function trueTimeOf(arrival: Arrival): EpochMs | null {
    check(clock.now(), clock.monotonic())
    if (known === null || arrival.bootId !== bootId) return null
    return arrival.monotonicMs + wallMinusMonotonicMs - sleptMs + known.offsetMs
  }

  /** For each message: compares three numbers, most of the time. Timers may be late, so it does not wait. */
  function check(wallMs: EpochMs, monotonicMs: number): void {
    const agoMs = monotonicMs - refreshedAtMs
    if (agoMs >= 0 && agoMs <= refreshEveryMs && !isStep(wallMs - monotonicMs - wallMinusMonotonicMs)) return
    refresh(wallMs, monotonicMs)
  }

  function isStep(differenceMs: number): boolean {
    return Math.abs(differenceMs) >= stepMs
  }

  function refresh(wallMs: EpochMs, monotonicMs: number): void {
    const changeMs = wallMs - monotonicMs - wallMinusMonotonicMs
    const slept = kernel.sleptMs()
    const sleptNowMs = isStep(slept - sleptMs) ? slept - sleptMs : 0
    wallMinusMonotonicMs += changeMs
    sleptMs += sleptNowMs
    refreshedAtMs = monotonicMs
    if (isStep(changeMs - sleptNowMs)) stepped(changeMs - sleptNowMs, wallMs)
    learn()
  }

  function stepped(byMs: number, wallMs: EpochMs): void {
    steps += 1
    steppedAt = wallMs
    isSynchronised = false
    refutedMs = null
    cancelAsking()
    void askKernel() // Never rejects.
    if (Math.abs(byMs) >= correctedFromMs) emit({ kind: 'clock_stepped', byMs: Math.round(byMs) })
  }

  /** What follows from what kernel, config and service say now. */
  function learn(): void {
    const before = known
    known = knownNow()
    const { offsetMs, isDisputed } = known ?? { offsetMs: 0, isDisputed: false }
    isCorrected = !isDisputed && Math.abs(offsetMs) >= (isCorrected ? correctedUntilMs : correctedFromMs)
    correctionMs = isCorrected ? Math.round(offsetMs) : 0
    restMs = known === null ? null : Math.round(offsetMs - correctionMs)
    noteStep()
    if (known !== null) reportKnown(before, known)
    else if (before !== null) unknownSinceMs = refreshedAtMs
    if (known === null) return
    const trueMinusMonotonicMs = wallMinusMonotonicMs - sleptMs + offsetMs
    // A time that is learned over a slow link changes by seconds with each answer.
    const fromMs = known.by === 'service' ? correctedFromMs : misjudgedFromMs
    if (correctedBy !== null && Math.abs(trueMinusMonotonicMs - correctedBy) < fromMs) return
    correctedBy = trueMinusMonotonicMs
    listener()
  }

  function noteStep(): void {
    const before = oursMinusMonotonicMs
    oursMinusMonotonicMs = wallMinusMonotonicMs - sleptMs + correctionMs
    if (isStep(oursMinusMonotonicMs - before)) stepListener(Math.round(oursMinusMonotonicMs - before))
  }

  function knownNow(): Known | null {
    const offsetMs = delivery.clockOffsetMs()
    const isRefuted =
      refutedMs !== null && offsetMs !== null && Math.abs(offsetMs - refutedMs) < correctedFromMs
    const local = isSynchronised ? 'kernel' : trustLocal ? 'config' : isRefuted ? 'devices' : null
    if (local === null) return offsetMs === null ? null : { by: 'service', offsetMs, isDisputed: false }
    const disputedFromMs = known?.isDisputed === true ? correctedUntilMs : correctedFromMs
    if (offsetMs === null || Math.abs(offsetMs) < disputedFromMs)
      return { by: local, offsetMs: 0, isDisputed: false }
    const isLater = offsetMs > 0
    return {
      by: isLater ? 'service' : local,
      offsetMs: isLater ? Math.min(offsetMs, disputedMostMs) : 0,
      isDisputed: true,
    }
  }

  function reportKnown(before: Known | null, { by, offsetMs, isDisputed }: Known): void {
    const isNew = before?.by !== by || before.isDisputed !== isDisputed
    if (isNew) emit({ kind: 'clock_known', knownBy: by, offsetMs: Math.round(offsetMs), isDisputed })
  }

  function* states(): Generator<State> {
    if (known === null && refreshedAtMs - unknownSinceMs >= reportUnknownMs) yield { code: 'CLOCK_UNKNOWN' }
  }

  async function askKernel(): Promise<void> {
    const asked = steps
    const answer = await kernel.isSynchronised(steppedAt)
    // A later step has asked again.
    if (isStopped || asked !== steps) return
    isSynchronised = answer
    learn()
    cancelAsking = clock.after(
      known === null ? askKernelMs.unknown : askKernelMs.known,
      () => void askKernel(),
    )
  }
}
