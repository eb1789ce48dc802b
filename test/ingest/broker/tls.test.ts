import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { connect as connectTcp, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { afterAll, describe, expect, test } from 'vitest'
import { Secret } from '../../../src/std/secret.ts'
import { openIngest, wordMapper } from '../../support/ingest-world.ts'
import { createMemoryIntakeSpool } from '../../support/memory-intake-spool.ts'
import { connectBytes, publishBytes } from '../../support/mqtt-device.ts'

const openssl = '/usr/bin/openssl'
const hasOpenssl = existsSync(openssl)
const folder = mkdtempSync(join(tmpdir(), 'ingest-tls-'))
afterAll(() => rmSync(folder, { recursive: true }))

/** A self-signed certificate, which is also its own authority. */
function certificate(name: string): { cert: string; key: string } {
  const [cert, key] = [join(folder, `${name}.pem`), join(folder, `${name}.key`)]
  const subject = ['-subj', `/CN=${name}`, '-addext', 'subjectAltName=DNS:localhost', '-days', '2']
  const keyOptions = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
  execFileSync(openssl, ['req', '-x509', ...keyOptions, '-keyout', key, '-out', cert, ...subject], {
    stdio: 'ignore',
  })
  return { cert: readFileSync(cert, 'utf8'), key: readFileSync(key, 'utf8') }
}

/** Resolves when the connection has ended. */
function ended(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    socket.on('error', () => socket.destroy())
    socket.on('close', () => resolve())
    socket.resume()
  })
}

describe.skipIf(!hasOpenssl)('mqtts:// (skipped where openssl is not installed)', () => {
  test('a device with a certificate of the configured authority publishes, and its common name is known', async () => {
    const gateway = certificate('gateway')
    const truck = certificate('truck-7')
    const senders: unknown[] = []
    const mapper = {
      ...wordMapper,
      map: (message: { sender: object }) => {
        senders.push({ ...message.sender })
        return { kind: 'ignored', source: 's', reason: 'r' } as const
      },
    }
    const tls = {
      cert: gateway.cert,
      key: new Secret(gateway.key),
      clientCa: truck.cert,
      clientCrl: null,
      certificateName: 'cn' as const,
    }
    const listeners = [{ host: '127.0.0.1', port: 0, tls }]
    const spool = createMemoryIntakeSpool({ commits: 'auto' })
    await using world = await openIngest(spool, { mapper, listeners })
    expect(world.ingest.addresses()[0]).toMatch(/^mqtts:\/\/127\.0\.0\.1:\d+$/)

    const options = { port: world.port, host: '127.0.0.1', servername: 'localhost', ca: gateway.cert }
    const socket = connect({ ...options, cert: truck.cert, key: truck.key })
    await once(socket, 'secureConnect')
    const messages = Array.from({ length: 200 }, (_, index) =>
      publishBytes({ topic: 't', payload: 'x'.repeat(500), messageId: index + 1 }),
    )
    socket.write(Buffer.concat([connectBytes('7'), ...messages]))
    let bytes = 0
    for await (const chunk of socket) {
      bytes += (chunk as Buffer).length
      if (bytes === 4 + 200 * 4) break
    }
    expect(senders[0]).toEqual({
      clientId: '7',
      userName: null,
      certificateName: 'truck-7',
      identity: 'truck-7',
      address: '127.0.0.1',
    })
    expect(senders).toHaveLength(200)

    // Known before CONNECT.
    const early = connect({ ...options, cert: truck.cert, key: truck.key })
    early.write(Buffer.from([0xc0, 0]))
    await ended(early)
    const dropped = world.events.find(({ kind }) => kind === 'client_dropped')
    expect(dropped).toMatchObject({ reason: 'not_connect', clientId: null, identity: 'truck-7' })

    await ended(connect(options))
    const plain = connectTcp({ port: world.port, host: '127.0.0.1' })
    plain.end(connectBytes('plain'))
    await ended(plain)
    expect(senders).toHaveLength(200)
  })
})
