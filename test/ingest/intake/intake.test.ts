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

function world(options = { heldMessagesMax: 1000, heldBytesMax: 1024 ** 2 }, mapper = wordMapper) {
  const clock = createFakeClock()
  const spool = createMemoryIntakeSpool({ commits: 'by hand' })
  const events: GatewayEvent[] = []
  const emit = (event: GatewayEvent) => void events.push(event)
  const ourTime = ourTimeOf(() => 0, clock)
  const intake = createIntake({ mapper, spool, clock, ourTime, emit }, options)
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
})

test('a message that waits keeps the time at which its server stored it, although the source uses its objects again', async () => {
  const seen: (number | undefined)[] = []
  const noting: typeof wordMapper = {
    ...wordMapper,
    map(...given) {
      seen.push(given[0].stored?.at)
      return wordMapper.map(...given)
    },
  }
  const { spool, intake } = world(undefined, noting)
  const message = { ...messageOf('a', { topic: 't', qos: 1, sender: truck }), stored: { at: 0, serial: 0 } }
  spool.setHold('store_lost')
  for (const at of [1000, 2000]) {
    message.stored.at = at
    intake.accept(message, () => undefined)
  }
  spool.setHold(null)
  await turn()
  expect(seen).toEqual([1000, 2000])
})

test('a stop does not wait for a spool that accepts no messages, and appends nothing afterwards', async () => {
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
})
