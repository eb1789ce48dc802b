// What a client may not send after its CONNECT: the message before it is acknowledged, the connection ends, with MQTT 5
// by a DISCONNECT that says the code, and nothing behind the fault is taken.

import { expect, test } from 'vitest'
import { rowsBeside } from '../../support/case-rows.ts'
import {
  packetOf,
  pingPacket,
  publishPacket,
  pubrelPacket,
  text,
  uint16,
  userProperty,
} from '../../support/mqtt5-packets.ts'
import { packetsOf } from '../../support/mqtt-versions.ts'
import { packetFrom, type PacketRow } from '../../support/packet-rows.ts'
import { endOf, overEachTransport, positionText, topic } from '../../support/statement-world.ts'

type Fault = readonly [what: string, packet: PacketRow, codes?: number | readonly number[]]
type Allowed = readonly [what: string, packet: PacketRow, answer: string]

const rows = rowsBeside(import.meta.filename) as {
  both: Record<string, Fault[]>
  only3: Fault[]
  only5: Record<string, Fault[]>
  allowed: { both: Allowed[]; only3: Allowed[]; only5: Allowed[] }
}
const malformed = 0x81
const groups = { 3: { ...rows.both, only3: rows.only3 }, 5: { ...rows.both, ...rows.only5 } }

overEachTransport([3, 5], (open, packets, version) => {
  const { publish, disconnect } = packets

  test.each(Object.entries(groups[version]))(
    '[MQTT3-4.8.0-1] [MQTT5-4.13.1-1] a connection ends at what is not allowed: %s',
    async (_group, faults) => {
      const world = await open()
      await Promise.all(
        faults.map(async ([what, packet, codes = malformed]) => {
          const device = await world.connected({ clientId: what })
          device.send(publish({ topic, messageId: 77, payload: positionText(1) }))
          await device.next('puback')
          device.send(
            packetFrom(packet, packets),
            publish({ topic, messageId: 78, payload: positionText(2) }),
            pingPacket,
          )
          const end = await endOf(device)
          const received = device.received.map(({ type, messageId }) => `${type} ${messageId}`)
          const last = version === 5 ? ['disconnect 0'] : []
          expect(received, what).toEqual(['connack 0', 'puback 77', ...last])
          expect(version === 5 ? [codes].flat() : [null], what).toContain(end?.code ?? null)
        }),
      )
      expect(await world.counter('gateway_messages_received_total')).toBe(faults.length)
      // The operator sees each, too.
      expect(await world.counter('gateway_clients_dropped_total')).toBe(faults.length)
    },
  )

  test('what is rare and allowed is answered, and the connection stays', async () => {
    const world = await open()
    const { both, only3, only5 } = rows.allowed
    for (const [what, packet, answer] of [...both, ...(version === 5 ? only5 : only3)]) {
      const device = await world.connected()
      device.send(packetFrom(packet, packets), pingPacket)
      await device.until(() => device.received.some(({ type }) => type === answer))
      await device.next('pingresp')
      expect(device.closed, what).toBe(false)
    }
  })

  test('[MQTT3-1.5.3-3] [MQTT5-1.5.4-3] the bytes EF BB BF of a topic and of a property are kept', async () => {
    const world = await open()
    const device = await world.connected()
    const properties = [userProperty('\ufeffn', '\ufeffv')]
    device.send(publish({ topic: `\ufeff${topic}`, payload: world.position(1), properties }))
    device.send(publish({ topic, payload: world.position(1), messageId: 2 }))
    await device.next('puback', 1)
    // The first one is another topic, which no source has.
    expect(await world.counter('gateway_messages_dead_total')).toBe(1)
    expect(await world.counter('gateway_messages_mapped_total')).toBe(1)
  })

  test('what came before DISCONNECT in the same portion is acknowledged, whole or in parts', async () => {
    const world = await open()
    const device = await world.connected()
    const messages = Array.from({ length: 50 }, (_, n) =>
      publish({ topic, payload: world.position(n), messageId: n + 1 }),
    )
    device.send(...messages, disconnect, publish({ topic, messageId: 51 }))
    expect(await device.gone()).toBeNull()
    expect(device.received.map(({ type }) => type)).toEqual(['connack', ...messages.map(() => 'puback')])
    expect(await world.counter('gateway_messages_received_total')).toBe(50)
    expect(await world.counter('gateway_clients_dropped_total')).toBe(0)
  })

  test('what follows DISCONNECT is neither read nor a fault', async () => {
    const world = await open()
    const device = await world.connected()
    device.send(disconnect, publish({ topic }), packetOf(0xf0))
    expect(await device.gone()).toBeNull()
    expect(device.received).toHaveLength(1)
    expect(await world.counter('gateway_messages_received_total')).toBe(0)
    expect(await world.counter('gateway_clients_dropped_total')).toBe(0)
  })
})

overEachTransport([3], (open, { publish }) => {
  test('MQTT 3.1 sends PUBREL, SUBSCRIBE and UNSUBSCRIBE with DUP, and QoS 0 with DUP', async () => {
    const world = await open()
    const device = await world.connected({ name: 'MQIsdp', level: 3 })
    device.send(
      packetOf(0x8a, uint16(1), text('a'), 1),
      packetOf(0xaa, uint16(1), text('a')),
      packetOf(0x6a, uint16(9)),
      publish({ topic, qos: 0, dup: true, payload: world.position(2) }),
      publish({ topic, dup: true, payload: world.position(1) }),
    )
    await device.next('puback')
    const types = device.received.map(({ type }) => type).toSorted()
    expect(types).toEqual(['connack', 'puback', 'pubcomp', 'suback', 'unsuback'])
    expect(await world.counter('gateway_messages_mapped_total')).toBe(2)
  })
})

overEachTransport([5], (open) => {
  test('[MQTT5-2.1.3-1] [MQTT5-3.14.4-1] [MQTT5-3.14.4-2] nothing follows a DISCONNECT of the gateway', async () => {
    const world = await open()
    const device = await world.connected()
    device.send(pingPacket, packetOf(0xc1), pingPacket)
    await device.gone()
    expect(device.received.map(({ type }) => type)).toEqual(['connack', 'pingresp', 'disconnect'])
  })
  test('too many control packets are 0x96, and a PUBREL for each message of QoS 2 is none too many', async () => {
    const world = await open({ limits: 'max_control_packets_per_s: 10' })
    const device = await world.connected()
    for (let messageId = 1; messageId <= 500; messageId += 1) {
      const message = { topic, qos: 2, messageId, payload: world.position(messageId) }
      device.send(publishPacket(message), pubrelPacket(messageId))
    }
    expect(await device.next('pubcomp', 499)).toMatchObject({ messageId: 500 })
    device.send(...Array.from({ length: 5000 }, () => pingPacket))
    expect(await device.gone()).toMatchObject({ code: 0x96 })
  })

  test('the DISCONNECT comes to a client that goes on sending', async () => {
    const world = await open()
    for (let round = 0; round < 10; round += 1) {
      const device = await world.connected({ clientId: `sends-${round}` })
      const flood = publishPacket({ topic, qos: 0, payload: Buffer.alloc(64 * 1024, 0x20) })
      device.send(flood, packetsOf[5].connect(), ...Array.from({ length: 16 }, () => flood))
      expect(await device.gone()).toMatchObject({ code: 0x82 })
    }
  })
})
