// Names of topics with characters that mean something to NATS.

import { describe, expect, test } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { mappings, openDevice, openMember, publishAll } from '../support/nats-world.ts'
import { hasNatsCluster, startNats } from './nats-engine.ts'

describe.skipIf(!hasNatsCluster)('a gateway behind a newer NATS', () => {
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
