import { describe, expect, test } from 'vitest'
import { openIngest, droppedBy } from '../../../../support/ingest-world.ts'
import { byHand } from '../../../../support/memory-intake-spool.ts'
import { openWebSocket, published, webSocketListener } from '../../../../support/websocket-client.ts'

const listeners = [webSocketListener]

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
    expect(droppedBy(world)).toEqual({})
  })
})
