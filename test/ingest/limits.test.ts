import { describe, expect, test } from 'vitest'
import { openIngest, type IngestWorld } from '../support/ingest-world.ts'
import { auto } from '../support/memory-intake-spool.ts'
import { publishBytes } from '../support/mqtt-device.ts'
import { createRandom } from '../support/random.ts'

function reasons(world: IngestWorld): string[] {
  return world.events.flatMap((event) => (event.kind === 'client_dropped' ? [event.reason] : []))
}

describe('before CONNECT', () => {
  test('200 MB that are announced and sent are not buffered', async () => {
    await using world = await openIngest(auto())
    const before = process.memoryUsage().arrayBuffers
    const device = await world.device('truck')
    device.sendBytes(Buffer.from([0x32, 0x80, 0x84, 0xaf, 0x5f]))
    const block = Buffer.alloc(1024 ** 2)
    for (let index = 0; index < 200; index += 1) device.sendBytes(block)
    await device.gone()
    expect(reasons(world)).toEqual(['packet_too_large'])
    expect(world.ingest.counters().bytes).toBe(0)
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(32 * 1024 ** 2)
  })
})

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

  test('random bytes never crash the gateway and never affect another client', async () => {
    const spool = auto()
    await using world = await openIngest(spool)
    const good = await world.device('good')
    const samples = [
      publishBytes({ topic: 'a/b', payload: 'hello', qos: 2, messageId: 9 }),
      publishBytes({ topic: 'a/b', payload: 'hello', qos: 1, messageId: 9 }),
      Buffer.from([0x82, 8, 0, 1, 0, 3, 0x61, 0x2f, 0x62, 1]),
      Buffer.from([0xa2, 7, 0, 1, 0, 3, 0x61, 0x2f, 0x62]),
      Buffer.from([0x40, 2, 0, 1]),
      Buffer.from([0x62, 2, 0, 9]),
      Buffer.from([0xe0, 0]),
    ]
    for (let seed = 1; seed <= 150; seed += 1) {
      const random = createRandom(seed)
      const bad = await world.connection(`bad${seed}`)
      if (random.chance(0.8)) await bad.connect({ clean: random.chance(0.5) })
      const bytes = Buffer.concat(Array.from({ length: 5 }, () => random.pick(samples)))
      for (let flips = random.below(6); flips >= 0; flips -= 1)
        bytes[random.below(bytes.length)] = random.below(256)
      bad.sendBytes(bytes)
      bad.end()
      await bad.gone()
      good.publish({ topic: 't', payload: `after ${seed}`, messageId: seed })
      await good.acked(seed)
    }
    const { received, mapped, duplicates, ignored, dead, dropped, held } = world.ingest.counters()
    expect(received).toBe(mapped + duplicates + ignored + dead + dropped + held)
  })
})
