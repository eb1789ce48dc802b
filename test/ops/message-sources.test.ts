import { describe, expect, test } from 'vitest'
import type { MessageSourceStatus } from '../../src/ingest/ingest.ts'
import { buildStatus } from '../../src/ops/status.ts'
import { statusSchema } from '../../src/ops/status-schema/status-schema.ts'
import { messageSourceMetrics } from '../../src/ops/metrics/message-source-metrics.ts'
import type { MetricsView } from '../../src/ops/metrics/metric-readings.ts'
import type { StageViews } from '../../src/ops/types.ts'
import { ingestCounters } from '../support/ops-world.ts'

const traits = {
  ackKind: 'each',
  partitioned: false,
  windowMax: 1000,
  holdMs: null,
  redelivers: 'on_reconnect',
} as const
const counters = { received: 7, acked: 5, outstanding: 2, retainedIgnored: 0, lag: null, isSilent: false }
const link = {
  state: 'connected',
  sinceMs: 1,
  sessionPresent: true,
  messages: 4,
  lastMessageMs: 1,
  losses: 3,
  lastFault: null,
} as const
const sources: MessageSourceStatus[] = [
  {
    ...counters,
    name: 'broker',
    kind: 'broker',
    traits,
    url: null,
    links: [],
    partitions: [],
    redelivered: null,
    propertiesSkipped: 0,
    lastMessageAt: null,
  },
  {
    ...counters,
    name: 'depot',
    kind: 'mqtt',
    traits,
    url: 'mqtt://10.0.0.1:1883',
    links: [
      { ...link, clientId: 'gw-1', since: 1000 },
      { ...link, clientId: 'gw-2', since: 2000 },
    ],
    partitions: [],
    redelivered: 4,
    propertiesSkipped: 3,
    lastMessageAt: 5000,
  },
]

const fleet: MessageSourceStatus = {
  ...sources[1]!,
  name: 'fleet',
  kind: 'amqp',
  traits: { ...traits, partitioned: true },
  partitions: [
    { partition: 'fleet.0', member: 'gw-1', role: 'active', outstanding: 2, lag: 7 },
    { partition: 'fleet.1', member: 'gw-1', role: 'standby', outstanding: 0, lag: null },
  ],
  lag: 7,
}

function stagesOf(messageSources: readonly MessageSourceStatus[]): StageViews {
  const ingest = {
    counters: () => ingestCounters(),
    addresses: () => [],
    messageSources: () => messageSources,
  }
  return { ingest, spool: null, delivery: null }
}

function statusOf(messageSources: readonly MessageSourceStatus[]) {
  const status = buildStatus({
    version: '1.0.0',
    pid: 1,
    startedAt: 0,
    now: 10_000,
    notReady: null,
    stages: stagesOf(messageSources),
    recovered: 0,
    conditions: [],
    conditionsHidden: 0,
    forecast: { secondsToFull: null, fullFirst: null, secondsToFullWhy: 'unknown' },
  })
  return statusSchema.parse(status).messageSources
}

describe('message sources', () => {
  test('are in the status, with each connection', () => {
    expect(statusOf(sources)).toMatchObject([
      { name: 'broker', connectedAt: null, redelivered: null, connections: [] },
      {
        name: 'depot',
        connectedAt: '1970-01-01T00:00:02.000Z',
        lastMessageAt: '1970-01-01T00:00:05.000Z',
        messages: 7,
        connections: [{ clientId: 'gw-1', losses: 3 }, { clientId: 'gw-2' }],
        partitions: [],
      },
    ])
  })

  test('are not connected while one connection is not', () => {
    const [, depot] = sources
    const links = depot!.links.map((one, index) =>
      index === 0 ? { ...one, state: 'waiting' as const } : one,
    )
    expect(statusOf([{ ...depot!, links }])[0]!.connectedAt).toBeNull()
  })

  test('are in the metrics; what only bridges have is missing for the embedded broker', () => {
    const view = { stages: stagesOf(sources) } as MetricsView
    const values = messageSourceMetrics.map(({ name, read }) => [
      name.replace('gateway_message_source_', ''),
      read(view).map(({ labels, value }) => `${labels['message_source']} ${value}`),
    ])
    expect(Object.fromEntries(values)).toEqual({
      messages_total: ['broker 7', 'depot 7'],
      acked_total: ['broker 5', 'depot 5'],
      redelivered_total: ['depot 4'],
      gateway_properties_skipped_total: ['broker 0', 'depot 3'],
      retained_ignored_total: ['depot 0'],
      losses_total: ['depot 6'],
      outstanding: ['depot 2'],
      lag: [],
      partitions_active: [],
      connections: ['depot 2'],
      connections_open: ['depot 2'],
      silent: ['depot 0'],
      last_message_timestamp_seconds: ['depot 5'],
    })
  })

  test('have their partitions in the status, and what waits at the server in the metrics', () => {
    expect(statusOf([fleet])[0]).toMatchObject({ lag: 7, partitions: fleet.partitions })
    const view = { stages: stagesOf([fleet]) } as MetricsView
    const valueOf = (ending: string) =>
      messageSourceMetrics.find(({ name }) => name.endsWith(ending))!.read(view)[0]!.value
    expect([valueOf('_lag'), valueOf('_partitions_active')]).toEqual([7, 1])
  })
})
