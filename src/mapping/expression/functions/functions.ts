// functions.ts: the functions of expressions, one row each. Everything about a function stands in its row;
// the table in docs/mapping.md is made of the rows.
//
// `f(x, y)` and `x.f(y)` are the same. An argument without a value makes the result none. An argument of a
// type that a function does not take gives no result.

import { isNone, NoResult } from '../../path/no-result.ts'
import type { Read } from '../../path/path.ts'
import type { FunctionRow } from './function-row.ts'
import { limitReached, spend } from '../step-budget.ts'
import { listFunctions } from './list-functions.ts'
import { numberFunctions } from './number-functions.ts'
import { textFunctions } from './text-functions.ts'

export const functionRows: readonly FunctionRow[] = [...numberFunctions, ...textFunctions, ...listFunctions]

const rows = new Map(functionRows.map((row) => [row.name, row]))

export const functionNames: readonly string[] = [...rows.keys()]

export function functionNamed(name: string): FunctionRow | undefined {
  return rows.get(name)
}

/** A call of a function with its arguments; each is a step. */
export function compileFunction(
  { name, apply }: Pick<FunctionRow, 'name' | 'apply'>,
  reads: readonly Read[],
): Read {
  const wrongType = new NoResult(`${name}() has an argument of a type that it does not take`)
  const [first, second] = reads
  // Nearly all calls have one or two arguments, and need no list of them.
  if (first !== undefined && reads.length === 1)
    return (record, root, up, captures) => {
      const value = first(record, root, up, captures)
      if (isNone(value)) return value
      return spend(1) ? resultOf(apply(value)) : limitReached
    }
  if (first !== undefined && second !== undefined && reads.length === 2)
    return (record, root, up, captures) => {
      const value = first(record, root, up, captures)
      if (isNone(value)) return value
      const other = second(record, root, up, captures)
      if (isNone(other)) return other
      return spend(1) ? resultOf(apply(value, other)) : limitReached
    }
  return (record, root, up, captures) => {
    const values = reads.map((read) => read(record, root, up, captures))
    for (const value of values) if (isNone(value)) return value
    return spend(1) ? resultOf(apply(...values)) : limitReached
  }

  function resultOf(found: unknown): unknown {
    return found === undefined ? wrongType : found
  }
}
