import { describe, expect, test } from 'vitest'
import { createFakeClock } from '../../../support/fake-clock.ts'
import { eventually } from '../../../support/eventually.ts'
import type { IntakeMapper } from '../../../../src/ingest/types.ts'
import { openIngest, wordMapper, type IngestWorld } from '../../../support/ingest-world.ts'
import { auto } from '../../../support/memory-intake-spool.ts'
import { publishBytes } from '../../../support/mqtt-device.ts'

describe('a client that sends more than its rate', () => {
  const received = (world: IngestWorld) => world.ingest.counters().received

  test.each([0, 1, 2] as const)('with QoS %i is read later; another client is not affected', async (qos) => {
    const clock = createFakeClock()
    const spool = auto()
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

describe('clients whose messages take long', () => {
  const clients = 40
  const each = 20

  /** A message takes as many milliseconds as its text says. The mapper is the only thread. */
  async function openSlow() {
    const hand = createFakeClock()
    let spentMs = 0
    const mapped: string[] = []
    const mapper: IntakeMapper = {
      ...wordMapper,
      map(message) {
        spentMs += Number(message.bytes.toString())
        mapped.push(message.sender.clientId)
        return wordMapper.map(message)
      },
    }
    const clock = { ...hand, monotonic: () => hand.monotonic() + spentMs }
    const world = await openIngest(auto(), { clock, mapper })
    const send = async (clientId: string, texts: readonly string[]) => {
      const device = await world.device(clientId)
      const bytes = texts.map((text, n) => publishBytes({ topic: `t/${n}`, payload: text, messageId: n + 1 }))
      device.sendBytes(Buffer.concat(bytes))
      return device
    }
    const slow = await Promise.all(
      Array.from({ length: clients }, (_, n) =>
        send(
          `slow-${n}`,
          Array.from({ length: each }, () => '30'),
        ),
      ),
    )
    await eventually(() => mapped.length === clients)
    return { world, hand, mapped, send, slow }
  }

  test('are read one message at a time, in turns that leave half of the time to others', async () => {
    const { world, hand, mapped, send, slow } = await openSlow()
    await using _world = world
    const usual = await send(
      'usual',
      Array.from({ length: 200 }, () => '0.01'),
    )
    await usual.acked(200)
    // No time has passed for others, so nobody of the slow ones has had a turn.
    expect(mapped.filter((name) => name !== 'usual')).toHaveLength(clients)
    await hand.advance(1000)
    await eventually(() => mapped.length >= 200 + clients + 30)
    await hand.advance(0)
    // Each turn takes 30 ms and is followed by as many for others.
    expect(mapped.length).toBeLessThanOrEqual(200 + clients + 34)
    const turns = slow.map((_, n) => mapped.filter((name) => name === `slow-${n}`).length)
    expect(Math.max(...turns) - Math.min(...turns)).toBeLessThanOrEqual(1)
    // A client that waited once or twice may have been unlucky.
    expect(world.events.map(({ kind }) => kind)).not.toContain('client_paused')
    for (let second = 0; second < 8; second += 1) await hand.advance(1000)
    await eventually(() => world.events.some(({ kind }) => kind === 'client_paused'))
    expect(world.events).toContainEqual(
      expect.objectContaining({ kind: 'client_paused', reason: 'mapping_time' }),
    )
    expect(world.ingest.counters().dropped).toBe(0)
  })

  test('are no reason for one with a slow message now and then to wait', async () => {
    const { world, hand, send } = await openSlow()
    await using _world = world
    await hand.advance(500)
    const unlucky = await send('unlucky', ['10', '0.01', '5', '0.01'])
    await unlucky.acked(4)
    expect(JSON.stringify(world.events.filter(({ kind }) => kind === 'client_paused'))).not.toContain(
      'unlucky',
    )
  })

  test('are not what a client is said to send whose usual messages wait after a start', async () => {
    const { world, hand, send } = await openSlow()
    await using _world = world
    const backlog = await send(
      'backlog',
      Array.from({ length: 400 }, () => '0.4'),
    )
    for (let second = 0; second < 12; second += 1) await hand.advance(1000)
    await backlog.acked(100)
    const paused = JSON.stringify(world.events.filter(({ kind }) => kind === 'client_paused'))
    expect(paused).toContain('slow-')
    expect(paused).not.toContain('backlog')
  })

  test('wait behind one that took less lately', async () => {
    const { world, hand, mapped, send } = await openSlow()
    await using _world = world
    await hand.advance(1000)
    const later = await send('later', ['26', '0.01'])
    await later.acked(1)
    const before = mapped.length
    await hand.advance(200)
    await later.acked(2)
    expect(mapped.lastIndexOf('later') - before).toBeLessThanOrEqual(1)
  })
})
