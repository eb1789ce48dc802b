// Message sources in the status and in the metrics.

import { describe, expect, test } from 'vitest'
import type { MessageSourceStatus } from '../../src/ingest/ingest.ts'
import { statusSchema } from '../../src/ops/status-schema/status-schema.ts'
import { ingestCounters, startedOps } from '../support/ops-world.ts'

const traits = {
  ackKind: 'each',
  partitioned: false,
  windowMax: 1000,
  holdMs: null,
  redelivers: 'on_reconnect',
} as const
const link = {
  state: 'connected' as MessageSourceStatus['links'][number]['state'],
  sinceMs: 1,
  sessionPresent: true,
  messages: 4,
  isPausedLong: false,
  lastMessageMs: 1,
  losses: 3,
  lastFault: null,
  lastAct: null,
}
const broker: MessageSourceStatus = {
  name: 'broker',
  kind: 'broker',
  traits,
  url: null,
  links: [],
  partitions: [],
  received: 7,
  acked: 5,
  outstanding: 2,
  redelivered: null,
  lost: null,
  retainedIgnored: 0,
  propertiesSkipped: 0,
  lag: null,
  isSilent: false,
  lastMessageAt: null,
}
const links = [
  { ...link, clientId: 'gw-1', since: 1000 },
  { ...link, clientId: 'gw-2', since: 2000 },
]
const depot: MessageSourceStatus = {
  ...broker,
  name: 'depot',
  kind: 'mqtt',
  url: 'mqtt://10.0.0.1:1883',
  links,
  redelivered: 4,
  propertiesSkipped: 3,
  lastMessageAt: 5000,
}
const fleet: MessageSourceStatus = {
  ...depot,
  name: 'fleet',
  kind: 'amqp',
  traits: { ...traits, partitioned: true },
  partitions: [
    { partition: 'fleet.0', member: 'gw-1', role: 'active', outstanding: 2, lag: 7 },
    { partition: 'fleet.1', member: 'gw-1', role: 'standby', outstanding: 0, lag: null },
  ],
  lag: 7,
  lost: 0,
}

/** What `/status` has of them, and the samples of the metrics, by the end of their names. */
async function shown(...messageSources: MessageSourceStatus[]) {
  await using ops = await startedOps()
  ops.ops.attach({
    ingest: { counters: () => ingestCounters(), addresses: () => [], messageSources: () => messageSources },
  })
  const samples: Record<string, string[]> = {}
  for (const [, name = '', source = '', value = ''] of (await ops.metrics()).matchAll(
    /^gateway_(?:message_source_)?(\w+)\{message_source="(\w+)"\} (\S+)$/gm,
  ))
    (samples[name] ??= []).push(`${source} ${value}`)
  return { status: statusSchema.parse(await ops.json('/status')).messageSources, samples }
}

describe('message sources', () => {
  test('are in the status with each connection, and connected while all connections are', async () => {
    const waiting = [{ ...links[0]!, state: 'waiting' as const }, links[1]!]
    const { status } = await shown(broker, depot, { ...depot, links: waiting }, fleet)
    expect(status).toMatchObject([
      { name: 'broker', connectedAt: null, redelivered: null, connections: [] },
      {
        name: 'depot',
        connectedAt: '1970-01-01T00:00:02.000Z',
        lastMessageAt: '1970-01-01T00:00:05.000Z',
        messages: 7,
        connections: [{ clientId: 'gw-1', losses: 3 }, { clientId: 'gw-2' }],
        partitions: [],
      },
      { connectedAt: null },
      { lag: 7, partitions: fleet.partitions },
    ])
  })

  test('are in the metrics; what only bridges have is missing for the embedded broker', async () => {
    expect((await shown(broker, depot, fleet)).samples).toEqual({
      messages_total: ['broker 7', 'depot 7', 'fleet 7'],
      acked_total: ['broker 5', 'depot 5', 'fleet 5'],
      redelivered_total: ['depot 4', 'fleet 4'],
      properties_skipped_total: ['broker 0', 'depot 3', 'fleet 3'],
      retained_ignored_total: ['depot 0', 'fleet 0'],
      losses_total: ['depot 6', 'fleet 6'],
      outstanding: ['depot 2', 'fleet 2'],
      lag: ['fleet 7'],
      lost_total: ['fleet 0'],
      partitions_active: ['fleet 1'],
      connections: ['depot 2', 'fleet 2'],
      connections_open: ['depot 2', 'fleet 2'],
      silent: ['depot 0', 'fleet 0'],
      last_message_timestamp_seconds: ['depot 5', 'fleet 5'],
    })
  })
})
