// What a device sends in the place of an odometer that it does not know never becomes the odometer of the vehicle:
// not as the first reading, not by repetition, and not over a restart.

import { expect, test } from 'vitest'
import { startPipeline, topicOf, type Pipeline } from '../support/pipeline-world.ts'

const minuteMs = 60_000
const startMs = Date.now() - 3 * 86_400_000

async function publish(
  pipeline: Pipeline,
  readings: readonly (readonly [minutes: number, odometer: number])[],
) {
  const device = await pipeline.device('car-7')
  readings.forEach(([minutes, odometer], index) => {
    const payload = JSON.stringify({ ts: startMs + minutes * minuteMs, lat: 52.5, lon: 13.4, odometer })
    device.publish({ topic: topicOf('car-7'), payload, messageId: index + 1 })
  })
  await device.acked(readings.length)
  device.destroy()
}

/** The odometers that the service has, in the order of their times. */
function odometersOf({ sandbox }: Pipeline): (string | undefined)[] {
  return sandbox
    .received({ limit: 10_000 })
    .map(({ payload }) => ({ at: Number(payload['signalTimestamp']), signals: payload['signals'] }))
    .sort((one, other) => one.at - other.at)
    .map(({ signals }) => (signals as { value: string }[] | undefined)?.[0]?.value)
}

test('a car that sleeps and sends 0 every five minutes keeps its odometer', async () => {
  const pipeline = await startPipeline()
  const zeros = Array.from({ length: 300 }, (_, index) => [10 + index * 5, 0] as const)
  await publish(pipeline, [[0, 16_777.215], [5, 48_212], ...zeros.slice(0, 150)])
  await pipeline.until(() => pipeline.status().totals.delivered === 152)
  await pipeline.gateway.stop('the test restarts it')
  const next = await startPipeline({ folder: pipeline.folder })
  await publish(next, [...zeros.slice(150), [1600, 48_212], [1605, 48_213]])
  await next.until(() => next.status().totals.delivered === 152)
  const sent = [...odometersOf(pipeline), ...odometersOf(next)]
  expect(sent).toHaveLength(304)
  expect(sent.filter((value) => value !== undefined)).toEqual(['48212', '48212', '48213'])
  expect(next.events.map(({ kind }) => kind)).not.toContain('odometer_reset')
}, 30_000)
