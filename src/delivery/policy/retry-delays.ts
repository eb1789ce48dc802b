// retry-delays.ts: when a payload that the service listed as `failed` is sent again, by its errorType. Each
// delay is a step with its own retry lane, so that each lane stays a FIFO. After the last step the payload
// becomes a dead letter.

import type { FailureRecord } from '../../domain/outcome.ts'
import type { PayloadSettlement } from '../../domain/settlement.ts'
import type { LaneRole } from '../../spool/spool.ts'
import type { RetryRule, RetryRules } from '../delivery-options.ts'
import { detailOf } from './payload-results.ts'

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

/** `attempts`: answers `failed` that the payload had before this one. */
export function settlementOfFailure(
  failure: FailureRecord,
  attempts: number,
  rules: RetryRules,
): PayloadSettlement {
  const schedule = rules.has(failure.errorType) ? failure.errorType : 'default'
  const rule = rules.get(schedule) ?? []
  if (rule === 'delivered') return { kind: 'delivered' }
  if (attempts < rule.length) return { kind: 'retry', schedule, step: attempts, failure }
  return { kind: 'dead', reason: failure.errorType, detail: detailOf(failure), failure }
}

/**
 * How long each payload waits in a retry lane. A schedule or step that the config no longer has waits as the
 * nearest one.
 */
export function retryDelayMs(role: LaneRole, rules: RetryRules): number {
  if (role.kind !== 'retry') return 0
  const rule = rules.get(role.schedule) ?? rules.get('default') ?? []
  return rule === 'delivered' ? 0 : (rule[Math.min(role.step, rule.length - 1)] ?? 0)
}
