import { describe, expect, test } from 'vitest'
import type { EventOf } from '../../../src/domain/event.ts'
import { eventually } from '../../support/eventually.ts'
import { openIngest, type IngestWorld } from '../../support/ingest-world.ts'
import { auto } from '../../support/memory-intake-spool.ts'
import type { Device } from '../../support/mqtt-device.ts'

const connects = (world: IngestWorld) => world.events.filter(({ kind }) => kind === 'client_connected')

function ends(world: IngestWorld): EventOf<'client_disconnected'>[] {
  return world.events.filter((event) => event.kind === 'client_disconnected')
}

const who = { clientId: 'truck-7', identity: null, address: '127.0.0.1' }

describe('the connection of a device is reported when it begins and when it ends', () => {
  test('with its client id, its address, how long it was connected, and DISCONNECT', async () => {
    await using world = await openIngest(auto())
    const device = await world.device('truck-7')
    expect(connects(world)).toEqual([{ kind: 'client_connected', ...who }])
    device.send({ cmd: 'disconnect' })
    await device.gone()
    await eventually(() => ends(world).length === 1)
    const [end] = ends(world)
    expect(end).toMatchObject({ ...who, reason: 'disconnect', detail: 'It sent DISCONNECT.' })
    expect(end?.connectedMs).toBeGreaterThan(0)
    expect(end?.connectedMs).toBeLessThan(30_000)
  })

  test.each<[string, (world: IngestWorld, device: Device) => unknown]>([
    ['closed', (_world, device) => device.end()],
    ['not_from_client', (_world, device) => device.sendBytes(Buffer.from([0x20, 2, 0, 0]))],
    ['taken_over', (world) => world.device('truck-7')],
    ['gateway_stopping', (world) => world[Symbol.asyncDispose]()],
  ])('%s, once', async (reason, end) => {
    await using world = await openIngest(auto())
    const device = await world.device('truck-7')
    await end(world, device)
    await eventually(() => ends(world).length === 1)
    expect(ends(world)).toMatchObject([{ ...who, reason }])
    expect(connects(world)).toHaveLength(reason === 'taken_over' ? 2 : 1)
  })

  test('a client that is refused has neither, and nothing is reported for a message', async () => {
    await using world = await openIngest(auto())
    const refused = await world.connection('x'.repeat(300))
    await refused.connect()
    await refused.gone()
    const device = await world.device('truck-7')
    const before = world.events.length
    for (let messageId = 1; messageId <= 100; messageId += 1)
      device.publish({ topic: 'telemetry/v1/truck-7', payload: `${messageId}`, messageId })
    await device.acked(100)
    expect(world.events.slice(before)).toEqual([])
    expect(connects(world)).toEqual([{ kind: 'client_connected', ...who }])
    expect(ends(world)).toEqual([])
  })
})
