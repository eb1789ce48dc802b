import { once } from 'node:events'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import { describe, expect, test } from 'vitest'
import { createSandbox, sandboxAccount } from '../../../src/sandbox/sandbox.ts'
import { createFakeClock } from '../../support/fake-clock.ts'
import { batchOf, call, openSandbox, signed, telemetry } from '../../support/sandbox-world.ts'

/** Writes raw bytes and returns everything received until the connection ends. */
async function raw(url: string, text: string): Promise<{ status: number; json: Record<string, unknown> }> {
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  let reported = ''
  socket.setEncoding('utf8').on('data', (part: string) => (reported += part))
  socket.on('error', () => undefined)
  socket.end(text)
  await once(socket, 'close')
  const body = reported.slice(reported.indexOf('\r\n\r\n') + 4)
  return { status: Number(reported.split(' ')[1]), json: JSON.parse(body) as Record<string, unknown> }
}

describe('malformed HTTP gets an answer with a requestId, and the service continues', () => {
  test.each([
    ['nonsense', 'hello\r\n\r\n', 400],
    ['half a request line', 'POST\r\n\r\n', 400],
    ['a length that is none', 'POST /v2/telemetry HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n', 400],
    ['two lengths', 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab', 400],
    ['a chunk that is none', 'POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n', 400],
    ['a folded header', 'GET / HTTP/1.1\r\nHost: a\r\nX-A: 1\r\n  2\r\n\r\n', 400],
    ['no Host', 'GET / HTTP/1.1\r\n\r\n', 400],
    ['a header of 40 KB', `GET / HTTP/1.1\r\nHost: a\r\nX-A: ${'a'.repeat(40_000)}\r\n\r\n`, 431],
    ['another expectation', 'POST / HTTP/1.1\r\nHost: a\r\nExpect: tea\r\nConnection: close\r\n\r\n', 417],
  ])('%s', async (_, text, status) => {
    await using world = await openSandbox()
    const reported = await raw(world.url, text)
    expect(reported.status).toBe(status)
    expect((await world.single(telemetry())).status).toBe(202)
  })

  test('the answers to malformed heads are counted and have a requestId', async () => {
    await using world = await openSandbox()
    const { json } = await raw(world.url, 'hello\r\n\r\n')
    expect(json).toMatchObject({ reason: 'malformed_http', requestId: expect.any(String) as string })
    expect(world.sandbox.stats()).toMatchObject({
      requests: 1,
      byStatus: { 400: 1 },
      refusedRequests: { malformed_http: 1 },
    })
  })

  test('a client that disconnects within a body leaves no open resources', async () => {
    await using world = await openSandbox()
    const socket = connect(Number(new URL(world.url).port), '127.0.0.1')
    socket.write('POST /v2/telemetry HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n{"payloadId":')
    while (world.sandbox.stats().requests === 0) await new Promise(setImmediate)
    socket.destroy()
    expect((await world.single(telemetry())).status).toBe(202)
    expect(world.sandbox.stats()).toMatchObject({
      requests: 2,
      byStatus: { 202: 1, 400: 1 },
      internalErrors: 0,
    })
  })
})

describe('the size of a body is bounded', () => {
  test('a body beyond the limit gets 413, and the same connection can send the next request', async () => {
    await using world = await openSandbox({ bodyBytesMax: 10_000 })
    const large = telemetry({ carrier: 'x'.repeat(20_000) })
    const refused = await world.single(large)
    expect(refused).toMatchObject({ status: 413, json: { reason: 'body_too_large' } })
    expect(refused.headers.get('connection')).toBe('keep-alive')
    expect((await world.single(telemetry())).status).toBe(202)
  })

  test('a body of exactly the limit is accepted', async () => {
    const payload = telemetry()
    const { length } = Buffer.from(JSON.stringify(payload))
    await using exact = await openSandbox({ bodyBytesMax: length })
    expect((await exact.single(payload)).status).toBe(202)
    await using short = await openSandbox({ bodyBytesMax: length - 1 })
    expect((await short.single(payload)).status).toBe(413)
  })

  test.each([
    ['in chunks', { 'transfer-encoding': 'chunked' }],
    ['with its length', { 'content-length': '1000000' }],
  ])('an endless body is answered before its end, and the connection is closed: %s', async (_, headers) => {
    await using world = await openSandbox({ bodyBytesMax: 1000 })
    const request = httpRequest(`${world.url}/v2/telemetry`, { method: 'POST', headers })
    request.on('error', () => undefined)
    request.write(Buffer.alloc(50_000))
    const [response] = (await once(request, 'response')) as [IncomingMessage]
    expect(response.statusCode).toBe(413)
    expect(response.headers.connection).toBe('close')
    request.destroy()
  })

  test('a client with Expect: 100-continue gets 413 before it sends the body', async () => {
    await using world = await openSandbox({ bodyBytesMax: 1000 })
    const headers = { expect: '100-continue', 'content-length': '2000' }
    const request = httpRequest(`${world.url}/v2/telemetry`, { method: 'POST', headers })
    request.on('error', () => undefined)
    request.on('continue', () => request.end('x'.repeat(2000)))
    request.flushHeaders()
    const [response] = (await once(request, 'response')) as [{ statusCode: number }]
    expect(response.statusCode).toBe(413)
    request.destroy()
  })

  test('a client with Expect: 100-continue gets 100 for an allowed body, and is served', async () => {
    await using world = await openSandbox()
    const { url, headers, body } = await signed(
      `${world.url}/v2/telemetry`,
      JSON.stringify(telemetry()),
      world.clock,
    )
    const length = String(Buffer.byteLength(body))
    const request = httpRequest(url, {
      method: 'POST',
      headers: { ...headers, expect: '100-continue', 'content-length': length },
    })
    request.on('continue', () => request.end(body))
    request.flushHeaders()
    const [response] = (await once(request, 'response')) as [{ statusCode: number }]
    expect(response.statusCode).toBe(202)
  })

  test('the size of PUT /sandbox/faults is bounded too', async () => {
    await using world = await openSandbox()
    expect((await world.putFaults(`[${' '.repeat(2 ** 20)}]`)).status).toBe(413)
  })
})

describe('listening', () => {
  test('an address in use is reported, and the same sandbox can use another port', async () => {
    await using world = await openSandbox()
    const deps = { clock: createFakeClock(), newId: () => 'id', random: () => 0 }
    const second = createSandbox(deps, { accounts: [sandboxAccount] })
    const port = Number(new URL(world.url).port)
    await expect(second.listen({ host: '127.0.0.1', port })).rejects.toMatchObject({ code: 'ADDRESS_IN_USE' })
    await expect(second.listen({ host: '192.0.2.1', port: 0 })).rejects.toMatchObject({
      code: 'ADDRESS_UNAVAILABLE',
    })
    const { url } = await second.listen({ host: '127.0.0.1', port: 0 })
    expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/)
    await second.close()
  })

  test('an IPv6 address is written in brackets', async () => {
    const deps = { clock: createFakeClock(), newId: () => 'id', random: () => 0 }
    const sandbox = createSandbox(deps, { accounts: [sandboxAccount] })
    const { url } = await sandbox.listen({ host: '::1', port: 0 })
    expect(url).toMatch(/^http:\/\/\[::1\]:\d+$/)
    await sandbox.close()
  })

  test('a sandbox without an account does not start', () => {
    const deps = { clock: createFakeClock(), newId: () => 'id', random: () => 0 }
    expect(() => createSandbox(deps, { accounts: [] })).toThrow('accounts')
  })
})

test('a listener is called for each answer', async () => {
  const heard: unknown[] = []
  await using world = await openSandbox({
    onAnswer: ({ status, reason, path }) => heard.push([status, reason, path]),
  })
  await world.batch(batchOf([telemetry()]))
  await world.single({})
  await call({ url: `${world.url}/x?y`, method: 'POST', headers: {}, body: '' })
  expect(heard).toEqual([
    [200, null, '/v2/telemetry/batch'],
    [400, 'payload_invalid', '/v2/telemetry'],
    [404, 'not_found', '/x'],
  ])
})
