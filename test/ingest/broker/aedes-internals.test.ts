import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import { Aedes } from 'aedes'
import { describe, expect, test } from 'vitest'
import { stayOpenAtEnd } from '../../../src/ingest/broker/aedes-internals.ts'
import { openIngest } from '../../support/ingest-world.ts'
import { createMemoryIntakeSpool } from '../../support/memory-intake-spool.ts'
import { createDevice } from '../../support/mqtt-device.ts'

// Trip-wires: what aedes-internals.ts and gate.ts rely on in aedes 1.2. When one fails after an upgrade, read
// lib/client.js and lib/handlers of aedes first.

describe('aedes', () => {
  test('counts the packets in flight of a client in _parsingBatch, and reads with conn.read(null)', async () => {
    const aedes = await Aedes.createBroker()
    const asked: unknown[] = []
    const server = createServer((socket) => {
      const read = socket.read.bind(socket)
      socket.read = (size) => {
        if (size === null) asked.push(size)
        return read(size) as unknown
      }
      const client = aedes.handle(socket)
      expect(client).toHaveProperty('_parsingBatch', 1)
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const device = await createDevice({ port: (server.address() as AddressInfo).port, clientId: 'truck' })
    await device.connect()
    expect(asked.length).toBeGreaterThan(0)
    device.destroy()
    server.close()
    await new Promise<void>((resolve) => aedes.close(resolve))
  })

  test('closes at the end of a socket with a listener whose name is "bound close"', async () => {
    const aedes = await Aedes.createBroker()
    const server = createServer((socket) => {
      const before = socket.listeners('end').length
      const client = aedes.handle(socket)
      stayOpenAtEnd(client)
      // Another one is that of stream.finished.
      expect(socket.listeners('end').filter(({ name }) => name === 'bound close')).toEqual([])
      expect(socket.listeners('end').length).toBe(before + 1)
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const device = await createDevice({ port: (server.address() as AddressInfo).port, clientId: 'truck' })
    await device.connect()
    device.destroy()
    server.close()
    await new Promise<void>((resolve) => aedes.close(resolve))
  })

  test('reads on while messages are in flight, whatever its own count says', async () => {
    const spool = createMemoryIntakeSpool({ commits: 'by hand' })
    await using world = await openIngest(spool)
    const device = await world.device('truck')
    for (let id = 1; id <= 50; id += 1) device.publish({ topic: 't', payload: `m${id}`, messageId: id })
    await spool.ended(50)
    // No ack was given for the fifty; the next segment is read all the same.
    device.publish({ topic: 't', payload: 'm51', messageId: 51 })
    await spool.ended(51)
    spool.commit()
    expect(await device.acked(51)).toHaveLength(51)
  })

  test('never writes an ack unless the gateway does', async () => {
    const spool = createMemoryIntakeSpool({ commits: 'auto' })
    await using world = await openIngest(spool)
    const device = await world.device('truck')
    device.publish({ topic: 't', payload: 'a', messageId: 1 })
    device.publish({ topic: 't', payload: 'b', messageId: 2, qos: 2 })
    await device.acked(3)
    device.send({ cmd: 'pingreq' })
    await device.until((received) => received.some(({ cmd }) => cmd === 'pingresp'))
    expect(device.acks.map(({ cmd }) => cmd)).toEqual(['puback', 'pubrec', 'pubcomp'])
  })
})
