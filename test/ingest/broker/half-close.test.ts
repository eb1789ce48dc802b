import { expect, test, vi } from 'vitest'
import { eventually } from '../../support/eventually.ts'
import { useFakeTimers } from '../../support/fake-timers.ts'
import { openIngest } from '../../support/ingest-world.ts'
import { byHand } from '../../support/memory-intake-spool.ts'
import { connectBytes, publishBytes } from '../../support/mqtt-device.ts'

const messages = (count: number, qos: 1 | 2 = 1) =>
  Array.from({ length: count }, (_, index) =>
    publishBytes({ topic: 't', payload: `m${index}`, messageId: index + 1, qos }),
  )
const ids = (count: number) => Array.from({ length: count }, (_, index) => index + 1)

test.each([1, 2] as const)(
  'a client that closes its side gets all acknowledgements, and then the end (QoS %i)',
  async (qos) => {
    const spool = byHand()
    await using world = await openIngest(spool)
    const device = await world.connection('truck', { releases: false })
    await device.connect()
    device.sendBytes(Buffer.concat(messages(50, qos)))
    device.end()
    await spool.ended(50)
    // The end has arrived, too, when another connection was answered.
    for (let n = 1; n <= 5; n += 1) await world.device(`other ${n}`)
    expect(device.acks).toEqual([])
    spool.commit()
    await device.gone()
    expect(device.acks.map(({ messageId }) => messageId)).toEqual(ids(50))
    expect(world.events.filter(({ kind }) => kind === 'client_dropped')).toEqual([])
  },
)

test('also where more messages were sent than may be in flight, and where CONNECT came with them', async () => {
  const spool = byHand()
  await using world = await openIngest(spool, { inFlightMax: 10 })
  const device = await world.connection('truck')
  device.sendBytes(Buffer.concat([connectBytes('truck'), ...messages(95)]))
  device.end()
  for (let round = 1; round <= 10; round += 1) {
    await spool.ended(Math.min(round * 10, 95))
    spool.commit()
  }
  await device.gone()
  expect(device.acks.map(({ messageId }) => messageId)).toEqual(ids(95))
})

test('and PUBCOMP for its PUBRELs', async () => {
  const spool = byHand()
  await using world = await openIngest(spool)
  const device = await world.device('truck')
  device.sendBytes(Buffer.concat([...messages(1), Buffer.from([0x62, 2, 0, 9])]))
  device.end()
  await spool.ended(1)
  spool.commit()
  await device.gone()
  expect(device.acks).toEqual([
    { cmd: 'puback', messageId: 1 },
    { cmd: 'pubcomp', messageId: 9 },
  ])
})

test('a client that closes its side with nothing due, or within a packet, is closed at once', async () => {
  await using world = await openIngest(byHand())
  for (const rest of [Buffer.alloc(0), messages(1)[0]!.subarray(0, 5)]) {
    const device = await world.device('truck')
    device.sendBytes(rest)
    device.end()
    await device.gone()
  }
  const early = await world.connection('early')
  early.end()
  await early.gone()
  expect(world.events.filter(({ kind }) => kind === 'client_dropped')).toEqual([])
})

test('what cannot be acknowledged within 5 s is not waited for', async () => {
  useFakeTimers()
  const spool = byHand()
  await using world = await openIngest(spool)
  const device = await world.connection('truck')
  await device.connect({ keepalive: 1 })
  device.sendBytes(Buffer.concat(messages(3)))
  device.end()
  await spool.ended(3)
  for (let n = 1; n <= 5; n += 1) await world.device(`other ${n}`)
  vi.advanceTimersByTime(4000)
  // Its keepalive does not count any more.
  expect(world.events.filter(({ kind }) => kind === 'client_dropped')).toEqual([])
  vi.advanceTimersByTime(1000)
  await device.gone()
  expect(world.events).toContainEqual(expect.objectContaining({ reason: 'half_closed' }))
  spool.commit()
  expect(spool.payloads).toHaveLength(3)
})

test('a client that connects again before its last acknowledgements is no take-over', async () => {
  const spool = byHand()
  await using world = await openIngest(spool, { connectionsPerIdentityMax: 1 })
  const device = await world.device('truck')
  device.sendBytes(Buffer.concat(messages(1)))
  device.end()
  await spool.ended(1)
  await eventually(() => world.ingest.clients.find('truck')?.state === 'lost')
  const again = await world.device('truck')
  expect(world.ingest.clients.find('truck')).toMatchObject({ state: 'connected', takeOvers: 0 })
  await device.gone()
  expect(world.ingest.clients.find('truck')).toMatchObject({ state: 'connected' })
  again.publish({ topic: 't', payload: 'again', messageId: 2 })
  await spool.ended(2)
  spool.commit()
  await again.acked(1)
})

test('the will of a client that closes its side comes after its messages', async () => {
  const spool = byHand()
  await using world = await openIngest(spool)
  const device = await world.connection('truck')
  await device.connect({ will: { topic: 'w', payload: Buffer.from('will'), qos: 1, retain: false } })
  device.sendBytes(Buffer.concat(messages(2)))
  device.end()
  await spool.ended(2)
  for (let n = 1; n <= 5; n += 1) await world.device(`other ${n}`)
  expect(world.ingest.counters().received).toBe(2)
  spool.commit()
  await device.gone()
  expect(device.acks).toHaveLength(2)
})
