// mqtt-broker.ts: a third-party broker: plain aedes on its own port.

import { once } from 'node:events'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { Aedes, type AedesPublishPacket } from 'aedes'
import { eventually } from './eventually.ts'

export type MqttBroker = AsyncDisposable & {
  url: string
  /** Resolves after a subscription; `times` counts from the start. */
  subscribed(times?: number): Promise<void>
  publish(topic: string, payload: string | Buffer, options?: { qos?: 0 | 1; retain?: boolean }): Promise<void>
  /** Resolves when the only subscriber has acked every QoS 1 message so far. */
  delivered(): Promise<void>
  /** Ends every connection. */
  cut(): void
}

export async function openMqttBroker(
  options: { user?: { name: string; password: string } } = {},
): Promise<MqttBroker> {
  const { user } = options
  const broker = await Aedes.createBroker({
    authenticate(_client, name, password, done) {
      const known = user === undefined || (name === user.name && password?.toString() === user.password)
      const error = Object.assign(new Error('bad name or password'), { returnCode: 4 })
      done(known ? null : error, known)
    },
  })
  let subscriptions = 0
  let delivering = 0
  let acked = 0
  broker.on('ack', () => (acked += 1))
  let waiting: { times: number; resolve: () => void }[] = []
  broker.on('subscribe', () => {
    subscriptions += 1
    for (const { times, resolve } of waiting) if (subscriptions >= times) resolve()
    waiting = waiting.filter(({ times }) => subscriptions < times)
  })
  const sockets = new Set<Socket>()
  const server = createServer({ noDelay: true }, (socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    broker.handle(socket)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    url: `mqtt://127.0.0.1:${port}`,
    subscribed: (times = 1) =>
      subscriptions >= times
        ? Promise.resolve()
        : new Promise((resolve) => {
            waiting.push({ times, resolve })
          }),
    publish(topic, payload, { qos = 1, retain = false } = {}) {
      const packet = { cmd: 'publish', topic, payload, qos, retain, dup: false } as AedesPublishPacket
      delivering += qos
      return new Promise((resolve, reject) => {
        broker.publish(packet, (error) => (error ? reject(error) : resolve()))
      })
    },
    delivered: () => eventually(() => acked >= delivering),
    cut() {
      for (const socket of sockets) socket.destroy()
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      server.close()
      await new Promise<void>((resolve) => {
        broker.close(() => resolve())
      })
    },
  }
}
