// idle.ts: connected clients that send nothing, in a process of their own. Ready when all are connected.

import { connect } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { once } from 'node:events'
import { endWithParent, numbersOf, writeLine } from './script.ts'
import { connackPacket, connectPacket } from './wire.ts'

const options = numbersOf({ port: 0, connections: 100, tls: 0 })
endWithParent()
// In groups, so that the listen queue of the broker is not full.
for (let first = 0; first < options.connections; first += 50)
  await Promise.all(
    Array.from({ length: Math.min(50, options.connections - first) }, (_, index) => open(first + index)),
  )
writeLine({ port: options.port })

/** From an address of its own: limits by address are not what is measured. */
async function open(number: number): Promise<void> {
  const localAddress = `127.64.${(number >> 8) + 1}.${number & 0xff}`
  const to = { port: options.port, host: '127.0.0.1', localAddress }
  const socket = options.tls > 0 ? connectTls({ ...to, rejectUnauthorized: false }) : connect(to)
  socket.on('error', (error) => fail(error.message))
  socket.on('close', () => fail('the broker closed the connection'))
  socket.write(connectPacket(`idle-${process.pid}-${number}`))
  const [answer] = (await once(socket, 'data')) as [Buffer]
  if (!answer.equals(connackPacket)) fail(`no CONNACK but ${answer.toString('hex')}`)
}

function fail(why: string): never {
  process.stderr.write(`idle: ${why}\n`)
  process.exit(1)
}
