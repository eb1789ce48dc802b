import { expect, test } from 'vitest'
import { createBatchPlaces } from '../../../src/delivery/provider-pipeline/batch-places.ts'

const share = { shareMax: 0.5 }

test('a batch that was accepted gives its place back, for as many settles as there are places', () => {
  const places = createBatchPlaces(() => 2, share)
  const first = [places.take(false), places.take(true)]
  expect(places.full()).toBe(true)
  expect(places.mayBackfill()).toBe(false)
  expect(first.map((place) => place.accepted())).toEqual([true, true])
  expect(places.mayBackfill()).toBe(true)
  const second = [places.take(false), places.take(false)]
  expect(second[0]?.accepted()).toBe(false)
  expect([places.taken(), places.settling()]).toEqual([2, 2])
  first[0]?.leave()
  expect(second[0]?.accepted()).toBe(true)
  expect(second[0]?.accepted()).toBe(false)
  for (const place of [first[1], ...second]) place?.leave()
  expect([places.taken(), places.settling()]).toEqual([0, 0])
})

test('one place alone is kept until its batch is settled', () => {
  const places = createBatchPlaces(() => 1, share)
  const place = places.take(false)
  expect(place.accepted()).toBe(false)
  expect(places.full()).toBe(true)
  place.leave()
  expect([places.full(), places.taken(), places.settling()]).toEqual([false, 0, 0])
})

test('with one place the next batch waits for the settle, also where there were more before', () => {
  let limit = 4
  const places = createBatchPlaces(() => limit, share)
  const [one, other] = [places.take(false), places.take(false)]
  expect(one.accepted()).toBe(true)
  limit = 1
  expect(other.accepted()).toBe(false)
  expect(places.full()).toBe(true)
  other.leave()
  expect(places.full()).toBe(false)
  one.leave()
  expect([places.taken(), places.settling()]).toEqual([0, 0])
})
