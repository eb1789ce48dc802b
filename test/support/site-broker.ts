// site-broker.ts: a thread with the broker of a site: plain aedes. Says its port, and publishes what it is told.

import { createServer, type AddressInfo } from 'node:net'
import { parentPort } from 'node:worker_threads'
import { Aedes, type AedesPublishPacket } from 'aedes'

const broker = await Aedes.createBroker()
const server = createServer({ noDelay: true }, (socket) => broker.handle(socket))
server.listen(0, '127.0.0.1', () => parentPort?.postMessage((server.address() as AddressInfo).port, []))
parentPort?.on(
  'message',
  ({ topic, payload, count }: { topic: string; payload: Uint8Array; count: number }) => {
    const packet = { cmd: 'publish', topic, payload: Buffer.from(payload), qos: 1, retain: false, dup: false }
    for (let sent = 0; sent < count; sent += 1) broker.publish(packet as AedesPublishPacket, () => undefined)
  },
)
