import { describe, expect, test } from 'vitest'
import { compileCondition } from '../../../src/mapping/expression/expression.ts'
import { celOfOldCondition } from '../../../src/mapping/expression/old-conditions.ts'
import { rowsBeside } from '../../support/case-rows.ts'
import { placed } from '../../support/placed.ts'

const rows = rowsBeside(import.meta.filename) as {
  record: unknown
  holds: string[]
  holds_not: string[]
  translations: Record<string, string>
  untranslatable: string[]
  refused: string[]
}

function holds(text: string): boolean {
  const { record } = rows
  const translated = celOfOldCondition(text) ?? ''
  return compileCondition(translated, ['event', 'vehicle'])(placed(record, { captures: ['vp', '0042'] }))
}

describe('a condition of the language before 0.2 means the same in CEL', () => {
  test.each(rows.holds)('%s holds', (text) => {
    expect(holds(text)).toBe(true)
  })

  test.each(rows.holds_not)('%s does not hold', (text) => {
    expect(holds(text)).toBe(false)
  })
})

test.each(Object.entries(rows.translations))('%s is written as %s', (text, translated) => {
  expect(celOfOldCondition(text)).toBe(translated)
})

test.each([...rows.untranslatable, `${'('.repeat(99)}a`])('%s has no translation', (text) => {
  expect(celOfOldCondition(text)).toBeUndefined()
})

test.each(rows.refused)('%s is refused with its translation', (text) => {
  expect(() => compileCondition(text, ['event'])).toThrow(celOfOldCondition(text))
})
