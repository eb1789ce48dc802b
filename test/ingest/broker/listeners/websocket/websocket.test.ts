import { connect as connectTcp } from 'node:net'
import { describe, expect, test } from 'vitest'
import { rowsBeside } from '../../../../support/case-rows.ts'
import { createAuthority } from '../../../../support/certificates.ts'
import { eventually } from '../../../../support/eventually.ts'
import { createFakeClock } from '../../../../support/fake-clock.ts'
import { listenerTls, openIngest, refusedBy } from '../../../../support/ingest-world.ts'
import { auto } from '../../../../support/memory-intake-spool.ts'
import { connectBytes, publishBytes } from '../../../../support/mqtt-device.ts'
import { proxyHeader } from '../../../../support/proxy-header-bytes.ts'
import {
  openWebSocket,
  upgradeRequest,
  webSocketListener,
  type RequestOptions,
} from '../../../../support/websocket-client.ts'

const rows = rowsBeside(import.meta.filename) as [reason: string, request: RequestOptions, status: number][]

const webSocket = { path: '/mqtt', origins: ['https://fleet.example.com'] }
const plain = { ...webSocketListener, webSocket }

/** Sends bytes to the port, and resolves with the answer when the connection has ended. */
async function answerTo(port: number, bytes: Buffer): Promise<string> {
  const socket = connectTcp({ port, host: '127.0.0.1' })
  socket.on('error', () => socket.destroy())
  socket.write(bytes)
  const chunks: Buffer[] = []
  socket.on('data', (chunk: Buffer) => chunks.push(chunk))
  await new Promise((resolve) => socket.once('close', resolve))
  return Buffer.concat(chunks).toString()
}

describe('a listener for WebSocket', () => {
  test.each<[string, RequestOptions]>([
    ['mqtt', {}],
    ['a page of an allowed origin', { headers: { Origin: 'https://fleet.example.com' } }],
    ['a list with mqtt last', { headers: { 'Sec-WebSocket-Protocol': 'mqttv3.1, mqtt' } }],
  ])('[MQTT-6.0.0-4] answers %s with the subprotocol mqtt', async (_name, request) => {
    await using world = await openIngest(auto(), { listeners: [plain] })
    const client = await openWebSocket(world, request)
    expect(client.answer.status).toBe(101)
    expect(client.answer.head).toMatch(/^Sec-WebSocket-Protocol: mqtt$/m)
    expect(client.answer.head).toContain('Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=')
    expect(client.answer.head).not.toMatch(/^Sec-WebSocket-Extensions/im)
    expect(await client.connect('truck')).toMatchObject({ cmd: 'connack', returnCode: 0 })
  })

  test.each(rows)(
    '[MQTT-6.0.0-3] refuses with %s, and ends the connection',
    async (reason, request, status) => {
      await using world = await openIngest(auto(), { listeners: [plain] })
      const client = await openWebSocket(world, request)
      await client.gone()
      expect(client.answer.status).toBe(status)
      expect(client.answer.body).toMatch(/^.{10,}\n$/)
      expect(client.answer.head).toContain('Connection: close')
      expect(refusedBy(world)).toEqual({ [reason]: 1 })
      expect(world.events).toContainEqual(
        expect.objectContaining({ kind: 'listener_refused', reason, top: ['127.0.0.1 (1)'] }),
      )
      await eventually(() => world.ingest.counters().unauthenticated === 0)
    },
  )

  test.each([
    ['MQTT without WebSocket', connectBytes('truck')],
    ['TLS', Buffer.from('16030100c8010000c40303', 'hex')],
  ])('tells %s from HTTP', async (_name, bytes) => {
    await using world = await openIngest(auto(), { listeners: [plain] })
    await answerTo(world.port, bytes)
    expect(refusedBy(world)).toEqual({ not_http: 1 })
  })

  test('closes a connection without a request after connect_timeout, and forgets one that ends before', async () => {
    const clock = createFakeClock()
    await using world = await openIngest(auto(), { listeners: [plain], clock })
    const slow = await world.connection('slow')
    slow.sendBytes(upgradeRequest().subarray(0, 40))
    const check = await world.connection('check')
    await eventually(() => world.ingest.counters().unauthenticated === 2)
    check.end()
    await eventually(() => world.ingest.counters().unauthenticated === 1)
    await clock.advance(9999)
    expect(refusedBy(world)).toEqual({})
    await clock.advance(1)
    await slow.gone()
    expect(refusedBy(world)).toEqual({ websocket_timeout: 1 })
  })

  test('counts a WebSocket without CONNECT as unauthenticated, and closes it after connect_timeout', async () => {
    await using world = await openIngest(auto(), { listeners: [plain], connectTimeoutMs: 300 })
    const client = await openWebSocket(world)
    expect(world.ingest.counters()).toMatchObject({ connections: 1, unauthenticated: 1 })
    await client.gone()
    expect(world.ingest.counters().droppedByReason.get('connect_timeout')).toBe(1)
    await eventually(() => world.ingest.counters().unauthenticated === 0)
  })
})

describe('WebSocket over TLS', () => {
  const authority = createAuthority()
  const tls = listenerTls(authority.issue())

  test('reports HTTP without TLS, and a connection that asks for nothing after its handshake', async () => {
    await using world = await openIngest(auto(), { listeners: [{ ...plain, tls }] })
    await answerTo(world.port, upgradeRequest())
    await eventually(() => refusedBy(world)['http_on_tls_port'] === 1)
    const client = await openWebSocket({ port: world.port, tls: { ca: authority.ca } }, { path: '/other' })
    await client.gone()
    expect(refusedBy(world)).toMatchObject({ websocket_path: 1 })
    const unused = await openWebSocket({ port: world.port, tls: { ca: authority.ca } })
    unused.socket.destroy()
    await eventually(() => refusedBy(world)['tls_unused'] === 1)
    expect(refusedBy(world)).toEqual({ http_on_tls_port: 1, websocket_path: 1, tls_unused: 1 })
  })
})

describe('WebSocket behind a balancer', () => {
  const balancer = { address: '127.0.0.1', prefix: 32 }

  test('has the address of the PROXY protocol, and ignores X-Forwarded-For', async () => {
    const spool = auto()
    await using world = await openIngest(spool, { listeners: [{ ...plain, proxyTrusted: [balancer] }] })
    const before = proxyHeader('192.0.2.7')
    const client = await openWebSocket(
      { port: world.port, before },
      { headers: { 'X-Forwarded-For': '198.51.100.1' } },
    )
    await client.connect('truck')
    client.send(publishBytes({ topic: 't', payload: 'a', messageId: 1 }))
    await client.acked(1)
    expect(world.events).toContainEqual(
      expect.objectContaining({ kind: 'client_connected', clientId: 'truck', address: '192.0.2.7' }),
    )
    const other = await openWebSocket({ port: world.port, before }, { path: '/' })
    await other.gone()
    expect(world.events).toContainEqual(
      expect.objectContaining({ reason: 'websocket_path', top: ['192.0.2.7 (1)'] }),
    )
  })
})
