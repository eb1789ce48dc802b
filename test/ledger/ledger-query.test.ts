import { describe, expect, test } from 'vitest'
import { parseLedgerQuery } from '../../src/ledger/ledger-query.ts'
import { parseTimeArgument } from '../../src/ledger/time-argument.ts'

/** A Saturday, half past nine in the morning where this runs. */
const now = new Date(2026, 10, 21, 9, 30).getTime()
const at = (...parts: [number, number, number, number?, number?, number?, number?]) =>
  new Date(parts[0], parts[1] - 1, parts[2], ...parts.slice(3)).getTime()

describe('a time', () => {
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
  ])('%s is understood', (text, expected) => {
    expect(parseTimeArgument(text, now)).toEqual({ kind: 'time', at: expected })
  })

  test.each([
    ['', /written as/],
    ['noon', /written as/],
    ['14.03', /written as/],
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

  test('an hour that the clocks leave out does not exist', () => {
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

describe('a question', () => {
  test('by `at` means a minute before and behind', () => {
    expect(parseLedgerQuery({ device: 'truck-7', at: '14:03' }, now)).toEqual({
      kind: 'question',
      question: {
        device: 'truck-7',
        from: at(2026, 11, 21, 14, 2),
        to: at(2026, 11, 21, 14, 4),
        limit: 100,
      },
    })
  })

  test('is bounded, and goes on where an answer said', () => {
    expect(parseLedgerQuery({ limit: '1000000', after: '17.3' }, now)).toEqual({
      kind: 'question',
      question: { limit: 10_000, after: { number: 17, index: 3 } },
    })
  })

  test.each([
    [{ vehicle: 'x' }, /not asked by "vehicle"/],
    [{ device: '' }, /device is empty/],
    [{ payload: 'x'.repeat(5000) }, /too long/],
    [{ at: '14:03', from: '14:00' }, /Both/],
    [{ from: '14:03', to: '14:00' }, /later/],
    [{ to: 'noon' }, /to is no time/],
    [{ outcome: 'lost' }, /no outcome "lost"/],
    [{ limit: '0' }, /limit/],
    [{ limit: '-1' }, /limit/],
    [{ after: '7' }, /after/],
  ])('%j is refused in words', (words, what) => {
    expect(parseLedgerQuery(words, now)).toMatchObject({
      kind: 'invalid',
      what: expect.stringMatching(what) as string,
      act: expect.stringMatching(/--help/) as string,
    })
  })
})
