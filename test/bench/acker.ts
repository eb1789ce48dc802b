// acker.ts: acks every PUBLISH as it is read and does nothing else: the ceiling of the load generator.
//
//   node test/bench/acker.ts        prints {"port":N}; ends with its standard input

import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { endWithParent, writeLine } from './script.ts'
import { answerBytes, connackPacket, eachPacket, writePuback } from './wire.ts'

endWithParent()
const server = createServer({ noDelay: true }, (socket) => {
  let partial: Buffer = Buffer.alloc(0)
  socket.on('error', () => socket.destroy())
  socket.on('data', (chunk) => {
    const bytes = partial.length > 0 ? Buffer.concat([partial, chunk]) : chunk
    const messageIds: number[] = []
    partial = eachPacket(bytes, (firstByte, bodyAt) => {
      if (firstByte >> 4 === 1) socket.write(connackPacket)
      else if (firstByte >> 4 === 3)
        messageIds.push(bytes.readUInt16BE(bodyAt + 2 + bytes.readUInt16BE(bodyAt)))
    })
    if (messageIds.length === 0) return
    const acks = Buffer.allocUnsafe(messageIds.length * answerBytes)
    messageIds.forEach((messageId, index) => writePuback(acks, index * answerBytes, messageId))
    socket.write(acks)
  })
})
server.listen({ port: 0, host: '127.0.0.1', backlog: 2048 }, () => {
  writeLine({ port: (server.address() as AddressInfo).port })
})
