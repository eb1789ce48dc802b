import { describe, expect, onTestFinished, test } from 'vitest'
import { messageOf, roundTrip, startPipeline, topicOf } from '../support/pipeline-world.ts'
import { acceptAll, startScriptedService } from '../support/scripted-service.ts'

describe('a full spool holds acks and resumes', () => {
  test(
    'acks are held at the limit, QoS 0 is dropped and counted, and it resumes when the service is back',
    { timeout: 90_000 },
    async () => {
      const service = await startScriptedService(() => ({ status: 503 }))
      onTestFinished(() => service.close())
      const pipeline = await startPipeline({
        baseUrl: service.url,
        sections: {
          spool: '{ path: ./spool, max_bytes: 1MiB, min_free_bytes: 1MiB }',
          delivery: 'batch: { max_payloads: 50, linger: 20ms }',
        },
      })
      const device = await pipeline.device('truck-1')
      const note = 'x'.repeat(200)
      let sent = 0
      const publish = (qos: 0 | 1) => {
        sent += 1
        device.publish({
          topic: topicOf('truck-1'),
          payload: messageOf(sent, { note }),
          messageId: sent,
          qos,
        })
      }
      // The odometer and position alone are stored, so it takes some thousands.
      while (pipeline.status().conditions.every(({ code }) => code !== 'SPOOL_FULL')) {
        for (let n = 0; n < 100; n += 1) publish(1)
        await roundTrip(device)
        expect(sent).toBeLessThan(20_000)
      }
      for (let n = 0; n < 10; n += 1) publish(1)
      await roundTrip(device)
      // The last write and its acks may not have ended; after it each message is acknowledged or held.
      await pipeline.until(() => {
        const { totals, waiting } = pipeline.status()
        const { messages, acked } = totals
        return messages === acked + waiting.heldMessages && device.acks.length === acked
      })
      const ackedWhileFull = device.acks.length
      expect(ackedWhileFull).toBeLessThan(sent)
      const qos1 = sent
      for (let n = 0; n < 5; n += 1) publish(0)
      await roundTrip(device)
      expect(device.acks.length).toBe(ackedWhileFull)
      expect(pipeline.status().totals.dropped).toBe(5)
      service.answer(acceptAll)
      pipeline.gateway.probe()
      await device.acked(qos1)
      expect(device.acks.map(({ messageId }) => messageId)).toEqual(
        Array.from({ length: qos1 }, (_, n) => n + 1),
      )
      await pipeline.until(() => pipeline.status().totals.delivered === qos1)
      expect(pipeline.status().conditions.map(({ code }) => code)).not.toContain('SPOOL_FULL')
    },
  )
})
