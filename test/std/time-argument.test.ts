// Times as a person types them on the command line or in a URL.

import { describe, expect, test } from 'vitest'
import { parseTimeArgument } from '../../src/std/time-argument.ts'

/** Saturday, 9:30 local time. */
const now = new Date(2026, 10, 21, 9, 30).getTime()
const at = (...parts: [number, number, number, number?, number?, number?, number?]) =>
  new Date(parts[0], parts[1] - 1, parts[2], ...parts.slice(3)).getTime()

describe('a time argument', () => {
  test.each([
    ['14:03', at(2026, 11, 21, 14, 3)],
    ['9:05', at(2026, 11, 21, 9, 5)],
    ['14:03:20', at(2026, 11, 21, 14, 3, 20)],
    ['14:03:20.5', at(2026, 11, 21, 14, 3, 20, 500)],
    ['2026-11-21T14:03', at(2026, 11, 21, 14, 3)],
    ['2026-11-20 14:03:01', at(2026, 11, 20, 14, 3, 1)],
    ['2026-11-20', at(2026, 11, 20)],
    [' 2024-02-29 ', at(2024, 2, 29)],
    ['2026-11-21T14:03Z', Date.UTC(2026, 10, 21, 14, 3)],
    ['2026-11-21T14:03:20.123Z', Date.UTC(2026, 10, 21, 14, 3, 20, 123)],
    ['2026-11-21T14:03+02:00', Date.UTC(2026, 10, 21, 12, 3)],
    ['2026-11-21T14:03-05:30', Date.UTC(2026, 10, 21, 19, 33)],
    ['1763690000000', 1_763_690_000_000],
    ['2h', at(2026, 11, 21, 7, 30)],
    ['1.5d', at(2026, 11, 19, 21, 30)],
  ])('%s is accepted', (text, expected) => {
    expect(parseTimeArgument(text, now)).toEqual({ kind: 'time', at: expected })
  })

  test.each([
    ['', /Write a time as/],
    ['noon', /Write a time as/],
    ['14.03', /Write a time as/],
    ['24:00', /no such/],
    ['14:60', /no such/],
    ['2026-02-29', /no such/],
    ['2026-02-29T10:00Z', /no such/],
    ['2026-13-01', /no such/],
    ['2026-11-31T10:00', /no such/],
    ['1763690000', /seconds/],
    ['14', /13 digits/],
  ])('%s is refused with a reason', (text, why) => {
    expect(parseTimeArgument(text, now)).toEqual({
      kind: 'invalid',
      why: expect.stringMatching(why) as string,
    })
  })

  test('an hour that summer time leaves out is refused', () => {
    const before = process.env['TZ']
    process.env['TZ'] = 'Europe/Berlin'
    try {
      expect(parseTimeArgument('2026-03-29T02:30', now)).toMatchObject({ kind: 'invalid' })
      expect(parseTimeArgument('2026-03-29T03:30', now)).toEqual({
        kind: 'time',
        at: Date.UTC(2026, 2, 29, 1, 30),
      })
    } finally {
      if (before === undefined) delete process.env['TZ']
      else process.env['TZ'] = before
    }
  })
})
