// payload-verdicts.ts: decides which payloads of a batch are accepted, and writes the breakdown of the
// answer.

import type { FaultPlan } from './fault-plan.ts'
import { happens } from './fault-injection.ts'
import { isJsonObject, type FieldProblem, type JsonObject, type PayloadCheck } from './payload-check.ts'
import { idIn } from './received-payloads.ts'

/** Element of `failed` (ingestion-api.md 2.8). */
export type Failure = {
  payloadId: string
  errorType: string
  errorMessage: string
  validationErrorDetails: readonly FieldProblem[]
}

export type Verdicts = { accepted: readonly JsonObject[]; failed: readonly Failure[] }

/** The lists of the answer; ids as they were submitted. */
export type Breakdown = {
  accepted: string[]
  failed: Failure[]
  summary: { total: number; accepted: number; failed: number }
}

export function judge(
  payloads: readonly JsonObject[],
  check: PayloadCheck,
  plan: FaultPlan | null,
  random: () => number,
): Verdicts {
  const accepted: JsonObject[] = []
  const failed: Failure[] = []
  for (const payload of payloads) {
    const problems = check(payload, true)
    if (problems.length > 0) failed.push(invalid(payload, problems))
    else if (plan === null) accepted.push(payload)
    else {
      const failure = failureByRule(payload, plan, random)
      if (failure) failed.push(failure)
      else if (!happens(plan.lost, random)) accepted.push(payload)
    }
  }
  return { accepted, failed }
}

export function breakdownOf({ accepted, failed }: Verdicts, total: number): Breakdown {
  return {
    accepted: accepted.map(nameOf),
    failed: [...failed],
    summary: { total, accepted: accepted.length, failed: failed.length },
  }
}

export function failureByRule(payload: JsonObject, plan: FaultPlan, random: () => number): Failure | null {
  const rule = plan.fail.find(
    ({ device, asset, id_prefix: prefix, has, rate }) =>
      (device === undefined || idIn(payload['deviceIdentifier']) === device) &&
      (asset === undefined || idIn(payload['assetIdentifier']) === asset) &&
      (prefix === undefined || nameOf(payload).toLowerCase().startsWith(prefix)) &&
      (has === undefined || hasPath(payload, has)) &&
      happens(rate, random),
  )
  if (!rule) return null
  return {
    payloadId: nameOf(payload),
    errorType: rule.error_type,
    errorMessage: rule.message,
    validationErrorDetails: rule.field === undefined ? [] : [{ field: rule.field, message: rule.message }],
  }
}

/** The answer with the faults of the plan. What was accepted does not change. */
export function bent(
  breakdown: Breakdown,
  plan: FaultPlan,
  newId: () => string,
  random: () => number,
): Breakdown {
  const { unlisted, both_lists: both, foreign, wrong_summary: wrong } = plan.answer
  const isListed = () => !happens(unlisted, random)
  const accepted = breakdown.accepted.filter(isListed)
  const failed = breakdown.failed.filter(isListed)
  for (const payloadId of accepted) {
    if (happens(both, random))
      failed.push({
        payloadId,
        errorType: 'Internal',
        errorMessage: 'The payload is in both lists.',
        validationErrorDetails: [],
      })
  }
  if (happens(foreign, random)) accepted.push(newId())
  const summary = { ...breakdown.summary }
  if (happens(wrong, random)) summary.accepted += 1
  return { accepted, failed, summary }
}

function invalid(payload: JsonObject, problems: readonly FieldProblem[]): Failure {
  return {
    payloadId: nameOf(payload),
    errorType: 'Validation',
    errorMessage: validationMessage(problems),
    validationErrorDetails: problems,
  }
}

export function validationMessage(problems: readonly FieldProblem[]): string {
  const first = problems[0]?.message ?? 'The payload is not valid'
  return problems.length > 1 ? `${first}, and ${problems.length - 1} more.` : `${first}.`
}

/** The failure record needs a payloadId; it is empty for a payload without one. */
function nameOf(payload: JsonObject): string {
  const id = payload['payloadId']
  return typeof id === 'string' ? id : ''
}

function hasPath(payload: JsonObject, path: string): boolean {
  let value: unknown = payload
  for (const step of path.split('.')) {
    if (!isJsonObject(value) || !Object.hasOwn(value, step)) return false
    value = value[step]
  }
  return true
}
