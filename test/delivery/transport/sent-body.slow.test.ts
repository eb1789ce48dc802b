// What an attempt reports of the body that it sent: whether its last byte left, and how many bytes did.

import { gunzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import type { ProviderOptions } from '../../../src/delivery/delivery-options.ts'
import { createAuthority } from '../../support/certificates.ts'
import { startConnectProxy } from '../../support/connect-proxy.ts'
import { eventually } from '../../support/eventually.ts'
import { httpAnswer, startRawService } from '../../support/raw-service.ts'
import type { RawConnection, RawService } from '../../support/raw-service.ts'
import { acceptedBoth, batchText, createTransportWorld, ids } from '../../support/transport-world.ts'

const { open, send, submit } = createTransportWorld()
const authority = createAuthority()

/** A batch whose body has about this size. */
const textOf = (bytes: number, letter = 'x') =>
  `{"batchId":"b","timestamp":1,"data":[${ids
    .map((id) => `{"payloadId":"${id}","filler":"${letter.repeat(bytes / 2)}"}`)
    .join()}]}`
/** More than the kernel takes on both sides of a proxy for a service that does not read. */
const large = textOf(48 * 1024 ** 2)

type Path =
  'http' | 'https' | 'http through a proxy' | 'https through a proxy' | 'https through an https proxy'
const paths: Path[] = [
  'http',
  'https',
  'http through a proxy',
  'https through a proxy',
  'https through an https proxy',
]

async function serviceOn(
  path: Path,
  onData: (connection: RawConnection) => void,
): Promise<{ service: RawService; provider: Partial<ProviderOptions> }> {
  const tls = authority.issue()
  const service = await startRawService({ onData, ...(path.startsWith('https') && { tls }) })
  if (!path.includes('proxy')) return { service, provider: { ca: authority.ca } }
  const proxy = await startConnectProxy(path.endsWith('https proxy') ? { tls } : {})
  return { service, provider: { ca: authority.ca, proxy: { from: 'config', url: proxy.url, auth: null } } }
}

describe.each(paths)('over %s', (path) => {
  test('a body that the service stops reading is not written at the deadline', async () => {
    let reading = false
    const { service, provider } = await serviceOn(path, ({ socket }) => void (reading || socket.pause()))
    const transport = open(service.url, provider)
    const { outcome, written, bytesSent } = await send(transport, { text: large, timeoutMs: 1000 })
    reading = true
    expect(outcome).toMatchObject({ kind: 'unreachable', reason: 'timeout' })
    expect(written).toBe(false)
    expect(bytesSent).toBeGreaterThan(0)
    expect(bytesSent).toBeLessThan(large.length)
    service.connections[0]?.socket.resume()
    await eventually(() => service.connections[0]?.socket.closed ?? true)
    expect(service.connections[0]?.bodyBytes()).toBeLessThan(large.length)
    await transport.close()
  })

  test.each([batchText, textOf(64 * 1024), textOf(3_000_000)])(
    'a body that the service has read is written, whatever comes then (%#)',
    async (text) => {
      const { service, provider } = await serviceOn(path, (connection) => {
        if (connection.bodyBytes() >= text.length && service.connections.length === 2)
          connection.socket.destroy()
      })
      const transport = open(service.url, provider)
      const late = await send(transport, { text, timeoutMs: text.length > 1_000_000 ? 1000 : 400 })
      expect(service.connections[0]?.bodyBytes()).toBe(text.length)
      expect(late).toMatchObject({ outcome: { reason: 'timeout' }, written: true, bytesSent: text.length })
      const reset = await send(transport, { text })
      expect(reset.outcome.kind).toBe('unreachable')
      expect(reset).toMatchObject({ written: true, bytesSent: text.length })
      await transport.close()
    },
  )

  test('a connection that is cut in the middle of a large body did not carry it', async () => {
    const { service, provider } = await serviceOn(path, (connection) => {
      if (connection.bodyBytes() > 100_000) connection.socket.destroy()
    })
    const transport = open(service.url, provider)
    const { outcome, written, bytesSent } = await send(transport, { text: large })
    expect(outcome.kind).toBe('unreachable')
    expect(written).toBe(false)
    expect(bytesSent).toBeLessThan(large.length)
    await transport.close()
  })

  test('stopped in the middle of a large body, it did not carry it', async () => {
    const stop = new AbortController()
    const { service, provider } = await serviceOn(path, ({ socket }) => {
      socket.pause()
      stop.abort()
    })
    const transport = open(service.url, provider)
    const { outcome, written } = await send(transport, { text: large, stop: stop.signal })
    expect(outcome.kind).toBe('aborted')
    expect(written).toBe(false)
    await transport.close()
  })

  test('an answer before the end of the body: what was not read by then is not written', async () => {
    const { service, provider } = await serviceOn(path, ({ socket }) => {
      socket.pause()
      socket.write(httpAnswer(403, {}))
    })
    const transport = open(service.url, provider)
    const { outcome, written } = await send(transport, { text: large })
    expect(outcome).toMatchObject({ kind: 'unauthorized', status: 403 })
    expect(written).toBe(false)
    await transport.close()
  })

  test('an answered batch is written, and its connection serves the next one', async () => {
    const text = textOf(300_000)
    const { service, provider } = await serviceOn(path, ({ socket, received }) => {
      if (received().subarray(-3).toString() === '}]}') socket.write(httpAnswer(200, acceptedBoth))
    })
    const transport = open(service.url, provider)
    for (let i = 0; i < 5; i += 1) {
      const { outcome, written, bytesSent } = await send(transport, { text })
      expect(outcome).toMatchObject({ kind: 'answered', accepted: 'all' })
      expect({ written, bytesSent }).toEqual({ written: true, bytesSent: text.length })
    }
    // One answer may overtake the report that its body was written: the connection is free a moment later then.
    expect(service.connections.length).toBeLessThan(3)
    expect(service.connections[0]?.received().includes(`content-length: ${text.length}\r\n`)).toBe(true)
    expect(service.connections[0]?.received().includes('transfer-encoding')).toBe(false)
    await transport.close()
  })
})

describe('a body is certainly not written when', () => {
  const refused = 'http://127.0.0.1:1'

  test.each<[string, string, Partial<ProviderOptions>]>([
    ['nothing listens', refused, {}],
    ['the name does not exist', 'http://ingest.invalid', {}],
    ['the proxy is not there', 'http://x.test', { proxy: { from: 'config', url: refused, auth: null } }],
  ])('%s', async (_name, url, provider) => {
    const { outcome, written, bytesSent } = await submit(url, provider)
    expect(outcome.kind).toBe('unreachable')
    expect({ written, bytesSent }).toEqual({ written: false, bytesSent: 0 })
  })

  test('the certificate of the service is not trusted', async () => {
    const service = await startRawService({ tls: authority.issue() })
    expect(await submit(service.url)).toMatchObject({ outcome: { reason: 'tls' }, written: false })
  })

  test('the proxy opens no tunnel in time', async () => {
    const proxy = await startConnectProxy({ mood: 'hang' })
    const provider = { proxy: { from: 'config' as const, url: proxy.url, auth: null }, connectTimeoutMs: 100 }
    expect(await submit('http://x.test', provider)).toMatchObject({
      outcome: { reason: 'timeout' },
      written: false,
      bytesSent: 0,
    })
  })

  test('delivery stops before the start', async () => {
    expect(await submit(refused, { stop: AbortSignal.abort() })).toMatchObject({ written: false })
  })
})

describe('a compressed body', () => {
  test('is gzip on the wire, and its progress is that of the body before', async () => {
    const text = textOf(300_000)
    const service = await startRawService({
      onData({ socket, received }) {
        if (gunzipped(received()) === text) socket.write(httpAnswer(200, acceptedBoth))
      },
    })
    const { outcome, written, bytesSent } = await submit(service.url, { compress: 'gzip', text })
    expect(outcome).toMatchObject({ kind: 'answered', accepted: 'all' })
    expect({ written, bytesSent }).toEqual({ written: true, bytesSent: text.length })
    const [connection] = service.connections
    expect(connection?.received().toString('latin1')).toMatch(/\r\ncontent-encoding: gzip\r\n/i)
    expect(connection?.bodyBytes()).toBeLessThan(text.length / 10)
  })
})

function gunzipped(request: Buffer): string | null {
  try {
    return gunzipSync(request.subarray(request.indexOf('\r\n\r\n') + 4)).toString()
  } catch {
    return null
  }
}
