// What custody gives back to NATS in an outage: messages of a partition behind those that were submitted, and
// entries.

import { describe, expect, onTestFinished, test } from 'vitest'
import type { GatewayEvent } from '../../../src/domain/event.ts'
import { createJetStreamBridge } from '../../../src/ingest/jetstream/jetstream.ts'
import { mqttStream } from '../../../src/ingest/jetstream/types.ts'
import { systemClock } from '../../../src/std/clock.ts'
import type { Engine } from '../../engines/message-engine.ts'
import { hasNats, startNats } from '../../engines/nats-engine.ts'
import { eventually } from '../../support/eventually.ts'
import { createHeldFeed } from '../../support/held-feed.ts'
import { natsOptions, openDevice, openNats, publishAll } from '../../support/nats-world.ts'

const one = { topics: ['t/{device}'], durables: { prefix: 'gw', partitions: 1 }, custody: 'delivered' }

const messages = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, index) => ({ topic: 't/truck-7', text: String(from + index) }))
const texts = (from: number, to: number) => messages(from, to).map(({ text }) => text)

function openSource(engine: Engine, member: string) {
  const held = createHeldFeed()
  const events: GatewayEvent[] = []
  const source = createJetStreamBridge(
    { clock: systemClock, emit: (event) => void events.push(event), random: Math.random },
    natsOptions(engine, { ...one, member }),
  )
  onTestFinished(() => source.close())
  source.start(held.feed)
  source.want(100)
  const isActive = () => source.view().partitions.some(({ role }) => role === 'active')
  return { ...held, source, events, isActive }
}

async function openWorld() {
  const engine = await startNats()
  const nats = await openNats(engine)
  onTestFinished(() => nats.nc.close())
  const first = openSource(engine, 'gw-a')
  await eventually(first.isActive)
  const device = await openDevice(engine.nodes[0]!.mqttPort)
  onTestFinished(() => void device.end(true))
  return {
    engine,
    nats,
    device,
    first,
    durable: () => nats.jsm.consumers.info(mqttStream, 'gw-0'),
    stored: async () => (await nats.jsm.streams.info(mqttStream)).state.messages,
  }
}

describe.skipIf(!hasNats)('what is given back to NATS', { timeout: 60_000 }, () => {
  test('comes again in its order; what is before it stays outstanding, and is acknowledged alone', async () => {
    const { device, durable, stored, first } = await openWorld()
    const { source, taken } = first
    await publishAll(device, messages(0, 30))
    await eventually(() => taken.length === 30)
    const { partition } = taken[0]!
    first.hold(true)
    first.giveBackBehind(source, partition, { count: 10, position: taken[9]!.position })
    await publishAll(device, messages(30, 40))
    taken.length = 0
    // The ten get their answer in the outage.
    first.acknowledge(source, partition, { count: 4, position: 4 })
    await eventually(async () => (await durable()).ack_floor.stream_seq === 4)
    expect(source.view()).toMatchObject({ partitions: [{ role: 'active', outstanding: 6 }] })
    // Twenty that were given back and ten that are new wait there.
    await eventually(() => source.view().lag === 30)
    expect(taken).toEqual([])
    first.hold(false)
    source.want(100)
    await eventually(() => taken.length === 30)
    expect(taken.map(({ text }) => text)).toEqual(texts(10, 40))
    expect(taken.every((one) => one.partition === partition)).toBe(true)
    expect(taken.slice(0, 20).every(({ redelivered }) => redelivered)).toBe(true)
    expect((await durable()).ack_floor.stream_seq).toBe(4)
    first.acknowledge(source, partition, { count: 10, position: 10 })
    await eventually(async () => (await durable()).ack_floor.stream_seq === 10)
    expect(await stored()).toBe(30)
    first.acknowledge(source, partition, { count: 40, position: taken.at(-1)!.position })
    await eventually(async () => (await stored()) === 0)
  })

  test('is given back again in the next outage, also all of it', async () => {
    const { device, stored, first } = await openWorld()
    const { source, taken } = first
    await publishAll(device, messages(0, 10))
    await eventually(() => taken.length === 10)
    const { partition } = taken[0]!
    for (const count of [6, 3, 0]) {
      first.hold(true)
      first.giveBackBehind(source, partition, { count, position: count })
      taken.length = 0
      first.hold(false)
      await eventually(() => taken.length === 10 - count)
      expect(taken.map(({ text }) => text)).toEqual(texts(count, 10))
    }
    expect(partition.assigned).toBe(true)
    first.acknowledge(source, partition, { count: 10, position: 10 })
    await eventually(async () => (await stored()) === 0)
  })

  test('entries that were given back come again, those before them are acknowledged', async () => {
    const { nats, first } = await openWorld()
    const { source, taken } = first
    const bodies = Array.from({ length: 30 }, (_, index) => `entry ${index}`)
    await source.custody!.store(
      'parked',
      bodies.map((text) => ({ headers: {}, body: Buffer.from(text) })),
      new AbortController().signal,
    )
    await eventually(() => taken.length === 30)
    const { partition, position } = taken[9]!
    expect(partition.holds).toBe('parked')
    first.hold(true)
    first.giveBackBehind(source, partition, { count: 10, position })
    taken.length = 0
    first.hold(false)
    await eventually(() => taken.length === 20)
    expect(taken.map(({ text }) => text).toSorted()).toEqual(bodies.slice(10).toSorted())
    first.acknowledge(source, partition, { count: 30, position: taken.at(-1)!.position })
    await eventually(async () => (await nats.jsm.streams.info('gw-parked')).state.messages === 0)
  })
})
