// Differences to the record before (`previous`) of a device whose quarantined messages are being released.

import { expect, test } from 'vitest'
import { openKeptWorld, position, topicOf } from '../../support/kept-world.ts'
import { truckSource } from '../../support/mapping-world.ts'

const device = 'truck-1'
const odometer = (n: number) => ({ ...position(n), odo: 1000 + n })

test('a difference spans the messages that were kept behind those in quarantine', async () => {
  const signals = [
    { type: 'OBD_LIFETIME_ODOMETER', path: 'odo', unit: 'km' },
    { type: 'DISTANCE', expr: 'odo - previous.odo', unit: 'km' },
  ]
  const kept = await openKeptWorld({ sources: [truckSource({ signals })], listed: [device] })
  await kept.publish(topicOf(device), odometer(0))
  await kept.change({ listed: ['another'] })
  await Promise.all(Array.from({ length: 350 }, (_, n) => kept.publish(topicOf(device), odometer(1 + n))))
  await kept.change({ listed: [device] })
  const during = Array.from({ length: 50 }, (_, n) => kept.publish(topicOf(device), odometer(351 + n)))
  await Promise.all(during)
  await kept.release.idle()
  // Some of those that came during the release were kept behind the others.
  expect(kept.release.counters().released).toBeGreaterThan(350)
  for (const n of [401, 402]) await kept.publish(topicOf(device), odometer(n))
  const sent = await kept.sent()
  expect(sent).toHaveLength(403)
  const distances = sent.flatMap(({ payload }) =>
    (payload['signals'] as { type: string; value: string }[]).filter(({ type }) => type === 'DISTANCE'),
  )
  // The sum of what was sent is the difference of the counter.
  expect(distances.reduce((sum, { value }) => sum + Number(value), 0)).toBe(402)
})
