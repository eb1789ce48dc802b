// The parameters of a ledger query, from the command line or a URL.

import { describe, expect, test } from 'vitest'
import { parseLedgerQuery } from '../../src/ledger/ledger-query.ts'

/** Saturday, 9:30 local time. */
const now = new Date(2026, 10, 21, 9, 30).getTime()
const at = (...parts: [number, number, number, number?, number?, number?, number?]) =>
  new Date(parts[0], parts[1] - 1, parts[2], ...parts.slice(3)).getTime()

describe('the parameters of a ledger query', () => {
  test('`at` selects one minute before and after', () => {
    expect(parseLedgerQuery({ device: 'truck-7', at: '14:03' }, now)).toEqual({
      kind: 'query',
      query: {
        device: 'truck-7',
        from: at(2026, 11, 21, 14, 2),
        to: at(2026, 11, 21, 14, 4),
        limit: 100,
      },
    })
  })

  test('limit the answer and continue behind a cursor', () => {
    expect(parseLedgerQuery({ limit: '1000000', after: '17.3' }, now)).toEqual({
      kind: 'query',
      query: { limit: 10_000, after: { number: 17, index: 3 } },
    })
  })

  test.each([
    [{ vehicle: 'x' }, /Unknown parameter "vehicle"/],
    [{ device: '' }, /device is empty/],
    [{ payload: 'x'.repeat(5000) }, /too long/],
    [{ at: '14:03', from: '14:00' }, /Both/],
    [{ from: '14:03', to: '14:00' }, /later/],
    [{ to: 'noon' }, /to is not a time/],
    [{ outcome: 'lost' }, /no outcome "lost"/],
    [{ limit: '0' }, /limit/],
    [{ limit: '-1' }, /limit/],
    [{ after: '7' }, /after/],
  ])('%j is refused with a reason', (params, what) => {
    expect(parseLedgerQuery(params, now)).toMatchObject({
      kind: 'invalid',
      what: expect.stringMatching(what) as string,
      act: expect.stringMatching(/--help/) as string,
    })
  })
})
