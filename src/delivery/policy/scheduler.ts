// scheduler.ts: chooses what is sent next. It only decides; the pipeline acts.
//
//   1  batches that were sealed and never submitted by this process: the recovered ones, oldest first
//   2  batches whose own wait is over, and lanes in which a batch is due, in turn
//      lanes: live, then retry, then backfill; but in one turn of ten retry goes first, and in its share of
//      the turns (`backfill.min_share`) backfill goes first, so that nothing starves. The config says whether
//      the oldest or the newest backfill lane goes first. Backfill leaves one place free for live data where
//      there is more than one.
//   3  held batches, one at a time: in one turn of eight at most, or where nothing else is due
//
// A lane is due when it holds a full batch, or its oldest payload waited `linger`. While seals of it run, it
// must hold a full batch behind theirs (running-seals.ts). The wait is measured on
// the monotonic clock from when the payload was first seen here, and on the wall clock for what was pending
// at the start: the earlier end counts, so that a step of the wall clock cannot delay a lone payload for an
// hour. A retry lane is due when its head has waited for the delay of its step (and a linger, to fill the
// batch); where its payloads wait for room in the dead letters, not before there is some.
//
// Probes alternate between sealed batches (the one tried longest ago first) and lanes. So a batch or a lane
// that always fails cannot keep the endpoint unavailable for the others.

import type { Clock } from '../../std/clock.ts'
import type { LaneId } from '../../domain/ids.ts'
import type { LaneRole, LaneView, SealLimits, Spool } from '../../spool/spool.ts'
import type { ProviderOptions } from '../delivery-options.ts'
import type { BatchTable } from './batch-table.ts'
import { retryDelayMs } from './retry-delays.ts'
import { createRunningSeals, type RunningSeal } from './running-seals.ts'
import { payloadsAtOnce, type Pacing } from '../pacing/pacing.ts'
import type { InFlightBatch } from './types.ts'

export type Choice =
  | { kind: 'batch'; inFlight: InFlightBatch }
  | { kind: 'lane'; lane: LaneId; role: LaneRole; limits: SealLimits }

export type LanePlan = { lane: LaneView; limits: SealLimits; dueAtMs: number }

/** What may start: only a probe while the endpoint is not available; backfill while it has a free place. */
type Allowed = { probe: boolean; backfill: boolean }

export type Scheduler = {
  /** What each lane of this provider could give, and when (monotonic). */
  plan(lanes: readonly LaneView[]): readonly LanePlan[]
  choose(plans: readonly LanePlan[], batches: BatchTable, allowed: Allowed): Choice | null
  /**
   * The earliest time at which something that waits is due; null where nothing waits. `others`: not the
   * batches that wait for others.
   */
  dueAt(
    plans: readonly LanePlan[],
    batches: BatchTable,
    allowed: Allowed,
    of?: 'all' | 'others',
  ): number | null
  /** Whether a lane could give a batch now. */
  isDue(lanes: readonly LaneView[]): boolean
  /** Whether a lane, or another batch in hand, could be submitted now. */
  isOtherDue(lanes: readonly LaneView[], batches: BatchTable, than: InFlightBatch | null): boolean
  /** Of a full batch now. */
  limits(): SealLimits
  isSealing(lane: LaneId): boolean
  /** No other seal of the lane starts until this one runs or has ended. */
  beginSeal(lane: LaneId): RunningSeal
  sealEnded(seal: RunningSeal, got: 'a batch' | 'nothing'): void
}

type Deps = { clock: Clock; pacing: Pick<Pacing, 'bytesMax'>; spool: Pick<Spool, 'deadLettersFull'> }

/**
 * With so many sealed batches a probe seals no further batch of a lane that has one: else, in an outage of
 * days, the backlog would be sealed batch by batch, and sealed batches go before fresh data.
 */
const probedMax = 8

/** A held batch goes in one of so many turns. */
const heldEvery = 8

/** A lane that was chosen and had nothing to seal is skipped for this long. */
const emptySealPauseMs = 100

export function createScheduler({ clock, pacing, spool }: Deps, options: ProviderOptions): Scheduler {
  const single = options.mode === 'single'
  // A reload changes the options, so they are read at each decision.
  const payloadsMax = () => (single ? 1 : Math.min(options.batch.payloadsMax, payloadsAtOnce(options.rate)))
  // The linger fills a batch; a single payload has none to fill.
  const lingerMs = () => (single ? 0 : options.batch.lingerMs)
  /** When the oldest pending payload of a lane was first seen; bounded by the number of lanes. */
  const seenAtMs = new Map<LaneId, number>()
  const pausedUntilMs = new Map<LaneId, number>()
  const seals = createRunningSeals(options.rate)
  let turn = 0
  let laneTurn = 0

  const isSealing = (lane: LaneId) => seals.of(lane) > 0

  return {
    plan,
    choose,
    dueAt,
    isDue,
    isOtherDue,
    limits: limitsNow,
    isSealing,
    beginSeal: seals.begin,
    sealEnded,
  }

  function plan(lanes: readonly LaneView[]): readonly LanePlan[] {
    const plans: LanePlan[] = []
    const nowMs = clock.monotonic()
    for (const lane of lanes) {
      if (lane.provider !== options.name || waitsForRoom(lane)) continue
      if (lane.pending === 0) {
        seenAtMs.delete(lane.id)
        pausedUntilMs.delete(lane.id)
        continue
      }
      if (!seenAtMs.has(lane.id)) seenAtMs.set(lane.id, nowMs)
      plans.push(lane.role.kind === 'retry' ? planRetry(lane, nowMs) : planFresh(lane, nowMs))
    }
    return plans
  }

  function waitsForRoom({ role }: LaneView): boolean {
    return role.kind === 'retry' && role.waitsForRoom === true && spool.deadLettersFull()
  }

  function planFresh(lane: LaneView, nowMs: number): LanePlan {
    const limits = limitsNow()
    const full = lane.pending >= limits.payloadsMax || lane.pendingBytes >= limits.bodyBytesMax
    const seenMs = seenAtMs.get(lane.id) ?? nowMs
    const waitedMs = Math.max(nowMs - seenMs, clock.now() - (lane.oldestAt ?? clock.now()))
    const dueAtMs = full ? nowMs : nowMs + lingerMs() - waitedMs
    return { lane, limits, dueAtMs: notBefore(lane.id, dueAtMs) }
  }

  function limitsNow(): SealLimits {
    const limits = { payloadsMax: payloadsMax(), bodyBytesMax: pacing.bytesMax() }
    return single ? { ...limits, operation: 'single' } : limits
  }

  function planRetry(lane: LaneView, nowMs: number): LanePlan {
    const delayMs = retryDelayMs(lane.role, options.retryRules)
    const now = clock.now()
    const seenMs = seenAtMs.get(lane.id) ?? nowMs
    const oldestAt = lane.oldestAt ?? now
    const waitedMs = Math.max(nowMs - seenMs, now - oldestAt)
    // An arrival in the future: the clock was set back since. It does not tell how long the payload waited.
    const committedUntil = oldestAt > now || lane.oldestAt === null ? Number.POSITIVE_INFINITY : now - delayMs
    const limits = { ...limitsNow(), committedUntil }
    return { lane, limits, dueAtMs: notBefore(lane.id, nowMs + delayMs + lingerMs() - waitedMs) }
  }

  function notBefore(lane: LaneId, dueAtMs: number): number {
    return Math.max(dueAtMs, pausedUntilMs.get(lane) ?? Number.NEGATIVE_INFINITY)
  }

  function choose(plans: readonly LanePlan[], batches: BatchTable, allowed: Allowed): Choice | null {
    const { probe } = allowed
    const batch = probe ? nextToProbe(batches) : nextReady(batches)
    const lane = batches.full() ? null : dueLane(plans, batches, allowed)
    const held = batches.nextHeld()
    if (batch === null && lane === null)
      return held === null || seals.isAny() ? null : { kind: 'batch', inFlight: held }
    turn += 1
    if (held !== null && !probe && turn % heldEvery === 0 && !batches.heldRest())
      return { kind: 'batch', inFlight: held }
    if (probe && batch !== null && lane !== null && isBySingle(batch)) return seal(lane)
    const untried = batch !== null && batch.submissions === 0 && !probe
    if (lane === null || untried || (batch !== null && turn % 2 === 0))
      return batch === null ? null : { kind: 'batch', inFlight: batch }
    return seal(lane)
  }

  /** A probe does not wait for the back-off of its batch, only for that of the endpoint. */
  function waitsForProbe({ wait, readyAtMs }: InFlightBatch): boolean {
    return (wait !== 'slow' && wait !== 'other-batches') || readyAtMs <= clock.monotonic()
  }

  function seal({ lane, limits }: LanePlan): Choice {
    laneTurn += 1
    return { kind: 'lane', lane: lane.id, role: lane.role, limits }
  }

  function nextReady(batches: BatchTable): InFlightBatch | null {
    const nowMs = clock.monotonic()
    let best: InFlightBatch | null = null
    for (const inFlight of batches.all()) {
      if (inFlight.running || inFlight.readyAtMs > nowMs) continue
      // Insertion order is the order of sealing, so the first untried one is the oldest.
      if (inFlight.submissions === 0) return inFlight
      if (best === null || inFlight.readyAtMs < best.readyAtMs) best = inFlight
    }
    return best
  }

  function nextToProbe(batches: BatchTable): InFlightBatch | null {
    let best: InFlightBatch | null = null
    for (const inFlight of batches.all()) {
      if (inFlight.running || !waitsForProbe(inFlight)) continue
      if (best === null || isBetterProbe(inFlight, best)) best = inFlight
    }
    return best
  }

  function isBetterProbe(one: InFlightBatch, other: InFlightBatch): boolean {
    if (isBySingle(one) !== isBySingle(other)) return isBySingle(other)
    return one.triedAt < other.triedAt
  }

  /** The answer to the single operation does not tell whether the service accepts batches again. */
  function isBySingle({ batch }: InFlightBatch): boolean {
    return !single && batch.operation === 'single'
  }

  function dueLane(plans: readonly LanePlan[], batches: BatchTable, allowed: Allowed): LanePlan | null {
    const toProbe = allowed.probe ? lanesToProbe(batches) : null
    const nowMs = clock.monotonic()
    const kinds = kindsInTurn(laneTurn, options.backfill)
    let best: LanePlan | null = null
    for (const plan of plans) {
      if (plan.dueAtMs > nowMs || !seals.allow(plan.lane, plan.limits)) continue
      const { kind } = plan.lane.role
      if (kind === 'backfill' && !allowed.backfill && !allowed.probe) continue
      if (toProbe !== null && toProbe.count >= probedMax && toProbe.lanes.has(plan.lane.id)) continue
      const rank = kinds.indexOf(kind)
      const bestRank = best === null ? kinds.length : kinds.indexOf(best.lane.role.kind)
      if (rank < bestRank || (rank === bestRank && best !== null && isBefore(plan, best))) best = plan
    }
    return best
  }

  /** The lanes of the sealed batches that a probe could take, and the number of these batches. */
  function lanesToProbe(batches: BatchTable): { lanes: ReadonlySet<LaneId>; count: number } {
    const lanes = new Set<LaneId>()
    let count = 0
    for (const inFlight of batches.all()) {
      if (isBySingle(inFlight)) continue
      lanes.add(inFlight.batch.lane)
      count += 1
    }
    return { lanes, count }
  }

  /** Of two lanes of the same kind. */
  function isBefore(one: LanePlan, other: LanePlan): boolean {
    if (one.lane.role.kind !== 'backfill') return one.dueAtMs < other.dueAtMs
    return (options.backfill.order === 'oldest-first') === one.lane.id < other.lane.id
  }

  function dueAt(
    plans: readonly LanePlan[],
    batches: BatchTable,
    allowed: Allowed,
    of: 'all' | 'others' = 'all',
  ): number | null {
    let earliest = Number.POSITIVE_INFINITY
    for (const inFlight of batches.all()) {
      if (inFlight.running || (of === 'others' && inFlight.wait === 'other-batches')) continue
      const atMs = allowed.probe && waitsForProbe(inFlight) ? clock.monotonic() : inFlight.readyAtMs
      earliest = Math.min(earliest, atMs)
    }
    const heldAtMs = of === 'others' ? null : batches.heldDueAt()
    if (heldAtMs !== null) earliest = Math.min(earliest, heldAtMs)
    for (const { lane, dueAtMs } of batches.full() ? [] : plans)
      // Where backfill has no place, the end of a submission makes one and calls pump().
      if (!isSealing(lane.id) && (allowed.backfill || allowed.probe || lane.role.kind !== 'backfill'))
        earliest = Math.min(earliest, dueAtMs)
    return earliest === Number.POSITIVE_INFINITY ? null : earliest
  }

  function isDue(lanes: readonly LaneView[]): boolean {
    const nowMs = clock.monotonic()
    return plan(lanes).some(({ dueAtMs }) => dueAtMs <= nowMs)
  }

  function isOtherDue(lanes: readonly LaneView[], batches: BatchTable, than: InFlightBatch | null): boolean {
    for (const inFlight of batches.all())
      if (inFlight !== than && inFlight.wait !== 'other-batches' && inFlight.readyAtMs <= clock.monotonic())
        return true
    return isDue(lanes)
  }

  function sealEnded(seal: RunningSeal, got: 'a batch' | 'nothing'): void {
    const { lane } = seal
    seal.ended()
    // What is left in the lane came after what was sealed: its linger begins now.
    seenAtMs.delete(lane)
    if (got === 'nothing') pausedUntilMs.set(lane, clock.monotonic() + emptySealPauseMs)
  }
}

function kindsInTurn(turn: number, { shareMin }: { shareMin: number }): readonly LaneRole['kind'][] {
  const backfillEvery = Math.max(1, Math.round(1 / shareMin))
  if (turn % backfillEvery === backfillEvery - 1) return ['backfill', 'live', 'retry']
  return turn % 10 === 4 ? ['retry', 'live', 'backfill'] : ['live', 'retry', 'backfill']
}
