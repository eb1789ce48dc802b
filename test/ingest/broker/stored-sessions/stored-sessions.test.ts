import { describe, expect, test } from 'vitest'
import type { IngestOptions } from '../../../../src/ingest/ingest.ts'
import type { FakeClock } from '../../../support/fake-clock.ts'
import { eventually } from '../../../support/eventually.ts'
import { openIngest, type IngestWorld, accessFor } from '../../../support/ingest-world.ts'
import type { Device } from '../../../support/mqtt-device.ts'
import { openSpoolWorld, type SpoolWorld } from '../../../support/open-spool.ts'

const parked = { topic: 't', payload: 'untimed parked', qos: 2 } as const

/** A gateway on a real spool that can be restarted. */
async function openDepot(options: Partial<IngestOptions> & { clock?: FakeClock } = {}) {
  let spools: SpoolWorld = await openSpoolWorld()
  let world: IngestWorld = await openIngest(spools.spool, { clock: spools.clock, ...options })
  return {
    get world() {
      return world
    },
    clock: spools.clock,
    /** Connects; PUBREC is not answered by itself. */
    async connect(clientId: string, clean = false, user?: string): Promise<Device & { present: boolean }> {
      const device = await world.connection(clientId, { releases: false })
      const credentials = user === undefined ? {} : { username: user, password: Buffer.from(user) }
      const { sessionPresent } = await device.connect({ clean, ...credentials })
      return Object.assign(device, { present: sessionPresent })
    },
    async restart() {
      await world.ingest.stopAccepting()
      spools = await spools.reopen()
      await world[Symbol.asyncDispose]()
      world = await openIngest(spools.spool, { clock: spools.clock, ...options })
    },
    close: () => spools.spool.close(),
    stored: () => spools.spool.lanes().reduce((sum, { pending }) => sum + pending, 0),
    [Symbol.asyncDispose]: () => world[Symbol.asyncDispose](),
  }
}

type Depot = Awaited<ReturnType<typeof openDepot>>

async function presence(depot: Depot, clientId: string, clean = false, user?: string): Promise<boolean> {
  const device = await depot.connect(clientId, clean, user)
  device.destroy()
  await device.gone()
  while (depot.world.ingest.counters().connections > 0) await new Promise(setImmediate)
  return device.present
}

describe('a stop', () => {
  test('ends the look for expired sessions before the spool is closed', async () => {
    await using depot = await openDepot({ sessionExpiryMs: 10_000 })
    await presence(depot, 'van')
    await depot.world.ingest.stopAccepting()
    await depot.close()
    // A timer that writes would throw here: the spool is closed, the connections are not.
    await depot.clock.advance(60_000)
    expect(depot.world.ingest.counters()).toMatchObject({ sessions: 1, sessionsExpired: 0 })
  })
})

describe('a stored session', () => {
  test('that was used longest ago is removed at the bound, reported and counted', async () => {
    await using depot = await openDepot({ sessionsMax: 2 })
    for (const name of ['a', 'b', 'a', 'c']) await presence(depot, name)
    expect(await presence(depot, 'a')).toBe(true)
    expect(await presence(depot, 'c')).toBe(true)
    await depot.restart()
    expect(await presence(depot, 'b')).toBe(false)
    expect(depot.world.ingest.counters()).toMatchObject({ sessions: 2, sessionsEvicted: 1 })
    expect(depot.world.events.filter(({ kind }) => kind === 'session_evicted')).toMatchObject([
      { clientId: 'a', reason: 'max_sessions', owner: null },
    ])
  })

  test('a client that opens sessions without end removes its own and not those of others', async () => {
    await using depot = await openDepot({ sessionsMax: 20 })
    const connectFrom = async (clientId: string, from: string) => {
      const device = await depot.world.connection(clientId, { from })
      const { sessionPresent } = await device.connect({ clean: false })
      device.destroy()
      await eventually(() => depot.world.ingest.counters().connections === 0)
      return sessionPresent
    }
    const fleet = Array.from({ length: 12 }, (_, index) => `truck-${index}`)
    for (const truck of fleet) await connectFrom(truck, `127.0.1.${truck.slice(6)}`)
    for (let index = 0; index < 40; index += 1) await connectFrom(`new-${index}`, '127.0.0.9')
    for (const truck of fleet) expect(await connectFrom(truck, '127.0.0.2')).toBe(true)
    expect(await connectFrom('another', '127.0.0.3')).toBe(false)
    expect(depot.world.ingest.counters()).toMatchObject({ sessions: 20, sessionsEvicted: 33 })
    const events = depot.world.events.filter(({ kind }) => kind === 'session_evicted')
    expect(new Set(events.slice(0, 32).map((event) => 'owner' in event && event.owner))).toEqual(
      new Set(['127.0.0.9']),
    )
  })
})

describe('a stored session belongs to an identity and a client id together', () => {
  const { access } = accessFor(['alice', 'bob'], true)

  test.each([
    ['bob', true],
    ['bob', false],
    [undefined, true],
    [undefined, false],
  ])('and %s cannot use or delete that of alice (clean session: %s)', async (stranger, clean) => {
    await using depot = await openDepot({ access })
    const first = await depot.connect('van', false, 'alice')
    first.publish({ ...parked, messageId: 7 })
    await first.acked(1)
    first.destroy()
    await eventually(() => depot.world.ingest.counters().connections === 0)
    await depot.restart()

    const other = await depot.connect('van', clean, stranger)
    expect(other.present).toBe(false)
    other.send({ cmd: 'pubrel', messageId: 7 })
    await other.acked(1)
    other.destroy()
    await eventually(() => depot.world.ingest.counters().connections === 0)
    await depot.restart()

    const again = await depot.connect('van', false, 'alice')
    expect(again.present).toBe(true)
    again.publish({ ...parked, messageId: 7, dup: true })
    await again.acked(1)
    expect(depot.stored()).toBe(1)
  })

  test('and so do the packet identifiers by which a message without a device time is known', async () => {
    await using depot = await openDepot({ access })
    const send = async (user: string, payload: string, dup: boolean) => {
      const device = await depot.connect('van', false, user)
      device.publish({ ...parked, payload, qos: 1, messageId: 7, dup })
      await device.acked(1)
      device.destroy()
      await eventually(() => depot.world.ingest.counters().connections === 0)
    }
    await send('alice', 'untimed parked', false)
    await send('bob', 'untimed other', false)
    await depot.restart()
    await send('alice', 'untimed parked', true)
    expect(depot.stored()).toBe(2)
    await send('bob', 'untimed parked', true)
    expect(depot.stored()).toBe(3)
  })

  test('and the bound of sessions is that of identities, also after a restart', async () => {
    await using depot = await openDepot({ access, sessionsMax: 4 })
    await presence(depot, 'van', false, 'alice')
    for (const name of ['a', 'b', 'c']) await presence(depot, name, false, 'bob')
    await depot.restart()
    await presence(depot, 'd', false, 'bob')
    expect(depot.world.events.filter(({ kind }) => kind === 'session_evicted')).toMatchObject([
      { clientId: 'a', owner: 'bob' },
    ])
    expect(await presence(depot, 'van', false, 'alice')).toBe(true)
  })
})

describe('a QoS 2 message of a stored session', () => {
  test('is a new one after PUBREL, although the bytes are equal, also over a restart', async () => {
    await using depot = await openDepot()
    for (const count of [1, 2, 3]) {
      const device = await depot.connect('van')
      device.publish({ ...parked, messageId: 7, dup: count > 1 })
      await device.acked(1)
      device.send({ cmd: 'pubrel', messageId: 7 })
      await device.acked(2)
      expect(depot.stored()).toBe(count)
      await depot.restart()
    }
  })
})

describe('QoS 2 messages that are not released', () => {
  const publish = async (device: Device, count: number) => {
    for (let id = 1; id <= count; id += 1)
      device.publish({ ...parked, payload: `untimed ${id}`, messageId: id })
    await device.acked(count)
  }

  test('have a bound for all: the session without a connection and with most is removed', async () => {
    await using depot = await openDepot({ unreleasedMax: 30, unreleasedTotalMax: 40 })
    for (const [name, count] of [
      ['few', 5],
      ['many', 30],
    ] as const) {
      const device = await depot.connect(name)
      await publish(device, count)
      device.destroy()
    }
    await eventually(() => depot.world.ingest.counters().connections === 0)
    const van = await depot.connect('van')
    await publish(van, 20)
    expect(van.closed).toBe(false)
    van.destroy()
    expect(depot.world.events.filter(({ kind }) => kind === 'session_evicted')).toMatchObject([
      { clientId: 'many', reason: 'max_unreleased_messages_total' },
    ])
    expect(await presence(depot, 'few')).toBe(true)
    expect(await presence(depot, 'many')).toBe(false)
  })
})
