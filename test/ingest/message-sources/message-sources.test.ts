// The contract of a message source, shown with one that is written here: a log with partitions, whose acknowledgement
// covers everything before it, as AMQP (`multiple`) and JetStream have it.

import { describe, expect, test } from 'vitest'
import { createIntake } from '../../../src/ingest/intake/intake.ts'
import {
  createMessageSources,
  type MessageFeed,
  type MessageSource,
  type Partition,
} from '../../../src/ingest/message-sources/message-sources.ts'
import { emptyMessage } from '../../../src/ingest/message-sources/source-message.ts'
import type { PartitionBudgets, SourceMessage } from '../../../src/ingest/message-sources/types.ts'
import { GatewayError } from '../../../src/std/gateway-error.ts'
import { systemClock } from '../../../src/std/clock.ts'
import { wordMapper } from '../../support/ingest-world.ts'
import { createMemoryIntakeSpool } from '../../support/memory-intake-spool.ts'
import { ourTimeOf } from '../../support/our-time.ts'

const message = (text: string, more: Partial<SourceMessage> = {}): SourceMessage => ({
  ...emptyMessage(),
  topic: 't/1',
  bytes: Buffer.from(text),
  ...more,
})

const writeFailed = new GatewayError('SPOOL_WRITE_FAILED', {
  what: 'It failed.',
  why: 'No.',
  act: 'Mend it.',
})

function openSource(
  ackKind: 'each' | 'up_to',
  windowMax = 100,
  limits: PartitionBudgets = { openBridgeBudget: () => null },
) {
  const calls: string[] = []
  let feed: MessageFeed | null = null
  const source: MessageSource = {
    name: 'log',
    kind: 'mqtt',
    traits: { ackKind, partitioned: true, windowMax, holdMs: 30_000, redelivers: 'after_hold' },
    start: (given) => void (feed = given),
    want: (messages) => void (calls.at(-1) !== `want ${messages}` && calls.push(`want ${messages}`)),
    acknowledge: ({ label }, position) => void calls.push(`ack ${label} ${position}`),
    flush: ({ label }) => void calls.push(`flush ${label}`),
    giveBack: ({ label }) => void calls.push(`give back ${label}`),
    reconnect: () => void calls.push('reconnect'),
    release: () => Promise.resolve(void calls.push('release')),
    close: () => Promise.resolve(void calls.push('close')),
    states: () => [],
    view: () => ({ url: null, links: [], partitions: [], lag: null, lost: 0, retainedIgnored: 0 }),
  }
  const spool = createMemoryIntakeSpool({ commits: 'by hand' })
  const emit = () => undefined
  const intake = createIntake(
    { mapper: wordMapper, spool, clock: systemClock, ourTime: ourTimeOf(() => 0, systemClock), emit },
    { heldMessagesMax: 10, heldBytesMax: 1e6 },
  )
  const sources = createMessageSources({ intake, spool, clock: systemClock, emit, limits }, [
    { source, silentAfterMs: 60_000, unheardAfterMs: 60_000 },
  ])
  sources.start()
  calls.length = 0
  return { spool, sources, intake, feed: feed!, calls, turn: () => new Promise(setImmediate) }
}

const takeAll = (feed: MessageFeed, partition: Partition, from: number, count: number) => {
  for (let position = from; position < from + count; position += 1)
    feed.take(partition, position, message(`${partition.label} ${position}`))
}

test('a partition that has spent its time has no room until its turn; others have', () => {
  const readers = new Map<string, { resumeReading(): void }>()
  const spent = new Set<string>()
  const openBridgeBudget: PartitionBudgets['openBridgeBudget'] = (name, reader) => {
    readers.set(name, reader)
    return {
      countTime: () => void spent.add(name),
      isTimeSpent: () => spent.has(name),
      close: () => void readers.delete(name),
    }
  }
  const { feed, calls } = openSource('each', 100, { openBridgeBudget })
  const [a, b] = [feed.assign('a'), feed.assign('b')]
  takeAll(feed, a, 1, 1)
  expect([feed.room(a), feed.room(b)]).toEqual([0, 100])
  expect(calls).toEqual([])
  spent.clear()
  readers.get('log/a')?.resumeReading()
  expect(feed.room(a)).toBe(99)
  expect(calls).toEqual(['want 100'])
  feed.revoke(a)
  expect([...readers.keys()]).toEqual(['log/b'])
})

describe('acknowledgements', () => {
  test('follow the commit, per partition in order; `up_to` gets the last position of each once', async () => {
    const { spool, feed, calls, turn } = openSource('up_to')
    const [a, b] = [feed.assign('a'), feed.assign('b')]
    takeAll(feed, a, 100, 3)
    takeAll(feed, b, 7, 2)
    takeAll(feed, a, 103, 1)
    await turn()
    expect(calls).toEqual([])
    spool.commit()
    await turn()
    expect(calls).toEqual(['ack a 103', 'flush a', 'ack b 8', 'flush b'])
  })

  test('are not given once the partition is revoked, also where it is assigned again', async () => {
    const { spool, sources, feed, calls, turn } = openSource('up_to')
    const old = feed.assign('a')
    takeAll(feed, old, 1, 2)
    feed.revoke(old)
    const next = feed.assign('a')
    takeAll(feed, next, 1, 1)
    spool.commit()
    await turn()
    expect(calls).toEqual(['ack a 1', 'flush a'])
    expect(sources.status()).toMatchObject([{ received: 3, acked: 1, outstanding: 0 }])
    expect(() => feed.take(old, 9, message('late'))).toThrow('revoked')
  })

  test('are given for none behind a message that could not be stored; it is given back once', async () => {
    const { spool, feed, calls, turn } = openSource('up_to')
    const [a, b] = [feed.assign('a'), feed.assign('b')]
    takeAll(feed, a, 1, 3)
    spool.fail(writeFailed)
    takeAll(feed, b, 1, 1)
    spool.commit()
    await turn()
    expect(calls).toEqual(['give back a', 'ack b 1', 'flush b'])
    expect(a.assigned).toBe(false)
  })
})

describe('credit', () => {
  test('is 0 while the spool takes nothing in, and the window minus what is outstanding else', async () => {
    const { spool, feed, calls, turn } = openSource('each', 5)
    const a = feed.assign('a')
    takeAll(feed, a, 1, 3)
    expect(feed.room(a)).toBe(2)
    spool.setHold('spool_full')
    expect(feed.room(a)).toBe(0)
    spool.setHold(null)
    expect(calls).toEqual(['want 0', 'want 5'])
    spool.setCongested(true)
    expect(feed.room(a)).toBe(0)
    spool.setCongested(false)
    spool.commit()
    await turn()
    expect(feed.room(a)).toBe(5)
  })

  test('of one partition is 0 while it waits for a full store; the others have theirs', () => {
    const { spool, feed } = openSource('each')
    const [a, b] = [feed.assign('a'), feed.assign('b')]
    spool.setDeadLettersFull(true)
    feed.take(a, 1, message('bad'))
    feed.take(a, 2, message('x'.repeat(70_000)))
    expect(feed.room(a)).toBe(0)
    expect(feed.room(b)).toBe(100)
    spool.setDeadLettersFull(false)
  })

  test('is not used up by messages of a revoked partition: those that waited are left to the server', () => {
    const { spool, intake, feed } = openSource('each')
    const a = feed.assign('a')
    spool.setDeadLettersFull(true)
    feed.take(a, 1, message('bad'))
    feed.take(a, 2, message('behind'))
    expect(intake.counters()).toMatchObject({ held: 2, returned: 0 })
    feed.revoke(a)
    expect(intake.counters()).toMatchObject({ held: 0, returned: 2 })
  })
})

test('what is ignored for a reason is acknowledged in its place, and counted as ignored', async () => {
  const { spool, intake, feed, calls, turn } = openSource('each')
  const a = feed.assign('a')
  feed.take(a, 1, message('old', { ignoredFor: 'retained' }))
  feed.take(a, 2, message('new'))
  spool.commit()
  await turn()
  expect(calls).toEqual(['ack a 1', 'ack a 2', 'flush a'])
  expect(intake.counters()).toMatchObject({ received: 2, ignored: 1, mapped: 1 })
})

test('a message without a device time that is delivered again is stored, and counted', () => {
  const { sources, intake, feed } = openSource('each')
  const a = feed.assign('a')
  feed.take(a, 1, message('untimed x'))
  feed.take(a, 1, message('untimed x', { redelivered: true }))
  const userProperties = Object.fromEntries(Array.from({ length: 66 }, (_, n) => [`n${n}`, 'x']))
  feed.take(a, 1, message('ignored', { userProperties, ignoredFor: 'retained' }))
  expect(intake.counters()).toMatchObject({ mapped: 2, resendsStored: 1 })
  expect(sources.status()).toMatchObject([{ redelivered: 1, propertiesSkipped: 2 }])
})
