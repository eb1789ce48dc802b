// scheduler.ts: what goes next. Decides, and does nothing.
//
//   1  batches that were sealed and never submitted by this process: the recovered ones, oldest first
//   2  batches whose own back-off has passed, and lanes in which a batch is due, in turn
//      lanes: live, then retry, then backfill; but in ten turns one begins with retry, and backfill begins in its share
//      of them (`backfill.min_share`), so that nothing starves. Among backfill lanes the config says whether the oldest
//      or the newest goes first. Backfill leaves one place free for live where there is more than one.
//
// A lane is due when it holds a full batch, or its oldest payload waited `linger`. The wait is measured on the
// monotonic clock from when the payload was first seen here, and on the wall clock for what was pending at the
// start: whichever is over first, so that a step of the wall clock cannot keep a lone payload for an hour.
// A retry lane is due when its head has rested for its step's delay (and a linger, for company).
//
// A probe takes its turns between batches, the one that was tried longest ago first, and lanes: neither a
// poisoned batch nor a poisoned lane can keep the road closed for the others.

import type { Clock } from '../../std/clock.ts'
import type { LaneId } from '../../domain/ids.ts'
import type { LaneView, LaneRole, SealLimits } from '../../spool/spool.ts'
import { batchesMax } from './in-flight-batches.ts'
import type { InFlightBatches, InFlightBatch } from './in-flight-batches.ts'
import type { ProviderOptions, RetryRules } from '../delivery-options.ts'
import type { SizeLimit } from './size-limit.ts'

export type Choice =
  | { kind: 'batch'; inHand: InFlightBatch }
  | { kind: 'lane'; lane: LaneId; role: LaneRole; limits: SealLimits }

type LanePlan = { lane: LaneView; limits: SealLimits; dueAtMs: number }

export type Scheduler = {
  /** What each lane of this provider could give, and when (monotonic). */
  plan(lanes: readonly LaneView[]): readonly LanePlan[]
  choose(
    plans: readonly LanePlan[],
    hand: InFlightBatches,
    now: { probe: boolean; backfillAllowed: boolean },
  ): Choice | null
  /** When something that rests now is due; null where nothing rests. */
  dueAt(
    plans: readonly LanePlan[],
    hand: InFlightBatches,
    now: { probe: boolean; backfillAllowed: boolean },
  ): number | null
  /** Whether a lane could give a batch now. */
  isDue(lanes: readonly LaneView[]): boolean
  sealBegan(lane: LaneId): void
  sealEnded(lane: LaneId, got: 'a batch' | 'nothing'): void
}

type Deps = { clock: Clock; sizeLimit: SizeLimit }

/**
 * With so many batches in hand a probe seals no further one of a lane that has one there: in an outage of days the
 * backlog would else be sealed piece by piece, and what is sealed goes before what is fresh.
 */
const probedMax = 8

/** A lane that had nothing to give after all is left alone for so long. */
const emptySealRestMs = 100

export function createScheduler({ clock, sizeLimit }: Deps, options: ProviderOptions): Scheduler {
  const single = options.mode === 'single'
  const payloadsMax = single ? 1 : options.batch.payloadsMax
  // Company is what a payload lingers for, and a single one gets none.
  const lingerMs = single ? 0 : options.batch.lingerMs
  const { order, shareMin } = options.backfill
  const backfillEvery = Math.max(1, Math.round(1 / shareMin))
  /** When the oldest pending payload of a lane was seen first; bounded by the number of lanes. */
  const seenAtMs = new Map<LaneId, number>()
  const restUntilMs = new Map<LaneId, number>()
  const sealing = new Set<LaneId>()
  let turn = 0
  let laneTurn = 0

  return { plan, choose, dueAt, isDue, sealBegan, sealEnded }

  function plan(lanes: readonly LaneView[]): readonly LanePlan[] {
    const plans: LanePlan[] = []
    const nowMs = clock.monotonic()
    for (const lane of lanes) {
      if (lane.provider !== options.name) continue
      if (lane.pending === 0) {
        seenAtMs.delete(lane.id)
        restUntilMs.delete(lane.id)
        continue
      }
      if (!seenAtMs.has(lane.id)) seenAtMs.set(lane.id, nowMs)
      plans.push(lane.role.kind === 'retry' ? planRetry(lane, nowMs) : planFresh(lane, nowMs))
    }
    return plans
  }

  function planFresh(lane: LaneView, nowMs: number): LanePlan {
    const limits = limitsNow()
    const full = lane.pending >= payloadsMax || lane.pendingBytes >= limits.bodyBytesMax
    const seenMs = seenAtMs.get(lane.id) ?? nowMs
    const waitedMs = Math.max(nowMs - seenMs, clock.now() - (lane.oldestAt ?? clock.now()))
    const dueAtMs = full ? nowMs : nowMs + lingerMs - waitedMs
    return { lane, limits, dueAtMs: notBefore(lane.id, dueAtMs) }
  }

  function limitsNow(): SealLimits {
    return { payloadsMax, bodyBytesMax: sizeLimit.bytesMax, ...(single ? { operation: 'single' } : {}) }
  }

  function planRetry(lane: LaneView, nowMs: number): LanePlan {
    const delayMs = delayOf(lane.role, options.retryRules)
    const now = clock.now()
    const seenMs = seenAtMs.get(lane.id) ?? nowMs
    const oldestAt = lane.oldestAt ?? now
    const waitedMs = Math.max(nowMs - seenMs, now - oldestAt)
    // A stamp of the future is of a clock that was set back since: it says nothing about how long anything rested.
    const committedUntil = oldestAt > now || lane.oldestAt === null ? Number.POSITIVE_INFINITY : now - delayMs
    const limits = { ...limitsNow(), committedUntil }
    return { lane, limits, dueAtMs: notBefore(lane.id, nowMs + delayMs + lingerMs - waitedMs) }
  }

  function notBefore(lane: LaneId, dueAtMs: number): number {
    return Math.max(dueAtMs, restUntilMs.get(lane) ?? Number.NEGATIVE_INFINITY)
  }

  function choose(
    plans: readonly LanePlan[],
    hand: InFlightBatches,
    { probe, backfillAllowed }: { probe: boolean; backfillAllowed: boolean },
  ): Choice | null {
    const batch = probe ? longestUntried(hand) : nextReady(hand)
    const lane = hand.size >= batchesMax ? null : dueLane(plans, hand, { probe, backfillAllowed })
    if (batch === null && lane === null) return null
    turn += 1
    if (probe && batch !== null && lane !== null && isAside(batch)) return seal(lane)
    const untried = batch !== null && batch.submissions === 0 && !probe
    if (lane === null || untried || (batch !== null && turn % 2 === 0))
      return batch === null ? null : { kind: 'batch', inHand: batch }
    return seal(lane)
  }

  function seal({ lane, limits }: LanePlan): Choice {
    laneTurn += 1
    return { kind: 'lane', lane: lane.id, role: lane.role, limits }
  }

  function nextReady(hand: InFlightBatches): InFlightBatch | null {
    const nowMs = clock.monotonic()
    let best: InFlightBatch | null = null
    for (const inHand of hand.all()) {
      if (inHand.running || inHand.readyAtMs > nowMs) continue
      // Insertion order is the order of sealing, so the first untried one is the oldest.
      if (inHand.submissions === 0) return inHand
      if (best === null || inHand.readyAtMs < best.readyAtMs) best = inHand
    }
    return best
  }

  function longestUntried(hand: InFlightBatches): InFlightBatch | null {
    let best: InFlightBatch | null = null
    for (const inHand of hand.all()) {
      if (inHand.running || (inHand.wait === 'slow' && inHand.readyAtMs > clock.monotonic())) continue
      if (best === null || isBetterProbe(inHand, best)) best = inHand
    }
    return best
  }

  function isBetterProbe(one: InFlightBatch, other: InFlightBatch): boolean {
    if (isAside(one) !== isAside(other)) return isAside(other)
    return one.triedAt < other.triedAt
  }

  /** What the single operation says to it tells nothing about whether the service takes batches again. */
  function isAside({ batch }: InFlightBatch): boolean {
    return !single && batch.operation === 'single'
  }

  function dueLane(
    plans: readonly LanePlan[],
    hand: InFlightBatches,
    { probe, backfillAllowed }: { probe: boolean; backfillAllowed: boolean },
  ): LanePlan | null {
    const tried = probe ? lanesInHand(hand) : null
    const nowMs = clock.monotonic()
    const kinds = kindsInTurn(laneTurn, backfillEvery)
    let best: LanePlan | null = null
    for (const plan of plans) {
      if (plan.dueAtMs > nowMs || sealing.has(plan.lane.id)) continue
      const { kind } = plan.lane.role
      if (kind === 'backfill' && !backfillAllowed && !probe) continue
      if (tried !== null && tried.batches >= probedMax && tried.lanes.has(plan.lane.id)) continue
      const rank = kinds.indexOf(kind)
      const bestRank = best === null ? kinds.length : kinds.indexOf(best.lane.role.kind)
      if (rank < bestRank || (rank === bestRank && best !== null && isBefore(plan, best))) best = plan
    }
    return best
  }

  /** Which lanes have a batch in hand that a probe could take, and how many there are. */
  function lanesInHand(hand: InFlightBatches): { lanes: ReadonlySet<LaneId>; batches: number } {
    const lanes = new Set<LaneId>()
    let batches = 0
    for (const inHand of hand.all()) {
      if (isAside(inHand) || inHand.wait === 'slow') continue
      lanes.add(inHand.batch.lane)
      batches += 1
    }
    return { lanes, batches }
  }

  /** Of two lanes of the same kind. */
  function isBefore(one: LanePlan, other: LanePlan): boolean {
    if (one.lane.role.kind !== 'backfill') return one.dueAtMs < other.dueAtMs
    return order === 'oldest-first' ? one.lane.id < other.lane.id : one.lane.id > other.lane.id
  }

  function dueAt(
    plans: readonly LanePlan[],
    hand: InFlightBatches,
    { probe, backfillAllowed }: { probe: boolean; backfillAllowed: boolean },
  ): number | null {
    let earliest = Number.POSITIVE_INFINITY
    for (const inHand of hand.all()) {
      if (inHand.running) continue
      // A probe does not wait for the back-off of its batch, only for its own.
      const atMs = probe && inHand.wait !== 'slow' ? clock.monotonic() : inHand.readyAtMs
      earliest = Math.min(earliest, atMs)
    }
    for (const { lane, dueAtMs } of hand.size < batchesMax ? plans : [])
      // The end of a submission makes room for backfill, and calls pump().
      if (!sealing.has(lane.id) && (backfillAllowed || probe || lane.role.kind !== 'backfill'))
        earliest = Math.min(earliest, dueAtMs)
    return earliest === Number.POSITIVE_INFINITY ? null : earliest
  }

  function isDue(lanes: readonly LaneView[]): boolean {
    const nowMs = clock.monotonic()
    return plan(lanes).some(({ dueAtMs }) => dueAtMs <= nowMs)
  }

  function sealBegan(lane: LaneId): void {
    sealing.add(lane)
  }

  function sealEnded(lane: LaneId, got: 'a batch' | 'nothing'): void {
    sealing.delete(lane)
    // What is left in the lane came after what was taken: it begins to linger now.
    seenAtMs.delete(lane)
    if (got === 'nothing') restUntilMs.set(lane, clock.monotonic() + emptySealRestMs)
  }
}

function kindsInTurn(turn: number, backfillEvery: number): readonly LaneRole['kind'][] {
  if (turn % backfillEvery === backfillEvery - 1) return ['backfill', 'live', 'retry']
  return turn % 10 === 4 ? ['retry', 'live', 'backfill'] : ['live', 'retry', 'backfill']
}

/** A schedule or step that the config no longer has rests as long as the nearest one that it has. */
function delayOf(role: LaneRole, rules: RetryRules): number {
  if (role.kind !== 'retry') return 0
  const rule = rules.get(role.schedule) ?? rules.get('default') ?? []
  return rule === 'delivered' ? 0 : (rule[Math.min(role.step, rule.length - 1)] ?? 0)
}
