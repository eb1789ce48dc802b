import { Socket } from 'node:net'
import { Aedes } from 'aedes'
import { generate } from 'mqtt-packet'
import { describe, expect, test } from 'vitest'
import { createAckWriter, puback } from '../../../../src/ingest/broker/gate/acks/ack-writer.ts'
import { createGate, type Gate } from '../../../../src/ingest/broker/gate/gate.ts'
import { createPagePool } from '../../../../src/ingest/broker/gate/partial-packet/page-pool.ts'
import { createPartialBudget } from '../../../../src/ingest/broker/gate/partial-packet/partial-budget.ts'
import { createTurns } from '../../../../src/ingest/broker/gate/turns.ts'
import { createFakeClock } from '../../../support/fake-clock.ts'
import { gateOptions as options } from '../../../support/gate-options.ts'
import { messageOf } from '../../../support/mapping-world.ts'
import { connectBytes, publishBytes } from '../../../support/mqtt-device.ts'

/** A socket whose other end reads nothing: it is full from the first byte on. */
class DeafSocket extends Socket {
  override write(): boolean {
    return false
  }
}

function open() {
  const clock = createFakeClock()
  const socket = new DeafSocket()
  const dropped: string[] = []
  const published: string[] = []
  const client = new Aedes().handle(socket)
  const message = messageOf('')
  const own = { socket, client, connection: { address: null, budget: null, isRefused: false } }
  const deps = {
    clock,
    writer: createAckWriter(),
    turns: createTurns(),
  }
  const gate = createGate(
    own,
    {
      ...deps,
      partial: { budget: createPartialBudget({ partialBytesMax: 1_000_000 }), pool: createPagePool() },
      load: { busy: () => false, commits: () => 0 },
      pause: () => undefined,
      readingPaused: () => false,
      onPing: () => undefined,
      takePacket: (_gate, bytes) => bytes.length,
      onHalfClosed: () => undefined,
      onClose: () => undefined,
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

/** Chunks in the buffer of the stream, which Node does not document. */
function chunksOf(socket: Socket): number {
  const { buffer, bufferIndex } = (
    socket as unknown as { _readableState: { buffer: unknown[]; bufferIndex: number } }
  )._readableState
  return buffer.length - bufferIndex
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
    gate.queueAck(puback, 1, 0)
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
    gate.queueAck(puback, 1, 0)
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

  const subscribe = generate({ cmd: 'subscribe', messageId: 1, subscriptions: [{ topic: 'a', qos: 0 }] })

  test('wait behind the bytes in the stream', async () => {
    const { socket, published, read } = await connected()
    socket.push(subscribe)
    socket.push(message('a'))
    expect(published).toEqual([])
    expect(read()).toEqual(Buffer.concat([subscribe, message('a')]))
  })

  test('are kept while the rest of their packet is missing, however they are cut', async () => {
    // The last part would be a valid message.
    const inner = message('inner')
    const outer = publishBytes({ topic: 'outer', payload: inner, messageId: 2 })
    for (let cut = 1; cut < outer.length; cut += 1) {
      const { socket, published, read } = await connected()
      socket.push(Buffer.concat([message('a'), outer.subarray(0, cut)]))
      expect(socket.readableLength).toBe(0)
      expect(published).toEqual(['a'])
      socket.push(Buffer.concat([outer.subarray(cut), message('b')]))
      expect(published, `cut at ${cut}`).toEqual(['a', 'outer', 'b'])
      expect(read()).toBe(null)
    }
  })

  test('go to aedes in one piece where the packet is for aedes', async () => {
    for (let cut = 1; cut < subscribe.length; cut += 1) {
      const { socket, published, read } = await connected()
      socket.push(subscribe.subarray(0, cut))
      expect(read()).toBe(null)
      socket.push(Buffer.concat([subscribe.subarray(cut), message('b')]))
      expect(published).toEqual([])
      expect(read()).toEqual(Buffer.concat([subscribe, message('b')]))
    }
  })

  test('cost one chunk of memory, however many segments they came in', async () => {
    const { socket, gate } = await connected()
    gate.stopReading()
    for (let count = 0; count < 1000; count += 1) socket.push(Buffer.from([0xc0]))
    expect(socket.readableLength).toBe(1000)
    expect(chunksOf(socket)).toBeLessThan(40)
  })

  test('are read up to the limit of messages in flight; the others wait in the stream', async () => {
    const { socket, gate, published, read } = await connected()
    socket.push(Buffer.concat(Array.from({ length: 12 }, (_, n) => message(`t${n}`))))
    expect(published).toHaveLength(10)
    expect(read()).toBe(null)
    gate.queueAck(puback, 1, 0)
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
        gate.queueAck(puback, 1, 0)
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
