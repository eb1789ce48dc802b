// Bridges to a real RabbitMQ 3.10 of this machine, and 4.0 where test/engines/install-engines.sh has put it.

import { connectAsync } from 'mqtt'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Engine } from '../../engines/message-engine.ts'
import { hasRabbit, hasRabbitCluster, startRabbit } from '../../engines/rabbit-engine.ts'
import { eventually } from '../../support/eventually.ts'
import { openRabbitBridge } from '../../support/rabbit-bridges.ts'

const versions = [
  { version: '3.10', isNewer: false, isThere: hasRabbit },
  { version: '4.0', isNewer: true, isThere: hasRabbitCluster },
]
const timestamps = 'message_interceptors.incoming.set_header_timestamp.overwrite = false'

/** Of the publisher, per topic. */
async function publishEach(
  engine: Engine,
  topics: readonly string[],
  texts: readonly string[],
): Promise<void> {
  const client = await connectAsync(engine.mqttUrls[0]!, { protocolVersion: 4 })
  await Promise.all(
    texts.flatMap((text) => topics.map((topic) => client.publishAsync(topic, text, { qos: 1 }))),
  )
  await client.endAsync()
}

const numbers = (count: number, from = 0) => Array.from({ length: count }, (_, index) => String(from + index))

describe.each(versions)('RabbitMQ $version', ({ isNewer, isThere }) => {
  let engine: Engine
  const ends: (() => Promise<void>)[] = []
  beforeAll(async () => {
    if (!isThere) return
    const lines = isNewer ? [timestamps] : []
    engine = await startRabbit({ isNewer, lines, atEnd: (end) => ends.push(end) })
  }, 120_000)
  afterAll(async () => {
    for (const end of ends.reverse()) await end()
  })
  const amqp = (prefix: string, options: object = {}, queue: object = {}) => ({
    url: engine.urls[0],
    queue: { prefix, partitions: 3, ...queue },
    bind: { keys: [`${prefix}.#`] },
    ...options,
  })

  describe.skipIf(!isThere)('that runs', () => {
    test('gives every message once, in the order of its device, and has them acknowledged', async () => {
      await using bridge = await openRabbitBridge(amqp('once'))
      await bridge.connected()
      const topics = numbers(9).map((device) => `once/truck-${device}`)
      await publishEach(engine, topics, numbers(200))
      await eventually(() => bridge.spool.payloads.length === 9 * 200)
      expect(bridge.textsByTopic()).toEqual(Object.fromEntries(topics.map((topic) => [topic, numbers(200)])))
      await eventually(() => bridge.status().acked === 1800)
      // Several queues took part.
      const busy = bridge.status().links.filter(({ messages }) => messages > 0)
      expect(busy.length).toBeGreaterThan(1)
      await eventually(() => bridge.status().lag === 0)
      expect(bridge.status()).toMatchObject({ outstanding: 0, redelivered: 0 })
      expect(bridge.status().partitions.map(({ role }) => role)).toEqual(['active', 'active', 'active'])
    })
  })
})
