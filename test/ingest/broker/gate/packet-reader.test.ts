import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { Aedes } from 'aedes'
import { expect, onTestFinished, test } from 'vitest'
import { createAckWriter, puback } from '../../../../src/ingest/broker/gate/ack-writer.ts'
import { createGate, type Gate } from '../../../../src/ingest/broker/gate/gate.ts'
import { createPagePool } from '../../../../src/ingest/broker/gate/partial-packet/page-pool.ts'
import { createPartialBudget } from '../../../../src/ingest/broker/gate/partial-packet/partial-budget.ts'
import { createTurns } from '../../../../src/ingest/broker/gate/turns.ts'
import { systemClock } from '../../../../src/std/clock.ts'
import { turn } from '../../../support/fake-clock.ts'
import { openIngest } from '../../../support/ingest-world.ts'
import { messageOf } from '../../../support/mapping-world.ts'
import { createMemoryIntakeSpool } from '../../../support/memory-intake-spool.ts'
import { connectBytes, publishBytes } from '../../../support/mqtt-device.ts'

const options = {
  connectBytesMax: 1000,
  packetBytesMax: 1_000_000,
  inFlightMax: 10,
  ackTimeoutMs: 5000,
  controlPacketsPerSecondMax: 100,
  partialTimeoutMs: 30_000,
  idleTimeoutMs: 86_400_000,
  tcpKeepaliveMs: 900_000,
}

const bufferBytes = 16 * 1024

/** A gate on a real socket, as the listener opens them, and a client that is connected to it. */
async function open() {
  const server = createServer({ highWaterMark: bufferBytes })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const connected = once(server, 'connection') as Promise<[Socket]>
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1')
  const [socket] = await connected
  onTestFinished(() => {
    client.destroy()
    socket.destroy()
    server.close()
  })
  const inFlight: Gate[] = []
  const aedes = await Aedes.createBroker()
  const gate = createGate(
    {
      socket,
      client: aedes.handle(socket),
      connection: { address: null, budget: null },
      clock: systemClock,
      writer: createAckWriter(),
      turns: createTurns(),
      partial: { budget: createPartialBudget({ partialBytesMax: 1e9 }), pool: createPagePool() },
      load: { busy: false, commits: 0 },
      pause: () => undefined,
      readingPaused: () => false,
      message: messageOf(''),
      publish(from) {
        from.countInFlight()
        inFlight.push(from)
      },
      onPing: () => undefined,
      onDrop: (_gate, reason) => expect.fail(reason),
    },
    options,
  )
  client.write(connectBytes('truck'))
  await once(client, 'data')
  gate.startReading()
  return { client, socket, gate, inFlight }
}

test('what a socket buffers has a bound while few messages may be read at a time', async () => {
  const { client, socket, gate, inFlight } = await open()
  const packets = Array.from({ length: 20_000 }, (_, n) =>
    publishBytes({ topic: 't', payload: 'x'.repeat(90), messageId: (n % 60_000) + 1 }),
  )
  client.write(Buffer.concat(packets))
  let most = 0
  let acked = 0
  while (acked < 2000) {
    await turn()
    most = Math.max(most, socket.readableLength)
    const taken = inFlight.length
    acked += taken
    for (let n = 0; n < taken; n += 1) gate.queueAck(puback, 1)
    inFlight.length = 0
    gate.writeAcks()
    expect(taken).toBeLessThanOrEqual(options.inFlightMax)
  }
  expect(most).toBeGreaterThan(0)
  expect(most).toBeLessThanOrEqual(3 * bufferBytes)
})

test.each([
  ['large', 200, 30_000],
  ['small', 40_000, 10],
])('a client that sends %s messages without a pause is read to its end', async (_size, count, bytes) => {
  const spool = createMemoryIntakeSpool({ commits: 'auto' })
  await using world = await openIngest(spool)
  const device = await world.device('truck')
  const packet = publishBytes({ topic: 't', payload: 'x'.repeat(bytes), qos: 0 })
  device.sendBytes(Buffer.concat(Array<Buffer>(count).fill(packet)))
  await spool.ended(count)
  expect(world.ingest.counters().received).toBe(count)
})
