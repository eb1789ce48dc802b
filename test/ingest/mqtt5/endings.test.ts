// DISCONNECT says why, wherever the gateway closes.

import { expect, test } from 'vitest'
import { newFolder } from '../../support/folders.ts'
import { connectPacket, pingPacket, publishPacket, pubrelPacket } from '../../support/mqtt5-packets.ts'
import { overEachTransport, positionText, topic } from '../../support/statement-world.ts'
import { world5 } from './world5.ts'

overEachTransport((transport) => {
  test('[MQTT-4.13.2-1] the gateway stops: 0x8B', async () => {
    const world = await world5(transport, { folder: await newFolder() })
    const device = await world.connected()
    const gone = device.gone()
    await world.gateway.stop('the test')
    expect(await gone).toMatchObject({ code: 0x8b })
  })

  test('too many control packets: 0x96', async () => {
    const world = await world5(transport, { limits: 'max_control_packets_per_s: 10' })
    const device = await world.connected()
    device.send(...Array.from({ length: 5000 }, () => pingPacket))
    expect(await device.gone()).toMatchObject({ code: 0x96 })
  })

  test('a PUBREL for each message of QoS 2 is no control packet too many', async () => {
    const world = await world5(transport, { limits: 'max_control_packets_per_s: 10' })
    const device = await world.connected()
    for (let messageId = 1; messageId <= 500; messageId += 1) {
      const message = { topic, qos: 2, messageId, payload: world.position(messageId) }
      device.send(publishPacket(message), pubrelPacket(messageId))
    }
    expect(await device.next('pubcomp', 499)).toMatchObject({ messageId: 500 })
  })

  test('a message that its client may not publish, where that closes: 0x87', async () => {
    const world = await world5(transport, {
      broker: 'rules: { on_violation: close, publish: [{ topics: ["t/{client}"] }] }',
    })
    const device = await world.connected({ clientId: 'van' })
    device.send(publishPacket({ topic: 't/other', payload: positionText(1) }))
    expect(await device.gone()).toMatchObject({ code: 0x87 })
  })

  test('the DISCONNECT comes to a client that goes on sending', async () => {
    const world = await world5(transport)
    for (let round = 0; round < 10; round += 1) {
      const device = await world.connected({ clientId: `sends-${round}` })
      const flood = publishPacket({ topic, qos: 0, payload: Buffer.alloc(64 * 1024, 0x20) })
      device.send(flood, connectPacket(), ...Array.from({ length: 16 }, () => flood))
      expect(await device.gone()).toMatchObject({ code: 0x82 })
    }
  })
})
