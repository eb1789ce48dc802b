// Which deliveries are put into another order, and which delivery tags are acknowledged then.

import type { ConsumeMessage } from 'amqplib'
import { describe, expect, test } from 'vitest'
import { createRedeliveredOrder } from '../../../src/ingest/amqp/queue-link/redelivered-order.ts'
import { createFakeClock } from '../../support/fake-clock.ts'

type Sent = { time: number | null; key?: string; redelivered?: boolean }

function createWorld({ keptMax = 100, firstTag = 1 } = {}) {
  const clock = createFakeClock()
  const handed: { text: string; position: number }[] = []
  const hand = ({ content, fields }: ConsumeMessage) =>
    handed.push({ text: content.toString(), position: fields.deliveryTag })
  const order = createRedeliveredOrder(clock, keptMax, (deliveries) => deliveries.forEach(hand))
  let tag = firstTag - 1
  const deliver = (text: string, { time, key = 'truck', redelivered = true }: Sent) => {
    tag += 1
    const delivery = {
      fields: { deliveryTag: tag, redelivered, routingKey: key },
      properties: { headers: time === null ? {} : { timestamp_in_ms: time } },
      content: Buffer.from(text),
    } as ConsumeMessage
    if (!order.keeps(delivery)) hand(delivery)
  }
  return {
    clock,
    order,
    deliver,
    texts: () => handed.map(({ text }) => text).join(' '),
    positions: () => handed.map(({ position }) => position),
  }
}

describe('the order of messages that were delivered before', () => {
  test('what was stored earlier and came back later is put first', () => {
    const { deliver, texts, positions } = createWorld()
    for (const [text, time] of [
      ['d', 4],
      ['e', 5],
      ['a', 1],
      ['b', 2],
      ['c', 3],
    ] as const)
      deliver(text, { time })
    expect(texts()).toBe('')
    deliver('f', { time: 6, redelivered: false })
    expect(texts()).toBe('a b c d e f')
    expect(positions()).toEqual([1, 2, 3, 4, 5, 6])
  })

  test('what another gateway had taken behind both stays behind both', () => {
    const { deliver, texts } = createWorld()
    const sent = [
      ['d', 4],
      ['e', 5],
      ['a', 1],
      ['b', 2],
      ['c', 3],
      ['f', 6],
      ['g', 7],
    ] as const
    for (const [text, time] of sent) deliver(text, { time })
    deliver('h', { time: 8, redelivered: false })
    expect(texts()).toBe('a b c d e f g h')
  })

  test('more than two parts', () => {
    const { deliver, texts } = createWorld()
    for (const [text, time] of [
      ['e', 5],
      ['c', 3],
      ['d', 4],
      ['a', 1],
      ['b', 2],
    ] as const)
      deliver(text, { time })
    deliver('f', { time: 6, redelivered: false })
    expect(texts()).toBe('a b c d e f')
  })

  test.each([
    {
      what: 'at the cut',
      sent: [
        ['c', 2],
        ['d', 3],
        ['a', 1],
        ['b', 2],
      ],
    },
    {
      what: 'at the end of what was given back',
      sent: [
        ['b', 2],
        ['c', 3],
        ['a', 1],
        ['d', 3],
      ],
    },
    {
      what: 'within a part',
      sent: [
        ['c', 2],
        ['d', 2],
        ['a', 1],
        ['b', 1],
      ],
    },
  ] as const)('equal times: $what', ({ sent }) => {
    const { deliver, texts } = createWorld()
    for (const [text, time] of sent) deliver(text, { time })
    deliver('e', { time: 9, redelivered: false })
    expect(texts()).toBe('a b c d e')
  })

  test.each([
    {
      what: 'a message of its routing key without a stored time',
      sent: [{ time: 2 }, { time: null }, { time: 1 }],
    },
    { what: 'no step back', sent: [{ time: 1 }, { time: 2 }, { time: 2 }] },
    {
      what: 'a step back between routing keys only',
      sent: [
        { time: 9, key: 'truck-1' },
        { time: 1, key: 'truck-2' },
        { time: 2, key: 'truck-2' },
      ],
    },
  ] satisfies { what: string; sent: Sent[] }[])('the order stays: $what', ({ sent }) => {
    const { deliver, order, texts } = createWorld()
    sent.forEach((one, index) => deliver(String(index), one))
    deliver('last', { time: 10, redelivered: false })
    expect(texts()).toBe([...sent.keys(), 'last'].join(' '))
    expect(order.acknowledge(2)).toEqual({ single: [], upTo: 2 })
  })

  test('each routing key has its own order, in its own places', () => {
    const { deliver, texts } = createWorld()
    const sent = [
      ['c1', 30, 'truck-1'],
      ['c2', 31, 'truck-2'],
      ['x', 32, 'truck-3'],
      ['a1', 11, 'truck-1'],
      ['a2', 12, 'truck-2'],
    ] as const
    for (const [text, time, key] of sent) deliver(text, { time, key })
    deliver('z', { time: 40, redelivered: false })
    expect(texts()).toBe('a1 a2 x c1 c2 z')
  })

  test('without a new message they are handed over after a second of silence', async () => {
    const { clock, deliver, texts } = createWorld()
    deliver('b', { time: 2 })
    await clock.advance(900)
    deliver('a', { time: 1 })
    await clock.advance(900)
    expect(texts()).toBe('')
    await clock.advance(100)
    expect(texts()).toBe('a b')
    deliver('c', { time: 3, redelivered: false })
    expect(texts()).toBe('a b c')
  })

  test('at most as many are kept as RabbitMQ sends without an acknowledgement', () => {
    const { deliver, texts } = createWorld({ keptMax: 2 })
    deliver('b', { time: 2 })
    deliver('a', { time: 1 })
    expect(texts()).toBe('a b')
  })

  test('what is dropped is not handed over', async () => {
    const { clock, deliver, order, texts } = createWorld()
    deliver('b', { time: 2 })
    order.drop()
    await clock.advance(10_000)
    expect(texts()).toBe('')
  })

  test('every position is acknowledged once, by its delivery tag', () => {
    const { deliver, order } = createWorld({ firstTag: 1 })
    deliver('0', { time: 0, redelivered: false })
    // Tags 2 to 6; positions 2 and 3 are tags 5 and 6.
    for (const time of [3, 4, 5, 1, 2]) deliver(String(time), { time })
    deliver('6', { time: 6, redelivered: false })
    deliver('7', { time: 7, redelivered: false })
    expect([2, 3, 4, 5, 6, 7].map(order.tagOf)).toEqual([5, 6, 2, 3, 4, 7])
    expect(order.acknowledge(2)).toEqual({ single: [5], upTo: 1 })
    expect(order.acknowledge(2)).toEqual({ single: [], upTo: null })
    expect(order.acknowledge(4)).toEqual({ single: [2, 6], upTo: null })
    expect(order.acknowledge(7)).toEqual({ single: [], upTo: 7 })
    expect(order.acknowledge(8)).toEqual({ single: [], upTo: 8 })
  })
})
