import { generate } from 'mqtt-packet'
import { describe, expect, test } from 'vitest'
import { createFakeClock } from '../../../../support/fake-clock.ts'
import { openIngest, textOf, droppedBy } from '../../../../support/ingest-world.ts'
import { auto, byHand } from '../../../../support/memory-intake-spool.ts'
import { connectBytes, publishBytes } from '../../../../support/mqtt-device.ts'
import {
  frame,
  openWebSocket,
  published,
  webSocketListener,
  type WebSocketClient,
} from '../../../../support/websocket-client.ts'

const listeners = [webSocketListener]
const ping = frame(Buffer.from('are you there'), { opcode: 9 })
const publishes = (count: number) => Array.from({ length: count }, (_, index) => published(index + 1))

describe('the frames of a WebSocket', () => {
  const packets = Buffer.concat([
    generate({ cmd: 'subscribe', messageId: 7, subscriptions: [{ topic: 'a/b', qos: 1 }] }),
    published(1),
    publishBytes({ topic: 't', payload: 'm2', qos: 2, messageId: 2 }),
    generate({ cmd: 'pubrel', messageId: 2 }),
    generate({ cmd: 'pingreq' }),
  ])
  const answers = ['pingresp', 'puback', 'pubcomp', 'pubrec', 'suback']

  /** Sends the packets in these pieces, and waits for all answers. */
  async function takes(client: WebSocketClient, pieces: readonly Buffer[]): Promise<void> {
    const before = client.packets.length
    for (const bytes of pieces) {
      client.sendBytes(bytes)
      await new Promise(setImmediate)
    }
    await client.until(() => client.packets.length >= before + answers.length)
    expect(
      client.packets
        .slice(before)
        .map(({ cmd }) => cmd)
        .toSorted(),
    ).toEqual(answers)
  }

  test('[MQTT-6.0.0-2] may end at any byte of a packet', async () => {
    const spool = auto()
    await using world = await openIngest(spool, { listeners })
    const client = await openWebSocket(world)
    await client.connect('truck')
    for (let at = 0; at <= packets.length; at += 1)
      await takes(client, [frame(packets.subarray(0, at)), frame(packets.subarray(at))])
    const single = [...packets].map((byte) => frame(Buffer.from([byte])))
    await takes(client, single)
    await takes(client, [Buffer.concat(single)])
    expect(new Set(spool.payloads.map(textOf))).toEqual(new Set(['m1', 'm2']))
    const opening = connectBytes('other')
    for (let at = 0; at <= opening.length; at += 1) {
      const other = await openWebSocket(world)
      other.sendFrame(opening.subarray(0, at))
      other.sendFrame(opening.subarray(at))
      await other.until(() => other.packets[0]?.cmd === 'connack')
    }
    expect(droppedBy(world)).toEqual({})
  })

  test('[MQTT-6.0.0-1] of the gateway are binary, and acknowledge a commit in one frame', async () => {
    const spool = byHand()
    await using world = await openIngest(spool, { listeners })
    const client = await openWebSocket(world)
    await client.connect('truck')
    client.send(...publishes(100))
    await spool.ended(100)
    spool.commit()
    await client.acked(100)
    expect(client.frames.map(({ opcode, fin, payload }) => [opcode, fin, payload.length])).toEqual([
      [2, true, 4],
      [2, true, 400],
    ])
  })

  test.each([true, false])(
    '[MQTT-6.0.0-1] of text end the connection (connected: %s)',
    async (isConnected) => {
      const spool = auto()
      await using world = await openIngest(spool, { listeners })
      const client = await openWebSocket(world)
      if (isConnected) await client.connect('truck')
      client.sendBytes(Buffer.concat([frame(published(1), { opcode: 1 }), frame(published(2))]))
      await client.gone()
      expect(client.closeCode()).toBe(1003)
      expect(droppedBy(world)).toEqual({ websocket_text: 1 })
      expect(spool.payloads).toEqual([])
    },
  )

  test('that break the protocol of WebSocket end the connection', async () => {
    await using world = await openIngest(auto(), { listeners })
    const client = await openWebSocket(world)
    await client.connect('truck')
    client.sendFrame(published(1), { mask: null })
    await client.gone()
    expect(client.closeCode()).toBe(1002)
    expect(droppedBy(world)).toEqual({ websocket_protocol: 1 })
    // A close code that does not exist.
    const other = await openWebSocket(world)
    await other.connect('truck')
    other.sendFrame(Buffer.from([3, 236]), { opcode: 8 })
    await other.gone()
  })

  test('have the limits of packets, however large they are themselves', async () => {
    const limits = { connectBytesMax: 1000, packetBytesMax: 2000 }
    await using world = await openIngest(auto(), { listeners, ...limits })
    const early = await openWebSocket(world)
    early.sendFrame(connectBytes('truck', { username: 'u'.repeat(1200) }).subarray(0, 100), {
      announced: 2 ** 30,
    })
    await early.gone()
    const late = await openWebSocket(world)
    await late.connect('truck')
    late.sendFrame(Buffer.concat([...publishes(100), published(200, 'x'.repeat(3000)).subarray(0, 10)]))
    await late.gone()
    expect(droppedBy(world)).toEqual({ connect_too_large: 1, packet_too_large: 1 })
    expect([early.closeCode(), late.closeCode()]).toEqual([1009, 1009])
  })
})

describe('control frames', () => {
  test('a ping gets its pong, and a flood of pings, pongs or empty frames ends the connection', async () => {
    const clock = createFakeClock()
    await using world = await openIngest(auto(), { listeners, controlPacketsPerSecondMax: 10, clock })
    const flood = [
      ping,
      frame(Buffer.alloc(0), { opcode: 10 }),
      frame(Buffer.alloc(0)),
      frame(Buffer.alloc(0), {}),
    ]
    for (const [index, one] of flood.entries()) {
      const client = await openWebSocket(world)
      await client.connect(`c${index}`)
      // CONNECT counts, too.
      for (let n = 1; n < 50; n += 1) client.sendBytes(one)
      client.send(published(1))
      await client.acked(1)
      const pongs = client.frames.filter(({ opcode }) => opcode === 10)
      expect(pongs.map(({ payload }) => payload.toString())).toEqual(
        one === ping ? Array.from({ length: 49 }, () => 'are you there') : [],
      )
      client.sendBytes(one)
      await client.gone()
      expect(client.closeCode()).toBe(1008)
    }
    expect(droppedBy(world)).toEqual({ too_many_control_packets: flood.length })
  })

  test('are no packets of MQTT: the keepalive ends a client that only sends pings', async () => {
    const clock = createFakeClock()
    await using world = await openIngest(auto(), { listeners, clock })
    const client = await openWebSocket(world)
    client.send(connectBytes('truck', { keepalive: 10 }))
    await client.until(() => client.packets.length === 1)
    for (let second = 1; second <= 14; second += 1) {
      client.sendBytes(ping)
      await client.until(() => client.frames.filter(({ opcode }) => opcode === 10).length === second)
      await clock.advance(1000)
    }
    await clock.advance(2000)
    await client.gone()
    expect(droppedBy(world)).toEqual({ keepalive_timeout: 1 })
  })
})
