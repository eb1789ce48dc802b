// Tables on the terminal: aligned columns without borders, whatever the cells hold.

import { describe, expect, test } from 'vitest'
import { columns } from '../../../src/std/text-table/text-table.ts'

describe('a table on the terminal', () => {
  test('aligns columns by two blanks and ends lines without blanks', () => {
    expect(
      columns([
        ['device', 'messages', 'clock'],
        ['truck-7', '12', 'ok'],
        ['van-1', '', ''],
      ]),
    ).toEqual(['device   messages  clock', 'truck-7  12        ok', 'van-1'])
  })

  test('counts a wide character as two columns and a combining mark as none', () => {
    expect(
      columns([
        ['日本', 'x'],
        ['e\u0301', 'y'],
      ]),
    ).toEqual(['日本  x', 'e\u0301     y'])
  })

  test('writes control characters of a cell out, so that a device cannot move the cursor or add colours', () => {
    expect(columns([['a\x1b[31m\n', 'b']])).toEqual(['a\\u{1b}[31m\\u{a}  b'])
  })

  test('fits a terminal: the widest columns fold, and no text is lost', () => {
    const rows = [
      ['batchId', 'reason', 'n'],
      ['0123456789abcdef0123456789abcdef', 'the service refuses the whole batch again and again', '7'],
    ]
    const lines = columns(rows, 40)
    expect(Math.max(...lines.map(({ length }) => length))).toBeLessThanOrEqual(40)
    expect(lines.length).toBeGreaterThan(3)
    const squeezed = lines.join(' ').replaceAll(/\s+/g, '')
    for (const letter of 'abcdef0123456789') expect(squeezed).toContain(letter)
    for (const word of ['service', 'refuses', 'again']) expect(lines.join('\n')).toContain(word)
    expect(columns(rows)).toHaveLength(2)
    expect(columns(rows, 200)).toEqual(columns(rows))
  })

  test('folds between words, and within a word only where nothing else is left', () => {
    const rows = [
      ['endpoint', 'last accepted', 'why'],
      ['unavailable', '3 min 20 s ago', 'the connection was refused'],
    ]
    const lines = columns(rows, 40)
    const words = ['endpoint', 'accepted', 'unavailable', 'connection', 'refused']
    expect(words.filter((word) => !lines.join('\n').includes(word))).toEqual([])
    expect(lines.filter((line) => line.length > 40)).toEqual([])
  })

  test('keeps the indentation of a cell that folds', () => {
    expect(columns([['  0123456789', 'x'.repeat(20)]], 30)[0]).toMatch(/^ {2}0/)
  })

  test('has the same column widths from the first to the last of many rows', () => {
    const rows = Array.from({ length: 170 }, (_, index) => ['x'.repeat((index % 7) + 1), `row ${index}`])
    const starts = columns(rows).map((line, index) => line.indexOf(`row ${index}`))
    expect(new Set(starts)).toEqual(new Set([9]))
    expect(columns(rows)).toHaveLength(170)
  })
})
