// How long the oldest payload waits is known while all of a lane is in sealed batches.

import { expect, test } from 'vitest'
import { messageOf, startPipeline, topicOf } from '../support/pipeline-world.ts'

test('a lane whose payloads are all sealed says when the oldest of them was stored', async () => {
  const pipeline = await startPipeline({
    baseUrl: 'http://127.0.0.1:9',
    sections: { delivery: 'batch: { max_payloads: 1, linger: 0s }' },
  })
  const from = Date.now()
  const device = await pipeline.device('truck-1')
  device.publish({ topic: topicOf('truck-1'), payload: messageOf(1), messageId: 1 })
  const lane = () => pipeline.status().lanes[0]
  await pipeline.until(() => lane()?.sealed === 1 && lane()?.pending === 0)
  const oldestAt = Date.parse(lane()?.oldestAt ?? '')
  expect(oldestAt).toBeGreaterThanOrEqual(from)
  expect(oldestAt).toBeLessThanOrEqual(Date.now())
})
