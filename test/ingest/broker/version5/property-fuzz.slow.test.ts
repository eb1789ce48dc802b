import { expect, test } from 'vitest'
import { fuzzProperties } from '../../../support/mqtt5-fuzz.ts'
import { fuzzLayouts } from '../../../support/mqtt5-layout-fuzz.ts'

// `node test/hostile/run.ts --properties 1000000` makes more.
test('50,000 messages with random properties are read like mqtt-packet reads them, or are faults', () => {
  const { packets, taken, faults, compared } = fuzzProperties(50_000, 7)
  expect(packets).toBe(50_000)
  expect([taken > 10_000, compared > 10_000, faults > 5000]).toEqual([true, true, true])
}, 120_000)

test('50,000 other packets are judged by their own bytes, and the valid ones are read like mqtt-packet reads them', () => {
  const { valid, faults, compared } = fuzzLayouts(50_000, 7)
  expect([valid > 5000, faults > 5000]).toEqual([true, true])
  for (const kind of ['connect', 'subscribe', 'unsubscribe', 'disconnect', 'pubrel', 'puback'])
    expect([kind, compared[kind]! > 1000]).toEqual([kind, true])
}, 120_000)
