import { once } from 'node:events'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { getDefaultHighWaterMark } from 'node:stream'
import { connect, type TLSSocket } from 'node:tls'
import { expect, onTestFinished, test } from 'vitest'
import { beginTls, createTlsServer } from '../../../../src/ingest/broker/listeners/tls-server.ts'
import { Secret } from '../../../../src/std/secret.ts'
import { createAuthority } from '../../../support/certificates.ts'
import { eventually } from '../../../support/eventually.ts'

const bufferBytes = 16 * 1024

test('a TLS socket has the bounds of its listener, and other streams keep theirs', async () => {
  const before = getDefaultHighWaterMark(false)
  const { cert, key } = createAuthority().issue()
  const tls = { cert, key: new Secret(key), clientCa: null, clientCrl: null, certificateName: 'cn' as const }
  const { server } = createTlsServer(tls, {}, 5000)
  const listener = createServer((socket: Socket) => beginTls(server, socket, bufferBytes))
  listener.listen(0, '127.0.0.1')
  await once(listener, 'listening')
  const secured = once(server, 'secureConnection') as Promise<[TLSSocket]>
  const port = (listener.address() as AddressInfo).port
  const client = connect({ port, rejectUnauthorized: false })
  const [socket] = await secured
  onTestFinished(() => {
    client.destroy()
    socket.destroy()
    listener.close()
  })
  expect(socket.readableHighWaterMark).toBe(bufferBytes)
  expect(socket.writableHighWaterMark).toBe(bufferBytes)
  expect(getDefaultHighWaterMark(false)).toBe(before)
  // Nobody reads: what the socket buffers has a bound, but for the records of one read of the network.
  socket.on('readable', () => undefined)
  client.write(Buffer.alloc(4e6))
  await eventually(() => socket.readableLength >= bufferBytes)
  for (let turn = 0; turn < 100; turn += 1) await new Promise(setImmediate)
  expect(socket.readableLength).toBeLessThan(bufferBytes + 64 * 1024)
  expect(client.writableLength).toBeGreaterThan(0)
})
