// Several gateways share the partitions of a NATS of three nodes, while nodes are killed, all at once, too. What was
// acknowledged to the publisher is counted at the gateways, and the order of each device is compared.

import { describe, expect, test } from 'vitest'
import { mqttStream } from '../../src/ingest/jetstream/types.ts'
import { eventually } from '../support/eventually.ts'
import {
  mappings,
  openDevice,
  openMember,
  openNats,
  publishAll,
  startPublisher,
  waitingAt,
  type NatsMember,
  type Publisher,
} from '../support/nats-world.ts'
import { hasNatsCluster, startNats } from './nats-engine.ts'

/** Of one member, or of several that had the device after each other: each is ascending. */
function wrongOrders(texts: readonly string[]): number {
  const lastOf = new Map<string, number>()
  let wrong = 0
  for (const text of texts) {
    const [device = '', number] = text.split(':')
    if (Number(number) <= (lastOf.get(device) ?? -1)) wrong += 1
    lastOf.set(device, Number(number))
  }
  return wrong
}

async function outcome(name: string, publisher: Publisher, members: readonly NatsMember[]) {
  await publisher.stop()
  const all = () => members.flatMap((member) => member.texts())
  await eventually(() => {
    const taken = new Set(all())
    return publisher.acked.every((text) => taken.has(text))
  })
  const texts = all()
  const twice = texts.length - new Set(texts).size
  const wrong = members.reduce((sum, member) => sum + wrongOrders(member.texts()), 0)
  const received = members.reduce((sum, member) => sum + member.status().received, 0)
  process.stderr.write(
    `nats: ${name}: ${publisher.acked.length} acknowledged, ${received} delivered, ${twice} at two members, ` +
      `${wrong} in wrong order, longest silence ${publisher.silentMs()} ms\n`,
  )
  return { twice, wrong }
}

describe.skipIf(!hasNatsCluster)('gateways behind a NATS of three nodes', () => {
  test('the leader of each durable is killed: pulled anew soon, nothing lost, the order kept', async () => {
    const engine = await startNats({ nodes: 3, lines: mappings })
    await using first = await openMember(engine, { member: 'gw-a' })
    await using second = await openMember(engine, { member: 'gw-b' })
    await eventually(() => first.active() === 2 && second.active() === 2)
    const publisher = await startPublisher(engine, [first, second])
    for (const partition of [0, 1, 2]) {
      await publisher.more(300)
      const leader = await engine.leaderOf(`${mqttStream}/gw-${partition}`)
      await engine.kill(leader)
      await publisher.more(300)
      await engine.restart(leader)
    }
    expect(await outcome('leader killed', publisher, [first, second])).toMatchObject({ wrong: 0 })
  })

  test('all nodes are killed at once', async () => {
    const engine = await startNats({ nodes: 3, lines: mappings })
    await using first = await openMember(engine, { member: 'gw-a' })
    await using second = await openMember(engine, { member: 'gw-b' })
    await eventually(() => first.active() === 2 && second.active() === 2)
    const publisher = await startPublisher(engine, [first, second])
    for (let times = 0; times < 4; times += 1) {
      await publisher.more(300)
      await engine.killAll()
      engine.startAll()
      await engine.ready()
    }
    await publisher.more(300)
    expect(await outcome('all killed', publisher, [first, second])).toMatchObject({ wrong: 0 })
  })

  test('members come, stop and vanish: the partitions move, nothing is lost', async () => {
    const engine = await startNats({ nodes: 3, lines: mappings })
    await using first = await openMember(engine, { member: 'gw-a' })
    await eventually(() => first.active() === 4)
    await using second = await openMember(engine, { member: 'gw-b' })
    const third = await openMember(engine, { member: 'gw-c' })
    await eventually(() => first.active() + second.active() + third.active() === 4 && third.active() === 1)
    const publisher = await startPublisher(engine, [first, second, third])
    await publisher.more(500)
    await third.world.ingest.close()
    await eventually(() => first.active() + second.active() === 4)
    await publisher.more(500)
    const found = await outcome('members move', publisher, [first, second, third])
    expect(found).toEqual({ twice: 0, wrong: 0 })
    await using nats = await openNats(engine)
    // NATS 2.10 keeps some acknowledged messages until it looks for them, after two minutes and more.
    await eventually(async () => (await waitingAt(nats)) === 0)
  })

  test('names with dots, slashes in odd places and UTF-8 come as they were published', async () => {
    const engine = await startNats({ isNewer: true, lines: mappings })
    await using member = await openMember(engine)
    await eventually(() => member.active() === 4)
    const topics = ['t/truck.7', 't/.', 't/a..b.', 't/ä€😀', 'v/v.1//x.y/', 'v/v.1/./..', 't/']
    const device = await openDevice(engine.nodes[0]!.mqttPort)
    const acked = await publishAll(
      device,
      topics.map((topic) => ({ topic, text: topic })),
    )
    device.end(true)
    expect(acked).toHaveLength(topics.length)
    await eventually(() => member.status().acked === topics.length)
    const came = member.spool.payloads.map(({ json }) => JSON.parse(json) as { topic: string; text: string })
    for (const { topic, text } of came) expect(topic).toBe(text)
    expect(came.map(({ topic }) => topic).toSorted()).toEqual(topics.toSorted())
    expect(member.events('message_source_at_risk').filter(({ risk }) => risk !== 'durable_created')).toEqual(
      [],
    )
  })
})
