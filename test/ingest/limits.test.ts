import { describe, expect, test } from 'vitest'
import { openIngest, type IngestWorld } from '../support/ingest-world.ts'
import { auto } from '../support/memory-intake-spool.ts'
import { publishBytes } from '../support/mqtt-device.ts'

function reasons(world: IngestWorld): string[] {
  return world.events.flatMap((event) => (event.kind === 'client_dropped' ? [event.reason] : []))
}

describe('after CONNECT', () => {
  test.each([
    ['a topic of 101 levels', publishBytes({ topic: 'a/'.repeat(100), payload: '' })],
    ['a topic of 5,000 bytes', publishBytes({ topic: 'a'.repeat(5000), payload: '' })],
    ['a topic below $SYS', publishBytes({ topic: '$SYS/x', payload: '' })],
    ['a packet beyond the limit', publishBytes({ topic: 't', payload: Buffer.alloc(1024 ** 2) })],
  ])('%s ends this connection and does not affect others', async (_what, bytes) => {
    const spool = auto()
    await using world = await openIngest(spool)
    const good = await world.device('good')
    const bad = await world.device('bad')
    bad.sendBytes(bytes)
    await bad.gone()
    expect(reasons(world)).toHaveLength(1)
    good.publish({ topic: 't', payload: 'still here' })
    await good.acked(1)
    expect(spool.payloads).toHaveLength(1)
  })

  test('the largest packet that is allowed, and the topic with most levels, arrive whole', async () => {
    const spool = auto()
    await using world = await openIngest(spool)
    const device = await world.device('truck')
    const payload = 'x'.repeat(1024 ** 2 - 2 - 1 - 2)
    device.publish({ topic: 't', payload })
    device.publish({ topic: `${'a/'.repeat(99)}a`, payload: 'x' })
    await device.acked(2)
    expect(spool.payloads[0]?.json).toContain(payload)
  })
})
