// Which messages are outstanding at a durable of a real NATS, and that they come again first. The place that the
// durable says to have delivered is not used: nats-server 2.10 says a smaller one after all nodes were killed.

import { describe, expect, test } from 'vitest'
import {
  giveBack,
  placesBehind,
} from '../../../src/ingest/jetstream/partition-consumer/outstanding-messages.ts'
import { readDelivery, type Delivery } from '../../../src/ingest/jetstream/delivered-message.ts'
import { hasNats, startNats } from '../../engines/nats-engine.ts'
import { openNats, type NatsHandle } from '../../support/nats-world.ts'

const stream = 'orders'
const durable = 'odd'
const filters = ['odd.1', 'odd.3']

/** Ten messages; those of `odd` have the places 1, 3, 5, 7, 9. */
async function open(nats: NatsHandle): Promise<void> {
  await nats.jsm.streams.add({ name: stream, subjects: ['odd.*', 'even.*'], retention: 'interest' })
  await nats.jsm.consumers.add(stream, { durable_name: durable, ack_policy: 'all', filter_subject: 'odd.*' })
  await nats.jsm.consumers.add(stream, { durable_name: 'even', filter_subject: 'even.*' })
  for (let n = 1; n <= 10; n += 1)
    await nats.nc.request(n % 2 === 1 ? `odd.${n % 4}` : `even.${n}`, String(n), { timeout: 5000 })
}

/** Pulls up to `batch` messages, and acknowledges none; their places and how often each was delivered. */
async function pull({ nc }: NatsHandle, batch: number): Promise<[place: number, deliveries: number][]> {
  const delivery: Delivery = { deliveries: 0, streamSeq: 0, consumerSeq: 0, storedAtMs: 0, pending: 0 }
  const places: [number, number][] = []
  const inbox = nc.subscribe('pulled')
  nc.publish(`$JS.API.CONSUMER.MSG.NEXT.${stream}.${durable}`, JSON.stringify({ batch, no_wait: true }), {
    reply: 'pulled',
  })
  for await (const { reply = '' } of inbox) {
    if (readDelivery(reply, delivery)) places.push([delivery.streamSeq, delivery.deliveries])
    if (places.length === batch || reply === '') break
  }
  return places
}

describe.skipIf(!hasNats)('what is outstanding at a durable', () => {
  test('are the first messages behind the acknowledged ones, of all filters, as many as JetStream says', async () => {
    const engine = await startNats()
    await using nats = await openNats(engine)
    await open(nats)
    const places = (behind: number, count: number) =>
      placesBehind(nats, { stream, filters }, { behind, count })
    expect(await places(0, 3)).toEqual([1, 3, 5])
    expect(await places(1, 2)).toEqual([3, 5])
    expect(await places(4, 9)).toEqual([5, 7, 9])
    expect(await places(0, 0)).toEqual([])
    expect(await places(0, -1)).toEqual([])
    expect(await places(9, 1)).toEqual([])
  })

  test('comes again first, whatever place the durable says to have delivered', async () => {
    const engine = await startNats()
    await using nats = await openNats(engine)
    await open(nats)
    expect(await pull(nats, 3)).toEqual([
      [1, 1],
      [3, 1],
      [5, 1],
    ])
    const { ack_floor, num_ack_pending, delivered } = await nats.jsm.consumers.info(stream, durable)
    expect({ ack_floor: ack_floor.stream_seq, num_ack_pending }).toEqual({ ack_floor: 0, num_ack_pending: 3 })
    const where = { behind: ack_floor.stream_seq, count: num_ack_pending }
    const places = await placesBehind(nats, { stream, filters }, where)
    await giveBack(nats, { stream, durable }, places, { delivered: { ...delivered, stream_seq: 0 } })
    expect(await pull(nats, 5)).toEqual([
      [1, 2],
      [3, 2],
      [5, 2],
      [7, 1],
      [9, 1],
    ])
  })
})
