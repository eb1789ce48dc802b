// owned-partitions.ts: runs the partitions that this member owns, on the connection that is open, and knows
// the epoch of each.

import type { Clock } from '../../std/clock.ts'
import type { MessageFeed, Partition, PartitionView } from '../message-sources/message-sources.ts'
import type { Members } from './members/members.ts'
import { createMappingWatch } from './stream-setup/mapping-check.ts'
import { createMessageReader } from './message-reader.ts'
import type { Connection } from './nats-connection.ts'
import type { NatsLink } from './nats-link.ts'
import { durableName, partitionFilters } from './nats-subjects.ts'
import {
  createPartitionConsumer,
  type Epoch,
  type PartitionConsumer,
} from './partition-consumer/partition-consumer.ts'
import type { SetupReport } from './stream-setup/setup-report.ts'
import { createDurable, durableFinding } from './stream-setup/stream-setup.ts'
import type { PartitionBacklogs } from './partition-backlogs.ts'
import type { JetStreamOptions } from './types.ts'

export type OwnedPartitions = {
  /** Once. */
  open(feed: MessageFeed): void
  /** Each durable exists, or it is reported. */
  ensureDurables(connection: Connection): Promise<void>
  own(owned: ReadonlySet<number>): void
  /** Its durable is another one: nothing more is acknowledged of what the one before delivered. */
  end(partition: number): void
  settle(partition: number, limitMs: number): Promise<void>
  settleAll(limitMs: number): Promise<void>
  /** Nothing more is taken; what was taken is acknowledged. */
  halt(): void
  /** There may be room. */
  update(): void
  tick(): void
  /** Null where it is over. */
  epochOf(partition: Partition): Epoch | null
  view(): PartitionView[]
}

type Deps = {
  clock: Clock
  report: SetupReport
  members: Members
  link: NatsLink
  waiting: PartitionBacklogs
}

export function createOwnedPartitions(
  { clock, report, members, link, waiting }: Deps,
  options: JetStreamOptions,
): OwnedPartitions {
  const consumers: PartitionConsumer[] = []
  const consumerOf = new WeakMap<Partition, PartitionConsumer>()
  /** Their durables were there. */
  const seen = new Set<number>()
  const running = new Map<number, AbortController>()
  /** A partition runs once at a time. */
  const ended = new Map<number, Promise<void>>()

  function open(feed: MessageFeed): void {
    for (let partition = 0; partition < options.partitions; partition += 1)
      consumers.push(openConsumer(feed, partition))
  }

  function openConsumer(feed: MessageFeed, partition: number): PartitionConsumer {
    const durable = durableName(options, partition)
    const consumer: PartitionConsumer = createPartitionConsumer(
      {
        clock,
        feed: {
          ...feed,
          assign(label, sender) {
            const assigned = feed.assign(label, sender)
            consumerOf.set(assigned, consumer)
            return assigned
          },
        },
        read: createMessageReader(options, partition, {
          refused: report.refusedMessage,
          watch: createMappingWatch(options, partition, {
            report: (finding) => report.mixed(partition, finding),
            mapped: report.mapped,
          }),
        }),
        ownedUntilMs: members.ownedUntilMs,
        taken: link.brought,
        judge(info) {
          const finding = durableFinding(info, options, partition)
          report.missing(partition, false)
          report.durable(partition, finding)
          return finding?.detail ?? null
        },
        missing: async (connection) => ensureDurable(connection, partition),
        failed: report.failed,
        works: report.works,
      },
      {
        label: `${options.name} ${durable}`,
        stream: options.stream,
        durable,
        filters: partitionFilters(options, partition),
        windowMax: options.window,
      },
    )
    return consumer
  }

  async function ensureDurables(connection: Connection): Promise<void> {
    for (const partition of consumers.keys()) await ensureDurable(connection, partition)
  }

  /** True: it was created now. Without `provision` it is reported. */
  async function ensureDurable(connection: Connection, partition: number): Promise<boolean> {
    const isThere = await connection.jsm.consumers.info(options.stream, durableName(options, partition)).then(
      () => true,
      (error: unknown) => {
        if (report.isMissingDurable(error)) return false
        throw error
      },
    )
    const creates = !isThere && options.provision
    if (creates) {
      // An acknowledgement for the one before would move the new one past messages that it has not delivered.
      end(partition)
      const { state } = await connection.jsm.streams.info(options.stream)
      await createDurable(connection, options, partition)
      // NATS numbers also what it did not store.
      const wasThere = seen.has(partition)
      if (wasThere || state.last_seq > state.messages) report.created(partition, wasThere)
    }
    report.missing(partition, !isThere && !creates)
    if (isThere || creates) seen.add(partition)
    return creates
  }

  function end(partition: number): void {
    consumers[partition]?.epoch()?.end('ended')
  }

  function own(owned: ReadonlySet<number>): void {
    for (const [partition, controller] of running) {
      if (owned.has(partition)) continue
      running.delete(partition)
      controller.abort()
    }
    const connection = link.connection()
    if (connection === null) return
    for (const partition of owned) {
      if (running.has(partition)) continue
      const controller = new AbortController()
      running.set(partition, controller)
      ended.set(partition, run(partition, connection, controller.signal).catch(report.failed))
    }
  }

  async function run(partition: number, connection: Connection, signal: AbortSignal): Promise<void> {
    await ended.get(partition)
    if (!signal.aborted) await consumers[partition]!.run(connection, signal)
  }

  function partitionView(consumer: PartitionConsumer, partition: number): PartitionView {
    const { state, outstanding } = consumer.view()
    const isOwned = (members.owners()[partition] ?? null) !== null
    return {
      partition: durableName(options, partition),
      member: options.member,
      role: state !== 'waiting' ? 'active' : isOwned ? 'standby' : null,
      outstanding,
      lag: waiting.lagOf(partition),
    }
  }

  return {
    open,
    ensureDurables,
    own,
    end,
    settle: async (partition, limitMs) => consumers[partition]?.settle(limitMs),
    async settleAll(limitMs) {
      await Promise.all(consumers.map((consumer) => consumer.settle(limitMs)))
    },
    halt() {
      for (const consumer of consumers) consumer.halt()
    },
    update() {
      for (const consumer of consumers) consumer.epoch()?.update()
    },
    tick() {
      for (const consumer of consumers) consumer.tick()
    },
    epochOf: (partition) => {
      const epoch = consumerOf.get(partition)?.epoch() ?? null
      return epoch?.partition === partition ? epoch : null
    },
    view: () => consumers.map(partitionView),
  }
}
