// What is said of batches that wait: how long the oldest payload waits, also where all of a lane is in sealed batches, and
// why a batch waits.

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

test('of a batch that the service asks to send much later, no more is said than the service said', async () => {
  const pipeline = await startPipeline({
    sections: { delivery: 'batch: { linger: 20ms }, backoff: { min: 10ms, max: 100ms }' },
  })
  await pipeline.publish('truck-1', messageOf(1))
  await pipeline.until(() => pipeline.status().totals.delivered === 1)
  pipeline.sandbox.setFaults({ always: 429, retry_after: 900_000 })
  await pipeline.publish('truck-2', messageOf(2))
  await pipeline.until(() => pipeline.codes().includes('RETRY_AFTER'))
  // It accepts no other batch, either, and the batch waits for nothing else.
  expect(pipeline.condition('RETRY_AFTER')?.why).not.toMatch(/accept/)
  expect(pipeline.codes()).not.toContain('BATCHES_HELD')
})
