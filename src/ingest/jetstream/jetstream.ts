// jetstream.ts: takes messages from NATS JetStream, together with other gateways. The entry file of the
// folder.
//
// Promises
//   A message is acknowledged after the fsync of the group that holds it. What was not acknowledged is
//   delivered again: to this gateway, or to the one that takes the partition over.
//   An acknowledgement never covers a message that this gateway did not store, also where a process slept,
//   two members took one partition, or NATS changed its leader (partition-epoch.ts).
//   The messages of a device come in their order, as NATS stored them: it is in one partition, and a
//   partition has one member (members/).
//   A NATS that is not reachable or not as it must be stops nothing else, and is a condition.
//
// How
//   nats-link.ts            the connection, with back-off; nats-connection.ts opens one
//   nats-faults.ts          each fault in words
//   stream-setup/           stream, durables, bucket: checked, or created with `provision: true`; the mapping
//   members/                which member takes which partition: leases in a bucket of NATS
//   owned-partitions.ts     runs what this member owns
//   partition-backlogs.ts   what waits in the partitions, and what NATS removed of it
//   jetstream-parking/      queues of custody `delivered`
//   partition-consumer/     one partition: what is outstanding first, then pulls; starts over when in doubt
//   delivered-message.ts    what JetStream says of a message; message-reader.ts: as the intake takes it
//   nats-subjects.ts        topics and subjects, partitions
//   jetstream-config.ts     `ingest.bridges[]` with nats:// or nats+tls://
//   jetstream-check.ts      tries a bridge for `check --connect`
//
// What can go wrong, and what then happens
//   the spool is full, the disk low   nothing is pulled. After 2 s the partitions are given to other members
//   a write fails                     the epoch ends; the messages come again after some seconds
//   an outage with custody            nothing is pulled until it is over. What was taken stays here and
//   `delivered`                       outstanding, and the partitions stay with this gateway
//   the node of the connection dies   the next node, at once
//   the leader of a durable dies      no heartbeat for 2 s: asks until the new one answers, then pulls anew
//   a gateway dies                    others take its partitions after 6 s; what was outstanding comes first
//   a gateway stops                   its partitions are free at once
//   a durable or the stream is        a condition with the command; the others go on. It is created only with
//   missing or not as it must be      `provision: true`, and never deleted or changed
//   the mapping of the account is     a condition with the lines, within 30 s: all of it is looked at again
//   missing, or changed later
//   a message is too large, or has    a dead letter; it is acknowledged
//   a topic that MQTT does not allow
//
// Second effects: what was stored, but whose acknowledgement was lost (a kill between the two, a change of
// leader), is delivered again, also to another member. With a device time, or by the time of storing at NATS,
// its payload has the same payloadId.

import { randomUUID } from 'node:crypto'
import { every, type CancelTimer, type Clock } from '../../std/clock.ts'
import type { Emit } from '../../domain/event.ts'
import { EngineLosses } from '../message-sources/engine-losses.ts'
import type { MessageFeed, MessageSource } from '../message-sources/message-sources.ts'
import { probeMapping } from './stream-setup/mapping-check.ts'
import { createMembers, type Members } from './members/members.ts'
import { urlsText } from './nats-address.ts'
import type { Connection } from './nats-connection.ts'
import type { NatsFault } from './nats-faults.ts'
import { createNatsLink, type NatsLink } from './nats-link.ts'
import { createJetStreamParking } from './jetstream-parking/jetstream-parking.ts'
import { createOwnedPartitions, type OwnedPartitions } from './owned-partitions.ts'
import { createSetupReport } from './stream-setup/setup-report.ts'
import {
  ackWaitMs,
  durablesBeyond,
  ensureBucket,
  ensureStream,
  streamFindings,
} from './stream-setup/stream-setup.ts'
import { PartitionBacklogs } from './partition-backlogs.ts'
import type { JetStreamOptions, NatsCredentials } from './types.ts'

export type { JetStreamOptions } from './types.ts'

export type JetStreamDeps = { clock: Clock; emit: Emit; random: () => number }

export type JetStreamBridge = MessageSource & { renew(credentials: NatsCredentials): void }

const tickMs = 250
/** For what was taken, when a partition goes to another member. */
const settleMs = 5000

const wasSilent: NatsFault = {
  reason: 'silent',
  detail: 'No message came for longer than silent_after.',
  act: 'Nothing: the bridge connects again. If devices should publish, check them and the mapping of the account.',
}

export function createJetStreamBridge(deps: JetStreamDeps, options: JetStreamOptions): JetStreamBridge {
  const { clock, random } = deps
  const { name: messageSource } = options
  const credentials: NatsCredentials = { ...options }
  const report = createSetupReport(deps, options)
  const lost = new EngineLosses({ ...deps, risks: report.found }, options)
  let wanted = 0
  let isAccepting = false
  let isReleased = false
  let cancelTick: CancelTimer = () => {}
  let cancelPause: CancelTimer | null = null
  const members: Members = createMembers(
    {
      clock,
      random,
      changed: (owned) => partitions.own(owned),
      settle: (partition) => partitions.settle(partition, settleMs),
      failed: report.failed,
      nameTaken: report.nameTaken,
      otherNumber: report.otherNumber,
    },
    { ...options, instance: randomUUID() },
  )
  const link: NatsLink = createNatsLink({ ...deps, credentials, prepare, opened }, options)
  const waiting = new PartitionBacklogs(
    { clock, lost, owners: members.owners, replaced: (partition) => partitions.end(partition) },
    options,
  )
  const partitions: OwnedPartitions = createOwnedPartitions(
    { clock, report, members, link, waiting },
    options,
  )
  const parking =
    options.custody === 'delivered'
      ? createJetStreamParking(
          {
            clock,
            connection: link.connection,
            failed: report.failed,
            report: report.parking,
            created: report.parkingCreated,
          },
          options,
        )
      : null

  function start(feed: MessageFeed): void {
    partitions.open(feed)
    parking?.open(feed)
    link.start()
    partitions.tick()
    cancelTick = every(clock, tickMs, () => partitions.tick())
  }

  async function prepare(connection: Connection): Promise<void> {
    report.stream(streamFindings(await ensureStream(connection, options), options))
    await ensureBucket(connection, options)
    // Before the durables are made: messages that came before there was a consumer do not count as lost.
    report.mapping(await probeMapping(connection, options))
    await partitions.ensureDurables(connection)
    // The user needs no right to look beyond its own.
    report.left(await durablesBeyond(connection, options).catch(() => null))
    await parking?.ensure(connection)
  }

  /** A person may change all of it while the connection is open. Until the returned function is called. */
  function keepPrepared(connection: Connection): () => void {
    return every(clock, options.lookEveryMs, async () => {
      try {
        await prepare(connection)
        // A partition that is taken says so itself.
        if (partitions.view().every(({ role }) => role !== 'active')) report.works()
      } catch (error) {
        if (link.connection() === connection) report.failed(error)
      }
    })
  }

  function opened(connection: Connection): () => void {
    const leave = members.join(connection)
    const end = parking?.join(connection)
    const endLooks = keepPrepared(connection)
    const endWatch = waiting.watch(connection)
    return () => {
      leave()
      end?.()
      endLooks()
      endWatch()
    }
  }

  // ---- room

  function want(messages: number): void {
    wanted = messages
    parking?.want(isReleased ? 0 : messages)
    if (isReleased) return
    if (messages > 0) {
      cancelPause?.()
      cancelPause = null
      accept(true)
      partitions.update()
    }
    // With custody `delivered` the partitions stay: another gateway would get what is outstanding here.
    else if (parking === null) cancelPause ??= clock.after(options.pauseAfterMs, pauseLink)
  }

  function accept(next: boolean): void {
    if (isAccepting === next) return
    isAccepting = next
    link.setPaused(!next)
    members.setAccepting(next)
  }

  function pauseLink(): void {
    cancelPause = null
    if (wanted > 0 || isReleased) return
    accept(false)
  }

  // ---- stop

  async function release(): Promise<void> {
    isReleased = true
    cancelPause?.()
    parking?.want(0)
    partitions.halt()
  }

  async function close(): Promise<void> {
    await release()
    const isConnected = link.connection() !== null
    if (isConnected) {
      await partitions.settleAll(settleMs)
      await members.leave().catch(report.failed)
    }
    cancelTick()
    partitions.own(new Set())
    await link.close()
    report.found.close()
  }

  return {
    name: messageSource,
    kind: 'jetstream',
    traits: {
      ackKind: 'up_to',
      partitioned: true,
      windowMax: options.window,
      holdMs: ackWaitMs,
      redelivers: 'after_hold',
    },
    start,
    renew({ userName, password, token, tls }) {
      Object.assign(credentials, { userName, password, token, tls })
    },
    want,
    acknowledge(partition, position) {
      if (partition.holds === 'parked') parking?.acknowledge(position)
      else partitions.epochOf(partition)?.acknowledge(position)
    },
    flush: (partition) => partitions.epochOf(partition)?.flush(),
    giveBack(partition) {
      if (partition.holds === 'parked') parking?.giveBack()
      else partitions.epochOf(partition)?.end('not_stored')
    },
    ...(parking !== null && {
      custody: {
        store: parking.store,
      },
    }),
    reconnect: () => link.reconnect(wasSilent),
    release,
    close,
    states: () => report.found.states(),
    view: () => ({
      url: urlsText(options),
      links: [link.view()],
      partitions: partitions.view(),
      lag: waiting.lag(),
      lost: lost.total(),
      retainedIgnored: 0,
    }),
  }
}
