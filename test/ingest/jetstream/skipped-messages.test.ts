// Messages that the stream has and the durable does not deliver. Here its filter was too narrow for some time, so it went
// past them; nats-server 2.10 goes past messages, too, when all nodes were killed at once (test/engines).

import { describe, expect, test } from 'vitest'
import { mqttStream } from '../../../src/ingest/jetstream/types.ts'
import { hasNats, startNats } from '../../engines/nats-engine.ts'
import { eventually } from '../../support/eventually.ts'
import { openDevice, openMember, openNats, publishAll, waitingAt } from '../../support/nats-world.ts'

const all = '$MQTT.msgs.t.*'
const durable = 'gw-0'
const options = { topics: ['t/{device}'], durables: { prefix: 'gw', partitions: 1 } }

describe.skipIf(!hasNats)('messages that a durable went past', () => {
  test('are taken from the stream in their order, before those that it delivers', async () => {
    const engine = await startNats()
    await using nats = await openNats(engine)
    {
      await using first = await openMember(engine, options)
      await eventually(() => first.active() === 1)
      await first.world.ingest.close()
    }
    const narrow = { filter_subject: '$MQTT.msgs.t.odd' }
    await nats.jsm.consumers.add(mqttStream, { durable_name: 'other', filter_subject: all })
    await nats.jsm.consumers.update(mqttStream, durable, narrow)
    const device = await openDevice(engine.nodes[0]!.mqttPort)
    const texts = Array.from({ length: 10 }, (_, n) => String(n + 1))
    for (const text of texts)
      await publishAll(device, [{ topic: Number(text) % 2 === 1 ? 't/odd' : 't/even', text }])
    device.end(true)
    // A member that is gone got 1, 3 and 5.
    const lost: number[] = []
    nats.nc.subscribe('lost', { callback: (_error, message) => void lost.push(Number(message.string())) })
    nats.nc.publish(`$JS.API.CONSUMER.MSG.NEXT.${mqttStream}.${durable}`, '{"batch":3}', { reply: 'lost' })
    await eventually(() => lost.length === 3)
    expect(lost).toEqual([1, 3, 5])
    await nats.jsm.consumers.update(mqttStream, durable, { filter_subject: all })
    expect(await nats.jsm.consumers.info(mqttStream, durable)).toMatchObject({ num_ack_pending: 3 })

    await using member = await openMember(engine, options)
    await eventually(() => member.status().acked === texts.length)
    expect(member.texts()).toEqual(texts)
    await nats.jsm.consumers.delete(mqttStream, 'other')
    await eventually(async () => (await waitingAt(nats)) === 0)
  })
})
