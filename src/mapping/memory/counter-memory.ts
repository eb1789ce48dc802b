// counter-memory.ts: jumps and falls of the counters of a vehicle: odometer and engine hours.
//
//   baseline   the newest plausible reading, by device time
//   jump       a reading above the baseline by more than a vehicle can drive, or an engine run, in between
//   fall       a reading below it by more than one step of its resolution
//   run        the readings since the baseline that are withheld
//   placeholder   0, the largest number of some bits or its neighbour, or nothing but nines, as it is sent or
//     as the device wrote it: what a device sends that has no value
//   other unit    a jump or fall by the factor of two units, and what agrees with it: km that became miles
//
//   a placeholder that does not grow     is withheld and changes nothing, however often it comes: a vehicle
//     out of the baseline                  that really stands at 0 shows it as soon as it moves
//   a plausible one                      is sent and becomes the baseline; the run ends
//   an older reading than the baseline   is plausible where the baseline may have grown out of it; it is sent
//                                        then, and the baseline stays
//   a jump or fall                       is withheld and added to the run
//   three of the run grow out of each    the last one is sent and becomes the baseline: the unit or tracker
//     other over at least ten minutes      was replaced. Equal readings are no agreement
//   20 were withheld, or for a day       the same: a wrong memory must not hide a counter. Readings within
//                                        one minute count as one of the 20, so that a unit that sends every
//                                        second has the time to show three that agree; equal ones too
//   a run in another unit                is withheld until a person begins the counter anew, or a reading is
//                                        plausible: all of it agrees, and all of it is wrong
//
// `judge` is pure: it gives the next state and changes nothing.

import type { EpochMs } from '../../std/clock.ts'
import { decimalsOf, isUnsetNumber } from '../plausibility/unset-numbers.ts'
import type { CounterReading, CounterState } from './device-memory.ts'

export type CounterRule = {
  /** What the counter can grow by in an hour, and by how much more a reading may differ. */
  perHour: number
  slack: number
  /** The step of the values where the config tells it; else 0, and their decimals tell it. */
  step: number
  /** By which a counter changes where its unit does. */
  factors: readonly number[]
}

export type CounterVerdict = {
  kind: 'plausible' | 'jump' | 'fall' | 'placeholder' | 'other unit'
  /** The state after it; the same object where nothing changed. Null where there is none yet. */
  next: CounterState | null
  /** Not null where the reading became the baseline although it jumps or falls. */
  reset: 'agreed' | 'limit' | null
}

export type CounterReset = {
  source: string
  device: string
  asset: string
  /** `TYPE PART`. */
  signal: string
  before: number
  after: number
  /** Readings that were withheld. */
  withheld: number
  why: 'agreed' | 'limit'
}

const hourMs = 3_600_000
const agreeingMin = 3
const agreeingMs = 600_000
const countedMax = 20
const countedEveryMs = 60_000
const withheldMs = 24 * hourMs

/** A difference of floats that equals a step may be a little larger. */
const rounding = 1 + 1e-6

/** Whether a later reading grew as far as it can, which is usual: judged without an object. */
export function hasGrown(before: CounterReading, time: EpochMs, value: number, rule: CounterRule): boolean {
  const grown = value - before.value
  const tookMs = time - before.time
  return tookMs > 0 && grown >= 0 && grown <= (rule.perHour * tookMs) / hourMs + rule.slack
}

/** `isUnset`: the device wrote a placeholder, whatever became of it. */
export function judge(
  state: CounterState | undefined,
  reading: CounterReading,
  rule: CounterRule,
  isUnset = false,
): CounterVerdict {
  const isPlaceholder = isUnset || looksPlaceholder(reading.value, rule)
  // What an earlier version took for a reading is none.
  const known = state !== undefined && !looksPlaceholder(state.value, rule) ? state : undefined
  if (isPlaceholder && (known === undefined || !isGrown(known, reading, rule)))
    return { kind: 'placeholder', next: state ?? null, reset: null }
  if (known === undefined) return { kind: 'plausible', next: { ...reading, run: null }, reset: null }
  return judgeReading(known, reading, rule)
}

function judgeReading(state: CounterState, reading: CounterReading, rule: CounterRule): CounterVerdict {
  const isLate = reading.time < state.time
  const kind = isLate ? compareLate(state, reading, rule) : compare(state, reading, rule)
  // Of two readings of one time neither is the later one, so the smaller one is no fall.
  if (kind === 'fall' && reading.time === state.time) return { kind: 'plausible', next: state, reset: null }
  if (kind === 'plausible') return { kind, next: withPlausible(state, reading), reset: null }
  const run = runWith(state, reading, rule)
  if (run.isOtherUnit) return { kind: 'other unit', next: { ...state, run }, reset: null }
  if (run === state.run) return { kind, next: state, reset: null }
  const isAgreed = run.agreeing >= agreeingMin && reading.time - run.agreeingSince >= agreeingMs
  const isOver = run.counted > countedMax || reading.time - run.since >= withheldMs
  if (!isAgreed && !isOver) return { kind, next: { ...state, run }, reset: null }
  return { kind, next: { ...reading, run: null }, reset: isAgreed ? 'agreed' : 'limit' }
}

function withPlausible(state: CounterState, reading: CounterReading): CounterState {
  // A plausible reading from before a run says nothing about the run.
  const isBefore = state.run !== null && reading.time < state.run.last.time
  const run = isBefore ? state.run : null
  const isOlder = reading.time === state.time ? reading.value <= state.value : reading.time < state.time
  if (!isOlder) return { ...reading, run }
  return run === state.run ? state : { ...state, run }
}

function runWith(
  state: CounterState,
  reading: CounterReading,
  rule: CounterRule,
): NonNullable<CounterState['run']> {
  const { time } = reading
  const { run } = state
  const isOtherUnit = isOfOtherUnit(state, reading, rule)
  if (run === null)
    return {
      isOtherUnit,
      since: time,
      withheld: 1,
      counted: 1,
      countedAt: time,
      agreeing: 1,
      agreeingSince: time,
      last: reading,
    }
  // Of readings of one time, as of a message that is mapped twice, the first one counts.
  if (time <= run.last.time) return run
  const agrees = compare(run.last, reading, rule) === 'plausible'
  const hasGrown = agrees && reading.value > run.last.value
  const counts = time - run.countedAt >= countedEveryMs && reading.value !== run.last.value
  return {
    since: run.since,
    withheld: run.withheld + 1,
    counted: counts ? run.counted + 1 : run.counted,
    countedAt: counts ? time : run.countedAt,
    agreeing: hasGrown ? run.agreeing + 1 : agrees ? run.agreeing : 1,
    agreeingSince: agrees ? run.agreeingSince : time,
    last: reading,
    isOtherUnit: isOtherUnit || (run.isOtherUnit && agrees),
  }
}

/** As the number is sent, and in counts of the message. */
function looksPlaceholder(value: number, { step }: CounterRule): boolean {
  return isUnsetNumber(value) || (step > 0 && isUnsetNumber(Number((value / step).toPrecision(12))))
}

/**
 * It would be plausible in another unit. The vehicle may have driven on, but not for weeks: else nearly every
 * other counter would be one.
 */
function isOfOtherUnit(before: CounterReading, now: CounterReading, rule: CounterRule): boolean {
  const { factors, perHour, slack } = rule
  const hours = Math.min(Math.abs(now.time - before.time) / hourMs, drivenHoursMax)
  const margin = slack + before.value * factorError
  return factors.some((factor) =>
    [factor, 1 / factor].some((one) => {
      const grown = now.value / one - before.value
      return grown >= -margin && grown <= perHour * hours + margin
    }),
  )
}

const drivenHoursMax = 4
const factorError = 0.001

/** The later one out of the earlier one. */
function isGrown(one: CounterReading, other: CounterReading, rule: CounterRule): boolean {
  const [before, now] = other.time < one.time ? [other, one] : [one, other]
  return hasGrown(before, now.time, now.value, rule) && now.value > before.value
}

/** `now` is not older than `before`. */
function compare(before: CounterReading, now: CounterReading, rule: CounterRule): CounterVerdict['kind'] {
  const { perHour, slack, step } = rule
  const grown = now.value - before.value
  if (grown < 0 && -grown > Math.max(step, finestStep(before.value, now.value)) * rounding) return 'fall'
  const possible = (perHour * (now.time - before.time)) / hourMs
  return grown > possible + Math.max(slack, step) * rounding ? 'jump' : 'plausible'
}

/** `late` is older than `state`. Clocks of one device may differ, so it may be a little larger. */
function compareLate(state: CounterReading, late: CounterReading, rule: CounterRule): CounterVerdict['kind'] {
  const { perHour, slack, step } = rule
  const most = Math.max(slack, step) * rounding
  const grown = state.value - late.value
  if (grown < -most) return 'jump'
  return grown > (perHour * (state.time - late.time)) / hourMs + most ? 'fall' : 'plausible'
}

/** Of the finer of both readings: 48211 may stand for 48211.0. */
function finestStep(before: number, now: number): number {
  return 10 ** -Math.max(decimalsOf(before), decimalsOf(now))
}
