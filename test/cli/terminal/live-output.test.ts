import { describe, expect, test } from 'vitest'
import { createLiveOutput, foldLine } from '../../../src/cli/terminal/live-output.ts'
import { keptOutput } from '../../support/ops-world.ts'
import { terminalOutput } from '../../support/terminal-screen.ts'

describe('a block that is drawn again in place', () => {
  test('stays below the lines that were printed, and is there once', () => {
    const terminal = terminalOutput()
    const output = createLiveOutput(terminal.stream, {})
    output.print(['welcome'])
    output.draw(['count 1', 'long'])
    output.print(['an event'])
    output.draw(['count 2'])
    output.end()
    output.print(['goodbye'])
    expect(terminal.screen()).toEqual(['welcome', 'an event', 'count 2', 'goodbye', ''])
  })

  test('is as wide and as high as the terminal, and says what it leaves out', () => {
    const terminal = terminalOutput(20, 5)
    const output = createLiveOutput(terminal.stream, {})
    output.draw(['SPOOL_FULL: the spool is full of payloads', 'one', 'two', 'three'])
    expect(terminal.screen()).toEqual([
      'SPOOL_FULL: the',
      'spool is full of',
      'payloads',
      '(and 3 more lines)',
      '',
    ])
  })

  test('leaves the old block where it is after a change of the size', () => {
    const terminal = terminalOutput()
    const output = createLiveOutput(terminal.stream, {})
    output.draw(['old'])
    terminal.stream.columns = 40
    terminal.stream.emit('resize')
    output.draw(['new'])
    output.clear()
    output.print(['last'])
    expect(terminal.screen()).toEqual(['old', 'last', ''])
  })

  test.each([
    ['a pipe', keptOutput(), {}],
    ['a terminal with TERM=dumb', terminalOutput(), { TERM: 'dumb' }],
  ])('is not there in %s, nor is any escape code', (_name, { stream, text }, env) => {
    const output = createLiveOutput(stream, env)
    expect(output.isLive).toBe(false)
    output.draw(['count 1'])
    output.print(['an event'])
    output.clear()
    output.end()
    expect(text()).toBe('an event\n')
  })
})

describe('a folded line', () => {
  test.each([
    ['short', 10, ['short']],
    ['two words', 5, ['two', 'words']],
    ['  id 123456789', 8, ['  id', '  123456', '  789']],
    ['0123456789', 4, ['0123', '4567', '89']],
    ['車両車両', 4, ['車両', '車両']],
    ['', 5, ['']],
  ])('loses nothing: %j in %i columns', (line, width, rows) => {
    expect(foldLine(line, width)).toEqual(rows)
  })
})
