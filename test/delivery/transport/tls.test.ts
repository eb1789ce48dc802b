import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { transportOptions } from '../../../src/delivery/transport/transport-options.ts'
import { Secret } from '../../../src/std/secret.ts'
import { createAuthority } from '../../support/certificates.ts'
import type { Certificate } from '../../support/certificates.ts'
import { providerOptions } from '../../support/delivery-world.ts'
import { eventually } from '../../support/eventually.ts'
import { newFolder } from '../../support/folders.ts'
import { createTransportWorld, acceptedBoth } from '../../support/transport-world.ts'
import { startTlsService } from '../../support/tls-service.ts'

const { submit, open, send } = createTransportWorld()
const authority = createAuthority()
const { ca } = authority
const dayMs = 86_400_000
const openssl = '/usr/bin/openssl'

describe('a certificate of a private authority', () => {
  test('is trusted where the config names the authority, and TLS is verified to the name', async () => {
    const service = await startTlsService({ ...authority.issue(), answer: acceptedBoth })
    const { outcome, date } = await submit(service.url, { ca })
    expect(outcome).toMatchObject({ kind: 'answered', accepted: 'all' })
    expect(Date.parse(date ?? '')).not.toBeNaN()
    expect(service.requests).toMatchObject([
      { path: '/v2/telemetry/batch', host: `localhost:${service.port}`, clientName: null },
    ])
  })

  test('is not trusted without it: the reason and what to do are reported, and nothing is sent', async () => {
    const service = await startTlsService({ ...authority.issue(), answer: acceptedBoth })
    expect((await submit(service.url)).outcome).toMatchObject({
      kind: 'unreachable',
      reason: 'tls',
      message: expect.stringMatching(/not signed by a public authority \(UNABLE_TO_VERIFY_LEAF_SIGNATURE/),
      act: expect.stringContaining('delivery.tls.ca'),
    })
    expect(service.requests).toEqual([])
  })

  test('of another authority of the same name is not trusted either', async () => {
    const service = await startTlsService({ ...createAuthority().issue(), answer: acceptedBoth })
    expect((await submit(service.url, { ca })).outcome).toMatchObject({ kind: 'unreachable', reason: 'tls' })
  })

  test.each([
    ['with a small key', { rsaBits: 1024 }, /key too weak/],
    ['signed by SHA-1', { digest: 'sha1' }, /signature digest algorithm too weak/],
    ['for clients only', { purpose: 'clientAuth' }, /unsuitable certificate purpose/],
  ] as const)('%s is reported with the reason of OpenSSL', async (_name, issued, words) => {
    const weak = { ...authority.issue(issued), ciphers: 'DEFAULT@SECLEVEL=0' }
    const service = await startTlsService({ ...weak, answer: acceptedBoth })
    const { outcome } = await submit(service.url, { ca })
    expect(outcome).toMatchObject({ reason: 'tls', message: expect.stringMatching(words) })
    expect(outcome).toMatchObject({
      message: expect.stringMatching(/OpenSSL does not accept the certificate of the service: /),
      act: expect.stringMatching(/serverAuth.*at least 2048 bits.*SHA-256/),
    })
  })

  test('for other names is reported as such', async () => {
    const service = await startTlsService({
      ...authority.issue({ names: ['other.example'] }),
      answer: acceptedBoth,
    })
    expect((await submit(service.url, { ca })).outcome).toMatchObject({
      reason: 'tls',
      message: expect.stringMatching(/for "other\.example", not for localhost/),
      act: expect.stringContaining('delivery.base_url'),
    })
    expect(service.requests).toEqual([])
  })
})

describe('a certificate that is not valid by our clock', () => {
  test.each([
    ['not yet', new Date(Date.now() + dayMs), new Date(Date.now() + 2 * dayMs), /not valid yet/],
    ['no more', new Date(Date.now() - 2 * dayMs), new Date(Date.now() - dayMs), /has expired/],
  ])('%s: the condition names the clock and its time', async (_name, from, until, words) => {
    const service = await startTlsService({ ...authority.issue({ from, until }), answer: acceptedBoth })
    const { outcome } = await submit(service.url, { ca })
    expect(outcome).toMatchObject({
      kind: 'unreachable',
      reason: 'clock',
      message: expect.stringMatching(words),
      act: expect.stringContaining('Set the time of this machine'),
    })
    expect(outcome).toHaveProperty(
      'message',
      expect.stringContaining(`The clock of this machine says ${new Date().toISOString().slice(0, 10)}`),
    )
  })
})

describe('a service that requires a client certificate', () => {
  const clients = createAuthority('Clients')
  const mine = clients.issue({ names: ['depot-7'] })
  const withCertificate = { cert: mine.cert, key: new Secret(mine.key), passphrase: null }

  test('gets the certificate of the config', async () => {
    const service = await startTlsService({
      ...authority.issue(),
      clientCa: clients.ca,
      answer: acceptedBoth,
    })
    const { outcome } = await submit(service.url, { ca, clientCertificate: withCertificate })
    expect(outcome).toMatchObject({ kind: 'answered' })
    expect(service.requests).toMatchObject([{ clientName: 'depot-7' }])
  })

  test.each([
    ['none', null],
    ['another one', createAuthority('Others').issue()],
  ])('gets no data from us with %s', async (_name, other) => {
    const service = await startTlsService({
      ...authority.issue(),
      clientCa: clients.ca,
      answer: acceptedBoth,
    })
    const clientCertificate = other && { cert: other.cert, key: new Secret(other.key), passphrase: null }
    expect((await submit(service.url, { ca, clientCertificate })).outcome.kind).toBe('unreachable')
    expect(service.requests).toEqual([])
  })

  // The server of Node closes the connection without an alert; most others send one, as openssl does.
  test.skipIf(!existsSync(openssl))(
    'its alert is understood (skipped where openssl is not installed)',
    async () => {
      const port = await startOpensslServer(authority.issue(), clients.ca)
      const other = createAuthority('Others').issue()
      const unknown = { cert: other.cert, key: new Secret(other.key), passphrase: null }
      for (const clientCertificate of [null, unknown])
        expect((await submit(`https://localhost:${port}`, { ca, clientCertificate })).outcome).toMatchObject({
          kind: 'unreachable',
          reason: 'tls',
          message: expect.stringMatching(/(refuses the|requires a) certificate of the gateway/),
          act: expect.stringContaining('delivery.tls.cert'),
        })
    },
  )
})

/** Refuses clients without a certificate of `clientCa`, with a TLS alert. */
async function startOpensslServer({ cert, key }: Certificate, clientCa: string): Promise<number> {
  const folder = await newFolder()
  const write = async (name: string, text: string) => {
    await writeFile(join(folder, name), text)
    return join(folder, name)
  }
  const own = ['-cert', await write('cert.pem', cert), '-key', await write('key.pem', key)]
  const asks = ['-Verify', '1', '-verify_return_error', '-CAfile', await write('ca.pem', clientCa)]
  const child = spawn(openssl, ['s_server', '-accept', '127.0.0.1:0', '-www', ...own, ...asks])
  onTestFinished(() => void child.kill())
  for await (const part of child.stdout) {
    const port = /ACCEPT 127\.0\.0\.1:(\d+)/.exec(String(part))?.[1]
    if (port !== undefined) {
      child.stdout.resume()
      return Number(port)
    }
  }
  throw new Error('openssl s_server did not start')
}

describe('a server', () => {
  test('without TLS is reported as such', async () => {
    const server = createServer((socket) => {
      socket.on('error', () => undefined)
      socket.end('HTTP/1.1 400 Bad Request\r\n\r\n')
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    expect((await submit(`https://localhost:${port}`)).outcome).toMatchObject({
      reason: 'tls',
      message: expect.stringMatching(/There is no TLS on localhost:/),
    })
    server.close()
  })

  test('that accepts the connection without a handshake ends at the connect timeout', async () => {
    const server = createServer((socket) => socket.on('error', () => undefined).resume()).listen(
      0,
      '127.0.0.1',
    )
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const { outcome } = await submit(`https://localhost:${port}`, { connectTimeoutMs: 1000, timeoutMs: 8000 })
    expect(outcome).toMatchObject({
      reason: 'timeout',
      message: expect.stringMatching(/There was no answer of localhost:\d+ in delivery\.connect_timeout/),
    })
    server.close()
  })
})

describe('connections', () => {
  test('are reused: twenty consecutive submissions use one', async () => {
    const service = await startTlsService({ ...authority.issue(), answer: acceptedBoth })
    const transport = open(service.url, { ca })
    for (let i = 0; i < 20; i += 1) expect((await send(transport)).outcome.kind).toBe('answered')
    await transport.close()
    expect(service.connections()).toMatchObject({ made: 1, most: 1 })
  })

  test('are never more than max_in_flight', async () => {
    const service = await startTlsService({ ...authority.issue(), answer: acceptedBoth, delayMs: 5 })
    const transport = open(service.url, { ca, maxInFlight: 3 })
    const ended = await Promise.all(Array.from({ length: 30 }, () => send(transport)))
    await transport.close()
    expect(ended.every(({ outcome }) => outcome.kind === 'answered')).toBe(true)
    expect(service.connections().most).toBe(3)
  })

  test('with another certificate carry the next submissions; a running one ends with its own, which is then closed', async () => {
    const clients = createAuthority('Clients')
    const service = await startTlsService({
      ...authority.issue(),
      clientCa: clients.ca,
      answer: acceptedBoth,
      delayMs: 100,
    })
    const withName = (name: string) => {
      const { cert, key } = clients.issue({ names: [name] })
      return { ca, clientCertificate: { cert, key: new Secret(key), passphrase: null } }
    }
    const transport = open(service.url, withName('spring'))
    const running = send(transport)
    await eventually(() => service.requests.length === 1)
    transport.renew(transportOptions(providerOptions(service.url, withName('summer')), {}))
    const next = await send(transport)
    expect([(await running).outcome.kind, next.outcome.kind]).toEqual(['answered', 'answered'])
    expect(service.requests.map(({ clientName }) => clientName)).toEqual(['spring', 'summer'])
    await eventually(() => service.connections().open === 1)
    await transport.close()
    await eventually(() => service.connections().open === 0)
  })
})
