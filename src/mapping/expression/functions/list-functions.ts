// list-functions.ts: the functions of expressions about lists and objects.

import { NoResult } from '../../path/value.ts'
import { entriesOf, isRecord, setOwn } from '../../path/path-eval.ts'
import { row, type FunctionRow } from './function-row.ts'
import { sizeOf } from './text-functions.ts'
import { stepsOfText } from '../step-budget.ts'

const unequal = new NoResult('zip() needs an object with lists of one length')

export const listFunctions: readonly FunctionRow[] = [
  row(
    'size(x)',
    'The number of characters of a text, of elements of a list, or of keys of an object.',
    'size(positions) > 0',
    (x) => {
      if (typeof x === 'string') return sizeOf(x)
      if (Array.isArray(x)) return x.length
      return isRecord(x) ? Object.keys(x).length : undefined
    },
    { cost: (x) => (typeof x === 'string' ? stepsOfText(x.length) : keysIn(x)) },
  ),
  row(
    'entries(x)',
    'An object as a list of { key, value }.',
    'entries(message).filter(e, e.key.startsWith("gps_"))[0].value',
    entriesOf,
    { cost: keysIn },
  ),
  row(
    'zip(x)',
    'An object of lists of one length as a list of objects: {"t":[1,2],"v":[8,9]} is [{t:1,v:8}, {t:2,v:9}].',
    'zip(samples)',
    (x) => (isRecord(x) ? (zipped(x) ?? unequal) : undefined),
    { cost: (x) => 2 * cellsIn(x) },
  ),
]

function keysIn(value: unknown): number {
  return isRecord(value) ? Object.keys(value).length : 0
}

function cellsIn(value: unknown): number {
  if (!isRecord(value)) return 0
  let cells = 0
  for (const key in value) cells += Array.isArray(value[key]) ? value[key].length + 1 : 1
  return cells
}

/**
 * Undefined where there is no list, or the lists are not of one length: then it is not known which values
 * belong together.
 */
function zipped(value: Record<string, unknown>): unknown {
  const lists = Object.keys(value).filter((key) => Array.isArray(value[key]))
  const [first] = lists
  if (first === undefined) return undefined
  const { length } = value[first] as readonly unknown[]
  if (lists.some((key) => (value[key] as readonly unknown[]).length !== length)) return undefined
  return Array.from({ length }, (_, at) => {
    const record: Record<string, unknown> = {}
    for (const key of lists) setOwn(record, key, (value[key] as readonly unknown[])[at])
    return record
  })
}
