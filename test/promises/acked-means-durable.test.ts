import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createHeldStore } from '../support/held-store.ts'
import { killedCopy } from '../support/killed-copy.ts'
import { openSpoolWorld, namesIn, sealAll } from '../support/open-spool.ts'
import { messageOf, roundTrip, startPipeline, topicOf } from '../support/pipeline-world.ts'

describe('acked means durable', () => {
  test.each([1, 2] as const)(
    'no QoS %i message is acknowledged while the disk still works on it',
    async (qos) => {
      const store = createHeldStore()
      const pipeline = await startPipeline({ deps: { openStore: store.openStore } })
      onTestFinished(() => store.release())
      const device = await pipeline.device('truck-1')
      store.hold()
      device.publish({ topic: topicOf('truck-1'), payload: messageOf(1), qos, messageId: 7 })
      await roundTrip(device)
      await pipeline.until(() => store.waiting() > 0)
      await roundTrip(device)
      expect(device.acks).toEqual([])
      store.release()
      await device.acked(1)
      expect(device.acks[0]).toEqual({ cmd: qos === 1 ? 'puback' : 'pubrec', messageId: 7 })
    },
  )

  test('the disk contains the message when its ack arrives, whatever happens next', async () => {
    // The service does not run, so the messages stay in the spool.
    const pipeline = await startPipeline({ baseUrl: 'http://127.0.0.1:9' })
    const device = await pipeline.device('truck-1')
    for (let n = 0; n < 20; n += 1)
      device.publish({ topic: topicOf('truck-1'), payload: messageOf(n), messageId: n + 1 })
    await device.acked(20)
    // A copy of the files in this very moment is what a kill -9 leaves.
    const { spool } = await openSpoolWorld({ path: await killedCopy(join(pipeline.folder, 'spool')) })
    await sealAll(spool)
    const names: string[] = []
    for (const batch of spool.batches()) names.push(...(await namesIn(spool, batch)))
    expect(names).toHaveLength(20)
  })
})
