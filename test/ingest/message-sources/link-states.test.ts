// What is said of the connections of a bridge: one cause is one condition, and since when it is so.

import { expect, test } from 'vitest'
import { createLinkStatus } from '../../../src/ingest/message-sources/link-status.ts'
import { createFakeClock } from '../../support/fake-clock.ts'
import { freePort } from '../../support/mosquitto.ts'
import { eventually } from '../../support/eventually.ts'
import { openRabbitBridge } from '../../support/rabbit-bridges.ts'

const fault = { reason: 'unreachable', detail: 'Nothing listens.', act: 'Start it.' }

test('a connection that is down is so since its end, however often it was tried', async () => {
  const clock = createFakeClock()
  const link = createLinkStatus({ clock, emit: () => undefined }, { messageSource: 'far', clientId: 'gw-1' })
  link.connected('mqtt://far')
  await clock.advance(1000)
  const endedAt = clock.now()
  link.lost(fault, 1000)
  for (let tries = 0; tries < 3; tries += 1) {
    await clock.advance(60_000)
    link.set('connecting')
    await clock.advance(1000)
    link.lost(fault, 60_000)
  }
  expect(link.view()).toMatchObject({ state: 'waiting', since: endedAt })
})

test('a bridge to a RabbitMQ that never answers has one condition, whatever the number of its queues', async () => {
  const url = `amqp://127.0.0.1:${await freePort()}`
  const options = {
    url,
    queue: { prefix: 'none', partitions: 4 },
    topics: ['t/{device}/+'],
    partition_by: 'device',
  }
  await using bridge = await openRabbitBridge(options, { pauseAfterMs: 20 })
  const states = () => [...bridge.world.ingest.states()]
  await eventually(() =>
    bridge.status().links.every(({ losses, lastFault }) => losses > 1 || lastFault !== null),
  )
  expect(bridge.status().links).toHaveLength(5)
  await eventually(() =>
    bridge
      .status()
      .links.slice(0, 4)
      .every(({ losses }) => losses > 2),
  )
  expect(states()).toMatchObject([
    { code: 'MESSAGE_SOURCE_DISCONNECTED', messageSource: 'rabbit', connections: 5 },
  ])
  expect(states()[0]).toMatchObject({ clientIds: expect.objectContaining({ length: 5 }) as unknown })
})
