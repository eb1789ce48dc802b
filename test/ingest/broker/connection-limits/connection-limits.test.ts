import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { describe, expect, onTestFinished, test } from 'vitest'
import { eventually } from '../../../support/eventually.ts'
import { createFakeClock } from '../../../support/fake-clock.ts'
import { openIngest, type IngestWorld, refusedBy, accessFor } from '../../../support/ingest-world.ts'
import { auto } from '../../../support/memory-intake-spool.ts'
import { connectBytes, type Device } from '../../../support/mqtt-device.ts'

/** Opens `count` connections that send nothing; `open` are those that are not closed yet. */
async function silent(world: IngestWorld, count: number, from: string): Promise<{ open(): number }> {
  const sockets: Socket[] = []
  onTestFinished(() => sockets.forEach((socket) => void socket.destroy()))
  for (let opened = 0; opened < count; opened += 1) {
    const socket = connect({ port: world.port, host: '127.0.0.1', localAddress: from })
    socket.on('error', () => socket.destroy())
    sockets.push(socket)
    await once(socket, 'connect')
    socket.resume()
  }
  return { open: () => sockets.filter(({ destroyed }) => !destroyed).length }
}

/** Limits that no test reaches by accident. */
const wide = { connectsPerS: 100_000, connectsPerAddressPerS: 100_000 }

describe('connections without CONNECT', () => {
  test.each([
    ['another address', '127.0.0.1'],
    ['the same address', '127.0.0.9'],
  ])('600 of one address keep no client at %s out', async (_where, from) => {
    const spool = auto()
    await using world = await openIngest(spool, wide)
    const before = await world.device('before', { from })
    const raw = await silent(world, 600, '127.0.0.9')
    await eventually(() => raw.open() === 500)
    expect(world.ingest.counters().unauthenticated).toBe(500)
    expect(refusedBy(world)).toEqual({ max_unauthenticated_per_address: 100 })
    const honest = await world.device('honest', { from })
    for (const device of [before, honest]) {
      device.publish({ topic: 't', payload: device.clientId })
      await device.acked(1)
    }
    expect(spool.payloads).toHaveLength(2)
    expect(world.events).toContainEqual({
      kind: 'listener_refused',
      reason: 'max_unauthenticated_per_address',
      detail: 'The limit max_unauthenticated_per_address is reached.',
      found: null,
      count: 1,
      top: ['127.0.0.9 (1)'],
    })
  })

  test('of many addresses: those of the address with most are closed, the silent one first', async () => {
    await using world = await openIngest(auto(), { ...wide, unauthenticatedMax: 20 })
    const few = await silent(world, 5, '127.0.0.2')
    const many = await silent(world, 40, '127.0.0.3')
    await eventually(() => many.open() === 15)
    expect(few.open()).toBe(5)
    const honest = await world.device('honest', { from: '127.0.0.4' })
    await eventually(() => many.open() === 14)
    expect(few.open()).toBe(5)
    expect(honest.closed).toBe(false)
    expect(refusedBy(world)).toEqual({ max_unauthenticated: 26 })
  })

  test('none is counted after its end', async () => {
    await using world = await openIngest(auto(), wide)
    const device = await world.device('device')
    const silentOne = await world.connection('silent')
    await eventually(() => world.ingest.counters().unauthenticated === 1)
    silentOne.destroy()
    await eventually(() => world.ingest.counters().unauthenticated === 0)
    expect(device.closed).toBe(false)
  })
})

describe('connections in all', () => {
  test('a silent one makes room for a new one, a connected device never does', async () => {
    await using world = await openIngest(auto(), { ...wide, connectionsMax: 3 })
    const devices = [await world.device('a'), await world.device('b')]
    const silentOne = await world.connection('silent')
    await eventually(() => world.ingest.counters().unauthenticated === 1)
    devices.push(await world.device('c'))
    await silentOne.gone()
    await (await world.connection('d')).gone()
    expect(devices.map(({ closed }) => closed)).toEqual([false, false, false])
    expect(refusedBy(world)).toEqual({ max_connections: 2 })
  })

  test('one address has its own bound, and others are not affected', async () => {
    await using world = await openIngest(auto(), { ...wide, connectionsPerAddressMax: 2 })
    const own = { from: '127.0.0.5' }
    const first = await world.device('a', own)
    await world.device('b', own)
    await (await world.connection('c', own)).gone()
    await world.device('d', { from: '127.0.0.6' })
    expect(refusedBy(world)).toEqual({ max_connections_per_address: 1 })
    first.destroy()
    await eventually(() => world.ingest.counters().connections === 2)
    await world.device('e', own)
  })
})

describe('connections of one identity', () => {
  test('have a bound; another identity, and the same client again, connect', async () => {
    const { access } = accessFor(['north', 'south'], false, 'pw')
    await using world = await openIngest(auto(), { ...wide, access, connectionsPerIdentityMax: 2 })
    const login = async (clientId: string, username: string) => {
      const device = await world.connection(clientId)
      const { returnCode } = await device.connect({ username, password: Buffer.from('pw') })
      return { device, returnCode }
    }
    const first = await login('a', 'north')
    expect([first.returnCode, (await login('b', 'north')).returnCode]).toEqual([0, 0])
    expect((await login('c', 'north')).returnCode).toBe(3)
    expect((await login('d', 'south')).returnCode).toBe(0)
    expect((await login('a', 'north')).returnCode, 'takes over').toBe(0)
    await first.device.gone()
    expect((await login('c', 'north')).returnCode, 'the old connection leaves no room').toBe(3)
    expect(refusedBy(world)).toEqual({ max_connections_per_identity: 2 })
    expect(world.events).toContainEqual(
      expect.objectContaining({
        kind: 'listener_refused',
        reason: 'max_connections_per_identity',
        top: ['north (1)'],
      }),
    )
  })
})

describe('connections per second', () => {
  test('beyond the limit of an address they are closed before anything is read', async () => {
    await using world = await openIngest(auto(), { connectsPerAddressPerS: 10 })
    const own = { from: '127.0.0.7' }
    const flood = Array.from({ length: 60 }, async (_, index) => {
      const device = await world.connection(`c${index}`, own)
      return device.connect().then(
        () => true,
        () => false,
      )
    })
    const accepted = (await Promise.all(flood)).filter(Boolean).length
    expect(accepted).toBeGreaterThanOrEqual(10)
    expect(refusedBy(world)['max_connects_per_address_per_s']).toBe(60 - accepted)
    await world.device('honest', { from: '127.0.0.8' })
  })
})

describe('connections per second from ever new addresses', () => {
  test('leave room for an address where a client was accepted', async () => {
    const rates = { connectsPerS: 8, connectsPerAddressPerS: 8, clock: createFakeClock() }
    await using world = await openIngest(auto(), rates)
    await world.device('before', { from: '127.0.0.2' })
    const flood: Device[] = []
    for (let index = 0; index < 20; index += 1)
      flood.push(await world.connection(`flood-${index}`, { from: `127.0.3.${index + 1}` }))
    await eventually(() => flood.filter(({ closed }) => !closed).length === 5)
    expect(refusedBy(world)).toEqual({ max_connects_per_s: 15 })
    await world.device('again', { from: '127.0.0.2' })
  })
})

describe('a connection that is closed while its CONNECT is checked', () => {
  test('leaves no client behind', async () => {
    await using world = await openIngest(auto(), { ...wide, unauthenticatedMax: 1 })
    const first = await world.connection('first')
    first.sendBytes(connectBytes('first').subarray(0, 5))
    await eventually(() => world.ingest.counters().connections === 1)
    await world.device('second')
    await first.gone()
    await eventually(() => world.ingest.counters().connections === 1)
    expect(world.ingest.counters().unauthenticated).toBe(0)
  })
})
