// list-functions.ts: the functions of expressions about lists and objects.

import { NoResult } from '../../path/no-result.ts'
import { entriesOf, isRecord, zipped } from '../../path/path-eval.ts'
import type { FunctionRow } from './function-row.ts'
import { limitReached, spend } from '../step-budget.ts'

const unequal = new NoResult('zip() needs an object with lists of one length')

export const listFunctions: readonly FunctionRow[] = [
  {
    name: 'size',
    parameters: 'x',
    doc: 'The number of characters of a text, of elements of a list, or of keys of an object.',
    example: 'size(positions) > 0',
    apply: (x) => {
      if (typeof x === 'string' || Array.isArray(x)) return x.length
      return isRecord(x) ? keysOf(x, (keys) => keys.length) : undefined
    },
  },
  {
    name: 'entries',
    parameters: 'x',
    doc: 'An object as a list of { key, value }.',
    example: 'entries(message).filter(e, e.key.startsWith("gps_"))[0].value',
    apply: (x) => (isRecord(x) ? keysOf(x, () => entriesOf(x)) : undefined),
  },
  {
    name: 'zip',
    parameters: 'x',
    doc: 'An object of lists of one length as a list of objects: {"t":[1,2],"v":[8,9]} is [{t:1,v:8}, {t:2,v:9}].',
    example: 'zip(samples)',
    apply: (x) => {
      if (!isRecord(x)) return undefined
      let cells = 0
      for (const key in x) cells += Array.isArray(x[key]) ? x[key].length + 1 : 1
      return spend(cells * 2) ? (zipped(x) ?? unequal) : limitReached
    },
  },
]

function keysOf(record: Record<string, unknown>, make: (keys: readonly string[]) => unknown): unknown {
  const keys = Object.keys(record)
  return spend(keys.length) ? make(keys) : limitReached
}
