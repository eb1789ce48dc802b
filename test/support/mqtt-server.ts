// mqtt-server.ts: an MQTT 3.1.1 server. The test decides each answer: an ack, none, or a cut connection.

import { once } from 'node:events'
import { createServer } from 'node:net'
import type { AddressInfo, Socket } from 'node:net'
import { generate, parser } from 'mqtt-packet'
import type { IPublishPacket, Packet } from 'mqtt-packet'

export type Received = {
  clientId: string
  connection: number
  messageId: number
  dup: boolean
  topic: string
  payload: string
}

/** `stall`: neither this message nor a later one is acked, and the connection is cut a moment later. */
export type Answer = 'ack' | 'silence' | 'cut' | 'stall'

export type MqttServer = AsyncDisposable & {
  url: string
  received: Received[]
  /** Names of the other packets that came, in order: connect, pingreq, disconnect. */
  packets: string[]
  connections(): number
}

export async function openMqttServer(options: {
  /** What follows a PUBLISH; `soFar` counts those on its connection, from 1. */
  onPublish: (publish: Received, soFar: number) => Answer
  /** Return code of CONNACK; 0 accepts the client. */
  onConnect?: (clientId: string) => number
}): Promise<MqttServer> {
  const received: Received[] = []
  const packets: string[] = []
  const sockets = new Set<Socket>()
  let connections = 0

  const server = createServer((socket) => {
    connections += 1
    sockets.add(socket)
    const connection = connections
    let clientId = ''
    let soFar = 0
    let stalled = false
    const packetParser = parser({ protocolVersion: 4 })
    // A cut takes with it what was read in the same chunk: those messages never arrived.
    packetParser.on('packet', (packet: Packet) => {
      if (socket.destroyed) return
      if (packet.cmd === 'publish') answerPublish(packet)
      else packets.push(packet.cmd)
      if (packet.cmd === 'connect') {
        clientId = packet.clientId
        const returnCode = options.onConnect?.(clientId) ?? 0
        socket.write(generate({ cmd: 'connack', returnCode, sessionPresent: false }))
      }
      if (packet.cmd === 'pingreq') socket.write(generate({ cmd: 'pingresp' }))
    })
    socket.on('data', (bytes) => packetParser.parse(bytes))
    socket.on('error', () => socket.destroy())
    socket.on('close', () => sockets.delete(socket))

    function answerPublish({ messageId = 0, dup, topic, payload }: IPublishPacket): void {
      const publish = { clientId, connection, messageId, dup, topic, payload: payload.toString() }
      received.push(publish)
      soFar += 1
      const answer = stalled ? 'silence' : options.onPublish(publish, soFar)
      if (answer === 'stall') {
        stalled = true
        setTimeout(() => socket.destroy(), 30)
      }
      if (answer === 'ack') socket.write(generate({ cmd: 'puback', messageId }))
      if (answer === 'cut') socket.destroy()
    }
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    url: `mqtt://127.0.0.1:${port}`,
    received,
    packets,
    connections: () => connections,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}
