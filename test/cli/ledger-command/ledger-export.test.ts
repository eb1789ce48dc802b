import { describe, expect, test } from 'vitest'
import { csvCell } from '../../../src/cli/ledger-command/ledger-export.ts'

describe('a cell of CSV', () => {
  test.each([
    ['=cmd|" /C calc"!A0', `"'=cmd|"" /C calc""!A0"`],
    ['+49 30 1234', "'+49 30 1234"],
    ['-2+3', "'-2+3"],
    ['@SUM(A1)', "'@SUM(A1)"],
    ['\t=1', "'\\u{9}=1"],
    ['\r=1', "'\\u{d}=1"],
    ['a\u001b[2J', 'a\\u{1b}[2J'],
    ['-12.5', '-12.5'],
    ['+3e7', '+3e7'],
    [-7, '-7'],
    ['truck-7', 'truck-7'],
    [null, ''],
  ])('%j does not run in a spreadsheet, and a number stays one', (value, expected) => {
    expect(csvCell(value)).toBe(expected)
  })
})
