import { describe, expect, test } from 'vitest'
import { createClients, isShared } from '../../../../src/ingest/broker/clients/clients.ts'
import type { GatewayEvent } from '../../../../src/domain/event.ts'
import type { Sender } from '../../../../src/domain/message.ts'
import { createFakeClock } from '../../../support/fake-clock.ts'
import { eventually } from '../../../support/eventually.ts'
import { openIngest, type IngestWorld, accessFor } from '../../../support/ingest-world.ts'
import { openMapperOf, truckSource } from '../../../support/mapping-world.ts'
import { auto } from '../../../support/memory-intake-spool.ts'

const users = ['depot', 'yard']
const accessOf = (anonymous: boolean) => accessFor(users, anonymous)
const asUser = (name: string) => ({ username: name, password: Buffer.from(name) })

const reading = (km: number) => JSON.stringify({ ts: 1_760_000_000_000 + km, lat: 52, lon: 13 })

async function stateOf(world: IngestWorld, clientId: string, state: string): Promise<unknown> {
  while (world.ingest.clients.find(clientId)?.state !== state) await new Promise(setImmediate)
  return world.ingest.clients.find(clientId)
}

describe('a will', () => {
  const will = { topic: 'telemetry/v1/truck-8', payload: Buffer.from(reading(1)), qos: 1 as const }

  test('for another truck is ignored and counted, and marks its own client as lost', async () => {
    const spool = auto()
    await using world = await openIngest(spool, { mapper: openMapperOf([truckSource()]) })
    const device = await world.connection('truck-7')
    await device.connect({ will })
    device.publish({ topic: 'telemetry/v1/truck-7', payload: reading(2) })
    await device.acked(1)
    device.destroy()
    expect(await stateOf(world, 'truck-7', 'lost')).toMatchObject({ willCame: true })
    expect(spool.payloads.map(({ device }) => device)).toEqual(['truck-7'])
    expect(world.ingest.counters().ignoredByReason).toEqual([{ source: 'trucks', reason: 'will', count: 1 }])
    expect(world.ingest.clients.find('truck-8')).toBeNull()
  })

  test('is taken where the source says so', async () => {
    const spool = auto()
    const mapper = openMapperOf([truckSource({}, { wills: 'take' })])
    await using world = await openIngest(spool, { mapper })
    const device = await world.connection('truck-7')
    await device.connect({ will })
    device.destroy()
    expect(await stateOf(world, 'truck-7', 'lost')).toMatchObject({ willCame: true })
    await eventually(() => spool.payloads.length > 0)
    expect(spool.payloads.map(({ device }) => device)).toEqual(['truck-8'])
  })

  test('that no source takes is no dead letter', async () => {
    const spool = auto()
    await using world = await openIngest(spool, { mapper: openMapperOf([truckSource()]) })
    const device = await world.connection('truck-7')
    await device.connect({ will: { ...will, topic: 'status/truck-7' } })
    device.destroy()
    await spool.ended(1)
    expect(world.ingest.counters()).toMatchObject({ received: 1, ignored: 1, dead: 0 })
  })
})

describe('a message with RETAIN', () => {
  test('is an ordinary message, also for a source that ignores retained messages', async () => {
    const spool = auto()
    const mapper = openMapperOf([truckSource({}, { retained: 'ignore' })])
    await using world = await openIngest(spool, { mapper })
    const device = await world.device('truck-7')
    for (const qos of [0, 1, 2] as const)
      device.publish({
        topic: 'telemetry/v1/truck-7',
        payload: reading(qos),
        qos,
        messageId: qos + 1,
        retain: true,
      })
    await device.acked(3)
    expect(world.ingest.counters()).toMatchObject({ mapped: 3, ignored: 0 })
  })
})

describe('a client id', () => {
  test('two identities that connect with it in the same moment both get in', async () => {
    await using world = await openIngest(auto(), accessOf(false))
    const both = await Promise.all([world.connection('truck-7'), world.connection('truck-7')])
    const codes = await Promise.all(
      both.map(async (device, index) => (await device.connect(asUser(users[index]!))).returnCode),
    )
    expect(codes.toSorted((a, b) => (a ?? 0) - (b ?? 0))).toEqual([0, 0])
  })
})

describe('what is known of clients', () => {
  const dayMs = 86_400_000

  function open() {
    const clock = createFakeClock()
    const events: GatewayEvent[] = []
    const clients = createClients({ clock, emit: (event) => void events.push(event) })
    return { clock, events, clients }
  }
  const senderOf = (clientId: string): Sender => ({
    clientId,
    userName: null,
    certificateName: null,
    identity: null,
  })
  const fault = { reason: 'bad_credentials', detail: 'd.' }

  test('a device that comes back now and then shares its id with nobody', async () => {
    const { clock, events, clients } = open()
    for (let count = 0; count < 50; count += 1) {
      clients.connected(senderOf('truck-7'), null)
      await clock.advance(150_000)
    }
    expect(clients.takeOvers()).toBe(49)
    expect(events.filter(({ kind }) => kind === 'client_id_shared')).toEqual([])
  })

  test('two that share an id do so since the first time, and no more ten minutes after the last one', async () => {
    const { clock, events, clients } = open()
    const shared = () => isShared(clients.find('truck-7')!, clock.now())
    let first = 0
    for (let count = 1; count <= 69; count += 1) {
      await clock.advance(3000)
      clients.connected(senderOf('truck-7'), null)
      if (shared() && first === 0) first = clock.now()
    }
    expect(clients.find('truck-7')).toMatchObject({ sharedFirstAt: first, sharedAt: clock.now() })
    expect(events.findLast(({ kind }) => kind === 'client_id_shared')).toMatchObject({ takeOvers: 68 })
    await clock.advance(600_000)
    expect(shared()).toBe(false)
    for (let count = 1; count <= 6; count += 1) clients.connected(senderOf('truck-7'), null)
    expect(clients.find('truck-7')).toMatchObject({ sharedFirstAt: clock.now() })
  })

  test('a client is refused since the first refusal behind its last connection', async () => {
    const { clock, clients } = open()
    const truck = senderOf('truck-7')
    for (let round = 0; round < 2; round += 1) {
      clients.connected(truck, null)
      clients.ended(truck, false)
      await clock.advance(60_000)
      const from = clock.now()
      for (let count = 0; count < 5; count += 1) {
        clients.refused({ clientId: 'truck-7', address: '10.0.0.8' }, fault)
        await clock.advance(60_000)
      }
      expect(clients.find('truck-7')).toMatchObject({ refusedFirstAt: from, refusedAt: clock.now() - 60_000 })
    }
  })

  test('is bounded, and strangers that were refused displace no admitted client', () => {
    const { clients } = open()
    const truck = senderOf('truck-7')
    clients.connected(truck, null)
    clients.ended(truck, false)
    for (let n = 0; n < 30_000; n += 1)
      clients.refused({ clientId: `stranger-${n}`, address: '10.0.0.8' }, fault)
    expect(clients.find('truck-7')).toMatchObject({ state: 'lost' })
    expect(clients.find('stranger-0')).toBeNull()
    expect(clients.withFaults(100_000)).toHaveLength(1000)
    for (let n = 0; n < 30_000; n += 1) {
      const one = senderOf(`other-${n}`)
      clients.connected(one, null)
      clients.ended(one, true)
    }
    expect(clients.find('truck-7')).toBeNull()
    expect(clients.find('other-29999')).toMatchObject({ state: 'disconnected' })
    expect(clients.find('other-9999')).toBeNull()
    expect(clients.find('other-10000')).not.toBeNull()
  })

  test('outlives the process: what changed is given once, and restored as closed', async () => {
    const { clock, clients } = open()
    const truck = senderOf('truck-7')
    clients.connected(truck, '10.0.0.7', { protocol: 'MQTT 3.1.1' })
    clients.refused({ clientId: 'stranger', userName: 'truck-8', address: '10.0.0.8' }, fault)
    clients.refused({ clientId: null, address: '10.0.0.9' }, { reason: 'tls_on_plain_port', detail: 't.' })
    const changed = clients.takeChanged(2)
    expect(changed.map(({ view }) => view?.clientId)).toEqual(['truck-7', 'stranger'])
    const rest = clients.takeChanged(10)
    expect(rest).toHaveLength(1)
    expect(clients.takeChanged(10)).toEqual([])

    await clock.advance(60_000)
    const savedAt = clock.now()
    const next = createClients({ clock, emit: () => undefined })
    next.connected(truck, '10.0.0.77')
    next.restore([...changed, ...rest].map(({ key, view }) => ({ key, view: view!, savedAt })))
    expect(next.find('truck-7')).toMatchObject({ state: 'connected', address: '10.0.0.77' })
    expect(next.find('stranger')).toMatchObject({ state: 'refused', userName: 'truck-8', fault })
    expect(next.findAddress('10.0.0.9')).toMatchObject({
      clientId: '',
      fault: { reason: 'tls_on_plain_port' },
    })

    const later = createClients({ clock, emit: () => undefined })
    later.restore([...changed, ...rest].map(({ key, view }) => ({ key, view: view!, savedAt })))
    expect(later.find('truck-7')).toMatchObject({
      state: 'disconnected',
      since: savedAt,
      address: '10.0.0.7',
    })
    // A client that was restored is removed from the disk when it is forgotten.
    await clock.advance(1)
    later.forgetBefore(clock.now())
    expect(later.takeChanged(10).map(({ view }) => view)).toEqual([null, null, null])
  })

  test('goes with a step of the clock where this process noted it, and stays as another one noted it', async () => {
    const { clock, clients: before } = open()
    before.refused({ clientId: 'truck-6', address: '10.0.0.6' }, fault)
    const earlierAt = clock.now()
    const stored = before.takeChanged(1).map(({ key, view }) => ({ key, view: view!, savedAt: earlierAt }))
    await clock.advance(60_000)

    let aheadMs = 0
    const now = () => clock.now() + aheadMs
    const clients = createClients({ clock: { ...clock, now }, emit: () => undefined })
    clients.restore(stored)
    const truck = senderOf('truck-7')
    clients.connected(truck, null)
    const connectedAt = now()
    await clock.advance(1000)
    clients.messageRefused(truck, fault)
    const message = { topic: 't', source: null, became: 'dead', reason: 'NO_SOURCE', detail: '' } as const
    clients.unnamed(truck, message)
    clients.refused({ clientId: 'truck-8', address: '10.0.0.8' }, fault)
    const notedAt = now()
    clients.takeChanged(10)

    for (const byMs of [-dayMs, 3 * dayMs]) {
      aheadMs += byMs
      clients.clockStepped(byMs)
      expect(clients.find('truck-7')).toMatchObject({
        since: connectedAt + aheadMs,
        messageRefusedAt: notedAt + aheadMs,
        fault: { at: notedAt + aheadMs },
        unnamed: { firstAt: notedAt + aheadMs, at: notedAt + aheadMs },
        refusedAt: null,
      })
      expect(clients.find('truck-8')).toMatchObject({
        since: notedAt + aheadMs,
        refusedAt: notedAt + aheadMs,
      })
      expect(clients.find('truck-6')).toMatchObject({ since: earlierAt, refusedAt: earlierAt })
      expect(clients.takeChanged(10).map(({ key }) => key)).toEqual(['truck-7', 'truck-8'])
    }
  })

  test('an anonymous client that comes with the id of a connected one is refused, and that one says who it was', () => {
    const { clients } = open()
    clients.connected({ ...senderOf('truck-7'), identity: 'user-7' }, null)
    expect(clients.mayConnect('truck-7', null)).toBe(false)
    const refused = { clientId: 'truck-7', identity: null, address: '10.0.0.8' }
    clients.refused(refused, { reason: 'client_id_in_use', detail: 'd.' })
    expect(clients.find('truck-7')).toMatchObject({
      state: 'connected',
      refusedAt: null,
      fault: { detail: 'd. Another client came with it from 10.0.0.8.' },
    })
  })

  test('two identities with one client id are two clients, also after a restart', () => {
    const { clients } = open()
    const senderOfUser = (identity: string) => ({ ...senderOf('truck-7'), identity })
    const [own, other] = [senderOfUser('user-7'), senderOfUser('user-8')]
    clients.connected(other, '10.0.0.8')
    expect(clients.mayConnect('truck-7', 'user-7')).toBe(true)
    clients.refused({ clientId: 'truck-7', identity: 'user-7', address: '10.0.0.7' }, fault)
    clients.connected(own, '10.0.0.7')
    clients.messageRefused(own, fault)
    clients.ended(other, true)
    const expectBoth = (found: typeof clients, states: [string, string]) => {
      expect(found.find('truck-7', 'user-7')).toMatchObject({ state: states[0], address: '10.0.0.7' })
      expect(found.find('truck-7', 'user-8')).toMatchObject({
        state: states[1],
        address: '10.0.0.8',
        fault: null,
      })
    }
    expectBoth(clients, ['connected', 'disconnected'])
    expect(clients.takeOvers()).toBe(0)
    const stored = clients.takeChanged(10).map(({ key, view }) => ({ key, view: view!, savedAt: 0 }))
    const { clients: next } = open()
    next.restore(stored)
    expectBoth(next, ['disconnected', 'disconnected'])
    // Neither takes the record of the other one.
    next.connected(own, '10.0.0.7')
    expectBoth(next, ['connected', 'disconnected'])
  })

  test('an admitted client that is refused later says so, until it connects again', () => {
    const { clients } = open()
    const truck = senderOf('truck-7')
    clients.connected(truck, null)
    clients.refused({ clientId: 'truck-7', address: null }, { reason: 'client_id_in_use', detail: 'd.' })
    expect(clients.find('truck-7')).toMatchObject({ state: 'connected', refusedAt: null })
    clients.ended(truck, false)
    clients.refused({ clientId: 'truck-7', address: null }, fault)
    expect(clients.find('truck-7')).toMatchObject({ state: 'lost', refusedAt: expect.any(Number) as number })
    clients.connected(truck, null)
    expect(clients.find('truck-7')).toMatchObject({ refusedAt: null })
  })
})
