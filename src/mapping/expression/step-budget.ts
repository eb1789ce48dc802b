// step-budget.ts: bounds the time of an evaluation. A step is a visit of an element of a list, or the work on
// some characters of a text; an evaluation that needs more than `stepsMax` ends without a result, and the
// message becomes a dead letter (EXPRESSION_LIMIT).
//
// An evaluation is synchronous, so one budget serves all expressions of the process.

import { NoResult } from '../path/no-result.ts'

export const stepsMax = 10_000

/** Characters of a text that count as one step. */
export const charactersPerStep = 16

export const limitReached = new NoResult(`the expression needs more than ${stepsMax} steps`)

let left = stepsMax
let wasReached = false

export function beginSteps(): void {
  left = stepsMax
}

/** False where the evaluation must end with `limitReached`. */
export function spend(steps: number): boolean {
  left -= steps
  if (left >= 0) return true
  wasReached = true
  return false
}

export function spendText(length: number): boolean {
  return spend(1 + Math.ceil(length / charactersPerStep))
}

/** Whether an evaluation reached the limit since the last call. */
export function takeLimitReached(): boolean {
  const reached = wasReached
  wasReached = false
  return reached
}
