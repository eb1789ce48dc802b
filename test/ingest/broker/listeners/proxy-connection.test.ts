import { once } from 'node:events'
import { connect as connectTcp, createServer, type AddressInfo } from 'node:net'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { ListenerOptions } from '../../../../src/ingest/broker/listeners/listeners.ts'
import { createAuthority } from '../../../support/certificates.ts'
import { eventually } from '../../../support/eventually.ts'
import { createFakeClock } from '../../../support/fake-clock.ts'
import { openIngest, type IngestWorld, listenerTls, refusedBy } from '../../../support/ingest-world.ts'
import { auto } from '../../../support/memory-intake-spool.ts'
import { connectBytes, publishBytes } from '../../../support/mqtt-device.ts'
import { localHeader, proxyHeader } from '../../../support/proxy-header-bytes.ts'

const balancer = { address: '127.0.0.1', prefix: 32 }
const plain: ListenerOptions = { host: '127.0.0.1', port: 0, tls: null, proxyTrusted: [balancer] }

/** The address of the client in the log line of a fault that it makes. */
async function addressInLog(world: IngestWorld, start: Buffer): Promise<string | null> {
  const client = await world.connection('any')
  client.sendBytes(Buffer.concat([start, Buffer.from('GET / HTTP/1.1\r\n\r\n')]))
  await client.gone()
  const event = world.events.findLast(({ kind }) => kind === 'client_dropped')
  return event?.kind === 'client_dropped' ? event.address : null
}

/** A balancer that sends its header with the first bytes of a client. Resolves with its port. */
async function balance(to: number, header: Buffer): Promise<number> {
  const server = createServer((client) => {
    client.once('data', (first) => {
      const listener = connectTcp({ port: to, host: '127.0.0.1' })
      client.on('error', () => listener.destroy()).on('close', () => listener.destroy())
      listener.on('error', () => client.destroy()).write(Buffer.concat([header, first]))
      client.pipe(listener).pipe(client)
    })
  })
  onTestFinished(() => void server.close())
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return (server.address() as AddressInfo).port
}

describe('a listener behind a balancer', () => {
  test.each([
    ['version 2', proxyHeader('192.0.2.7')],
    ['version 1', Buffer.from('PROXY UNKNOWN\r\n')],
    ['version 1 of full length', Buffer.from(`PROXY UNKNOWN ${'x'.repeat(91)}\r\n`)],
  ])(
    'takes the client and its messages behind a header of %s, in parts of any size',
    async (_version, header) => {
      const spool = auto()
      await using world = await openIngest(spool, { listeners: [plain] })
      const messages = Array.from({ length: 50 }, (_, index) =>
        publishBytes({ topic: 't', payload: `${index} ${'x'.repeat(1000)}`, messageId: index + 1 }),
      )
      const bytes = Buffer.concat([header, connectBytes('truck'), ...messages])
      // The messages come in larger parts.
      for (const size of [1, 7, 500, bytes.length]) {
        const client = await world.connection('client')
        for (let at = 0, step = size; at < bytes.length; at += step) {
          step = at < 200 ? size : 9000
          client.sendBytes(bytes.subarray(at, at + step))
          await new Promise(setImmediate)
        }
        await client.acked(50)
      }
      expect(spool.payloads).toHaveLength(50)
      expect(world.ingest.counters()).toMatchObject({ received: 200, duplicates: 150 })
    },
  )

  test.each([
    ['192.0.2.7', proxyHeader('192.0.2.7')],
    ['127.0.0.1', localHeader],
    ['192.0.2.9', Buffer.from('PROXY TCP4 192.0.2.9 192.0.2.8 1 1883\r\n')],
  ])('logs the client as %s', async (address, header) => {
    await using world = await openIngest(auto(), { listeners: [plain] })
    expect(await addressInLog(world, header)).toBe(address)
  })

  test('counts the addresses in the headers, not that of the balancer', async () => {
    await using world = await openIngest(auto(), { listeners: [plain], connectionsPerAddressMax: 2 })
    let clients = 0
    const open = async (source: string) => {
      clients += 1
      const client = await world.connection(`c${clients}`)
      client.sendBytes(proxyHeader(source))
      return client
    }
    for (const source of ['192.0.2.1', '192.0.2.1', '192.0.2.2', '192.0.2.2'])
      await (await open(source)).connect()
    await (await open('192.0.2.1')).gone()
    expect(refusedBy(world)).toEqual({ max_connections_per_address: 1 })
    await (await open('192.0.2.3')).connect()
    expect(world.ingest.counters().connections).toBe(5)
  })

  test('closes a connection from another address', async () => {
    await using world = await openIngest(auto(), { listeners: [plain] })
    const stranger = await world.connection('stranger', { from: '127.0.0.2' })
    stranger.sendBytes(proxyHeader('192.0.2.7'))
    await stranger.gone()
    expect(refusedBy(world)).toEqual({ proxy_untrusted: 1 })
  })

  test.each([
    ['proxy_header_missing', connectBytes('direct')],
    ['proxy_header_invalid', Buffer.from('PROXY TCP4 192.0.2.7 192.0.2.8 1 x\r\n')],
    ['proxy_header_invalid', Buffer.from(`PROXY UNKNOWN ${'x'.repeat(92)}\r\n`)],
    [
      'proxy_header_invalid',
      Buffer.concat([proxyHeader('192.0.2.7').subarray(0, 14), Buffer.from([255, 255])]),
    ],
  ])('closes a connection of the balancer without a valid header: %s', async (reason, bytes) => {
    await using world = await openIngest(auto(), { listeners: [plain] })
    const client = await world.connection('direct')
    client.sendBytes(bytes)
    await client.gone()
    expect(refusedBy(world)).toEqual({ [reason]: 1 })
    expect(world.events).toContainEqual(
      expect.objectContaining({ kind: 'listener_refused', reason, top: ['127.0.0.1 (1)'] }),
    )
  })

  test('closes a connection whose header does not come within connect_timeout', async () => {
    const clock = createFakeClock()
    await using world = await openIngest(auto(), { listeners: [plain], clock })
    const slow = await world.connection('slow')
    slow.sendBytes(proxyHeader('192.0.2.7').subarray(0, 20))
    const line = await world.connection('line')
    line.sendBytes(Buffer.from('PROXY TCP4 192.0.2.7'))
    const check = await world.connection('check')
    await eventually(() => world.ingest.counters().unauthenticated === 3)
    check.end()
    await eventually(() => world.ingest.counters().unauthenticated === 2)
    await clock.advance(9999)
    expect(refusedBy(world)).toEqual({})
    await clock.advance(1)
    await slow.gone()
    await line.gone()
    expect(refusedBy(world)).toEqual({ proxy_header_missing: 2 })
  })

  test('bounds what waits for its header', async () => {
    await using world = await openIngest(auto(), { listeners: [plain], unauthenticatedMax: 3 })
    const waiting = [await world.connection('a'), await world.connection('b'), await world.connection('c')]
    await eventually(() => world.ingest.counters().unauthenticated === 3)
    const client = await world.connection('d')
    client.sendBytes(proxyHeader('192.0.2.7'))
    await client.connect()
    await waiting[0]!.gone()
    expect(refusedBy(world)).toEqual({ max_unauthenticated: 1 })
  })

  test.each([
    ['version 2', proxyHeader('192.0.2.7', Buffer.alloc(200, 4))],
    ['version 1', Buffer.from('PROXY TCP4 192.0.2.7 192.0.2.8 56324 8883\r\n')],
  ])(
    'mqtts://: the header of %s comes before the TLS handshake, also in its segment',
    async (_version, header) => {
      const authority = createAuthority()
      const tls = listenerTls(authority.issue())
      const spool = auto()
      await using world = await openIngest(spool, { listeners: [{ ...plain, tls }] })
      const port = await balance(world.port, header)
      const secure: TLSSocket = connectTls({ port, servername: 'localhost', ca: authority.ca })
      onTestFinished(() => void secure.destroy())
      await once(secure, 'secureConnect')
      const messages = Array.from({ length: 20 }, (_, index) =>
        publishBytes({ topic: 't', payload: `${index} ${'x'.repeat(5000)}`, messageId: index + 1 }),
      )
      secure.write(Buffer.concat([connectBytes('truck'), ...messages]))
      let bytes = 0
      for await (const chunk of secure) {
        bytes += (chunk as Buffer).length
        if (bytes === 4 + 20 * 4) break
      }
      expect(spool.payloads).toHaveLength(20)
      secure.destroy()
      await eventually(() => world.ingest.counters().connections === 0)

      const direct = connectTls({ port: world.port, host: '127.0.0.1', ca: authority.ca })
      await once(direct, 'error')
      expect(refusedBy(world)).toEqual({ proxy_header_missing: 1 })
      expect(world.ingest.counters().unauthenticated).toBe(0)
    },
  )
})

describe('mqtts:// without a balancer', () => {
  test('counts a handshake as unauthenticated, and forgets it at its end', async () => {
    const authority = createAuthority()
    const tls = listenerTls(authority.issue())
    const listeners = [{ host: '127.0.0.1', port: 0, tls }]
    await using world = await openIngest(auto(), { listeners })
    const silent = await world.connection('silent')
    await eventually(() => world.ingest.counters().unauthenticated === 1)
    const secure = connectTls({
      port: world.port,
      host: '127.0.0.1',
      servername: 'localhost',
      ca: authority.ca,
    })
    onTestFinished(() => void secure.destroy())
    await once(secure, 'secureConnect')
    secure.write(connectBytes('truck'))
    await once(secure, 'data')
    expect(world.ingest.counters()).toMatchObject({ connections: 1, unauthenticated: 1 })
    secure.destroy()
    silent.destroy()
    await eventually(() => world.ingest.counters().unauthenticated === 0)
    expect(world.ingest.counters().connections).toBe(0)
  })
})
