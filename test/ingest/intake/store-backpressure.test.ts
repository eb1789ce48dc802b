import { describe, expect, test } from 'vitest'
import type { GatewayEvent } from '../../../src/domain/event.ts'
import type { QoS, Sender } from '../../../src/domain/message.ts'
import type { GatewayError } from '../../../src/std/gateway-error.ts'
import { createIntake } from '../../../src/ingest/intake/intake.ts'
import { createFakeClock, turn } from '../../support/fake-clock.ts'
import { textOf, wordMapper } from '../../support/ingest-world.ts'
import { messageOf as mqttMessage } from '../../support/mapping-world.ts'
import { createMemoryIntakeSpool } from '../../support/memory-intake-spool.ts'
import { messageOf, roundTrip, startPipeline, topicOf } from '../../support/pipeline-world.ts'
import { ourTimeOf } from '../../support/our-time.ts'
import { send } from '../../support/ops-world.ts'

const senderOf = (clientId: string): Sender => ({
  clientId,
  userName: null,
  certificateName: null,
  identity: null,
})

function world(options = { heldMessagesMax: 1000, heldBytesMax: 1024 ** 2 }) {
  const spool = createMemoryIntakeSpool({ commits: 'by hand' })
  const events: GatewayEvent[] = []
  const emit = (event: GatewayEvent) => void events.push(event)
  const clock = createFakeClock()
  const ourTime = ourTimeOf(() => 0, clock)
  const intake = createIntake({ mapper: wordMapper, spool, clock, ourTime, emit }, options)
  const acks: string[] = []
  const truck = senderOf('truck')
  const van = senderOf('van')
  function send(sender: Sender, text: string, qos: QoS = 1): void {
    const ack =
      qos === 0
        ? null
        : (fault: GatewayError | null) => void acks.push(fault ? `${text}: ${fault.code}` : text)
    intake.accept(mqttMessage(text, { topic: 't', qos, sender }), ack)
  }
  function expectConservation(): void {
    const { received, mapped, ignored, duplicates, dead, dropped, returned, held } = intake.counters()
    expect(received).toBe(mapped + ignored + duplicates + dead + dropped + returned + held)
  }
  return { spool, events, intake, acks, truck, van, send, expectConservation }
}

describe('while the dead letters are full', () => {
  test('a corrected mapping maps waiting messages although there is no room', async () => {
    const { spool, intake, acks, truck, van, send, expectConservation } = world()
    spool.setDeadLettersFull(true)
    send(van, 'throw')
    send(truck, 'bad')
    send(truck, 'behind')
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
    const { spool, intake, truck, van, send, expectConservation } = world()
    spool.setDeadLettersFull(true)
    send(van, 'bad', 0)
    expect(intake.counters().dropped).toBe(1)
    send(truck, 'bad')
    send(truck, 'zero', 0)
    spool.setDeadLettersFull(false)
    await turn()
    spool.commit()
    expect(spool.payloads.map(textOf)).toEqual(['zero'])
    expectConservation()
  })

  test('messages of a connection that ends are forgotten, which makes room for others', () => {
    const { spool, intake, truck, van, send, expectConservation } = world({
      heldMessagesMax: 3,
      heldBytesMax: 1024 ** 2,
    })
    spool.setDeadLettersFull(true)
    send(truck, 'bad')
    send(truck, 'one')
    send(truck, 'zero', 0)
    expect([intake.pausesSender(truck), intake.pausesSender(van)]).toEqual([true, false])
    intake.connectionEnded(truck)
    expect(intake.pausesSender(truck)).toBe(false)
    expect(intake.counters()).toMatchObject({ held: 0, returned: 2, dropped: 1 })
    send(van, 'two')
    expect(spool.open).toBe(1)
    expectConservation()
  })

  test('at the bound only connections that wait are not read, and another one that must wait is closed', () => {
    const { spool, intake, acks, truck, van, send, expectConservation } = world({
      heldMessagesMax: 2,
      heldBytesMax: 1024 ** 2,
    })
    spool.setDeadLettersFull(true)
    send(truck, 'bad')
    expect(intake.pausesSender(truck)).toBe(false)
    send(truck, 'one')
    expect([intake.pausesSender(truck), intake.pausesSender(van)]).toEqual([true, false])
    expect(intake.readingPaused()).toBe(false)
    send(van, 'good')
    send(van, 'bad')
    expect(acks).toEqual(['bad: HELD_FULL'])
    spool.commit()
    expect(acks).toEqual(['bad: HELD_FULL', 'good'])
    expect(intake.counters()).toMatchObject({ held: 2, returned: 1 })
    expectConservation()
  })

  test('a stop does not wait for them and does not acknowledge them', async () => {
    const { spool, intake, acks, truck, send } = world()
    spool.setDeadLettersFull(true)
    send(truck, 'bad')
    await intake.finish()
    spool.commit()
    expect(acks).toEqual([])
  })
})

describe('full dead letters in the whole pipeline', () => {
  test('one source fills them: its devices get no ack until a purge, all others are delivered', async () => {
    const pipeline = await startPipeline({
      sections: {
        spool: '{ path: ./spool, max_bytes: 1GiB, min_free_bytes: 1MiB, dead_letters: { max_bytes: 1MiB } }',
      },
    })
    const broken = await pipeline.device('broken')
    let sent = 0
    while (!pipeline.status().spool.deadLettersFull) {
      for (let n = 0; n < 20; n += 1)
        broken.publish({ topic: topicOf('broken'), payload: 'x'.repeat(4000) + sent, messageId: (sent += 1) })
      await roundTrip(broken)
      expect(sent).toBeLessThan(2000)
    }
    const held = sent + 1
    broken.publish({ topic: topicOf('broken'), payload: 'no json', messageId: held })
    const healthy = await pipeline.device('healthy')
    for (let n = 1; n <= 5; n += 1)
      healthy.publish({ topic: topicOf('healthy'), payload: messageOf(n), messageId: n })
    await healthy.acked(5)
    await pipeline.until(() => pipeline.status().totals.delivered === 5)
    expect(pipeline.status().conditions.map(({ code }) => code)).toContain('DEAD_LETTERS_FULL')
    expect(pipeline.status().internals.conservation.messages.difference).toBe(0)
    expect(broken.acks.map(({ messageId }) => messageId)).not.toContain(held)
    const purge = '/control/dead-letters/purge?all=1&yes=1'
    expect((await send(pipeline.gateway.addresses.control, purge, { method: 'POST' })).status).toBe(200)
    await broken.until(() => broken.acks.some(({ messageId }) => messageId === held))
    expect(pipeline.status().conditions.map(({ code }) => code)).not.toContain('DEAD_LETTERS_FULL')
  })
})
