import { describe, expect, test } from 'vitest'
import { createConnectRate } from '../../../../src/ingest/broker/connection-limits/connect-rate.ts'
import { createFakeClock } from '../../../support/fake-clock.ts'

function open(connectsPerS: number, connectsPerAddressPerS: number) {
  const clock = createFakeClock()
  const rate = createConnectRate(clock, { connectsPerS, connectsPerAddressPerS })
  const taken = (key: string, times: number) =>
    Array.from({ length: times }, () => rate.take(key)).filter((limit) => limit === null).length
  return { clock, rate, taken }
}

describe('connections per second', () => {
  test('of one address: those of one second at once, then as many as its limit', async () => {
    const { clock, rate, taken } = open(1000, 10)
    expect(taken('a', 25)).toBe(10)
    expect(rate.take('a')).toBe('max_connects_per_address_per_s')
    await clock.advance(500)
    expect(taken('a', 25)).toBe(5)
    await clock.advance(60_000)
    expect(taken('a', 25)).toBe(10)
    expect(taken('b', 25)).toBe(10)
  })

  test('in all: half is left for addresses that did not connect lately', async () => {
    const { clock, rate, taken } = open(100, 90)
    taken('flood', 1)
    expect(taken('flood', 200)).toBe(49)
    expect(rate.take('flood')).toBe('max_connects_per_s')
    expect(taken('device', 1)).toBe(1)
    await clock.advance(1000)
    expect(taken('flood', 10)).toBe(10)
  })

  test('in all: a flood from ever new addresses leaves a quarter for addresses with accepted clients', () => {
    const { rate, taken: takenBy } = open(100, 90)
    rate.accepted('device')
    const taken = Array.from({ length: 50_000 }, (_, index) => rate.take(`10.${index}`))
    expect(taken.filter((limit) => limit === null)).toHaveLength(75)
    expect(rate.take('new')).toBe('max_connects_per_s')
    expect(takenBy('device', 90)).toBe(25)
  })

  test('an address is quiet again after ten seconds', async () => {
    const { clock, rate, taken } = open(10, 10)
    expect(rate.take('device')).toBeNull()
    await clock.advance(9000)
    expect(taken('other', 5) + taken('another', 5)).toBe(6)
    expect(rate.take('device')).toBe('max_connects_per_s')
    await clock.advance(10_000)
    expect(taken('other', 5) + taken('another', 5)).toBe(6)
    expect(rate.take('device')).toBeNull()
  })
})
