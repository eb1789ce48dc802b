import { describe, expect, test } from 'vitest'
import { messageOf, roundTrip, startPipeline, topicOf, type Pipeline } from '../support/pipeline-world.ts'
import { send } from '../support/ops-world.ts'

/** Fills the dead letters with messages of a device that cannot be mapped. */
async function fillUp(pipeline: Pipeline): Promise<void> {
  const broken = await pipeline.device('broken')
  for (let sent = 0; !pipeline.status().spool.deadLettersFull;) {
    for (let n = 0; n < 20; n += 1) {
      sent += 1
      broken.publish({ topic: topicOf('broken'), payload: 'x'.repeat(4000) + sent, messageId: sent })
    }
    await roundTrip(broken)
    expect(sent).toBeLessThan(2000)
  }
}

describe('full dead letters', () => {
  test('a payload that would become one waits without loss, and becomes one when there is room', async () => {
    const pipeline = await startPipeline({
      sections: {
        spool: '{ path: ./spool, max_bytes: 32MiB, min_free_bytes: 1MiB, dead_letters: { max_bytes: 1MiB } }',
        delivery: 'batch: { linger: 300ms }, errors: { Validation: [] }',
      },
      sandbox: { faults: { fail: [{ device: 'guilty', error_type: 'Validation', field: 'gps.speed' }] } },
    })
    await fillUp(pipeline)
    // Both are in one batch: the service accepts the good one, which shows that the other is at fault.
    const guilty = await pipeline.device('guilty')
    const innocent = await pipeline.device('innocent')
    guilty.publish({ topic: topicOf('guilty'), payload: messageOf(1), messageId: 1 })
    innocent.publish({ topic: topicOf('innocent'), payload: messageOf(2), messageId: 1 })
    await Promise.all([guilty.acked(1), innocent.acked(1)])
    await pipeline.until(() => pipeline.status().totals.retried === 1)
    expect(pipeline.status().totals.delivered).toBe(1)
    expect(pipeline.events.some(({ kind }) => kind === 'payload_dead_lettered')).toBe(false)
    const letters = pipeline.status().spool.deadLetters
    const other = await pipeline.device('other')
    other.publish({ topic: topicOf('other'), payload: messageOf(3), messageId: 1 })
    await pipeline.until(() => pipeline.sandbox.received({ device: 'other', limit: 1 }).length === 1)

    const purge = '/control/dead-letters/purge?stage=mapping&yes=1'
    expect((await send(pipeline.gateway.addresses.control, purge, { method: 'POST' })).status).toBe(200)
    pipeline.gateway.probe()
    // Messages of the broken device that were held meanwhile become dead letters now as well.
    const isBuried = () => pipeline.events.some(({ kind }) => kind === 'payload_dead_lettered')
    await pipeline.until(() => isBuried() && pipeline.status().totals.delivered === 2)
    expect(pipeline.status().spool.deadLetters).toBeLessThan(letters)
    expect(pipeline.sandbox.stats()).toMatchObject({ distinctPayloadIds: 2, duplicatesAcrossBatches: 0 })
    expect(pipeline.status().internals.conservation.payloads.difference).toBe(0)
  })
})
