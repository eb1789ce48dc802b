// bare-consumer.ts: the yardstick of bridges: mqtt.js alone. Each message waits in `handleMessage` for the fdatasync
// of its group, and mqtt.js acknowledges it then.
//
//   node test/bench/bare-consumer.ts --broker P --connections 4     prints {"port":N}; ends with its input
//
// `GET /` on that port answers with the number of messages whose acknowledgement was called for.

import { closeSync, fdatasync, openSync, rmSync, write } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { connectAsync } from 'mqtt'
import { endWithParent, numbersOf, writeLine } from './script.ts'

const options = numbersOf({ broker: 0, connections: 1 })
endWithParent()
const path = join(process.env['BENCH_DIR'] ?? '.', `consumer-${process.pid}`)
const file = openSync(path, 'a')
process.on('exit', () => {
  closeSync(file)
  rmSync(path, { force: true })
})

let acked = 0
let group: { bytes: Buffer; done: () => void }[] = []
let isWriting = false

function store(bytes: Buffer, done: () => void): void {
  group.push({ bytes, done })
  if (isWriting) return
  isWriting = true
  setImmediate(commit)
}

function commit(): void {
  const committed = group
  group = []
  write(file, Buffer.concat(committed.map(({ bytes }) => bytes)), (error) => {
    if (error) throw error
    fdatasync(file, (failed) => {
      if (failed) throw failed
      acked += committed.length
      for (const { done } of committed) done()
      if (group.length > 0) setImmediate(commit)
      else isWriting = false
    })
  })
}

for (let index = 0; index < options.connections; index += 1) {
  const client = await connectAsync(`mqtt://127.0.0.1:${options.broker}`, {
    clientId: `bare-${index}`,
    clean: false,
    protocolVersion: 5,
    reconnectPeriod: 0,
    properties: { sessionExpiryInterval: 3600 },
  })
  client.handleMessage = (packet, done) => {
    store(Buffer.from(packet.payload), () => done())
  }
  const shared = options.connections > 1 ? '$share/bare/' : ''
  await client.subscribeAsync(`${shared}telemetry/v1/+`, { qos: 1 })
}
const server = createServer((_request, response) => response.end(String(acked)))
server.listen(0, '127.0.0.1', () => writeLine({ port: (server.address() as AddressInfo).port }))
