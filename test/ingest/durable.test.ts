import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { openIngest } from '../support/ingest-world.ts'
import { openSpoolWorld } from '../support/open-spool.ts'

describe('with the real spool', () => {
  test('an acknowledged message is in a lane after reopening, and sending it again has no second effect', async () => {
    const before = await openSpoolWorld()
    const first = await openIngest(before.spool)
    const device = await first.device('truck')
    for (let id = 1; id <= 300; id += 1)
      device.publish({ topic: 't', payload: `m${id}`, messageId: id, qos: id % 2 === 0 ? 2 : 1 })
    device.publish({ topic: 't', payload: 'bad', messageId: 301 })
    await device.acked(301 + 150)
    device.destroy()
    await first.ingest.stopAccepting()
    const after = await before.reopen()
    await first.ingest.close()

    await using second = await openIngest(after.spool)
    const again = await second.device('truck')
    for (let id = 1; id <= 300; id += 1)
      again.publish({ topic: 't', payload: `m${id}`, messageId: id, qos: id % 2 === 0 ? 2 : 1, dup: true })
    again.publish({ topic: 't', payload: 'bad', messageId: 301, dup: true })
    await again.acked(301 + 150)
    expect(second.ingest.counters()).toMatchObject({ received: 301, duplicates: 301, mapped: 0, dead: 0 })
    expect(after.spool.lanes().reduce((sum, { pending }) => sum + pending, 0)).toBe(300)
  })

  test('a full spool holds acks, drops and counts QoS 0, and resumes when there is room', async () => {
    const opened = await openSpoolWorld({ changes: { bytesMax: 20_000 } })
    const { spool } = opened
    await using world = await openIngest(spool)
    const device = await world.device('truck')
    const text = (id: number) => `${id} ${createHash('sha256').update(`${id}`).digest('hex').repeat(8)}`
    for (let id = 1; id <= 100; id += 1) device.publish({ topic: 't', payload: text(id), messageId: id })
    device.publish({ topic: 't', payload: 'lost', qos: 0 })
    while (world.ingest.counters().received < 101) await new Promise(setImmediate)
    expect(opened.eventsOf('spool_held')).toMatchObject([{ reason: 'spool_full' }])
    expect(world.ingest.counters()).toMatchObject({ dropped: 1 })
    expect(world.ingest.counters().held).toBeGreaterThan(50)

    let delivered = 0
    while (device.acks.length < 100) {
      for (const lane of spool.lanes()) {
        const batch = await spool.seal(lane.id, { payloadsMax: 100, bodyBytesMax: 1024 ** 2 })
        if (batch === null) continue
        await spool.settle(batch, { payloads: 'all delivered', requestId: null })
        delivered += batch.payloads
      }
      await new Promise(setImmediate)
    }
    expect(delivered).toBeGreaterThan(50)
    expect(device.acks.map(({ messageId }) => messageId)).toEqual(
      Array.from({ length: 100 }, (_, index) => index + 1),
    )
    expect(world.ingest.counters()).toMatchObject({ received: 101, mapped: 100, dropped: 1, held: 0 })
  })
})
