import { expect, test } from 'vitest'
import { compareBothWays, compareRandomSources } from './differential.ts'

/** Trials whose sources read properties of MQTT 5. */
const readers = ['untimed', 'packet']

/** Options of fields that make the messages of a source parsed. */
const parsedOptions = [
  'date',
  'when',
  'bit',
  'values',
  'negative',
  'plus',
  'minus',
  'over',
  'value',
  'default',
  'absent',
  'decimal_comma',
  'hemisphere',
]

/** Only ends a run that hangs. */
const timeout = 900_000

test('hostile messages have the same result with the fast path and without it', { timeout }, () => {
  const report = compareBothWays({ count: 50_000, seed: 11 })
  expect(report.differences).toEqual([])
  expect(report.messages).toBeGreaterThanOrEqual(50_000)
  expect(report.mapped).toBeGreaterThan(20_000)
  // Otherwise it would compare one way with itself.
  for (const [name, fast] of report.fast) expect(fast, name).toBeGreaterThan(150)
  // Messages with properties are parsed only where a path of the source may read them.
  const parsed = [...report.fastWithProperties].filter(([, fast]) => fast === 0)
  expect(parsed.map(([name]) => name)).toEqual(readers)
})

test('each option of a field has the same result with the fast path and without it', { timeout }, () => {
  const report = compareRandomSources({ count: 20_000, seed: 11 })
  expect(report.differences).toEqual([])
  expect(report.mapped).toBeGreaterThan(10_000)
  const parsed = [...report.fast].filter(([, fast]) => fast === 0)
  expect(parsed.map(([option]) => option)).toEqual(parsedOptions)
})
