// Foreign text that is cut.

import { expect, test } from 'vitest'
import { bounded, quote } from '../../src/std/quote.ts'

test('a text is cut with the number of missing units, and never within a character', () => {
  expect(bounded('abcd', 4)).toBe('abcd')
  expect(bounded('abcde', 4)).toBe('abcd… (1 more)')
  for (const before of ['', 'x']) {
    const text = bounded(`${before}${'🚚'.repeat(20)}`, 8)
    expect(text.isWellFormed()).toBe(true)
    expect(quote(`${before}${'🚚'.repeat(20)}`, 8)).not.toContain('ud83d')
  }
  expect(bounded('x🚚🚚', 2)).toBe('x… (4 more)')
})
