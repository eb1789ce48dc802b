// capacity-figures.ts: the table of what one message or one connection costs, each with its source. Another
// machine has other figures. `--set NAME=VALUE` replaces one, and the proof (test/engines/capacity.proof.ts)
// compares them with a measurement.
//
// Processor time of an engine is that of its three nodes together. Messages have 320 bytes, payloads 470.

export type EngineName = 'rabbitmq' | 'nats'

export type CapacityFigure = {
  values: Readonly<Record<EngineName, number>>
  unit: 'us' | 'bytes' | 'share' | 'per second' | 'payloads'
  means: string
  source: string
}

const trials = 'trials with three nodes on two cores'
const bench = 'docs/performance.md'
const proof = 'test/engines/capacity.proof.ts'

const both = (value: number) => ({ rabbitmq: value, nats: value })

export const capacityFigures = {
  in_cpu_us: {
    values: { rabbitmq: 115, nats: 95 },
    unit: 'us',
    means: 'processor time of the engine to take a message in and store it on three nodes',
    source: trials,
  },
  out_cpu_us: {
    values: { rabbitmq: 41, nats: 21 },
    unit: 'us',
    means: 'processor time of the engine to hand a message to a gateway and delete it',
    source: trials,
  },
  in_per_s_max: {
    values: { rabbitmq: 20_000, nats: 20_000 },
    unit: 'per second',
    means: 'messages that one cluster takes in; more was not tried',
    source: `${trials}: what their processor time allows`,
  },
  flushed_per_s_max: {
    values: { rabbitmq: 20_000, nats: 1400 },
    unit: 'per second',
    means: 'the same where each message is flushed to the disk before its acknowledgement',
    source: trials,
  },
  out_per_s_max: {
    values: { rabbitmq: 44_600, nats: 68_000 },
    unit: 'per second',
    means: 'messages that consumers take from one cluster; more was not tried',
    source: trials,
  },
  stored_bytes: {
    values: { rabbitmq: 290, nats: 102 },
    unit: 'bytes',
    means: 'disk of a node for a message, beside the bytes of the message',
    source: proof,
  },
  queued_memory_bytes: {
    values: { rabbitmq: 75, nats: 0 },
    unit: 'bytes',
    means: 'memory of a node for a message that waits',
    source: 'a backlog of 60,000 to 240,000 messages on three nodes',
  },
  connection_bytes: {
    values: { rabbitmq: 34_000, nats: 115_000 },
    unit: 'bytes',
    means: 'memory of a node for an idle connection over TLS',
    source: 'RabbitMQ: from 1,000 to 5,000 connections to one node; NATS: 2,000',
  },
  user_bytes: {
    values: { rabbitmq: 0, nats: 4200 },
    unit: 'bytes',
    means: 'memory of a node for a device that may connect, with its rights',
    source: 'a file with 100,000 users for NATS',
  },
  node_bytes: {
    values: { rabbitmq: 1_720_000_000, nats: 50_000_000 },
    unit: 'bytes',
    means: 'memory of a node without connections',
    source:
      'at rest 110 MB and 19 MB; for RabbitMQ three times raft.wal_max_size_bytes, as its documentation says',
  },
  connect_cpu_us: {
    values: { rabbitmq: 8000, nats: 5000 },
    unit: 'us',
    means: 'processor time of the engine for a connect over TLS',
    source: 'half of the two cores that 120 and 200 connects/s took, the clients had the rest',
  },
  gateway_cpu_us: {
    values: both(70),
    unit: 'us',
    means: 'processor time of a gateway for a message, from the engine to the answer of the API',
    source: `${bench}, NATS with one partition`,
  },
  gateway_per_s_max: {
    values: both(15_000),
    unit: 'per second',
    means: 'messages that one gateway takes from an engine and delivers',
    source: `${bench}: one core with that processor time`,
  },
  gateway_bytes: {
    values: both(350_000_000),
    unit: 'bytes',
    means: 'memory of a gateway at full load',
    source: bench,
  },
  payload_bytes: {
    values: both(470),
    unit: 'bytes',
    means: 'a payload as it is sent',
    source: bench,
  },
  spool_share: {
    values: both(0.23),
    unit: 'share',
    means: 'disk of the spool for a payload, as a share of its bytes',
    source: bench,
  },
  batch_payloads: {
    values: both(500),
    unit: 'payloads',
    means: 'payloads in a request (delivery.batch.max_payloads)',
    source: 'config/reference.md',
  },
  request_bytes: {
    values: both(1500),
    unit: 'bytes',
    means: 'a request beside its payloads: head, signature, answer',
    source: bench,
  },
  busy_share: {
    values: both(0.6),
    unit: 'share',
    means: 'how much of cores, memory and disk is planned to be used',
    source: 'a choice: the rest is for bursts and for what was not measured',
  },
} as const satisfies Record<string, CapacityFigure>

export type FigureName = keyof typeof capacityFigures

/** The values for one engine. */
export type CapacityFigures = Readonly<Record<FigureName, number>>

export function isFigureName(name: string): name is FigureName {
  return Object.hasOwn(capacityFigures, name)
}

export function figuresOf(engine: EngineName, replaced: Partial<CapacityFigures> = {}): CapacityFigures {
  const values = Object.entries(capacityFigures).map(([name, { values: byEngine }]) => [
    name,
    byEngine[engine],
  ])
  return { ...(Object.fromEntries(values) as CapacityFigures), ...replaced }
}

/** Of a message, in the spool of a gateway. */
export function spooledBytes({ payload_bytes, spool_share }: CapacityFigures): number {
  return payload_bytes * spool_share
}
