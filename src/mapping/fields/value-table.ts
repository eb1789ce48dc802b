// value-table.ts: the word `values`: a table from the words or numbers of a message to other values, such as
// { DRIVING: true, IDLE: false }. The key * stands for every other value; without it another value is wrong,
// which is counted: a new state of a device must be seen.

import { NoResult } from '../path/no-result.ts'

export type ValueTable = Readonly<Record<string, string | number | boolean>>

const unknown = new NoResult('`values` does not have it')

/** Keys are compared as texts: 1 is `1`, true is `true`. */
export function compileTable(table: ValueTable): (value: unknown) => unknown {
  const values = new Map<string, unknown>(Object.entries(table))
  const other = values.get('*') ?? unknown
  return (value) => {
    if (typeof value === 'string') return values.get(value) ?? other
    return typeof value === 'number' || typeof value === 'boolean'
      ? (values.get(String(value)) ?? other)
      : unknown
  }
}
