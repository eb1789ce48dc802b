import { describe, expect, test } from 'vitest'
import { messageOf, startMs, startPipeline, topicOf, type Pipeline } from '../support/pipeline-world.ts'

const messages = 300

async function publishAll(pipeline: Pipeline, name: string): Promise<void> {
  const device = await pipeline.device(name)
  for (let n = 0; n < messages; n += 1)
    device.publish({ topic: topicOf(name), payload: messageOf(n), messageId: n + 1 })
  await device.acked(messages)
}

describe('nothing lost', () => {
  test(
    'every acknowledged message arrives once, through a service that fails in every way it can',
    { timeout: 120_000 },
    async () => {
      const pipeline = await startPipeline({
        sandbox: {
          faults: {
            status: { '500': 0.2 },
            after_commit: { cut: 0.1 },
            fail: [{ rate: 0.05, error_type: 'Internal' }],
          },
        },
        sections: {
          delivery:
            'batch: { max_payloads: 25, linger: 20ms }, errors: { default: [100ms, 200ms, 500ms, 1s, 1s, 1s] }',
        },
      })
      await publishAll(pipeline, 'truck-1')
      await pipeline.until(() => pipeline.status().totals.delivered === messages)
      expect(pipeline.sandbox.stats()).toMatchObject({
        distinctPayloadIds: messages,
        duplicatesAcrossBatches: 0,
        repeatsWithOtherBytes: 0,
      })
      expect(pipeline.status().lanes.every(({ pending, sealed }) => pending + sealed === 0)).toBe(true)
    },
  )

  test('position, time and odometer arrive as they were measured', async () => {
    const pipeline = await startPipeline()
    const device = await pipeline.device('truck-9')
    device.publish({ topic: topicOf('truck-9'), payload: messageOf(8), messageId: 1 })
    await device.acked(1)
    await pipeline.until(() => pipeline.sandbox.stats().payloadsAccepted === 1)
    const [received] = pipeline.sandbox.received({ device: 'truck-9', limit: 1 })
    expect(received?.payload).toMatchObject({
      carrier: 'ACME',
      signalTimestamp: startMs + 8,
      deviceIdentifier: { id: 'truck-9' },
      gps: { latitude: 52.5008, longitude: 13.4 },
      signals: [{ type: 'OBD_LIFETIME_ODOMETER', value: '1001', valueUnit: 'KILOMETERS' }],
    })
  })

  test('a message that is sent again with DUP has one effect, also after a restart', async () => {
    const pipeline = await startPipeline()
    const device = await pipeline.device('truck-1')
    device.publish({ topic: topicOf('truck-1'), payload: messageOf(1), messageId: 1 })
    await device.acked(1)
    await pipeline.gateway.stop('the test restarts it')
    const next = await startPipeline({ folder: pipeline.folder })
    const again = await next.device('truck-1')
    again.publish({ topic: topicOf('truck-1'), payload: messageOf(1), messageId: 1, dup: true })
    again.publish({ topic: topicOf('truck-1'), payload: messageOf(2), messageId: 2 })
    await again.acked(2)
    const accepted = () => pipeline.sandbox.stats().payloadsAccepted + next.sandbox.stats().payloadsAccepted
    await next.until(() => accepted() >= 2)
    expect(next.status().totals).toMatchObject({ duplicates: 1 })
    const all = [...pipeline.sandbox.received({ limit: 10 }), ...next.sandbox.received({ limit: 10 })]
    const times = new Set(all.map(({ payload }) => payload['signalTimestamp']))
    expect(all).toHaveLength(2)
    expect(times).toEqual(new Set([startMs + 1, startMs + 2]))
  })
})
