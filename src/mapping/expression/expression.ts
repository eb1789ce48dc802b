// expression.ts: expressions and conditions of a source, in CEL (Common Expression Language): the entry file
// of the folder.
//
//   expr: lo + hi * 256                    the value of a field
//   when: speed.valid == 1 && sat >= 3     a condition
//   each: { expr: "data.filter(d, has(d.lat))" }
//
// The text is parsed and compiled into closures when the config is read (syntax.ts, evaluation.ts, calls.ts),
// so a message costs no parser. names.ts says what the names stand for, functions.ts which functions there
// are, reads.ts which values of a message an expression reads.
//
// Differences from CEL, as a message is no protocol buffer:
//   numbers     are doubles, so 7 / 2 is 3.5; results are rounded to 15 digits, and what a double cannot
//               hold exactly has no result (number-operators.ts)
//   no value    a missing key, null, or an operation without a result: it propagates, and is no error. As a
//               condition it is false. has(x) and x == null tell whether there is a value. In a condition
//               `x == 1` is false without x, and in a field it is no value: nothing is sent
//   types       comparisons take values as devices send them: "1", 1 and true (number-operators.ts)
//   x.f(y)      is f(x, y), for all functions
//   no dyn(), type(), duration, timestamp, optional values, bytes
//
// A selected field is passed on as it was read, so digits of a number beyond 2^53 stay. An evaluation is
// bounded by a budget of steps (step-budget.ts), lists and texts that it makes as well. Beyond it a StepLimit
// is thrown.

import type { Place, Rejection } from '../types.ts'
import type { Read } from '../path/path.ts'
import { Malformed } from '../path/text-cursor.ts'
import { compileTree } from './evaluation.ts'
import { truthOf } from './number-operators.ts'
import { MisusedName } from './names.ts'
import { limitText, stepsMax, StepLimit, withinLimit } from './step-budget.ts'
import { parseExpression } from './syntax.ts'
import { celOfOldCondition } from './old-conditions.ts'

export { functionRows } from './functions/functions.ts'
export { limitText, withinLimit }

export type Condition = (place: Place) => boolean

/** Of a record of which an expression reached its limit. Throws any other error. */
export function limitRejection(error: unknown): Extract<Rejection, { kind: 'refused' }> {
  if (!(error instanceof StepLimit)) throw error
  const detail =
    `An expression of the source needs more than ${stepsMax} steps for this message. Its lists or texts are ` +
    'longer than the expression is made for.'
  return { kind: 'refused', reason: 'EXPRESSION_LIMIT', detail }
}

/** Of a field: see `isValue` of `Scope`. `captures`: names of those of the topic. Throws Malformed. */
export function compileExpression(text: string, captures: readonly string[]): Read {
  return compileTree(parseExpression(text), captures, true)
}

/** True where the expression is; a value that reads as true (1, "yes") counts. Throws Malformed. */
export function compileCondition(text: string, captures: readonly string[]): Condition {
  const read = readOfCondition(text, captures)
  return (place) => truthOf(read(place)) === true
}

/** A condition of the old language is reported with its translation. */
function readOfCondition(text: string, captures: readonly string[]): Read {
  try {
    return compileTree(parseExpression(text), captures, false)
  } catch (error) {
    if (!(error instanceof Malformed) || error instanceof MisusedName) throw error
    const translated = celOfOldCondition(text)
    if (translated === undefined || translated === text) throw error
    throw new Malformed(`is in the language of conditions before 0.2; it is written as ${translated} now`)
  }
}
