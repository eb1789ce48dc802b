// scripted-broker.ts: a broker whose answers the test writes, for what a real one does rarely. It speaks MQTT 3.1.1
// and 5 by mqtt-packet, and records what each connection sent.

import { once } from 'node:events'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { generate, parser, type IConnackPacket, type IConnectPacket, type Packet } from 'mqtt-packet'
import { eventually } from './eventually.ts'

export type BrokerConnection = {
  readonly connect: IConnectPacket
  /** Everything after CONNECT, in order. */
  readonly received: readonly Packet[]
  /** Packet identifiers of the PUBACKs, by the write that had them. */
  readonly ackWrites: readonly (readonly number[])[]
  readonly closed: boolean
  send(...packets: Packet[]): void
  sendBytes(bytes: Buffer): void
  destroy(): void
}

export type ScriptedBroker = AsyncDisposable & {
  port: number
  readonly connections: readonly BrokerConnection[]
  /** Resolves with the connection of this number, from 0, when it has subscribed, or was connected without. */
  connection(index: number): Promise<BrokerConnection>
}

export type BrokerScript = {
  connack?: (connect: IConnectPacket, index: number) => Partial<IConnackPacket>
  /** Packets in the same write as CONNACK. */
  withConnack?: (index: number) => readonly Packet[]
  /** Answers to the filters of a SUBSCRIBE. */
  granted?: (filters: readonly string[]) => number[]
  /** Answer to each filter of UNSUBSCRIBE, of MQTT 5; default 0. */
  unsubscribed?: (filter: string) => number
  /** Does not answer SUBSCRIBE. */
  mute?: boolean
  /** One that another broker had before. */
  port?: number
}

export async function openScriptedBroker(script: BrokerScript = {}): Promise<ScriptedBroker> {
  const connections: (BrokerConnection & { ready: boolean })[] = []
  const sockets = new Set<Socket>()
  const server = createServer({ noDelay: true }, (socket) => {
    sockets.add(socket)
    accept(socket)
  })
  server.listen(script.port ?? 0, '127.0.0.1')
  await once(server, 'listening')

  function accept(socket: Socket): void {
    const received: Packet[] = []
    const ackWrites: number[][] = []
    let inWrite: number[] = []
    let own: (typeof connections)[number] | null = null
    let version = 4
    let closed = false
    const send = (...packets: Packet[]) =>
      void socket.write(
        Buffer.concat(packets.map((packet) => generate(packet, { protocolVersion: version }))),
      )
    const parse = parser()
    parse.on('packet', (packet) => {
      if (packet.cmd === 'connect') {
        version = packet.protocolVersion ?? 4
        const index = connections.length
        own = {
          connect: packet,
          received,
          ackWrites,
          get closed() {
            return closed
          },
          ready: false,
          send,
          sendBytes: (bytes) => void socket.write(bytes),
          destroy: () => socket.destroy(),
        }
        connections.push(own)
        const answer = {
          returnCode: 0,
          reasonCode: 0,
          sessionPresent: false,
          ...script.connack?.(packet, index),
        }
        own.ready = answer.sessionPresent
        send({ cmd: 'connack', ...answer }, ...(script.withConnack?.(index) ?? []))
        return
      }
      received.push(packet)
      if (packet.cmd === 'puback') inWrite.push(packet.messageId ?? 0)
      if (packet.cmd === 'pingreq') send({ cmd: 'pingresp' })
      if (packet.cmd === 'unsubscribe')
        send({
          cmd: 'unsuback',
          messageId: packet.messageId ?? 0,
          granted: packet.unsubscriptions.map((filter) => script.unsubscribed?.(filter) ?? 0),
        })
      if (packet.cmd === 'subscribe' && script.mute !== true) {
        const filters = packet.subscriptions.map(({ topic }) => topic)
        const granted = script.granted?.(filters) ?? packet.subscriptions.map(({ qos }) => qos)
        send({ cmd: 'suback', messageId: packet.messageId ?? 0, granted })
        if (own !== null) own.ready = true
      }
    })
    socket.on('data', (chunk) => {
      inWrite = []
      parse.parse(chunk)
      if (inWrite.length > 0) ackWrites.push(inWrite)
    })
    socket.on('error', () => socket.destroy())
    socket.on('close', () => {
      closed = true
      sockets.delete(socket)
    })
  }

  return {
    port: (server.address() as AddressInfo).port,
    connections,
    async connection(index) {
      await eventually(() => connections[index]?.ready === true)
      return connections[index]!
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}
