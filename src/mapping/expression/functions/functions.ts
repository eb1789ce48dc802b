// functions.ts: the functions of expressions, one row each. Everything about a function stands in its row;
// the table in docs/mapping.md is made of the rows.
//
// `f(x, y)` and `x.f(y)` are the same. An argument without a value makes the result none. An argument of a
// type that a function does not take gives no result.

import { isNone, NoResult } from '../../path/value.ts'
import type { Read } from '../../path/path.ts'
import type { FunctionRow } from './function-row.ts'
import type { StepBudget } from '../step-budget.ts'
import { listFunctions, textFunctions } from './text-functions.ts'
import { numberFunctions } from './number-functions.ts'

export const functionRows: readonly FunctionRow[] = [...numberFunctions, ...textFunctions, ...listFunctions]

const rows = new Map(functionRows.map((row) => [row.name, row]))

export const functionNames: readonly string[] = [...rows.keys()]

export function functionNamed(name: string): FunctionRow | undefined {
  return rows.get(name)
}

/** A call of a function with its arguments. */
export function compileFunction(
  { name, apply, cost = free }: Pick<FunctionRow, 'name' | 'apply' | 'cost'>,
  reads: readonly Read[],
  steps: StepBudget,
): Read {
  const wrongType = new NoResult(`${name}() takes no such value`)
  const [first, second] = reads
  // Nearly all calls have one or two arguments, and need no list of them.
  if (first !== undefined && reads.length === 1)
    return (place) => {
      const value = first(place)
      if (isNone(value)) return value
      steps.spend(1 + cost(value))
      return resultOf(apply(value))
    }
  if (first !== undefined && second !== undefined && reads.length === 2)
    return (place) => {
      const value = first(place)
      if (isNone(value)) return value
      const other = second(place)
      if (isNone(other)) return other
      steps.spend(1 + cost(value, other))
      return resultOf(apply(value, other))
    }
  return (place) => {
    const values = reads.map((read) => read(place))
    for (const value of values) if (isNone(value)) return value
    steps.spend(1 + cost(...values))
    return resultOf(apply(...values))
  }

  function resultOf(found: unknown): unknown {
    return found === undefined ? wrongType : found
  }
}

const free = () => 0
