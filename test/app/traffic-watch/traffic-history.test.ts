import { describe, expect, test } from 'vitest'
import { createTrafficHistory } from '../../../src/app/traffic-watch/traffic-history.ts'

const minute = 60_000
const hour = 60 * minute
/** Local time, as the machine of the test has it: 2026-06-01 is a Monday. */
const at = (day: number, hours = 0) => new Date(2026, 5, day, hours).getTime()

/** A depot that works from 6 to 18 h on working days, a message a minute. */
function depotUntil(lastDay: number) {
  const history = createTrafficHistory(null, at(1, 6))
  for (let day = 1; day <= lastDay; day += 1) {
    const weekday = new Date(at(day)).getDay()
    if (weekday === 0 || weekday === 6) continue
    history.addGaps(720, minute)
    const pauseFrom = weekday === 1 ? at(day - 3, 18) : at(day - 1, 18)
    if (day > 1) history.addPause(pauseFrom, at(day, 6))
  }
  return history
}

describe('the usual pause', () => {
  test('is not known before five gaps', () => {
    const history = createTrafficHistory(null, 0)
    history.addGaps(4, minute)
    expect(history.usualPause(hour)).toBeNull()
    history.addGaps(1, minute)
    expect(history.usualPause(hour)?.basis).toBe('median')
  })

  test.each([
    [50, 30_000],
    [1000, 30_000],
    [minute, 10 * minute],
    [hour, 10 * hour],
  ])('of messages every %i ms is %i ms in the first days', (gapMs, usualMs) => {
    const history = createTrafficHistory(null, at(1))
    history.addGaps(100, gapMs)
    history.addGaps(3, 100 * gapMs)
    history.addPause(at(1), at(2))
    const usual = history.usualPause(at(3, 23))!
    expect(usual.basis).toBe('median')
    // Gaps are counted by size, four sizes for each doubling.
    expect(usual.ms / usualMs).toBeGreaterThan(usualMs === 30_000 ? 0.99 : 0.85)
    expect(usual.ms / usualMs).toBeLessThan(1.15)
  })

  test('of a depot follows the weekday: the weekend is no fault, a silent Tuesday is one', () => {
    const history = depotUntil(19)
    // Tuesday: the night. Sunday: up to its end. Monday: the whole weekend.
    expect(history.usualPause(at(16, 12))).toEqual({ ms: 12 * hour, basis: 'days' })
    expect(history.usualPause(at(21, 12))).toEqual({ ms: 54 * hour, basis: 'days' })
    expect(history.usualPause(at(22, 5))).toEqual({ ms: 60 * hour, basis: 'days' })
  })

  test('of a weekday without history is that of days alike', () => {
    const history = createTrafficHistory(null, at(1, 6))
    history.addGaps(100, minute)
    for (const day of [2, 3]) history.addPause(at(day - 1, 18), at(day, 6))
    expect(history.usualPause(at(4, 12))).toEqual({ ms: 12 * hour, basis: 'days' })
    expect(history.usualPause(at(6, 12))).toEqual({ ms: 12 * hour, basis: 'days' })
  })

  test('forgets days after two weeks, and survives as JSON', () => {
    const history = depotUntil(19)
    history.addPause(at(19, 18), at(22, 6))
    const again = createTrafficHistory(JSON.parse(JSON.stringify(history.record())), at(22))
    expect(again.usualPause(at(23, 12))).toEqual(history.usualPause(at(23, 12)))
    expect(history.record().days.length).toBeLessThanOrEqual(16)
    expect(history.usualPause(at(60, 12))?.basis).toBe('median')
  })

  test.each([null, 'x', 7, {}, { firstAt: 'x' }, { firstAt: 1, gaps: [-1], days: [] }])(
    'is learned again where the file has %j',
    (stored) => expect(createTrafficHistory(stored, 0).usualPause(0)).toBeNull(),
  )
})
