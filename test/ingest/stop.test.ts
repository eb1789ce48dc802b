import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import { describe, expect, test } from 'vitest'
import { ingestOptions, ingestSchema } from '../../src/ingest/config.ts'
import { openIngest } from '../support/ingest-world.ts'
import { auto, byHand } from '../support/memory-intake-spool.ts'
import { createDevice } from '../support/mqtt-device.ts'

describe('stopping', () => {
  test('nothing more is read after stopAccepting, and what was read is still acknowledged', async () => {
    const spool = byHand()
    await using world = await openIngest(spool)
    const device = await world.device('truck')
    device.publish({ topic: 't', payload: 'in time', messageId: 1 })
    await spool.ended(1)
    await world.ingest.stopAccepting()
    device.publish({ topic: 't', payload: 'too late', messageId: 2 })
    await expect(createDevice({ port: world.port, clientId: 'late' })).rejects.toThrow('ECONNREFUSED')
    spool.commit()
    expect(await device.acked(1)).toEqual([{ cmd: 'puback', messageId: 1 }])
    await world.ingest.close()
    await device.gone()
    expect(world.ingest.counters()).toMatchObject({ received: 1, acked: 1, connections: 0 })
  })

  test('acks of the last commit reach the device although the connections are closed at once', async () => {
    const spool = byHand()
    await using world = await openIngest(spool)
    const device = await world.device('truck')
    for (let id = 1; id <= 100; id += 1) device.publish({ topic: 't', payload: `m${id}`, messageId: id })
    await spool.ended(100)
    await world.ingest.stopAccepting()
    spool.commit()
    await world.ingest.close()
    expect(await device.acked(100)).toHaveLength(100)
  })

  test('the gateway takes no wills when it closes the connections itself', async () => {
    const spool = byHand()
    await using world = await openIngest(spool)
    const device = await world.connection('truck')
    await device.connect({ will: { topic: 'gone', payload: Buffer.from('last words') } })
    await world.ingest.close()
    await device.gone()
    expect(world.ingest.counters().received).toBe(0)
  })
})

describe('listening', () => {
  test('a port in use fails the start with ADDRESS_IN_USE', async () => {
    const other = createServer().listen(0, '127.0.0.1')
    await once(other, 'listening')
    const { port } = other.address() as AddressInfo
    const spool = auto()
    const listeners = [
      { host: '127.0.0.1', port: 0, tls: null },
      { host: '127.0.0.1', port, tls: null },
    ]
    await expect(openIngest(spool, { listeners })).rejects.toMatchObject({ code: 'ADDRESS_IN_USE' })
    other.close()
  })

  test('an address that is not of this machine fails the start with ADDRESS_UNAVAILABLE', async () => {
    const listeners = [{ host: '192.0.2.1', port: 0, tls: null }]
    const spool = auto()
    await expect(openIngest(spool, { listeners })).rejects.toMatchObject({ code: 'ADDRESS_UNAVAILABLE' })
  })

  test('several listeners are opened and reported with the ports that the system chose', async () => {
    const url = 'mqtt://127.0.0.1:0'
    const { listeners, access } = ingestOptions(
      ingestSchema.parse({ broker: { listeners: [{ url }, { url }], access: { anonymous: true } } }),
    )
    await using world = await openIngest(auto(), { listeners, access })
    const urls = world.ingest.addresses()
    expect(world.events).toEqual(urls.map((url) => ({ kind: 'listener_opened', url })))
    for (const url of urls) {
      const device = await createDevice({ port: Number(new URL(url).port), clientId: url })
      expect(await device.connect()).toMatchObject({ returnCode: 0 })
      device.destroy()
    }
  })
})
