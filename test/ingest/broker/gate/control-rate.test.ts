import { expect, test } from 'vitest'
import { createControlRate } from '../../../../src/ingest/broker/gate/control-rate.ts'
import { createFakeClock } from '../../../support/fake-clock.ts'

function open() {
  const clock = createFakeClock()
  return { clock, rate: createControlRate(clock, { controlPacketsPerSecondMax: 100 }) }
}

test('a client may send the packets of five seconds at once, and then its rate', async () => {
  const { clock, rate } = open()
  expect(rate.take(500, 0)).toBe(true)
  expect(rate.take(1, 0)).toBe(false)
  await clock.advance(1000)
  expect(rate.take(99, 0)).toBe(true)
  expect(rate.take(1, 0)).toBe(false)
})

test('one PUBREL for each message of QoS 2 is free, and others are not', () => {
  const { rate } = open()
  rate.expectReleases(3000)
  expect(rate.take(0, 3000)).toBe(true)
  expect(rate.take(0, 500)).toBe(true)
  expect(rate.take(0, 1)).toBe(false)
})
