import { once } from 'node:events'
import { connect, type TLSSocket } from 'node:tls'
import { expect, test } from 'vitest'
import { createAuthority } from '../../support/certificates.ts'
import { listenerTls, openIngest, senderMapper } from '../../support/ingest-world.ts'
import { auto, byHand } from '../../support/memory-intake-spool.ts'
import { connectBytes, publishBytes } from '../../support/mqtt-device.ts'

const gateway = createAuthority()
const fleet = createAuthority('Fleet')
const truck = fleet.issue({ names: ['truck-7'] })
const messages = (count: number) =>
  Array.from({ length: count }, (_, index) =>
    publishBytes({ topic: 't', payload: `${index} ${'x'.repeat(500)}`, messageId: index + 1 }),
  )

/** Resolves when so many bytes have come, or the connection has ended. */
async function received(socket: TLSSocket, count: number): Promise<number> {
  let bytes = 0
  for await (const chunk of socket) {
    bytes += (chunk as Buffer).length
    if (bytes >= count) break
  }
  return bytes
}

test('a device with a certificate of the configured authority publishes, and its common name is known', async () => {
  const { mapper, seen } = senderMapper()
  const tls = listenerTls(gateway.issue(), { clientCa: fleet.ca })
  await using world = await openIngest(auto(), { mapper, listeners: [{ host: '127.0.0.1', port: 0, tls }] })
  expect(world.ingest.addresses()[0]).toMatch(/^mqtts:\/\/127\.0\.0\.1:\d+$/)
  const options = { port: world.port, servername: 'localhost', ca: gateway.ca, ...truck }
  const socket = connect(options)
  await once(socket, 'secureConnect')
  socket.write(Buffer.concat([connectBytes('7'), ...messages(200)]))
  await received(socket, 4 + 200 * 4)
  const sender = { userName: null, certificateName: 'truck-7', identity: 'truck-7', address: '127.0.0.1' }
  expect(seen).toEqual(Array.from({ length: 200 }, () => ({ clientId: '7', ...sender })))

  // Known before CONNECT.
  const early = connect(options).resume()
  early.write(Buffer.from([0xc0, 0]))
  await once(early, 'close')
  const dropped = world.events.find(({ kind }) => kind === 'client_dropped')
  expect(dropped).toMatchObject({ reason: 'not_connect', clientId: null, identity: 'truck-7' })
})

test('a client that closes its side gets all acknowledgements', async () => {
  const spool = byHand()
  const listener = { host: '127.0.0.1', port: 0, tls: listenerTls(gateway.issue()) }
  await using world = await openIngest(spool, { listeners: [listener] })
  // @types/node lacks allowHalfOpen.
  const options = { port: world.port, servername: 'localhost', ca: gateway.ca, allowHalfOpen: true }
  const socket = connect(options)
  await once(socket, 'secureConnect')
  socket.end(Buffer.concat([connectBytes('truck'), ...messages(50)]))
  await spool.ended(50)
  for (let turns = 0; turns < 20; turns += 1) await new Promise(setImmediate)
  spool.commit()
  expect(await received(socket, 4 + 50 * 4)).toBe(4 + 50 * 4)
  socket.destroy()
})
