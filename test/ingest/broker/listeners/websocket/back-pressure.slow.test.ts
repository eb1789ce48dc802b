import { once } from 'node:events'
import { describe, expect, onTestFinished, test } from 'vitest'
import { systemClock } from '../../../../../src/std/clock.ts'
import type { FrameStream } from '../../../../../src/ingest/broker/listeners/websocket/frame-stream.ts'
import { createWebSocketListener } from '../../../../../src/ingest/broker/listeners/websocket/websocket.ts'
import type { ListenerOptions } from '../../../../../src/ingest/broker/listeners/listeners.ts'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { eventually } from '../../../../support/eventually.ts'
import { createFakeClock } from '../../../../support/fake-clock.ts'
import { openIngest, type IngestWorld } from '../../../../support/ingest-world.ts'
import { createMemoryIntakeSpool } from '../../../../support/memory-intake-spool.ts'
import { publishBytes } from '../../../../support/mqtt-device.ts'
import { openWebSocket } from '../../../../support/websocket-client.ts'

const byHand = () => createMemoryIntakeSpool({ commits: 'by hand' })
const plain: ListenerOptions = {
  host: '127.0.0.1',
  port: 0,
  tls: null,
  webSocket: { path: '/mqtt', origins: [] },
}
const listeners = [plain]
const published = (messageId: number, payload = `m${messageId}`) =>
  publishBytes({ topic: 't', payload, messageId })

function dropped({ ingest }: IngestWorld): Record<string, number> {
  return Object.fromEntries(ingest.counters().droppedByReason)
}

describe('back-pressure over WebSocket', () => {
  test('a client is not read, and everything comes in the end', async () => {
    const spool = byHand()
    await using world = await openIngest(spool, { listeners, inFlightMax: 10, heldBytesMax: 1e9 })
    const client = await openWebSocket(world)
    await client.connect('truck')
    const count = 400
    // One frame of 40 MB.
    const packets = Array.from({ length: count }, (_, index) =>
      published(index + 1, `${index} ${'x'.repeat(100_000)}`),
    )
    client.send(...packets)
    await spool.ended(10)
    expect(world.ingest.counters().received).toBe(10)
    for (let acked = 0; acked < count; acked += 10) {
      await spool.ended(acked + 10)
      spool.commit()
      await client.acked(acked + 10)
    }
    expect(spool.payloads).toHaveLength(count)
    expect(dropped(world)).toEqual({})
  })

  test('answers no ping behind a message that waits, and counts no time of its own', async () => {
    const clock = createFakeClock()
    const spool = byHand()
    await using world = await openIngest(spool, { listeners, inFlightMax: 1, clock })
    const client = await openWebSocket(world)
    await client.connect('truck')
    client.send(published(1), published(2))
    await spool.ended(1)
    await clock.advance(3_600_000)
    spool.commit()
    await spool.ended(2)
    spool.commit()
    await client.acked(2)
    expect(dropped(world)).toEqual({})
  })

  test('the network is not read while the buffer of the stream is full', async () => {
    const bufferBytes = 16_384
    const listener = createWebSocketListener(systemClock, {
      path: '/mqtt',
      origins: [],
      handshakeTimeoutMs: 60_000,
      bufferBytes,
    })
    const opened: { socket: Socket; stream: FrameStream }[] = []
    const server = createServer((socket) =>
      listener.begin(socket, {
        opened: (stream) => opened.push({ socket, stream }),
        refused: () => undefined,
      }),
    )
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    onTestFinished(() => void server.close())
    const client = await openWebSocket({ port: (server.address() as AddressInfo).port })
    const [{ socket, stream }] = opened as [(typeof opened)[0]]
    // More than the system takes, in one frame.
    const bytes = 40_000_000
    client.sendFrame(Buffer.alloc(bytes))
    await eventually(() => socket.isPaused())
    // The chunk that filled it comes whole.
    expect(stream.readableLength).toBeLessThanOrEqual(bufferBytes + 65_536)
    let received = 0
    stream.on('data', (chunk: Buffer) => (received += chunk.length))
    await eventually(() => received === bytes)
    stream.destroy()
    await client.gone()
  })

  test('the gateway writes no more than a client reads', async () => {
    const streams: FrameStream[] = []
    const listener = createWebSocketListener(systemClock, {
      path: '/mqtt',
      origins: [],
      handshakeTimeoutMs: 60_000,
      bufferBytes: 16_384,
    })
    const opened = (stream: FrameStream) => {
      // Nobody reads; the end is seen all the same.
      stream.resume()
      streams.push(stream)
    }
    const server = createServer((socket) => listener.begin(socket, { opened, refused: () => undefined }))
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    onTestFinished(() => void server.close())
    const client = await openWebSocket({ port: (server.address() as AddressInfo).port })
    client.socket.pause()
    const [stream] = streams as [FrameStream]
    const chunk = publishBytes({ topic: 't', payload: 'x'.repeat(65_000), qos: 0 })
    let written = 0
    // The system takes some megabytes.
    for (let isFull = false; !isFull;) {
      written += chunk.length
      if (stream.write(chunk)) continue
      const late = new AbortController()
      const timer = setTimeout(() => late.abort(), 500)
      isFull = await once(stream, 'drain', { signal: late.signal }).then(
        () => false,
        () => true,
      )
      clearTimeout(timer)
    }
    expect(stream.writableNeedDrain).toBe(true)
    expect(stream.writableLength).toBe(chunk.length)
    client.socket.resume()
    await once(stream, 'drain')
    const received = () => client.frames.reduce((sum, { payload }) => sum + payload.length, 0)
    await client.until(() => received() === written)
    stream.destroy()
    await client.gone()
  })
})
