// A clock that was once far ahead: its value is newer than all that follow, and must not hide them for ever.

import { expect, test } from 'vitest'
import { messageOf, openMapperOf, sentIn, truckSource } from '../../support/mapping-world.ts'

const now = 1_760_000_000_000
const yearMs = 365 * 86_400_000
const source = truckSource({ signals: [{ type: 'DISTANCE', expr: 'odo - previous.odo' }] })

/** The differences of records, each with its time and its count; they arrive at `now`. */
function differencesOf(records: readonly (readonly [ts: number, odo: number])[], clockOffsetMs?: number) {
  const mapper = openMapperOf([source], clockOffsetMs === undefined ? {} : { clockOffsetMs })
  return records.map(([ts, odo], index) => {
    const message = messageOf({ ts, lat: 48.1, lon: 11.5, odo }, { arrivedAt: now + index * 1000 })
    return sentIn(mapper.map(message)).signals?.[0]?.value
  })
}

test('the next record of the right time takes the place of one that is years ahead', () => {
  const records = [
    [now, 100],
    [now + yearMs, 110],
    [now + 1000, 120],
    [now + 2000, 125],
  ] as const
  expect(differencesOf(records, 0)).toEqual([undefined, undefined, undefined, '5'])
})

test.each([
  ['of a device whose clock is always ahead', now + yearMs, 0],
  ['while our own time is not known', now, undefined],
  ['of records that are some hours apart', now, 0],
])('a late record still changes nothing: %s', (_name, start, clockOffsetMs) => {
  const hourMs = 3_600_000
  const records = [
    [start, 100],
    [start + 2 * hourMs, 110],
    [start + hourMs, 105],
    [start + 3 * hourMs, 120],
  ] as const
  expect(differencesOf(records, clockOffsetMs)).toEqual([undefined, '10', undefined, '10'])
})
