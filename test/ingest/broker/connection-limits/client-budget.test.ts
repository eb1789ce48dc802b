import { describe, expect, test } from 'vitest'
import { createFakeClock } from '../../../support/fake-clock.ts'
import { eventually } from '../../../support/eventually.ts'
import { openIngest, type IngestWorld } from '../../../support/ingest-world.ts'
import { createMemoryIntakeSpool } from '../../../support/memory-intake-spool.ts'
import { publishBytes } from '../../../support/mqtt-device.ts'

describe('a client that sends more than its rate', () => {
  const received = (world: IngestWorld) => world.ingest.counters().received

  test.each([0, 1, 2] as const)('with QoS %i is read later; another client is not affected', async (qos) => {
    const clock = createFakeClock()
    const spool = createMemoryIntakeSpool({ commits: 'auto' })
    await using world = await openIngest(spool, { clock, messagesPerS: 100 })
    const device = await world.device('fast')
    const burst = Array.from({ length: 250 }, (_, index) =>
      publishBytes({ topic: 't', payload: `m${index}`, qos, messageId: index + 1 }),
    )
    device.sendBytes(Buffer.concat(burst))
    await eventually(() => received(world) === 250)
    device.publish({ topic: 't', payload: 'later', qos, messageId: 1000 })
    const other = await world.device('other')
    other.publish({ topic: 't', payload: 'at once', qos: 1, messageId: 1 })
    await other.acked(1)
    // The second message of the other client comes after the one of the first client was due.
    other.publish({ topic: 't', payload: 'and again', qos: 1, messageId: 2 })
    await other.acked(2)
    expect(received(world)).toBe(252)
    expect(device.closed).toBe(false)
    await clock.advance(1499)
    other.publish({ topic: 't', payload: 'and again', qos: 1, messageId: 3 })
    await other.acked(3)
    expect(received(world)).toBe(253)
    await clock.advance(1)
    await eventually(() => received(world) === 254)
    expect(world.ingest.counters().dropped).toBe(0)
    expect([...world.ingest.counters().pausesByLimit.keys()]).toEqual(['max_messages_per_s'])
    expect(world.events).toContainEqual({
      kind: 'client_paused',
      reason: 'max_messages_per_s',
      detail: 'The limit max_messages_per_s is reached.',
      count: 1,
      top: ['fast (1)'],
    })
  })
})

describe('topics', () => {
  test.each([
    ['ä'.repeat(50), null],
    ['ä'.repeat(51), 'It published to a topic that is longer than max_topic_bytes.'],
    ['a/a/a', null],
    ['a/a/a/a', 'It published to a topic that has more levels than max_topic_levels.'],
  ])('%s', async (topic, detail) => {
    const topicLimits = { bytesMax: 100, levelsMax: 3 }
    await using world = await openIngest(createMemoryIntakeSpool({ commits: 'auto' }), { topicLimits })
    const device = await world.device('truck')
    device.publish({ topic, payload: 'x' })
    if (detail === null) await device.acked(1)
    else await device.gone()
    const drops = world.events.flatMap((event) => (event.kind === 'client_dropped' ? [event.detail] : []))
    expect(drops).toEqual(detail === null ? [] : [detail])
  })
})
