// stream-setup.ts: what must exist at NATS before messages are taken: the stream, a durable for each
// partition, the bucket of the members. With `provision: true` it creates what is missing; it never deletes
// or changes anything, because a durable of the stream of MQTT that is deleted takes its messages along. The
// entry file of the folder.
//
//   setup-report.ts    what is wrong, as conditions
//   mapping-check.ts   whether the account maps the devices to the partitions
//
// Durables
//   ack_policy all       the position is the place in the stream
//   no inactive_threshold, no limit of deliveries: NATS neither deletes the durable nor gives a message up
//   deliver_policy all   a new durable gets what the stream has

import type { ConsumerConfig, StreamInfo } from '@nats-io/jetstream'
import { formatDuration } from '../../../std/quantity.ts'
import { bucketMissing, bucketName, bucketStream } from '../members/members.ts'
import { apiCode, notFound } from '../nats-faults.ts'
import type { Connection, ConsumerInfo } from '../nats-connection.ts'
import { durableName, partitionFilters, type PartitionLayout } from '../nats-subjects.ts'
import { mqttStream, type JetStreamOptions } from '../types.ts'

type Layout = PartitionLayout & Pick<JetStreamOptions, 'window'>

/** What is wrong with something at NATS, and the command that mends it. */
export type SetupFinding = { detail: string; act: string }

export const ackWaitMs = 120_000
const ackWaitMsMin = 10_000
const ackPendingMax = 20_000
const replicasMax = 3

/** Answers of JetStream: there are not as many nodes as replicas. */
const tooFewNodes: readonly number[] = [10_005, 10_074, 10_023]

// ---- the stream

/** Throws where it does not exist and may not be created. */
export async function ensureStream(connection: Connection, options: JetStreamOptions): Promise<StreamInfo> {
  try {
    return await connection.jsm.streams.info(options.stream)
  } catch (error) {
    if (apiCode(error) !== notFound.stream || !options.provision || options.stream !== mqttStream) throw error
  }
  // As NATS creates it for the first MQTT client: then the durables are there before that client.
  return withReplicas((num_replicas) =>
    connection.jsm.streams.add({
      name: mqttStream,
      subjects: ['$MQTT.msgs.>'],
      retention: 'interest',
      storage: 'file',
      num_replicas,
    }),
  )
}

/** As many as the cluster has nodes for. */
export async function withReplicas<T>(create: (replicas: number) => Promise<T>): Promise<T> {
  for (let replicas = replicasMax; ; replicas -= 1) {
    try {
      return await create(replicas)
    } catch (error) {
      if (replicas === 1 || !tooFewNodes.includes(apiCode(error) ?? 0)) throw error
    }
  }
}

/** What the stream would lose or delay. `addresses`: nodes of the cluster, as the config names them. */
export function streamFindings(
  { config, cluster }: StreamInfo,
  { addresses }: Pick<JetStreamOptions, 'addresses'>,
): SetupFinding[] {
  const { name } = config
  const nodes = cluster === undefined ? 1 : (cluster.replicas?.length ?? 0) + 1
  const findings: SetupFinding[] = []
  const find = (detail: string, act: string) => findings.push({ detail, act })
  if (config.storage === 'memory')
    find(`The stream ${name} is in memory: a restart of NATS loses its messages.`, 'Use a stream in files.')
  if (config.max_age > 0)
    find(
      `The stream ${name} deletes messages after ${formatDuration(config.max_age / 1e6)} (max_age), taken or not.`,
      `Run: nats stream edit '${name}' --max-age=0`,
    )
  const isBounded = config.max_msgs > 0 || config.max_bytes > 0 || config.max_msgs_per_subject > 0
  if (isBounded && config.discard !== 'new')
    find(
      `The stream ${name} has a limit, and discards the oldest messages at it, taken or not.`,
      `Run: nats stream edit '${name}' --discard=new`,
    )
  if (cluster?.leader !== undefined && nodes === 1 && cluster.name !== undefined)
    find(
      `The stream ${name} has one replica: if its node is lost, its messages are.`,
      `Run: nats stream edit '${name}' --replicas=3`,
    )
  else if (nodes < replicasMax && addresses.length >= replicasMax)
    find(
      `The stream ${name} has ${nodes} replicas, and the config names ${addresses.length} nodes: while one of the ` +
        `${nodes} is down, devices are not acknowledged. A node was not in the cluster when the stream was created.`,
      `Compare the nodes with \`nats server report jetstream\`, restart one that is missing, and run: nats stream edit '${name}' --replicas=3`,
    )
  return findings
}

// ---- the bucket

/** Throws BUCKET_MISSING where it does not exist and may not be created. */
export async function ensureBucket(
  { jsm }: Connection,
  { prefix, provision }: Pick<JetStreamOptions, 'prefix' | 'provision'>,
): Promise<void> {
  const name = bucketStream(prefix)
  try {
    await jsm.streams.info(name)
    return
  } catch (error) {
    if (apiCode(error) !== notFound.stream) throw error
  }
  if (!provision) throw bucketMissing(prefix)
  await withReplicas((num_replicas) =>
    jsm.streams.add({
      name,
      subjects: [`$KV.${bucketName(prefix)}.>`],
      retention: 'limits',
      storage: 'file',
      discard: 'new',
      max_msgs_per_subject: 1,
      allow_rollup_hdrs: true,
      deny_delete: true,
      allow_direct: true,
      num_replicas,
    }),
  )
}

// ---- durables

export function durableConfig(layout: Layout, partition: number): Partial<ConsumerConfig> {
  const filters = partitionFilters(layout, partition)
  return {
    durable_name: durableName(layout, partition),
    ack_policy: 'all',
    deliver_policy: 'all',
    ack_wait: ackWaitMs * 1e6,
    max_ack_pending: Math.max(ackPendingMax, layout.window),
    max_deliver: -1,
    ...(filters.length === 1 ? { filter_subject: filters[0]! } : { filter_subjects: filters }),
  }
}

export async function createDurable(
  { jsm }: Connection,
  layout: Layout,
  partition: number,
): Promise<ConsumerInfo> {
  return jsm.consumers.add(layout.stream, durableConfig(layout, partition))
}

/** As many as the config allows. */
export const partitionsMax = 64

/** Durables of a larger number of partitions whose messages no gateway takes; null: there is none. */
export async function durablesBeyond({ jsm }: Connection, layout: Layout): Promise<SetupFinding | null> {
  const { stream, partitions } = layout
  const left: string[] = []
  for (let partition = partitions; partition < partitionsMax; partition += 1) {
    const name = durableName(layout, partition)
    const info = await jsm.consumers.info(stream, name).catch((error: unknown) => {
      if (apiCode(error) === notFound.consumer) return null
      throw error
    })
    if (info === null) break
    if (info.num_pending + info.num_ack_pending > 0) left.push(name)
  }
  if (left.length === 0) return null
  return {
    detail: `Messages wait in ${left.join(', ')}, and with partitions: ${partitions} no gateway takes them`,
    act: 'Set partitions and the mapping to the former number on all gateways, until all durables are empty.',
  }
}

/** What of a durable does not fit; null: it can be used. */
export function durableFinding(
  { config }: ConsumerInfo,
  layout: Layout,
  partition: number,
): SetupFinding | null {
  const name = durableName(layout, partition)
  const where = `'${layout.stream}' ${name}`
  const filters = partitionFilters(layout, partition)
  const found = config.filter_subjects ?? (config.filter_subject === undefined ? [] : [config.filter_subject])
  const differences: string[] = []
  const edits: string[] = []
  const differs = (what: string, edit: string) => {
    differences.push(what)
    edits.push(edit)
  }
  if (config.deliver_subject !== undefined || config.ack_policy !== 'all')
    return {
      detail:
        `The durable ${name} ` +
        (config.deliver_subject === undefined
          ? `has ack_policy ${config.ack_policy}, and needs all.`
          : 'is a push consumer, and must be one that is pulled.'),
      act:
        'NATS cannot change that. Set another `durables.prefix`, let the gateway create its durables, and remove this ' +
        `one when it has no messages (nats consumer info ${where}).`,
    }
  if ([...found].sort().join(' ') !== [...filters].sort().join(' '))
    differs(
      `filters ${found.join(', ') || 'nothing'}, not ${filters.join(', ')}`,
      filters.map((one) => `--filter='${one}'`).join(' '),
    )
  if ((config.inactive_threshold ?? 0) > 0)
    differs(
      `is deleted with its messages after ${formatDuration(config.inactive_threshold! / 1e6)} (inactive_threshold)`,
      '--inactive-threshold=0',
    )
  if (config.max_deliver !== undefined && config.max_deliver > 0)
    differs(`gives a message up after ${config.max_deliver} deliveries (max_deliver)`, '--max-deliver=-1')
  if (
    config.max_ack_pending !== undefined &&
    config.max_ack_pending > 0 &&
    config.max_ack_pending < layout.window
  )
    differs(
      `allows ${config.max_ack_pending} outstanding messages (max_ack_pending), fewer than \`window\` (${layout.window})`,
      `--max-pending=${Math.max(ackPendingMax, layout.window)}`,
    )
  if ((config.ack_wait ?? 0) < ackWaitMsMin * 1e6)
    differs(
      `delivers again after ${formatDuration((config.ack_wait ?? 0) / 1e6)} (ack_wait)`,
      `--wait=${formatDuration(ackWaitMs)}`,
    )
  if (differences.length === 0) return null
  return {
    detail: `The durable ${name} ${differences.join(', and ')}.`,
    act: `Run: nats consumer edit ${where} ${edits.join(' ')} --force`,
  }
}

/** The command that creates a durable. */
export function addCommand(layout: Layout, partition: number): string {
  const filters = partitionFilters(layout, partition).map((filter) => `--filter='${filter}'`)
  return (
    `nats consumer add '${layout.stream}' ${durableName(layout, partition)} --pull --ack=all --deliver=all ` +
    `--wait=2m --max-pending=${Math.max(ackPendingMax, layout.window)} --max-deliver=-1 ${filters.join(' ')} --defaults`
  )
}
