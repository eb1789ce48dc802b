// retry-delays.ts: when a payload that the service listed as `failed` is sent again, by its errorType. Each
// delay is a step with its own retry lane, so that each lane stays a FIFO. After the last step the payload
// becomes a dead letter.
//
// Attempts are counted by rule, the list of `delivery.errors` that an errorType falls under, so that answers
// of one rule do not use up the steps of another. A payload has at most as many attempts as all rules have
// steps together. An uncounted answer leaves the counts as they are, and the payload waits for the first
// delay of its rule.

import type { PayloadId } from '../../domain/ids.ts'
import type { FailureRecord } from '../../domain/outcome.ts'
import { attemptsIn, type LaneRole, type PayloadSettlement } from '../../domain/settlement.ts'
import type { RetryRule, RetryRules } from '../delivery-options.ts'
import { detailOf, type PayloadResults } from './payload-results.ts'
import type { Facts } from './policy.ts'

const secondMs = 1000
const minuteMs = 60 * secondMs
const hourMs = 60 * minuteMs

/** `delivery.errors` adds to these and replaces them by errorType. */
export const defaultRetryRules: readonly (readonly [errorType: string, RetryRule])[] = [
  ['Validation', [5 * minuteMs, hourMs]],
  [
    'default',
    [10 * secondMs, minuteMs, 5 * minuteMs, 15 * minuteMs, hourMs, 3 * hourMs, 6 * hourMs, 12 * hourMs],
  ],
]

/** What each payload of a batch becomes. `missing`: the result of one that no answer named. */
export function settlementsOf(
  results: PayloadResults,
  { payloadIds, attempts, role }: Pick<Facts, 'payloadIds' | 'attempts' | 'role'>,
  rules: RetryRules,
  missing: (id: PayloadId) => 'accepted' | FailureRecord,
): readonly PayloadSettlement[] {
  const before = attempts()
  const byRule = attemptsIn(role)
  const stepsMax = stepsOf(rules)
  return payloadIds().map((id, index) => {
    const result = results.get(id) ?? missing(id)
    if (result === 'accepted') return { kind: 'delivered' }
    const schedule = scheduleOf(result, rules)
    const rule = rules.get(schedule) ?? []
    if (rule === 'delivered') return { kind: 'delivered' }
    const step = byRule.get(schedule) ?? 0
    if (step < rule.length && (before[index] ?? 0) < stepsMax)
      return { kind: 'retry', schedule, step, failure: result }
    return { kind: 'dead', reason: result.errorType, detail: detailOf(result), failure: result }
  })
}

/** The same where the answer is no attempt; what is not to be sent again stays as it is. */
export function uncounted(
  settlement: PayloadSettlement,
  why: 'outage' | 'unanswered' | 'no_room',
  rules: RetryRules,
): PayloadSettlement {
  if (settlement.kind !== 'retry' && settlement.kind !== 'dead') return settlement
  const { failure } = settlement
  if (failure === null) return settlement
  return { kind: 'retry', schedule: scheduleOf(failure, rules), step: 0, failure, uncounted: why }
}

function scheduleOf({ errorType }: FailureRecord, rules: RetryRules): string {
  return rules.has(errorType) ? errorType : 'default'
}

/** The spool counts no further than 255. */
function stepsOf(rules: RetryRules): number {
  let steps = 0
  for (const rule of rules.values()) if (rule !== 'delivered') steps += rule.length
  return Math.min(steps, 255)
}

/**
 * How long each payload waits in a retry lane. A schedule or step that the config no longer has waits as the
 * nearest one; a rule without delays waits a minute where an answer did not count. What waits for room in the
 * dead letters has no further delay.
 */
export function retryDelayMs(role: LaneRole, rules: RetryRules): number {
  if (role.kind !== 'retry' || role.waitsForRoom) return 0
  const rule = rules.get(role.schedule) ?? rules.get('default') ?? []
  return rule === 'delivered' ? 0 : (rule[Math.min(role.step, rule.length - 1)] ?? minuteMs)
}
