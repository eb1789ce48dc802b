// idle.ts: connected clients that send nothing, in a process of their own. Ready when all are connected.

import { connect, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { once } from 'node:events'
import { createFrameReader, frameOf, upgradeRequest } from './frames.ts'
import { endWithParent, numbersOf, writeLine } from './script.ts'
import { connackPacket, connectPacket } from './wire.ts'

const options = numbersOf({ port: 0, connections: 100, tls: 0, ws: 0 })
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
  const connect311 = connectPacket(`idle-${process.pid}-${number}`)
  if (options.ws > 0) {
    await answerInFrames(socket, connect311)
    return
  }
  socket.write(connect311)
  const [answer] = (await once(socket, 'data')) as [Buffer]
  if (!answer.equals(connackPacket)) fail(`no CONNACK but ${answer.toString('hex')}`)
}

/** Over a WebSocket; resolves with CONNACK. */
function answerInFrames(socket: Socket, packet: Buffer): Promise<void> {
  return new Promise((resolve) => {
    const read = createFrameReader(
      (answer) => {
        if (!answer.equals(connackPacket)) fail(`no CONNACK but ${answer.toString('hex')}`)
        resolve()
      },
      { opened: () => socket.write(frameOf(packet)), fail },
    )
    socket.on('data', read)
    socket.write(upgradeRequest(options.port))
  })
}

function fail(why: string): never {
  process.stderr.write(`idle: ${why}\n`)
  process.exit(1)
}
