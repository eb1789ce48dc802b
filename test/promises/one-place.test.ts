import { describe, expect, test } from 'vitest'
import { messageOf, startPipeline, topicOf } from '../support/pipeline-world.ts'

describe('each payload in one place', () => {
  test(
    'delivered, waiting for a retry and dead always add up to the payloads taken in',
    { timeout: 60_000 },
    async () => {
      const messages = 200
      const pipeline = await startPipeline({
        sandbox: { faults: { fail: [{ rate: 0.3, error_type: 'Internal' }] } },
        sections: { delivery: 'batch: { max_payloads: 20, linger: 10ms }, errors: { default: [50ms] }' },
      })
      const device = await pipeline.device('truck-1')
      let looks = 0
      const addsUp = () => {
        looks += 1
        for (const { appended, settled, open } of pipeline.status().internals.conservation.lanes)
          expect(appended).toBe(settled + open)
      }
      for (let n = 0; n < messages; n += 1)
        device.publish({ topic: topicOf('truck-1'), payload: messageOf(n), messageId: n + 1 })
      await device.acked(messages)
      await pipeline.until(() => {
        addsUp()
        const { delivered, dead } = pipeline.status().totals
        return delivered + dead === messages
      })
      expect(looks).toBeGreaterThan(3)
      const { delivered, dead, retried } = pipeline.status().totals
      expect(retried).toBeGreaterThan(0)
      expect(dead).toBeGreaterThan(0)
      expect(pipeline.sandbox.stats().distinctPayloadIds).toBe(delivered)
      expect(pipeline.sandbox.stats().duplicatesAcrossBatches).toBe(0)
    },
  )
})
