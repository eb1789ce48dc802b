import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { describe, expect, onTestFinished, test } from 'vitest'
import { eventually } from '../../../support/eventually.ts'
import { createFakeClock } from '../../../support/fake-clock.ts'
import { openIngest, type IngestWorld, refusedBy } from '../../../support/ingest-world.ts'
import { auto } from '../../../support/memory-intake-spool.ts'
import type { Device } from '../../../support/mqtt-device.ts'

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
