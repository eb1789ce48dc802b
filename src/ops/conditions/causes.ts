// causes.ts: what holds now: the states of all stages, and what the numbers of the spool say.
//
// One cause is one condition: a state that follows from another one that holds is left out (`followsFrom`).
// A person would mend the wrong thing, and it ends by itself.

import type { ProviderName } from '../../domain/ids.ts'
import type { GatewayError } from '../../std/gateway-error.ts'
import type { State, StateCode, StateSource } from '../../domain/condition-state.ts'
import { deadLettersOf } from '../status-schema/seen.ts'
import type { StageViews } from '../types.ts'
import { conditionCatalogue } from './condition-catalogue.ts'
import type { Present } from './conditions.ts'
import type { DeadLetterCauses } from './dead-letter-conditions.ts'
import type { ConservationCheck } from '../conservation-check.ts'
import { createFillCauses } from './fill-conditions.ts'
import type { Cause } from '../../domain/cause.ts'

/** Of each code the texts of its facts. */
type StateTexts = { [Code in StateCode]: { cause(this: void, facts: State<Code>): Cause } }

type Deps = {
  deadLetters: DeadLetterCauses
  conservation: ConservationCheck
  refusal: () => GatewayError | null
}

/** Returns the function that gives all that holds now. `refusal`: why the spool is not opened. */
export function createCauses(
  stages: StageViews,
  { deadLetters, conservation, refusal }: Deps,
): () => Iterable<Present> {
  const fills = createFillCauses()
  return function* () {
    const states = [...statesNow()]
    for (const state of states) if (!follows(state, states)) yield presentOf(state)
    const totals = stages.spool?.totals()
    const isLost = stages.spool?.holdReason() === 'store_lost'
    yield* deadLetters.causes(isLost ? null : (totals?.deadLetters ?? null), () => deadLettersOf(stages))
    if (totals !== undefined) yield* fills(totals)
    yield* conservation.causes()
  }

  function* statesNow(): Generator<State> {
    const correctedMs = stages.ourTime?.correctionMs() ?? 0
    for (const [name, stage] of Object.entries(stages) as [string, Partial<StateSource> | null][])
      for (const state of stage?.states?.() ?? [])
        yield name === 'delivery' && correctedMs !== 0 ? corrected(state, correctedMs) : state
    const fault = refusal()
    if (fault !== null)
      yield { code: fault.code === 'SPOOL_DAMAGED' ? 'SPOOL_DAMAGED' : 'SPOOL_UNUSABLE', fault }
  }
}

/** Delivery notes these by the clock of the machine. */
const timesOfDelivery = ['sinceAt', 'untilAt', 'oldestAt']

function corrected(state: State, byMs: number): State {
  const times = Object.entries(state).filter(([name, at]) => timesOfDelivery.includes(name) && at !== null)
  return { ...state, ...Object.fromEntries(times.map(([name, at]) => [name, Number(at) + byMs])) }
}

/** Clocks of devices agree with each other, and with the service, within this. */
const clocksAgreeMs = 120_000

const spoolAway = (_: object, cause: State) => cause.code === 'SPOOL_UNUSABLE' || cause.code === 'STORE_LOST'

/** The service of the provider is away: the wait, and what is held for it, end with that. */
const serviceAway = ({ provider }: { provider: ProviderName }, cause: State) =>
  cause.code === 'ENDPOINT_UNAVAILABLE' && cause.provider === provider

/** Of each code that may follow from another: whether it does, from a state that holds. */
const followsFrom: { [Code in StateCode]?: (facts: State<Code>, cause: State) => boolean } = {
  // The directory of the spool is not mounted, is full, or cannot be written.
  CONTROL_SOCKET_FAILED: ({ isAtSpool }, cause) => isAtSpool && spoolAway({}, cause),
  AUDIT_LOG_FAILED: spoolAway,
  LEDGER_UNAVAILABLE: spoolAway,
  MARK_UNWRITABLE: spoolAway,
  // It was lost, and is refused by now.
  STORE_LOST: (_, { code }) => code === 'SPOOL_UNUSABLE' || code === 'SPOOL_DAMAGED',
  // An outage, also one that is in the answers of a 200; after a Retry-After the next try is known.
  NOTHING_ACCEPTED: serviceAway,
  RETRY_AFTER: serviceAway,
  BATCHES_HELD: (held, cause) =>
    held.reason === 'deferred' &&
    (serviceAway(held, cause) || (cause.code === 'RETRY_AFTER' && cause.provider === held.provider)),
  // The clock of this machine is wrong.
  CLOCK_UNKNOWN: (_, { code }) => code === 'CLOCK_SUSPECT',
  CLOCK_SUSPECT: ({ skewMs }, cause) =>
    cause.code === 'CLOCK_OFF' && Math.abs(skewMs + cause.offsetMs) <= clocksAgreeMs,
  DEVICES_HOURS_OFF: ({ offsetMs }, cause) =>
    cause.code === 'CLOCK_SUSPECT' && Math.abs(offsetMs - cause.skewMs) <= clocksAgreeMs,
}

function follows<Code extends StateCode>(state: State<Code>, states: readonly State[]): boolean {
  const from: { [Each in StateCode]?: (facts: State<Each>, cause: State) => boolean } = followsFrom
  return states.some((cause) => from[state.code]?.(state, cause) === true)
}

export function presentOf<Code extends StateCode>(state: State<Code>): Present {
  const texts: StateTexts = conditionCatalogue
  return { code: state.code, cause: texts[state.code].cause(state) }
}
