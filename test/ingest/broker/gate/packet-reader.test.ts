import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { Aedes } from 'aedes'
import { expect, onTestFinished, test } from 'vitest'
import { createAckWriter, puback } from '../../../../src/ingest/broker/gate/acks/ack-writer.ts'
import { createGate, type Gate } from '../../../../src/ingest/broker/gate/gate.ts'
import { createPagePool } from '../../../../src/ingest/broker/gate/partial-packet/page-pool.ts'
import { createPartialBudget } from '../../../../src/ingest/broker/gate/partial-packet/partial-budget.ts'
import { createTurns } from '../../../../src/ingest/broker/gate/turns.ts'
import { systemClock } from '../../../../src/std/clock.ts'
import { eventually } from '../../../support/eventually.ts'
import { turn } from '../../../support/fake-clock.ts'
import { openIngest } from '../../../support/ingest-world.ts'
import { gateOptions } from '../../../support/gate-options.ts'
import { messageOf } from '../../../support/mapping-world.ts'
import { createMemoryIntakeSpool } from '../../../support/memory-intake-spool.ts'
import { connectBytes, publishBytes } from '../../../support/mqtt-device.ts'

const options = { ...gateOptions, packetBytesMax: 1_000_000 }

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
  const intake = { paused: false }
  const aedes = await Aedes.createBroker()
  const gate = createGate(
    {
      socket,
      client: aedes.handle(socket),
      connection: { address: null, budget: null, isRefused: false },
    },
    {
      clock: systemClock,
      writer: createAckWriter(),
      turns: createTurns(),
      partial: { budget: createPartialBudget({ partialBytesMax: 1e9 }), pool: createPagePool() },
      load: { busy: () => false, commits: () => 0 },
      pause: () => undefined,
      readingPaused: () => intake.paused,
      message: messageOf(''),
      publish(from) {
        from.countInFlight()
        inFlight.push(from)
      },
      onPing: () => undefined,
      takePacket: (_gate, bytes) => bytes.length,
      onHalfClosed: () => undefined,
      onClose: () => undefined,
      onDrop: (_gate, reason) => expect.fail(reason),
    },
    options,
  )
  client.write(connectBytes('truck'))
  await once(client, 'data')
  gate.startReading()
  return { client, socket, gate, inFlight, intake }
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
    for (let n = 0; n < taken; n += 1) gate.queueAck(puback, 1, 0)
    inFlight.length = 0
    gate.writeAcks()
    expect(taken).toBeLessThanOrEqual(options.inFlightMax)
  }
  expect(most).toBeGreaterThan(0)
  expect(most).toBeLessThanOrEqual(3 * bufferBytes)
})

test('a socket is read on after a pause in which its buffer was filled by many small chunks', async () => {
  const { client, socket, gate, inFlight, intake } = await open()
  intake.paused = true
  // 33 chunks, which become one, and 16 KiB are reached at the same time.
  const packet = publishBytes({ topic: 't', payload: 'x'.repeat(492), qos: 0 })
  for (let sent = 1; sent <= 33; sent += 1) {
    client.write(packet)
    await eventually(() => socket.readableLength === sent * packet.length)
  }
  expect(socket.readableLength).toBeGreaterThan(bufferBytes)
  for (let sent = 34; sent <= 100; sent += 1) client.write(packet)
  intake.paused = false
  gate.resumeReading()
  let taken = 0
  await eventually(() => {
    const some = inFlight.splice(0).length
    for (let n = 0; n < some; n += 1) gate.queueAck(puback, 1, 0)
    gate.writeAcks()
    taken += some
    return taken === 100
  })
})

test('nothing more is read once a write has failed', async () => {
  const { client, socket, inFlight, intake, gate } = await open()
  intake.paused = true
  // Behind it is what would be taken for a packet, if the rest of the first one was dropped.
  const inner = publishBytes({ topic: 'inner', payload: 'y'.repeat(2000), qos: 0 })
  const packet = publishBytes({ topic: 't', payload: Buffer.concat([Buffer.alloc(9000), inner]), qos: 0 })
  client.write(Buffer.concat([packet, packet]))
  await eventually(() => socket.readableLength >= bufferBytes)
  intake.paused = false
  Object.assign((socket as unknown as { _readableState: { errored: unknown } })._readableState, {
    errored: new Error('EPIPE'),
  })
  gate.resumeReading()
  await turn()
  expect(inFlight).toEqual([])
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
