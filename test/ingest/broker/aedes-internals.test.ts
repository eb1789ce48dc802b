import { once } from 'node:events'
import { connect, createServer, type AddressInfo } from 'node:net'
import { Aedes, type Client } from 'aedes'
import { describe, expect, test } from 'vitest'
import {
  asVersion311,
  endNormally,
  prepareParser,
  replaceConnack,
  leaveEndToGate,
} from '../../../src/ingest/broker/aedes-internals.ts'
import { eventually } from '../../support/eventually.ts'
import { openIngest } from '../../support/ingest-world.ts'
import { createMemoryIntakeSpool } from '../../support/memory-intake-spool.ts'
import { createDevice } from '../../support/mqtt-device.ts'
import { connectPacket } from '../../support/mqtt5-packets.ts'

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

  test('listens to nothing of the end of a socket but errors, once the end is left to the gate', async () => {
    const aedes = await Aedes.createBroker()
    let before: number[] = []
    let after: number[] = []
    const ended = new Promise((resolve) => aedes.on('clientDisconnect', resolve))
    const server = createServer((socket) => {
      const listeners = () => ['end', 'close', 'finish', 'error'].map((name) => socket.listenerCount(name))
      before = listeners()
      const client = aedes.handle(socket)
      expect(listeners()).not.toEqual(before)
      leaveEndToGate(client)
      after = listeners()
      socket.on('close', () => client.close())
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const device = await createDevice({ port: (server.address() as AddressInfo).port, clientId: 'truck' })
    await device.connect()
    const [end, close, finish, error = 0] = before
    expect(after).toEqual([end, close, finish, error + 1])
    device.destroy()
    await ended
    server.close()
    await new Promise<void>((resolve) => aedes.close(resolve))
  })

  test('parses the same without a stream for the bytes that it has not read', async () => {
    const aedes = await Aedes.createBroker()
    const lists: object[] = []
    const server = createServer((socket) => {
      const client = aedes.handle(socket)
      const parser = (client as unknown as { _parser: { _list: object } })._parser
      expect(parser._list).toHaveProperty('_writableState')
      prepareParser(client)
      expect(parser._list).not.toHaveProperty('_writableState')
      lists.push(parser._list)
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const device = await createDevice({ port: (server.address() as AddressInfo).port, clientId: 'truck' })
    await device.connect()
    device.publish({ topic: 't', payload: 'a', messageId: 7 })
    expect(await device.acked(1)).toMatchObject([{ messageId: 7 }])
    expect(lists).toHaveLength(1)
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

  test('writes CONNACK by conn.write, and reads the version of a CONNECT after preConnect', async () => {
    const versions: unknown[] = []
    const aedes = await Aedes.createBroker({
      preConnect(client, packet, done) {
        // The parser has this packet as its settings.
        expect((client as unknown as { _parser: { settings: unknown } })._parser.settings).toBe(packet)
        asVersion311(packet)
        done(null, true)
      },
      authenticate(client, _userName, _password, done) {
        versions.push((client as unknown as { version: unknown }).version)
        replaceConnack(client, () => Buffer.from([0x20, 3, 1, 0, 0]))
        // Nothing else is replaced.
        client.conn.write(Buffer.from([0xd0, 0]))
        done(null, true)
      },
    })
    const server = createServer((socket) => void aedes.handle(socket)).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
    const chunks: Buffer[] = []
    socket.on('data', (chunk: Buffer) => chunks.push(chunk))
    const ready = once(aedes, 'clientReady')
    socket.write(connectPacket())
    const [client] = (await ready) as [Client]
    expect(versions).toEqual([4])
    expect(Object.hasOwn(client.conn, 'write')).toBe(false)
    client.conn.write(Buffer.from([0xd0, 0]))
    await eventually(() => Buffer.concat(chunks).length >= 9)
    expect(Buffer.concat(chunks)).toEqual(Buffer.from([0xd0, 0, 0x20, 3, 1, 0, 0, 0xd0, 0]))
    socket.destroy()
    server.close()
    await new Promise<void>((resolve) => aedes.close(resolve))
  })

  test('takes no will of a client that has ended its connection rightly', async () => {
    const wills: string[] = []
    const aedes = await Aedes.createBroker({
      authorizePublish(_client, { topic }, done) {
        wills.push(topic)
        done(null)
      },
    })
    const server = createServer((socket) => void aedes.handle(socket)).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    for (const clientId of ['rightly', 'wrongly']) {
      const device = await createDevice({ port, clientId })
      const ready = once(aedes, 'clientReady')
      await device.connect({ will: { topic: clientId, payload: Buffer.from('x') } })
      const [client] = (await ready) as [Client]
      if (clientId === 'rightly') endNormally(client)
      else client.conn.destroy()
      await device.gone()
    }
    await eventually(() => wills.length > 0)
    expect(wills).toEqual(['wrongly'])
    server.close()
    await new Promise<void>((resolve) => aedes.close(resolve))
  })
})
