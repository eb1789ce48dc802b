// words.ts: the words of a field that compute its value from what its path found, in this order:
//
//   bit         a bit or a range of bits of a whole number          bits.ts
//   values      a table from words and numbers to other values      value-table.ts
//   negative    a condition that makes the number negative
//   plus, minus, over   a second value of the message               arithmetic.ts
//   unit        named by another value of the message               unit-by-field.ts
//
// An absent value stays absent, and so does one whose second value is absent. What no word can compute
// becomes `unusable`, which every field counts as a wrong value. Decimals are exact: no word makes a float.

import { compileCondition } from '../expression/expression.ts'
import type { Read } from '../path/path.ts'
import type { Presence } from '../fields/present-values.ts'
import { compileArithmetic, negated, type Operand } from './arithmetic.ts'
import { bitsOf, rangeOf } from './bits.ts'
import type { Stage } from './stage.ts'
export { oneOf } from './unit-by-field.ts'
import { compileUnits, type UnitByField } from './unit-by-field.ts'
import { compileTable, type ValueTable } from './value-table.ts'

/** `absent` and `decimal_comma` count for the second values, too. */
export type Words = Presence & {
  bit?: number | string | undefined
  values?: ValueTable | undefined
  negative?: string | undefined
  plus?: Operand | undefined
  minus?: Operand | undefined
  over?: Operand | undefined
  /** A unit that is always the same is converted by the field itself. */
  unit?: string | UnitByField | undefined
}

/** `captures`: names of those of the topic. Throws Malformed. */
export function compileStages(
  { bit, values, negative, plus, minus, over, unit, absent, decimal_comma }: Words,
  captures: readonly string[],
): Stage[] {
  const stages: Stage[] = []
  if (bit !== undefined) {
    const range = rangeOf(bit)
    stages.push({ text: `bit ${bit}`, apply: (value) => bitsOf(value, range) })
  }
  if (values !== undefined) {
    const find = compileTable(values)
    stages.push({ text: '`values`', apply: (value) => find(value) })
  }
  if (negative !== undefined) {
    const holds = compileCondition(negative, captures)
    stages.push({
      text: `negative where ${negative}`,
      apply: (value, record, root, up, found = []) =>
        holds(record, root, found, up) ? negated(value) : value,
    })
  }
  for (const [word, operand] of [
    ['plus', plus],
    ['minus', minus],
    ['over', over],
  ] as const)
    if (operand !== undefined) stages.push(compileArithmetic(word, operand, { absent, decimal_comma }))
  if (typeof unit === 'object') stages.push(compileUnits(unit))
  return stages
}

const words = ['bit', 'values', 'negative', 'plus', 'minus', 'over'] as const

/** A word that a field has; undefined where it has none. */
export function wordIn(field: Words): string | undefined {
  return (
    words.find((word) => field[word] !== undefined) ?? (typeof field.unit === 'object' ? 'unit' : undefined)
  )
}

/** `read` with all stages. A field without words costs no more than its path. */
export function withStages(read: Read, stages: readonly Stage[]): Read {
  let all = read
  for (const { apply } of stages) {
    const before = all
    all = (record, root, up, captures) => {
      const value = before(record, root, up, captures)
      if (value === undefined || value === null || value === '') return value
      return apply(value, record, root, up, captures)
    }
  }
  return all
}
