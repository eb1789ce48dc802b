import { describe, expect, test } from 'vitest'
import { QueueDepths, type QueueTakes } from '../../../src/ingest/amqp/queue-topology/queue-depths.ts'
import { removedBetween, type Waiting } from '../../../src/ingest/jetstream/partition-backlogs.ts'
import { EngineLosses } from '../../../src/ingest/message-sources/engine-losses.ts'
import { SourceRisks } from '../../../src/ingest/message-sources/source-risks.ts'
import { createFakeClock } from '../../support/fake-clock.ts'

describe('messages that RabbitMQ removed', () => {
  const consumer = {}
  const takes = (more: Partial<QueueTakes> = {}): QueueTakes => ({
    consumer,
    deliveries: 0,
    open: 5,
    idles: 0,
    ...more,
  })
  const closed = takes({ consumer: null, open: 0 })
  type Answer = [messages: number, consumers: number, takes: QueueTakes]

  test.each<[string, number, Answer[]]>([
    [
      'is what the deliveries do not explain',
      60,
      [
        [100, 1, takes()],
        [10, 1, takes({ deliveries: 30 })],
      ],
    ],
    [
      'is nothing where all was delivered',
      0,
      [
        [100, 1, takes()],
        [0, 1, takes({ deliveries: 100 })],
      ],
    ],
    [
      'is found while no gateway consumes',
      90,
      [
        [100, 0, closed],
        [10, 0, closed],
      ],
    ],
    [
      'is not known where another gateway consumes',
      0,
      [
        [100, 1, closed],
        [10, 1, closed],
      ],
    ],
    [
      'is not known where another one may have had the queue',
      0,
      [
        [100, 1, takes()],
        [10, 1, takes({ idles: 1 })],
      ],
    ],
    [
      'is not known over another connection',
      0,
      [
        [100, 1, takes()],
        [10, 1, takes({ consumer: {} })],
      ],
    ],
    [
      'counts what is given back and delivered again once',
      40,
      [
        [100, 0, closed],
        [105, 0, closed],
        [65, 0, closed],
        [65, 0, closed],
      ],
    ],
  ])('%s', (_name, lost, answers) => {
    const clock = createFakeClock()
    const risks = new SourceRisks({ clock }, 'fleet')
    const ledger = new EngineLosses(
      { clock, emit: () => undefined, risks },
      { name: 'fleet', member: 'gw-1' },
    )
    const depths = new QueueDepths(ledger)
    for (const [messages, consumers, now] of answers)
      depths.answered('fleet.0', { messages, consumers }, { before: now, takes: now })
    expect(ledger.total()).toBe(lost)
    risks.close()
  })
})

describe('messages that NATS removed', () => {
  const before: Waiting = {
    created: 'a',
    leaders: null,
    waiting: 100,
    outstanding: 0,
    deliveries: 10,
    place: 40,
    first: 41,
    streamFirst: 1,
    streamLast: 240,
  }
  test.each<[string, number, Partial<Waiting>]>([
    [
      'is all that is gone from the stream and was not delivered',
      70,
      { deliveries: 40, waiting: 9, streamFirst: 300 },
    ],
    ['is what the deliveries do not explain', 20, { deliveries: 40, place: 90, waiting: 50, first: 95 }],
    [
      'is nothing where all was delivered',
      0,
      { deliveries: 110, place: 240, waiting: 0, first: null, streamFirst: 241 },
    ],
    ['is the share before the first that waits, where as many came', 50, { first: 141, streamLast: 400 }],
    ['is nothing where the first one still waits', 0, { waiting: 130, streamLast: 400 }],
    ['is not known with another leader', 0, { leaders: 'b', waiting: 0, first: null }],
    ['is not known where deliveries were forgotten', 0, { deliveries: 9, waiting: 0, first: null }],
  ])('%s', (_name, lost, now) => {
    expect(removedBetween(before, { ...before, ...now })).toBe(lost)
  })
})
