import { describe, expect, onTestFinished, test } from 'vitest'
import { join } from 'node:path'
import { openLevelStore, type StoreOp } from '../../src/storage/storage.ts'
import { newFolder } from '../support/folders.ts'
import { messageOf, startPipeline, topicOf } from '../support/pipeline-world.ts'
import { acceptAll, startScriptedService, type Reply } from '../support/scripted-service.ts'

async function scriptedService() {
  const service = await startScriptedService()
  onTestFinished(() => service.close())
  return service
}

describe('same batch, same bytes', () => {
  test(
    'a batch is sent again byte for byte, with a new signature, until the service has answered',
    { timeout: 60_000 },
    async () => {
      const service = await scriptedService()
      const faults: Reply[] = ['reset', { status: 500 }, { status: 200, body: 'not an answer' }]
      service.answer((request, index) => faults[index] ?? acceptAll(request))
      const pipeline = await startPipeline({
        baseUrl: service.url,
        sections: { delivery: 'batch: { linger: 20ms }, backoff: { min: 10ms, max: 50ms }' },
      })
      const device = await pipeline.device('truck-1')
      for (let n = 0; n < 5; n += 1)
        device.publish({ topic: topicOf('truck-1'), payload: messageOf(n), messageId: n + 1 })
      await device.acked(5)
      await pipeline.until(() => pipeline.status().totals.delivered === 5)
      const [first, ...again] = service.received
      const same = again.filter(({ batchId }) => batchId === first?.batchId)
      expect(same.length).toBeGreaterThan(0)
      for (const request of same) {
        expect(request.body.equals(first?.body ?? Buffer.alloc(0))).toBe(true)
        expect(request.headers.authorization).not.toBe(first?.headers.authorization)
      }
      // Each payload was sent under one batchId only.
      const under = new Map<string, Set<string>>()
      for (const { batchId, payloadIds } of service.received) {
        for (const id of payloadIds) under.set(id, (under.get(id) ?? new Set()).add(batchId))
      }
      expect([...under.values()].map(({ size }) => size)).toEqual([1, 1, 1, 1, 1])
    },
  )

  test('one of whose key a bit has flipped on the disk gives its batchId to no other payloads', async () => {
    const folder = await newFolder()
    const service = await scriptedService()
    service.answer(() => 'hang')
    const first = await startPipeline({
      baseUrl: service.url,
      folder,
      sections: { ops: '{ listen: "127.0.0.1:0", stop_deadline: 1s }' },
    })
    await first.publish('truck-1', messageOf(1), messageOf(2))
    await first.until(() => service.received.length > 0)
    await first.gateway.stop('the disk ages')
    const store = await openLevelStore(join(folder, 'spool/store'))
    for await (const page of store.pages({ gte: Buffer.from([0x11]), lt: Buffer.from([0x12]) }))
      for (const [key, value] of page) {
        const flipped = Buffer.from(key)
        flipped[flipped.length - 1]! ^= 8
        const ops: StoreOp[] = [
          { type: 'del', key },
          { type: 'put', key: flipped, value },
        ]
        await store.write(ops, { sync: true })
      }
    await store.close()

    const before = new Map(service.received.map(({ batchId, payloadIds }) => [batchId, payloadIds]))
    service.answer(acceptAll)
    const next = await startPipeline({ baseUrl: service.url, folder })
    await next.until(() => next.status().totals.delivered === 2)
    for (const { batchId, payloadIds } of service.received)
      expect(before.get(batchId) ?? payloadIds).toEqual(payloadIds)
    expect(next.codes()).toContain('RECORD_DAMAGED')
  })

  test('a batch that was in flight when the gateway ended is sent first after the start, unchanged', async () => {
    const folder = await newFolder()
    const service = await scriptedService()
    service.answer(() => 'hang')
    const pipeline = await startPipeline({
      baseUrl: service.url,
      folder,
      sections: { ops: '{ listen: "127.0.0.1:0", stop_deadline: 1s }' },
    })
    const device = await pipeline.device('truck-1')
    device.publish({ topic: topicOf('truck-1'), payload: messageOf(1), messageId: 1 })
    await device.acked(1)
    await pipeline.until(() => service.received.length === 1)
    await pipeline.gateway.stop('the test restarts it')
    service.answer(acceptAll)
    const next = await startPipeline({ baseUrl: service.url, folder })
    await next.until(() => next.status().totals.delivered === 1)
    const [before, after] = service.received
    expect(after?.batchId).toBe(before?.batchId)
    expect(after?.body.equals(before?.body ?? Buffer.alloc(0))).toBe(true)
  })
})
