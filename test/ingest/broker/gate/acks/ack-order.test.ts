import { expect, test } from 'vitest'
import { createAckOrder } from '../../../../../src/ingest/broker/gate/acks/ack-order.ts'
import { puback, pubrec, type AckHead } from '../../../../../src/ingest/broker/gate/acks/ack-writer.ts'
import { openIngest } from '../../../../support/ingest-world.ts'
import { createMemoryIntakeSpool } from '../../../../support/memory-intake-spool.ts'
import { publishBytes } from '../../../../support/mqtt-device.ts'
import { createRandom } from '../../../../support/random.ts'

const pubrel = (messageId: number) => Buffer.from([0x62, 2, 0, messageId])
const qos1 = (messageId: number) => publishBytes({ topic: 't', payload: `m${messageId}`, messageId })
const qos2 = (messageId: number) => publishBytes({ topic: 't', payload: `m${messageId}`, messageId, qos: 2 })

test('acknowledgements have the order of the packets, whatever is ready first', () => {
  for (let seed = 1; seed <= 300; seed += 1) {
    const random = createRandom(seed)
    const sent: string[] = []
    const order = createAckOrder({
      output: { addAck: (head, messageId, code) => void sent.push(`${head} ${messageId} ${code}`) },
      gate: { resumeReading: () => undefined },
    })
    const expected: string[] = []
    const acks: (() => void)[] = []
    const releases: (() => void)[] = []
    for (let messageId = 1; messageId <= 30; messageId += 1) {
      if (random.chance(0.3)) {
        const release = order.expectRelease(messageId)
        releases.push(() => release.released())
        expected.push(`112 ${messageId} 0`)
      } else {
        const head = random.pick<AckHead>([puback, pubrec])
        order.expectAck()
        const code = random.pick([0, 0x87])
        acks.push(() => order.ack(head, messageId, code))
        expected.push(`${head} ${messageId} ${code}`)
      }
      expect(order.isIdle).toBe(false)
    }
    while (acks.length + releases.length > 0) {
      const isAck = releases.length === 0 || (acks.length > 0 && random.chance(0.5))
      if (isAck) acks.shift()?.()
      else releases.splice(random.below(releases.length), 1)[0]?.()
    }
    expect(sent, `seed ${seed}`).toEqual(expected)
    expect(order.isIdle).toBe(true)
  }
})

test('1,000 PUBRELs may wait; then there is no room until one is answered', () => {
  let resumed = 0
  const order = createAckOrder({
    output: { addAck: () => undefined },
    gate: { resumeReading: () => void (resumed += 1) },
  })
  const first = order.expectRelease(1)
  for (let messageId = 2; messageId < 1000; messageId += 1) order.expectRelease(messageId)
  expect(order.isFull).toBe(false)
  order.expectRelease(1000)
  expect(order.isFull).toBe(true)
  first.released()
  expect([order.isFull, resumed]).toEqual([false, 1])
})

test.each([true, false])(
  'PUBREL with an unknown identifier gets PUBCOMP in its place (clean session: %s)',
  async (clean) => {
    const spool = createMemoryIntakeSpool({ commits: 'by hand' })
    await using world = await openIngest(spool)
    const device = await world.connection('truck', { releases: false })
    const connected = device.connect({ clean })
    if (!clean) {
      await spool.ended(1)
      spool.commit()
    }
    await connected
    device.sendBytes(Buffer.concat([pubrel(90), Buffer.from([0xc0, 0]), qos1(1), pubrel(91), qos1(2)]))
    await device.until((received) => received.some(({ cmd }) => cmd === 'pingresp'))
    expect(device.received.slice(1).map(({ cmd, messageId }) => [cmd, messageId])).toEqual([
      ['pubcomp', 90],
      ['pingresp', undefined],
    ])
    await spool.ended(clean ? 2 : 3)
    spool.commit()
    await device.acked(4)
    expect(device.acks.slice(1)).toEqual([
      { cmd: 'puback', messageId: 1 },
      { cmd: 'pubcomp', messageId: 91 },
      { cmd: 'puback', messageId: 2 },
    ])
  },
)

test('PUBCOMP of a stored message stays behind the acknowledgements before it and its own write', async () => {
  const spool = createMemoryIntakeSpool({ commits: 'by hand' })
  await using world = await openIngest(spool)
  const device = await world.connection('truck', { releases: false })
  const connected = device.connect({ clean: false })
  await spool.ended(1)
  spool.commit()
  await connected
  device.sendBytes(qos2(5))
  await spool.ended(2)
  spool.commit()
  await device.acked(1)
  device.sendBytes(Buffer.concat([qos1(6), pubrel(5), pubrel(77), qos2(7)]))
  await spool.ended(5)
  spool.commit()
  await device.acked(5)
  expect(device.acks).toEqual([
    { cmd: 'pubrec', messageId: 5 },
    { cmd: 'puback', messageId: 6 },
    { cmd: 'pubcomp', messageId: 5 },
    { cmd: 'pubcomp', messageId: 77 },
    { cmd: 'pubrec', messageId: 7 },
  ])
})

test('a client that subscribes between PUBRELs gets its answers in this order', async () => {
  await using world = await openIngest(createMemoryIntakeSpool({ commits: 'auto' }))
  const device = await world.device('truck')
  device.sendBytes(Buffer.concat([pubrel(1), Buffer.from([0x82, 6, 0, 2, 0, 1, 0x61, 0]), pubrel(3)]))
  await device.acked(2)
  expect(device.received.map(({ cmd }) => cmd)).toEqual(['connack', 'pubcomp', 'suback', 'pubcomp'])
})
