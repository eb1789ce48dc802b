import { describe, expect, test } from 'vitest'
import { GatewayError } from '../../../src/std/gateway-error.ts'
import { createUntimedResends } from '../../../src/ingest/intake/untimed-resends.ts'
import { createFakeClock } from '../../support/fake-clock.ts'
import { createRandom, type Random } from '../../support/random.ts'
import { messageOf } from '../../support/mapping-world.ts'
import { eventually } from '../../support/eventually.ts'
import { openIngest } from '../../support/ingest-world.ts'
import { createMemoryIntakeSpool } from '../../support/memory-intake-spool.ts'
import type { Device } from '../../support/mqtt-device.ts'
import { openSpoolWorld, type SpoolWorld } from '../../support/open-spool.ts'

const parked = 'untimed parked'

type Sent = { id: number; payload?: string; dup?: boolean; qos?: 1 | 2 }

/** A gateway on a real spool, and one device that loses its connections. */
async function openDepot() {
  let spools: SpoolWorld = await openSpoolWorld()
  let world = await openIngest(spools.spool)
  let device: Device | null = null
  let stoppedResends = 0

  return {
    /** A new connection; the one before it is cut. */
    async connect() {
      await cut()
      device = await world.connection('van', { releases: false })
      await device.connect()
    },
    cut,
    /** Publishes, and waits for the acks. */
    async publish(...messages: Sent[]) {
      const acks = messages.length + device!.acks.length
      for (const { id, payload = parked, dup = false, qos = 1 } of messages)
        device!.publish({ topic: 't', payload, messageId: id, dup, qos })
      await device!.acked(acks)
    },
    async ping() {
      const { length } = device!.received
      device!.send({ cmd: 'pingreq' })
      await device!.until((received) => received.length > length)
    },
    async release(id: number) {
      const acks = device!.acks.length + 1
      device!.send({ cmd: 'pubrel', messageId: id })
      await device!.acked(acks)
    },
    async disconnect() {
      device!.send({ cmd: 'disconnect' })
      await device!.gone()
    },
    async restart() {
      await cut()
      stoppedResends += world.ingest.counters().resendsStored
      await world.ingest.stopAccepting()
      spools = await spools.reopen()
      await world[Symbol.asyncDispose]()
      world = await openIngest(spools.spool)
    },
    stored: () => spools.spool.lanes().reduce((sum, { pending }) => sum + pending, 0),
    resendsStored: () => stoppedResends + world.ingest.counters().resendsStored,
    counters: () => world.ingest.counters(),
    [Symbol.asyncDispose]: () => world[Symbol.asyncDispose](),
  }

  async function cut(): Promise<void> {
    device?.destroy()
    await device?.gone()
  }
}

describe('a message without a device time that arrives with DUP is a duplicate', () => {
  test.each([
    ['where its ack was lost with the connection', false],
    ['where the gateway was restarted since', true],
  ])('%s', async (_where, restarts) => {
    await using depot = await openDepot()
    await depot.connect()
    await depot.publish({ id: 1 }, { id: 2 })
    if (restarts) await depot.restart()
    await depot.connect()
    await depot.publish({ id: 1, dup: true }, { id: 2, dup: true })
    expect(depot.stored()).toBe(2)
    // Its ack is lost once more.
    await depot.connect()
    await depot.publish({ id: 2, dup: true }, { id: 3 })
    expect(depot.stored()).toBe(restarts ? 4 : 4)
    expect(depot.resendsStored()).toBe(1)
  })

  test('where its ack was never written, also of a client that uses identifiers again at once', async () => {
    const spool = createMemoryIntakeSpool({ commits: 'by hand' })
    await using world = await openIngest(spool)
    const device = await world.device('van')
    for (const count of [1, 2, 3]) {
      device.publish({ topic: 't', payload: parked, messageId: 1 })
      await spool.ended(count)
      if (count < 3) spool.commit()
      if (count < 3) await device.acked(count)
    }
    device.destroy()
    await eventually(() => world.ingest.clients.find('van')?.state === 'lost')
    spool.commit()
    const again = await world.device('van')
    again.publish({ topic: 't', payload: parked, messageId: 1, dup: true })
    await spool.ended(4)
    spool.commit()
    await again.acked(1)
    expect(spool.payloads).toHaveLength(3)
    expect(world.ingest.counters()).toMatchObject({ duplicates: 1, resendsStored: 0 })
  })
})

describe('a message without a device time that arrives with DUP is stored and counted', () => {
  test('where no message with its packet identifier was taken, whatever was sent before', async () => {
    await using depot = await openDepot()
    await depot.connect()
    await depot.publish({ id: 1 })
    await depot.connect()
    await depot.publish({ id: 2, dup: true })
    expect(depot.stored()).toBe(2)
    expect(depot.resendsStored()).toBe(1)
  })

  test.each([
    ['in one process', false],
    ['over a restart of the gateway', true],
  ])('where the client uses an identifier again at once (%s)', async (_when, restarts) => {
    await using depot = await openDepot()
    await depot.connect()
    await depot.publish({ id: 1 })
    await depot.publish({ id: 1 })
    if (restarts) await depot.restart()
    await depot.connect()
    // The first transmission of the third message was lost.
    await depot.publish({ id: 1, dup: true })
    expect(depot.stored()).toBe(3)
    expect(depot.resendsStored()).toBe(1)
  })

  test('where the equal message came on an older connection', async () => {
    await using depot = await openDepot()
    await depot.connect()
    await depot.publish({ id: 5 })
    await depot.connect()
    await depot.publish({ id: 6 })
    await depot.connect()
    await depot.publish({ id: 5, dup: true })
    expect(depot.stored()).toBe(3)
  })

  test('where the client had disconnected with DISCONNECT', async () => {
    await using depot = await openDepot()
    await depot.connect()
    await depot.publish({ id: 1 })
    await depot.disconnect()
    await depot.connect()
    await depot.publish({ id: 1, dup: true })
    expect(depot.stored()).toBe(2)
  })

  test('where the client had read a PINGRESP behind the ack', async () => {
    await using depot = await openDepot()
    await depot.connect()
    await depot.publish({ id: 1 })
    await depot.ping()
    await depot.publish({ id: 2 })
    await depot.ping()
    await depot.connect()
    await depot.publish({ id: 1, dup: true }, { id: 2, dup: true })
    // The PINGRESP behind the ack of the second one may be lost.
    expect(depot.stored()).toBe(3)
    expect(depot.resendsStored()).toBe(1)
  })

  test.each([false, true])(
    'where the client counts from 1 on each connection and has come to its identifier (restart: %s)',
    async (restarts) => {
      await using depot = await openDepot()
      await depot.connect()
      await depot.publish({ id: 1 }, { id: 2 }, { id: 3 })
      await depot.connect()
      await depot.publish({ id: 3, dup: true }, { id: 1 }, { id: 2 })
      if (restarts) await depot.restart()
      await depot.connect()
      // A new message under 3 was lost, and 2 was not acknowledged.
      await depot.publish({ id: 2, dup: true }, { id: 3, dup: true })
      expect(depot.stored()).toBe(6)
    },
  )

  test.each([false, true])(
    'where a message with a device time had its identifier since (restart: %s)',
    async (restarts) => {
      await using depot = await openDepot()
      await depot.connect()
      await depot.publish({ id: 1 })
      await depot.connect()
      await depot.publish({ id: 1, payload: 'timed' })
      if (restarts) await depot.restart()
      await depot.connect()
      await depot.publish({ id: 1, dup: true })
      expect(depot.stored()).toBe(3)
    },
  )

  test('where its write had failed', async () => {
    const spool = createMemoryIntakeSpool({ commits: 'by hand' })
    await using world = await openIngest(spool)
    const device = await world.device('van')
    device.publish({ topic: 't', payload: parked, messageId: 1 })
    await spool.ended(1)
    spool.fail(new GatewayError('SPOOL_WRITE_FAILED', { what: 'a', why: 'b', act: 'c' }))
    await device.gone()
    spool.lose()
    spool.reopen()
    const again = await world.device('van')
    again.publish({ topic: 't', payload: parked, messageId: 1, dup: true })
    await spool.ended(2)
    spool.commit()
    await again.acked(1)
    expect(spool.payloads).toHaveLength(1)
  })

  test('where it becomes a dead letter that equals an older one', async () => {
    await using depot = await openDepot()
    await depot.connect()
    await depot.publish({ id: 1, payload: 'bad' })
    await depot.connect()
    await depot.publish({ id: 1, payload: 'bad', dup: true }, { id: 2, payload: 'bad', dup: true })
    expect(depot.counters()).toMatchObject({ dead: 2, duplicates: 1, resendsStored: 1 })
  })
})

describe('a QoS 2 message of a clean session that arrives with DUP', () => {
  test.each([
    ['is a duplicate until PUBREL, also two connections later', false, false, 1],
    ['is a duplicate until PUBREL, also after a restart', false, true, 1],
    ['is a new one after PUBREL', true, false, 2],
    ['is a new one after PUBREL, also after a restart', true, true, 2],
  ])('%s', async (_what, releases, restarts, stored) => {
    await using depot = await openDepot()
    await depot.connect()
    await depot.publish({ id: 1, qos: 2 })
    if (releases) await depot.release(1)
    if (restarts) await depot.restart()
    else await depot.connect()
    await depot.connect()
    await depot.publish({ id: 1, qos: 2, dup: true })
    expect(depot.stored()).toBe(stored)
  })
})

test.each([
  ['a clean session', true],
  ['a stored session', false],
])('PUBCOMP of %s waits while the store is lost, and follows its write', async (_session, clean) => {
  const spool = createMemoryIntakeSpool({ commits: 'auto' })
  await using world = await openIngest(spool)
  const device = await world.connection('van', { releases: false })
  await device.connect({ clean })
  device.publish({ topic: 't', payload: parked, messageId: 1, qos: 2 })
  await device.acked(1)
  spool.lose()
  device.send({ cmd: 'pubrel', messageId: 1 })
  device.send({ cmd: 'subscribe', messageId: 2, subscriptions: [{ topic: 'commands', qos: 0 }] })
  await device.until((received) => received.some(({ cmd }) => cmd === 'suback'))
  expect(device.acks.map(({ cmd }) => cmd)).toEqual(['pubrec'])
  spool.reopen()
  await device.acked(2)
  expect(device.acks.map(({ cmd }) => cmd)).toEqual(['pubrec', 'pubcomp'])
  const again = await world.connection('van', { releases: false })
  await again.connect({ clean })
  again.publish({ topic: 't', payload: parked, messageId: 1, qos: 2, dup: true })
  await again.acked(1)
  expect(spool.payloads).toHaveLength(2)
})

/**
 * How clients choose identifiers: `counts` up for ever, `restarts` at 1 on each connection, takes the `lowest`
 * that is free.
 */
const ways = ['counts', 'restarts', 'lowest'] as const

type Reading = { n: number; id: number }

/**
 * A client of one connection after the other, whose last messages and acks are lost with each: it sends
 * `parked` again and again, at most `window` without an ack, and resends with DUP. Returns the readings that were taken for
 * duplicates and never stored, and how many were stored twice.
 */
function drive(way: (typeof ways)[number], random: Random, window: number) {
  const resends = createUntimedResends({ clock: createFakeClock(), spool: { note() {}, endMessage() {} } })
  const stored = new Map<number, number>()
  let unacked: Reading[] = []
  let published = 0
  let counter = way === 'counts' ? 1000 : 0
  for (let connection = 0; connection < 40; connection += 1) {
    const link = resends.connect('van', null)
    if (way === 'restarts') counter = 0
    // The first one lasts until a client that uses identifiers again at once has shown it.
    const lengthMax = connection === 0 ? 10 * window : random.below(3 * window)
    /** Acks that are on their way. */
    let acks: Reading[] = []
    const take = (reading: Reading, dup: boolean) => {
      const message = { ...messageOf(parked, { topic: 't', dup }), link, messageId: reading.id }
      const received = { ...message, ordinal: link.received }
      link.received += 1
      if (dup && resends.isDuplicate(received)) resends.enter(received, 'duplicate')
      else {
        resends.enter(received, 'untimed')
        stored.set(reading.n, (stored.get(reading.n) ?? 0) + 1)
      }
      if (connection > 0 && random.chance(0.01)) return
      link.acked = link.received
      acks.push(reading)
    }
    const readAcks = (count: number) => {
      const read = new Set(acks.slice(0, count).map(({ n }) => n))
      unacked = unacked.filter(({ n }) => !read.has(n))
      acks = acks.slice(count)
    }
    const lossAt = connection === 0 ? lengthMax : random.below(lengthMax + 1)
    for (const reading of unacked) take(reading, true)
    for (let sent = 0; sent < lengthMax + window; sent += 1) {
      if (unacked.length >= window) readAcks(1 + random.below(acks.length))
      if (unacked.length >= window) break
      const reading = { n: (published += 1), id: nextId() }
      unacked.push(reading)
      // What is behind the loss still leaves the client, and does not arrive.
      if (sent < lossAt) take(reading, false)
      if (random.chance(0.3)) readAcks(random.below(acks.length + 1))
    }
    resends.disconnect(link, false)
  }
  const lost = Array.from({ length: published }, (_, index) => index + 1).filter(
    (n) => !stored.has(n) && !unacked.some((reading) => reading.n === n),
  )
  return { published, lost, twice: [...stored.values()].filter((times) => times > 1).length }

  function nextId(): number {
    const used = new Set(unacked.map(({ id }) => id))
    if (way === 'lowest') counter = 0
    do counter += 1
    while (used.has(counter))
    return counter
  }
}

describe('parked vehicles that lose their connections', () => {
  test.each(ways)('lose no reading, however they choose packet identifiers (%s)', (way) => {
    let published = 0
    for (let seed = 1; seed <= 300; seed += 1) {
      const outcome = drive(way, createRandom(seed), 1 + (seed % 8))
      expect(outcome.lost, `seed ${seed}`).toEqual([])
      // A client that counts up is never in doubt.
      expect(way === 'counts' ? outcome.twice : 0, `seed ${seed}`).toBe(0)
      published += outcome.published
    }
    expect(published).toBeGreaterThan(20_000)
  })
})
