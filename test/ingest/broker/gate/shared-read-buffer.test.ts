import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { connect as connectTls, createServer as createTlsServer } from 'node:tls'
import { describe, expect, onTestFinished, test } from 'vitest'
import { readIntoSharedBuffer } from '../../../../src/ingest/broker/gate/packet-reader/shared-read-buffer.ts'
import { createAuthority } from '../../../support/certificates.ts'
import { eventually } from '../../../support/eventually.ts'

async function portOf(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  return (server.address() as AddressInfo).port
}

function openPlain(connected: (socket: Socket) => void): Promise<Socket> {
  return portOf(createServer(connected)).then((port) => connect({ port, host: '127.0.0.1' }))
}

async function openTls(connected: (socket: Socket) => void): Promise<Socket> {
  const authority = createAuthority()
  const tls = createTlsServer(authority.issue())
  tls.on('secureConnection', connected)
  const port = await portOf(tls)
  return connectTls({ port, host: '127.0.0.1', ca: authority.ca })
}

// Trip-wires: what shared-read-buffer.ts uses of Node. When one fails after an upgrade, read lib/net.js first.
describe.each([
  ['a plain socket', openPlain],
  ['a socket with TLS', openTls],
])('%s', (_what, open) => {
  test('is read into one buffer, and its end comes to the stream', async () => {
    const taken: Buffer[] = []
    const buffers = new Set<ArrayBufferLike>()
    let ended = false
    const client = await open((socket) => {
      const isShared = readIntoSharedBuffer(socket, (bytes) => {
        buffers.add(bytes.buffer)
        taken.push(Buffer.from(bytes))
        return true
      })
      expect(isShared).toBe(true)
      socket.on('readable', () => void socket.read())
      socket.on('end', () => {
        ended = true
      })
    })
    const sent = Buffer.alloc(1_000_000, 'telemetry')
    client.end(sent)
    await eventually(() => ended)
    expect(Buffer.concat(taken).equals(sent)).toBe(true)
    expect(buffers.size).toBe(1)
  })

  test('is not read on after false, until the stream asks', async () => {
    let bytesTaken = 0
    let server: Socket | null = null
    const client = await open((socket) => {
      server = socket
      readIntoSharedBuffer(socket, (bytes) => {
        bytesTaken += bytes.length
        socket.push(Buffer.from(bytes))
        return false
      })
    })
    client.write(Buffer.alloc(1_000_000))
    await eventually(() => bytesTaken > 0)
    const before = bytesTaken
    // What could come has come.
    for (let turn = 0; turn < 50; turn += 1) await new Promise(setImmediate)
    expect(bytesTaken).toBeLessThanOrEqual(before + 64 * 1024)
    await eventually(() => {
      server!.read()
      return bytesTaken === 1_000_000
    })
    client.destroy()
  })
})
