import { Socket } from 'node:net'
import { Aedes } from 'aedes'
import { describe, expect, test } from 'vitest'
import { createAckWriter, puback } from '../../src/ingest/acks.ts'
import { createGate } from '../../src/ingest/gate.ts'
import { createFakeClock } from '../support/fake-clock.ts'
import { connectBytes, publishBytes } from '../support/mqtt-device.ts'

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
  const deps = { socket, client, certificateName: null, clock, writer: createAckWriter() }
  const gate = createGate(
    {
      ...deps,
      readingPaused: () => false,
      publish: (_gate, topic) => void published.push(topic),
      dropped: (_gate, reason) => void dropped.push(reason),
    },
    options,
  )
  // aedes reads by itself on `readable`; here the test does.
  socket.removeAllListeners('readable')
  const read = () => socket.read(null as unknown as number) as Buffer | null
  return { clock, socket, gate, dropped, published, read }
}

async function microtask(): Promise<void> {}

describe('a client that does not read its acks', () => {
  test('is not read either, until it reads them', async () => {
    const { socket, gate, dropped, published, read, clock } = open()
    const hello = connectBytes('truck')
    socket.unshift(hello)
    expect(read()).toEqual(hello)
    await microtask()
    gate.open()
    gate.took()
    gate.give(puback, 1)
    gate.flush()
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
    gate.took()
    gate.give(puback, 1)
    gate.flush()
    await clock.advance(4999)
    expect(dropped).toEqual([])
    await clock.advance(1)
    expect(dropped).toEqual(['it does not read its acks'])
    expect(socket.destroyed).toBe(true)
  })
})
