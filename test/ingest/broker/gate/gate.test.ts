import { Socket } from 'node:net'
import { Aedes } from 'aedes'
import { describe, expect, test } from 'vitest'
import { createAckWriter, puback } from '../../../../src/ingest/broker/gate/ack-writer.ts'
import { createGate, type Gate } from '../../../../src/ingest/broker/gate/gate.ts'
import { createFakeClock } from '../../../support/fake-clock.ts'
import { messageOf } from '../../../support/mapping-world.ts'
import { connectBytes, publishBytes } from '../../../support/mqtt-device.ts'

/** A socket whose other end reads nothing: it is full from the first byte on. */
class DeafSocket extends Socket {
  override write(): boolean {
    return false
  }
}

const options = { connectBytesMax: 1000, packetBytesMax: 1000, inFlightMax: 10, ackTimeoutMs: 5000 }

function open() {
  const clock = createFakeClock()
  const socket = new DeafSocket()
  const dropped: string[] = []
  const published: string[] = []
  const client = new Aedes().handle(socket)
  const message = messageOf('')
  const deps = {
    socket,
    client,
    connection: { address: null, budget: null },
    clock,
    writer: createAckWriter(),
  }
  const gate = createGate(
    {
      ...deps,
      readingPaused: () => false,
      message,
      publish(gate) {
        published.push(message.topic)
        gate.countInFlight()
      },
      onDrop: (_gate, reason) => void dropped.push(reason),
    },
    options,
  )
  // Here the test reads, instead of aedes on `readable`.
  socket.removeAllListeners('readable')
  const read = () => socket.read(null as unknown as number) as Buffer | null
  return { clock, socket, gate, dropped, published, read }
}

async function microtask(): Promise<void> {}

describe('a client that does not read its acks', () => {
  test('is not read until it reads them', async () => {
    const { socket, gate, dropped, published, read, clock } = open()
    const hello = connectBytes('truck')
    socket.unshift(hello)
    expect(read()).toEqual(hello)
    await microtask()
    gate.startReading()
    gate.countInFlight()
    gate.queueAck(puback, 1)
    gate.writeAcks()
    const message = publishBytes({ topic: 't', payload: 'x' })
    socket.unshift(message)
    expect(read()).toBe(null)
    expect(published).toEqual([])
    socket.emit('drain')
    expect(read()).toBe(null)
    expect(published).toEqual(['t'])
    await clock.advance(60_000)
    expect(dropped).toEqual([])
  })

  test('is dropped after ack_timeout', async () => {
    const { gate, dropped, clock, socket } = open()
    gate.countInFlight()
    gate.queueAck(puback, 1)
    gate.writeAcks()
    await clock.advance(4999)
    expect(dropped).toEqual([])
    await clock.advance(1)
    expect(dropped).toEqual(['acks_not_read'])
    expect(socket.destroyed).toBe(true)
  })
})

describe('bytes that arrive while nothing waits before them', () => {
  const message = (topic: string, payload = 'x') => publishBytes({ topic, payload, messageId: 1 })

  async function connected() {
    const world = open()
    world.socket.unshift(connectBytes('truck'))
    world.read()
    await microtask()
    world.gate.startReading()
    return world
  }

  test('are read at once, without the buffer of the stream', async () => {
    const { socket, published } = await connected()
    expect(socket.push(Buffer.concat([message('a'), message('b')]))).toBe(true)
    expect(published).toEqual(['a', 'b'])
    expect(socket.readableLength).toBe(0)
  })

  // The second half would be a valid message.
  const inner = message('inner')
  const outer = publishBytes({ topic: 'outer', payload: inner, messageId: 2 })
  const halves = [outer.subarray(0, -inner.length), inner] as const

  test('wait behind the bytes in the stream', async () => {
    const { socket, published, read } = await connected()
    socket.push(Buffer.concat([message('a'), halves[0]]))
    socket.push(halves[1])
    expect(published).toEqual(['a'])
    expect(read()).toBe(null)
    expect(published).toEqual(['a', 'outer'])
  })

  test('go to the parser of aedes if it has the first part of the packet', async () => {
    const { socket, published, read } = await connected()
    socket.push(halves[0])
    expect(read()).toEqual(halves[0])
    socket.push(halves[1])
    expect(read()).toEqual(halves[1])
    expect(published).toEqual([])
  })

  test('are read up to the limit of messages in flight; the others wait in the stream', async () => {
    const { socket, gate, published, read } = await connected()
    socket.push(Buffer.concat(Array.from({ length: 12 }, (_, n) => message(`t${n}`))))
    expect(published).toHaveLength(10)
    expect(read()).toBe(null)
    gate.queueAck(puback, 1)
    expect(read()).toBe(null)
    expect(published).toEqual(Array.from({ length: 11 }, (_, n) => `t${n}`))
  })

  test('end the connection if they announce a packet beyond the limit', async () => {
    const { socket, published, dropped, read } = await connected()
    socket.push(Buffer.concat([message('a'), message('b', 'x'.repeat(1000))]))
    expect(published).toEqual(['a'])
    expect(read()).toBe(null)
    expect(dropped).toEqual(['packet_too_large'])
  })

  test.each([
    ['reading was stopped', (gate: Gate) => gate.stopReading()],
    [
      'acks are not read',
      (gate: Gate) => {
        gate.countInFlight()
        gate.queueAck(puback, 1)
        gate.writeAcks()
      },
    ],
  ])('are not read at once where %s', async (_, stop) => {
    const { socket, gate, published } = await connected()
    stop(gate)
    socket.push(message('a'))
    expect(published).toEqual([])
    expect(socket.readableLength).toBeGreaterThan(0)
  })
})
