import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { messageOf, roundTrip, startPipeline, topicOf } from '../support/pipeline-world.ts'
import { runCli } from '../support/cli-world.ts'
import { acceptAll, failAll, startScriptedService } from '../support/scripted-service.ts'

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

test(
  'dead letters that fill the spool are sent again: nothing else makes room',
  { timeout: 90_000 },
  async () => {
    const service = await startScriptedService(failAll('Validation'))
    onTestFinished(() => service.close())
    const pipeline = await startPipeline({
      baseUrl: service.url,
      sections: {
        spool: '{ path: ./spool, max_bytes: 1MiB, min_free_bytes: 1MiB }',
        delivery: 'batch: { max_payloads: 500, linger: 20ms }, errors: { Validation: [], default: [] }',
      },
    })
    const device = await pipeline.device('truck-1')
    const hasFailed = () => pipeline.status().lanes.every(({ pending, sealed }) => pending + sealed === 0)
    const isFull = () => pipeline.status().conditions.some(({ code }) => code === 'SPOOL_FULL')
    for (let sent = 0; !(isFull() && hasFailed());) {
      expect(sent).toBeLessThan(20_000)
      for (let n = 0; n < 100 && !(n % 20 === 0 && isFull()); n += 1) {
        sent += 1
        device.publish({ topic: topicOf('truck-1'), payload: messageOf(sent), messageId: sent })
      }
      await roundTrip(device)
    }
    const { deadLetters } = pipeline.status().spool
    service.answer(acceptAll)
    const socket = join(pipeline.folder, 'spool.sock')
    const { status, stderr } = await runCli(['dead-letters', 'requeue', '--all', '--socket', socket])
    expect([stderr, status]).toEqual(['', 0])
    await pipeline.until(() => pipeline.status().totals.delivered >= deadLetters)
    await pipeline.until(() => !isFull())
  },
)
