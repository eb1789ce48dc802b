// Messages that NATS removes before a gateway took them: they are counted, and said.

import { DiscardPolicy, type StreamConfig } from '@nats-io/jetstream'
import { describe, expect, test } from 'vitest'
import { mqttStream } from '../../../src/ingest/jetstream/types.ts'
import { hasNats, startNats } from '../../engines/nats-engine.ts'
import { eventually } from '../../support/eventually.ts'
import {
  mappings,
  openDevice,
  openMember,
  openNats,
  publishAll,
  waitingAt,
  type NatsHandle,
  type NatsMember,
} from '../../support/nats-world.ts'

const times = { watchEveryMs: 100, lookEveryMs: 500 }
/** All of one device, which is in the partition 0. */
const numbered = (count: number, from = 0) =>
  Array.from({ length: count }, (_, n) => ({ topic: 't/truck-7', text: `7:${from + n}` }))

const lost = (member: NatsMember) => member.risks().find(({ risk }) => risk === 'engine_lost_messages')

async function limit(nats: NatsHandle, changes: Partial<StreamConfig>): Promise<void> {
  const { config } = await nats.jsm.streams.info(mqttStream)
  await nats.jsm.streams.update(mqttStream, { ...config, ...changes })
}

/** Messages that were removed, of 200 that wait and 10 that the gateway has. */
const cases: [string, number, (nats: NatsHandle) => Promise<unknown>][] = [
  ['a purge of the stream', 200, (nats) => nats.jsm.streams.purge(mqttStream)],
  [
    'a purge of the partition',
    200,
    (nats) => nats.jsm.streams.purge(mqttStream, { filter: '$MQTT.msgs.gw.0.>' }),
  ],
  ['a limit of the stream', 160, (nats) => limit(nats, { max_msgs: 40, discard: DiscardPolicy.Old })],
  ['a deleted durable', 200, (nats) => nats.jsm.consumers.delete(mqttStream, 'gw-0')],
  ['a deleted stream', 200, (nats) => nats.jsm.streams.delete(mqttStream)],
]

describe.skipIf(!hasNats)('what NATS removes before it was taken', { timeout: 60_000 }, () => {
  test.each(cases)('by %s is said, with its number', async (_name, messages, remove) => {
    const engine = await startNats({ lines: mappings })
    await using nats = await openNats(engine)
    await using member = await openMember(engine, { window: 10 }, { commits: 'by hand', times })
    await eventually(() => member.active() === 4)
    const device = await openDevice(engine.nodes[0]!.mqttPort)
    await publishAll(device, numbered(210))
    device.end(true)
    await eventually(() => member.status().lag === 200 && member.status().outstanding === 10)
    expect(lost(member)).toBeUndefined()
    await remove(nats)
    await eventually(() => lost(member) !== undefined)
    expect(lost(member)).toMatchObject({
      about: ['gw-0'],
      detail: expect.stringContaining(` ${messages} messages of gw-0 `) as string,
    })
    expect(member.status()).toMatchObject({ lost: messages })
    expect(member.events('engine_messages_lost')).toMatchObject([{ queue: 'gw-0', messages }])
    // What it has is stored here, and what comes from now on is taken.
    const next = await openDevice(engine.nodes[0]!.mqttPort, 'next')
    await eventually(() => member.active() === 4)
    await publishAll(next, [{ topic: 't/truck-7', text: 'afterwards' }])
    next.end(true)
    await eventually(() => {
      member.spool.commit()
      return member.texts().includes('afterwards')
    })
    expect(member.status().lost).toBe(messages)
  })

  test('where all of it is taken, by this gateway or another one, nothing is said', async () => {
    const engine = await startNats({ lines: mappings })
    await using nats = await openNats(engine)
    await using first = await openMember(engine, { window: 20 }, { commits: 'by hand', times })
    await eventually(() => first.active() === 4)
    const device = await openDevice(engine.nodes[0]!.mqttPort)
    const many = Array.from({ length: 2000 }, (_, n) => ({ topic: `t/truck-${n % 40}`, text: `${n}` }))
    const sent = publishAll(device, many)
    const commits = setInterval(() => first.spool.commit(), 20)
    await eventually(() => first.status().acked > 200)
    await using second = await openMember(engine, { member: 'gw-b', window: 20 }, { times })
    await eventually(() => second.active() === 2)
    await sent
    device.end(true)
    await eventually(async () => (await waitingAt(nats)) === 0)
    clearInterval(commits)
    for (const member of [first, second]) {
      await eventually(() => member.status().lag === 0)
      expect(member.status().partitions.map(({ lag }) => lag)).toEqual([0, 0, 0, 0])
      expect(member.status().lost).toBe(0)
    }
  })
})
