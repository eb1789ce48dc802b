// causes.ts: what holds now: the states of all stages, and what the numbers of the spool say.

import type { GatewayError } from '../../std/gateway-error.ts'
import type { State, StateCode, StateSource } from '../../domain/condition-state.ts'
import { deadLettersOf } from '../status-schema/seen.ts'
import type { StageViews } from '../types.ts'
import { conditionCatalogue } from './condition-catalogue.ts'
import type { Present } from './conditions.ts'
import type { DeadLetterCauses } from './dead-letter-conditions.ts'
import type { ConservationCheck } from '../conservation-check.ts'
import { createFillCauses } from './fill-conditions.ts'
import type { Cause } from './types.ts'

/** Of each code the texts of its facts. */
type StateTexts = { [Code in StateCode]: { cause(this: void, facts: State<Code>): Cause } }

/** Returns the function that gives all that holds now. `refusal`: why the spool is not opened. */
export function createCauses(
  stages: StageViews,
  {
    deadLetters,
    conservation,
    refusal,
  }: { deadLetters: DeadLetterCauses; conservation: ConservationCheck; refusal: () => GatewayError | null },
): () => Iterable<Present> {
  const fills = createFillCauses()
  return function* () {
    for (const stage of Object.values(stages) as (Partial<StateSource> | null | undefined)[])
      for (const state of stage?.states?.() ?? []) yield presentOf(state)
    const fault = refusal()
    if (fault !== null)
      yield presentOf({ code: fault.code === 'SPOOL_DAMAGED' ? 'SPOOL_DAMAGED' : 'SPOOL_UNUSABLE', fault })
    const totals = stages.spool?.totals()
    const isLost = stages.spool?.holdReason() === 'store_lost'
    yield* deadLetters.causes(isLost ? null : (totals?.deadLetters ?? 0), () => deadLettersOf(stages))
    if (totals !== undefined) yield* fills(totals)
    yield* conservation.causes()
  }
}

export function presentOf<Code extends StateCode>(state: State<Code>): Present {
  const texts: StateTexts = conditionCatalogue
  return { code: state.code, cause: texts[state.code].cause(state) }
}
