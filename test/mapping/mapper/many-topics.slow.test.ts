import { expect, test } from 'vitest'
import { openTrucks, truckMessages } from '../../bench/trucks.ts'

const [message] = truckMessages(1)
/** Nothing of it is mapped, which is fast. */
const noRecord = { ...message!, bytes: Buffer.from('0') }

test('100,000 topics that send in turn are looked up once each', async () => {
  const mapper = await openTrucks()
  for (let turn = 0; turn < 2; turn += 1)
    for (let index = 0; index < 100_000; index += 1)
      mapper.map({ ...noRecord, topic: `telemetry/v1/truck-${index}` })
  const { topics, devices } = mapper.counters()
  expect(topics).toEqual({ entries: 100_000, misses: 100_000, evictions: 0 })
  expect(devices).toMatchObject({ entries: 100_000, misses: 100_000, evictions: 0 })
}, 120_000)

test('topics as long as can be kept take no more room than those of usual length', async () => {
  const mapper = await openTrucks()
  for (let index = 0; index < 100_000; index += 1)
    mapper.map({ ...noRecord, topic: `telemetry/v1/${`truck-${index}-`.padEnd(243, 'x')}` })
  const { devices } = mapper.counters()
  expect(devices.entries * 2048).toBeLessThan(128 * 1024 * 1024)
}, 120_000)
