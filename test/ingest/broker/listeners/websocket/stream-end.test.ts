import { describe, expect, test } from 'vitest'
import { eventually } from '../../../../support/eventually.ts'
import { createFakeClock } from '../../../../support/fake-clock.ts'
import { openIngest, textOf, type IngestWorld, droppedBy } from '../../../../support/ingest-world.ts'
import { auto, byHand } from '../../../../support/memory-intake-spool.ts'
import { publishBytes } from '../../../../support/mqtt-device.ts'
import { frame, openWebSocket, webSocketListener } from '../../../../support/websocket-client.ts'

const listeners = [webSocketListener]
const closeFrame = frame(Buffer.from([3, 232]), { opcode: 8 })
const published = (messageId: number, payload = `m${messageId}`, qos: 0 | 1 = 1) =>
  publishBytes({ topic: 't', payload, messageId, qos })

function endOf({ events }: IngestWorld): string | undefined {
  const event = events.findLast(({ kind }) => kind === 'client_disconnected')
  return event?.kind === 'client_disconnected' ? event.reason : undefined
}

describe('the end of a WebSocket', () => {
  test.each(['a close frame', 'FIN'])('by %s: everything before is taken, also of QoS 0', async (how) => {
    const spool = auto()
    await using world = await openIngest(spool, { listeners, inFlightMax: 5 })
    const client = await openWebSocket(world)
    await client.connect('truck')
    for (let n = 1; n <= 500; n += 1)
      client.send(published(n, `m${n} ${'x'.repeat(100)}`, n % 2 === 0 ? 0 : 1))
    if (how === 'FIN') client.socket.end()
    else client.sendBytes(closeFrame)
    await client.gone()
    await eventually(() => world.ingest.counters().connections === 0)
    // The commit of a message of QoS 0 may come after the end of its connection.
    await eventually(() => spool.payloads.length === 500)
    expect(endOf(world)).toBe('closed')
    expect(droppedBy(world)).toEqual({})
    expect(client.closeCode()).toBe(how === 'FIN' ? null : 1000)
  })

  test('by a close frame while acknowledgements are held: the gateway waits for them, and no longer than 5 s', async () => {
    const clock = createFakeClock()
    const spool = byHand()
    await using world = await openIngest(spool, { listeners, clock })
    for (const isInTime of [true, false]) {
      const client = await openWebSocket(world)
      await client.connect('truck')
      client.sendBytes(Buffer.concat([frame(published(1, `in time: ${isInTime}`)), closeFrame]))
      await spool.ended(isInTime ? 1 : 2)
      await client.gone()
      // Its place in the limits is in use as long as its memory.
      await eventually(() => world.ingest.counters().connections === 1)
      if (isInTime) spool.commit()
      else await clock.advance(5000)
      await eventually(() => world.ingest.counters().connections === 0)
    }
    spool.commit()
    expect(spool.payloads.map(textOf)).toEqual(['in time: true', 'in time: false'])
    expect(droppedBy(world)).toEqual({ half_closed: 1 })
  })

  test('by a network that breaks, also within a frame', async () => {
    await using world = await openIngest(auto(), { listeners })
    const client = await openWebSocket(world)
    await client.connect('truck')
    client.sendFrame(published(1, 'x'.repeat(50_000)).subarray(0, 30_000), { announced: 100_000 })
    await eventually(() => world.ingest.counters().partialBytes > 0)
    client.socket.resetAndDestroy()
    await eventually(() => world.ingest.counters().connections === 0)
    expect(endOf(world)).toBe('connection_lost')
    expect(droppedBy(world)).toEqual({})
    expect(world.ingest.counters()).toMatchObject({ partialBytes: 0, unauthenticated: 0 })
  })

  test.each([true, false])(
    'of the gateway: acknowledgements, then 1001 (answered: %s)',
    async (answersClose) => {
      const spool = auto()
      const world = await openIngest(spool, { listeners })
      const client = await openWebSocket(world, { answersClose })
      await client.connect('truck')
      client.send(published(1))
      await client.acked(1)
      await Promise.all([world[Symbol.asyncDispose](), client.gone()])
      expect(client.frames.map(({ opcode }) => opcode)).toEqual([2, 2, 8])
      expect(client.closeCode()).toBe(1001)
      expect(endOf(world)).toBe('gateway_stopping')
    },
  )

  test('by DISCONNECT, and by a refused CONNECT: 1000', async () => {
    await using world = await openIngest(auto(), { listeners })
    const client = await openWebSocket(world)
    await client.connect('truck')
    client.send({ cmd: 'disconnect' })
    await client.gone()
    expect(client.closeCode()).toBe(1000)
    await eventually(() => endOf(world) === 'disconnect')
    const refused = await openWebSocket(world)
    expect(await refused.connect('x'.repeat(300))).toMatchObject({ returnCode: 2 })
    await refused.gone()
    expect(refused.closeCode()).toBe(1000)
  })

  test('by another connection of the same client', async () => {
    await using world = await openIngest(auto(), { listeners })
    const client = await openWebSocket(world)
    await client.connect('truck')
    const other = await openWebSocket(world)
    await other.connect('truck')
    await client.gone()
    expect(world.ingest.counters()).toMatchObject({ takeOvers: 1, connections: 1 })
    expect(endOf(world)).toBe('taken_over')
  })
})
