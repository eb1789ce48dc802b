// bare-engine-consumer.ts: the yardstick of bridges to RabbitMQ and NATS: the client of the engine alone. It acknowledges
// every 200 messages and when no more come, and does nothing with them.
//
//   node test/bench/bare-engine-consumer.ts --port P --partitions 4 --nats 1     prints {"port":N}; ends with its input
//
// `GET /` on that port answers with the number of messages that came. Queues or durables have the prefix `bench`.

import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { connect as connectAmqp, type ConsumeMessage } from 'amqplib'
import { jetstream } from '@nats-io/jetstream'
import { connect as connectNats } from '@nats-io/transport-node'
import { endWithParent, numbersOf, writeLine } from './script.ts'

const options = numbersOf({ port: 0, partitions: 4, nats: 0 })
const ackEvery = 200
/** What is left when no more come. */
const restMs = 50
const window = 1000

let received = 0

async function consumeAmqp(): Promise<void> {
  const connection = await connectAmqp(`amqp://127.0.0.1:${options.port}`, { noDelay: true })
  for (let partition = 0; partition < options.partitions; partition += 1) {
    const channel = await connection.createChannel()
    await channel.prefetch(window)
    let last: ConsumeMessage | null = null
    let waiting = 0
    const acknowledge = () => {
      if (last !== null) channel.ack(last, true)
      last = null
      waiting = 0
    }
    await channel.consume(`bench.${partition}`, (message) => {
      received += 1
      waiting += 1
      last = message
      if (waiting === ackEvery) acknowledge()
    })
    setInterval(acknowledge, restMs)
  }
}

async function consumeNats(): Promise<void> {
  const connection = await connectNats({ servers: `127.0.0.1:${options.port}` })
  for (let partition = 0; partition < options.partitions; partition += 1) {
    const consumer = await jetstream(connection).consumers.get('$MQTT_msgs', `bench-${partition}`)
    let last: { ack(): void } | null = null
    let waiting = 0
    const acknowledge = () => {
      last?.ack()
      last = null
      waiting = 0
    }
    await consumer.consume({
      max_messages: window,
      callback(message) {
        received += 1
        waiting += 1
        last = message
        if (waiting === ackEvery) acknowledge()
      },
    })
    setInterval(acknowledge, restMs)
  }
}

endWithParent()
const server = createServer((_, response) => response.end(String(received)))
server.listen(0, '127.0.0.1', () => {
  writeLine({ port: (server.address() as AddressInfo).port })
  // A failure ends the process, and the bench sees it.
  void (options.nats === 1 ? consumeNats() : consumeAmqp())
})
