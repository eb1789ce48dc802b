// value-table.ts: the word `values`: a table from the words or numbers of a message to other values, such as
// { DRIVING: true, IDLE: false }. The key * stands for every other value; without it another value is wrong,
// which is counted: a new state of a device must be seen.

import { unusable } from './unusable.ts'

export type ValueTable = Readonly<Record<string, string | number | boolean>>

/** Keys are compared as texts: 1 is `1`, true is `true`. */
export function compileTable(table: ValueTable): (value: unknown) => unknown {
  const values = new Map<string, unknown>(Object.entries(table))
  const other = values.get('*') ?? unusable
  return (value) => {
    if (typeof value === 'string') return values.get(value) ?? other
    return typeof value === 'number' || typeof value === 'boolean'
      ? (values.get(String(value)) ?? other)
      : unusable
  }
}
