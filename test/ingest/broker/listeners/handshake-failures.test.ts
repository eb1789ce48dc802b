import { spawn } from 'node:child_process'
import { existsSync, writeFileSync } from 'node:fs'
import { connect as connectTcp, type Socket } from 'node:net'
import { connect as connectTls, type ConnectionOptions } from 'node:tls'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { ListenerTls } from '../../../../src/ingest/broker/listeners/tls-server.ts'
import type { TlsFailure } from '../../../../src/std/tls/tls.ts'
import { createAuthority, type Certificate } from '../../../support/certificates.ts'
import { eventually } from '../../../support/eventually.ts'
import { newFolder } from '../../../support/folders.ts'
import { listenerTls, openIngest, type IngestWorld, refusedBy } from '../../../support/ingest-world.ts'
import { auto } from '../../../support/memory-intake-spool.ts'
import { connectBytes } from '../../../support/mqtt-device.ts'

const day = 86_400_000
const ours = createAuthority()
const others = createAuthority('Another authority')
const past = { from: new Date(Date.now() - 3 * day), until: new Date(Date.now() - day) }
const good = ours.issue()
const truck = ours.issue({ names: ['truck-7'] })
const expired = ours.issue(past)

async function listenerWith(tls: ListenerTls, connectTimeoutMs = 10_000): Promise<IngestWorld> {
  const listeners = [{ host: '127.0.0.1', port: 0, tls }]
  const world = await openIngest(auto(), { listeners, connectTimeoutMs })
  onTestFinished(() => world[Symbol.asyncDispose]())
  return world
}

/** A client that checks the certificate of the gateway. It is closed after the test. */
function tlsClient({ port }: IngestWorld, options: ConnectionOptions = {}): Socket {
  return closedAfter(
    connectTls({ host: '127.0.0.1', port, servername: 'localhost', ca: ours.ca, ...options }),
  )
}

function tcpClient({ port }: IngestWorld, bytes: Buffer | null): Socket {
  const socket = closedAfter(connectTcp(port, '127.0.0.1'))
  if (bytes !== null) socket.write(bytes)
  return socket
}

function closedAfter(socket: Socket): Socket {
  socket.on('error', () => socket.destroy())
  onTestFinished(() => void socket.destroy())
  return socket
}

const openssl = '/usr/bin/openssl'
const onlyTls12 = { maxVersion: 'TLSv1.2', minVersion: 'TLSv1.2' } as const

const oldVersions = { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' } as const
const weak = { ...ours.issue({ rsaBits: 1024 }), ciphers: 'DEFAULT@SECLEVEL=0' }
const plain = listenerTls(good)
const old = listenerTls(expired)
const asks = listenerTls(good, { clientCa: ours.ca })
const asksAndRevokes = listenerTls(good, { clientCa: ours.ca, clientCrl: ours.revoke([truck]) })

type Case = [
  reason: TlsFailure | 'tls_closed|tls_unused',
  listener: ListenerTls,
  client: ConnectionOptions | Buffer,
]
const cases: Case[] = [
  // Node checks the certificate after the handshake, and closes.
  ['tls_closed|tls_unused', old, {}],
  ['tls_closed|tls_unused', old, onlyTls12],
  ['tls_closed|tls_unused', plain, { ca: others.ca }],
  ['tls_closed|tls_unused', plain, { servername: 'elsewhere' }],
  ['tls_no_common_version', plain, oldVersions],
  ['tls_no_common_cipher', plain, { ...onlyTls12, ciphers: 'ECDHE-RSA-AES128-GCM-SHA256' }],
  ['tls_client_certificate_missing', asks, {}],
  ['tls_client_certificate_missing', asks, onlyTls12],
  ['tls_client_certificate_untrusted', asks, others.issue()],
  ['tls_client_certificate_expired', asks, expired],
  ['tls_client_certificate_purpose', asks, ours.issue({ purpose: 'serverAuth' })],
  ['tls_client_certificate_weak', asks, weak],
  ['tls_client_certificate_weak', asks, ours.issue({ digest: 'sha1' })],
  ['tls_client_certificate_revoked', asksAndRevokes, truck],
  ['not_tls', plain, connectBytes('truck-7')],
  ['not_tls', plain, connectBytes('t'.repeat(200))],
  ['http_on_tls_port', plain, Buffer.from('GET / HTTP/1.1\r\n\r\n')],
  ['tls_failed', plain, Buffer.from('160301000501020304050607', 'hex')],
]

describe('a connection that fails in TLS is a refused client', () => {
  test.each(cases)('%s', async (reasons, listener, client) => {
    const world = await listenerWith(listener)
    if (Buffer.isBuffer(client)) tcpClient(world, client)
    else tlsClient(world, client)
    await eventually(() => Object.keys(refusedBy(world)).length > 0)
    const [[reason, count] = ['', 0], ...more] = Object.entries(refusedBy(world))
    expect(reasons.split('|')).toContain(reason)
    expect({ count, more }).toEqual({ count: 1, more: [] })
    expect(world.events.filter(({ kind }) => kind === 'client_refused')).toMatchObject([
      { reason, clientId: null, address: '127.0.0.1' },
    ])
    expect(world.ingest.clients.findAddress('127.0.0.1')).toMatchObject({ fault: { reason } })
  })

  test('tls_timeout: a client that sends nothing, or stops in the middle', async () => {
    const world = await listenerWith(listenerTls(good), 300)
    tcpClient(world, null)
    tcpClient(world, Buffer.from('1603010200010001fc0303', 'hex'))
    await eventually(() => (refusedBy(world)['tls_timeout'] ?? 0) >= 2)
    expect(refusedBy(world)).toEqual({ tls_timeout: 2 })
  })

  test('a check whether the port is open is none, and neither is a client that connects', async () => {
    const world = await listenerWith(listenerTls(good))
    const check = tcpClient(world, null)
    await new Promise((resolve) => check.once('connect', resolve))
    check.destroy()
    const client = tlsClient(world)
    client.write(connectBytes('truck-7'))
    await new Promise((resolve) => client.once('data', resolve))
    client.destroy()
    await eventually(() => world.events.some(({ kind }) => kind === 'client_disconnected'))
    expect(refusedBy(world)).toEqual({})
  })
})

/** These send an alert, which names what they do not accept. */
describe.skipIf(!existsSync(openssl))('an OpenSSL client (skipped where openssl is not installed)', () => {
  test.each<[TlsFailure, Certificate, string]>([
    ['tls_server_certificate_expired', expired, ours.ca],
    ['tls_server_certificate_untrusted', good, others.ca],
    ['tls_server_certificate_rejected', ours.issue({ names: ['elsewhere'] }), ours.ca],
  ])('%s', async (reason, certificate, ca) => {
    const world = await listenerWith(listenerTls(certificate))
    const file = join(await newFolder(), 'ca.pem')
    writeFileSync(file, ca)
    const verify = ['-verify_return_error', '-verify_hostname', 'localhost', '-CAfile', file]
    const client = spawn(openssl, ['s_client', '-connect', `127.0.0.1:${world.port}`, ...verify], {
      stdio: 'ignore',
    })
    onTestFinished(() => void client.kill())
    await eventually(() => Object.keys(refusedBy(world)).length > 0)
    expect(refusedBy(world)).toEqual({ [reason]: 1 })
  })
})

describe('a listener on which no TLS connection succeeds is reported', () => {
  test('after five failures, and no longer when a client has sent its CONNECT', async () => {
    const world = await listenerWith(listenerTls(good))
    const kinds = () => world.events.map(({ kind }) => kind)
    const states = () => [...world.ingest.states()]
    for (let n = 1; n <= 5; n += 1) {
      expect(states()).toEqual([])
      tlsClient(world, { ca: others.ca })
      await eventually(() => kinds().filter((kind) => kind === 'client_refused').length === n)
    }
    expect(states()).toMatchObject([
      {
        code: 'TLS_HANDSHAKES_FAIL',
        listener: world.ingest.addresses()[0],
        count: 5,
        top: ['127.0.0.1 (5)'],
      },
    ])
    // The handshake alone does not show that the client accepts the certificate.
    tlsClient(world).write(connectBytes('truck-7'))
    await eventually(() => states().length === 0)
  })

  test('and no longer when another certificate is in force', async () => {
    const world = await listenerWith(old)
    const states = () => [...world.ingest.states()]
    for (let n = 1; n <= 5; n += 1) {
      tlsClient(world)
      await eventually(() => world.events.filter(({ kind }) => kind === 'client_refused').length === n)
    }
    const renew = (tls: ListenerTls) =>
      world.ingest.renew({ access: world.options.access, listeners: [{ host: '127.0.0.1', port: 0, tls }] })
    await renew(old)
    expect(states()).toHaveLength(1)
    await renew(plain)
    expect(states()).toEqual([])
  })
})
