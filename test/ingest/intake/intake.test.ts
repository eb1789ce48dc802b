import { describe, expect, test } from 'vitest'
import type { GatewayEvent } from '../../../src/domain/event.ts'
import type { QoS, Sender } from '../../../src/domain/message.ts'
import { createIntake } from '../../../src/ingest/intake/intake.ts'
import type { GatewayError } from '../../../src/std/gateway-error.ts'
import { createFakeClock, turn } from '../../support/fake-clock.ts'
import { textOf, wordMapper } from '../../support/ingest-world.ts'
import { messageOf } from '../../support/mapping-world.ts'
import { createMemoryIntakeSpool } from '../../support/memory-intake-spool.ts'
import { ourTimeOf } from '../../support/our-time.ts'

const senderOf = (clientId: string): Sender => ({
  clientId,
  userName: null,
  certificateName: null,
  identity: null,
})
const truck = senderOf('truck')
const van = senderOf('van')

function world(options = { heldMessagesMax: 1000, heldBytesMax: 1024 ** 2 }) {
  const clock = createFakeClock()
  const spool = createMemoryIntakeSpool({ commits: 'by hand' })
  const events: GatewayEvent[] = []
  const emit = (event: GatewayEvent) => void events.push(event)
  const ourTime = ourTimeOf(() => 0, clock)
  const intake = createIntake({ mapper: wordMapper, spool, clock, ourTime, emit }, options)
  const acks: string[] = []
  function send(text: string, qos: QoS = 1, sender = truck): void {
    const ack = (fault: GatewayError | null) => void acks.push(fault ? `${text}: ${fault.code}` : text)
    intake.accept(messageOf(text, { topic: 't', qos, sender }), qos === 0 ? null : ack)
  }
  /** Invariant 6, the part of it that ingest owns. */
  function expectConservation(): void {
    const { received, mapped, ignored, duplicates, dead, dropped, returned, held } = intake.counters()
    expect(received).toBe(mapped + ignored + duplicates + dead + dropped + returned + held)
  }
  return { clock, spool, events, intake, acks, send, expectConservation }
}

describe('the result of a message', () => {
  test('every message is counted once, by its result, and acknowledged', () => {
    const { spool, intake, acks, send, expectConservation } = world()
    for (const text of ['one', 'many:3', 'ignore', 'none', 'bad', 'throw', 'one', 'many:3']) send(text)
    spool.commit()
    expect(intake.counters()).toMatchObject({
      received: 8,
      mapped: 2,
      duplicates: 2,
      ignored: 2,
      dead: 2,
      dropped: 0,
      held: 0,
    })
    expect(acks).toHaveLength(8)
    expect(spool.payloads).toHaveLength(4)
    expect(intake.counters().ignoredByReason).toEqual([
      { source: 'words', reason: 'requested', count: 1 },
      { source: 'words', reason: 'no_payloads', count: 1 },
    ])
    expect(intake.counters().deadByReason).toEqual([
      { source: 'words', reason: 'BAD', count: 1 },
      { source: null, reason: 'MAPPER_FAILED', count: 1 },
    ])
    expectConservation()
  })

  test('a flood of dead letters is reported once a second, and each is counted', async () => {
    const { clock, events, intake, send } = world()
    for (let index = 0; index < 50; index += 1) send('bad')
    await clock.advance(1000)
    send('bad')
    expect(events).toHaveLength(2)
    expect(intake.counters().dead).toBe(51)
  })
})

describe('while the spool accepts no messages', () => {
  test('drops that were not reported yet are reported at the end', () => {
    const { spool, events, intake, send } = world()
    spool.setHold('disk_low')
    send('a', 0)
    send('b', 0)
    intake.close()
    expect(events).toMatchObject([{ count: 1 }, { count: 1 }])
  })

  test('reading stops at the bound of the waiting list, and resumes when it has drained', async () => {
    const { spool, intake, send } = world({ heldMessagesMax: 3, heldBytesMax: 1024 ** 2 })
    const changes: boolean[] = []
    intake.onReadingChange(() => changes.push(intake.readingPaused()))
    spool.setHold('spool_full')
    for (const text of ['a', 'b', 'c']) send(text)
    expect(intake.readingPaused()).toBe(true)
    send('read already')
    expect(intake.counters().held).toBe(4)
    spool.setHold(null)
    await turn()
    expect(changes).toEqual([true, false])
    expect(intake.counters().held).toBe(0)
  })

  test('the bound counts bytes too', () => {
    const { spool, intake, send } = world({ heldMessagesMax: 1000, heldBytesMax: 10_000 })
    spool.setHold('spool_full')
    send('x'.repeat(9000))
    expect(intake.readingPaused()).toBe(false)
    send('y'.repeat(1000))
    expect(intake.readingPaused()).toBe(true)
  })

  test('a waiting message is copied: its buffer may be reused', async () => {
    const { spool, intake, acks } = world()
    spool.setHold('spool_full')
    const message = messageOf('first', { sender: truck })
    intake.accept(message, () => void acks.push('ok'))
    message.bytes.write('other')
    message.bytes = Buffer.from('another')
    spool.setHold(null)
    await turn()
    spool.commit()
    expect(spool.payloads.map(textOf)).toEqual(['first'])
  })

  test('a long waiting list is taken in slices, and stops where the spool is full again', async () => {
    const { spool, intake, send, expectConservation } = world({
      heldMessagesMax: 10_000,
      heldBytesMax: 1024 ** 3,
    })
    spool.setHold('spool_full')
    for (let index = 0; index < 2500; index += 1) send(`m${index}`)
    spool.setHold(null)
    await turn()
    expect(spool.open).toBe(1000)
    spool.setHold('spool_full')
    await turn()
    expect(spool.open).toBe(1000)
    expect(intake.counters().held).toBe(1500)
    spool.setHold(null)
    await turn()
    await turn()
    spool.commit()
    expect(spool.payloads.map(textOf)).toEqual(Array.from({ length: 2500 }, (_, index) => `m${index}`))
    expectConservation()
  })

  test('congestion stops reading, and the waiting list', async () => {
    const { spool, intake, send } = world()
    spool.setHold('spool_full')
    send('a')
    spool.setCongested(true)
    spool.setHold(null)
    await turn()
    expect(intake.readingPaused()).toBe(true)
    expect(intake.counters().held).toBe(1)
    spool.setCongested(false)
    await turn()
    expect(intake.readingPaused()).toBe(false)
    expect(intake.counters().held).toBe(0)
  })
})

describe('stopping', () => {
  test('does not wait for a spool that accepts no messages, and appends nothing afterwards', async () => {
    const { spool, intake, acks, send } = world()
    spool.setHold('spool_full')
    send('a')
    await intake.finish()
    spool.setHold(null)
    await turn()
    await intake.finish()
    expect(spool.open).toBe(0)
    expect(acks).toEqual([])
    expect(intake.counters().held).toBe(1)
  })
})

describe('while the dead letters are full', () => {
  test('a corrected mapping maps waiting messages although there is no room', async () => {
    const { spool, intake, acks, send, expectConservation } = world()
    spool.setDeadLettersFull(true)
    send('throw', 1, van)
    send('bad')
    send('behind')
    const corrected = {
      ...wordMapper,
      map: (...[message]: Parameters<typeof wordMapper.map>) =>
        wordMapper.map(
          message.bytes.toString() === 'bad' ? { ...message, bytes: Buffer.from('good') } : message,
        ),
    }
    await intake.swap(corrected)
    await turn()
    spool.commit()
    expect(acks).toEqual(['bad', 'behind'])
    expect(intake.counters().held).toBe(1)
    expect(spool.deadLetters).toEqual([])
    expectConservation()
  })

  test('QoS 0 that would become one is dropped and counted; behind others it waits in order', async () => {
    const { spool, intake, send, expectConservation } = world()
    spool.setDeadLettersFull(true)
    send('bad', 0, van)
    expect(intake.counters().dropped).toBe(1)
    send('bad')
    send('zero', 0)
    spool.setDeadLettersFull(false)
    await turn()
    spool.commit()
    expect(spool.payloads.map(textOf)).toEqual(['zero'])
    expectConservation()
  })

  test('messages of a connection that ends are forgotten, which makes room for others', () => {
    const { spool, intake, send, expectConservation } = world({
      heldMessagesMax: 3,
      heldBytesMax: 1024 ** 2,
    })
    spool.setDeadLettersFull(true)
    send('bad')
    send('one')
    send('zero', 0)
    expect([intake.pausesSender(truck), intake.pausesSender(van)]).toEqual([true, false])
    intake.connectionEnded(truck)
    expect(intake.pausesSender(truck)).toBe(false)
    expect(intake.counters()).toMatchObject({ held: 0, returned: 2, dropped: 1 })
    send('two', 1, van)
    expect(spool.open).toBe(1)
    expectConservation()
  })

  test('at the bound only connections that wait are not read, and another one that must wait is closed', () => {
    const { spool, intake, acks, send, expectConservation } = world({
      heldMessagesMax: 2,
      heldBytesMax: 1024 ** 2,
    })
    spool.setDeadLettersFull(true)
    send('bad')
    expect(intake.pausesSender(truck)).toBe(false)
    send('one')
    expect([intake.pausesSender(truck), intake.pausesSender(van)]).toEqual([true, false])
    expect(intake.readingPaused()).toBe(false)
    send('good', 1, van)
    send('bad', 1, van)
    expect(acks).toEqual(['bad: HELD_FULL'])
    spool.commit()
    expect(acks).toEqual(['bad: HELD_FULL', 'good'])
    expect(intake.counters()).toMatchObject({ held: 2, returned: 1 })
    expectConservation()
  })

  test('a stop does not wait for them and does not acknowledge them', async () => {
    const { spool, intake, acks, send } = world()
    spool.setDeadLettersFull(true)
    send('bad')
    await intake.finish()
    spool.commit()
    expect(acks).toEqual([])
  })
})
