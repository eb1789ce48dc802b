// message-sources.ts: where messages come from, as one interface: bridges to MQTT brokers, and others to
// come.
//
// The contract of a message source (types.ts)
//   Credit      `want(n)`: at most n messages of each partition are outstanding. 0 while the spool takes
//               nothing in: full, disk low, store lost, too much waiting. `room` says the same for one
//               partition.
//   Take        with its position in its partition, whether the server delivered it before, when the server
//               stored it, and its sender where the server knows that.
//   Acknowledge after the durable commit, in the order of `take` within a partition: each message, or up to a
//               position, as the traits say. `flush` follows once per commit.
//   Give back   a message that could not be stored. The server delivers it again.
//   Release     a planned stop: nothing more is taken, what was taken is acknowledged.
//   Epochs      a partition is assigned and revoked. A new link makes new partitions, so that no
//               acknowledgement reaches a link on which the message was not delivered.
//
// Invariants, kept here for every source
//   An acknowledgement follows the fsync, in order, once, and only while its partition is assigned. A message
//   that becomes a dead letter, is ignored or quarantined, or waits in an open record, is treated
//   as one from the embedded broker: the intake does not know the difference. A source that is held stops no
//   other one: where a store of kept messages is full, only the partition waits whose message is meant for
//   it.
//
// The embedded broker keeps the same contract by its gates: `want` is what they read of the intake, a
// partition is a connection, and `release` is stopReading. It calls the intake directly, because a device's
// message must not pay for an indirection; `embeddedBroker` describes it to /status.
//
// The links of all bridges have link-status.ts (their state, and the events of it) and reconnect-delay.ts
// (the back-off) in common.
//
// To write another source: give it the traits, call assign and take, and answer acknowledge. AMQP: a
// partition is a queue on a channel, the position is the delivery tag, ackKind is `up_to` (`multiple`),
// prefetch is want(n), giveBack closes the channel. JetStream: a partition is a pull consumer, the position
// is the stream sequence, want(n) bounds each pull request, holdMs is its ack_wait: the source reports
// progress before it ends.

import type { Clock, EpochMs } from '../../std/clock.ts'
import type { Intake } from '../intake/intake.ts'
import type { IntakeSpool } from '../types.ts'
import { createMessageFeed, type FeedOfSource } from './message-feed.ts'
import type {
  CustodyFeed,
  FeedCustody,
  MessageSource,
  MessageSourceStatus,
  PartitionBudgets,
} from './types.ts'
import type { SourceLinks, State, StateSource } from '../../domain/condition-state.ts'
import type { Emit } from '../../domain/event.ts'
import { embeddedBrokerName } from '../../domain/message.ts'
import { createSilenceWatch } from './silence-watch.ts'

export type {
  CommittedPart,
  CustodyFeed,
  FeedCustody,
  LinkState,
  LinkView,
  MessageFeed,
  MessageSource,
  MessageSourceStatus,
  Partition,
  PartitionView,
} from './types.ts'

export type MessageSources = StateSource & {
  start(): void
  /** Nothing more is taken. */
  release(): Promise<void>
  close(): Promise<void>
  /** Publishes a command at the server of a source; false where that is not possible now. */
  publish(source: string, topic: string, bytes: Buffer): boolean
  /** Acknowledgements that were given to all sources. */
  acked(): number
  status(): readonly MessageSourceStatus[]
  /** There may be more or less room now. */
  update(): void
  /** What custody `delivered` asks of each source. */
  readonly custodyFeeds: readonly CustodyFeed[]
}

type Deps = {
  intake: Pick<Intake, 'accept' | 'connectionEnded' | 'readingPaused' | 'pausesSender' | 'onReadingChange'>
  spool: Pick<IntakeSpool, 'holdReason' | 'listen'>
  clock: Clock
  emit: Emit
  limits: PartitionBudgets
  /** Custody `delivered`; without it the spool has the custody. */
  custody?: FeedCustody | null
}

export type SourceEntry = {
  source: MessageSource
  /** If no message comes for this time, its links connect again. */
  silentAfterMs: number
  /** The same where none came since the start: a server may grant a subscription and deliver nothing. */
  unheardAfterMs: number
}

export function createMessageSources(deps: Deps, entries: readonly SourceEntry[]): MessageSources {
  const { intake, spool, custody = null } = deps
  const feeds = entries.map(({ source }) => createMessageFeed({ ...deps, custody }, source))
  const isHeld = () => spool.holdReason() !== null || intake.readingPaused() || custody?.isHolding() === true
  const watch = createSilenceWatch(
    { ...deps, isHeld },
    entries.map((entry, index) => ({ ...entry, feed: feeds[index]! })),
  )
  let released = false
  let unlisten = () => {}

  function start(): void {
    if (feeds.length === 0) return
    unlisten = spool.listen({ intakeChanged: update, storeLost: update, storeReopened: update })
    intake.onReadingChange(update)
    for (const feed of feeds) feed.start()
    update()
    watch.start()
  }

  function update(): void {
    if (released) return
    for (const feed of feeds) feed.update()
  }

  async function release(): Promise<void> {
    if (released) return
    released = true
    watch.close()
    await Promise.all(entries.map(({ source }) => source.release()))
  }

  async function close(): Promise<void> {
    await release()
    unlisten()
    await Promise.all(entries.map(({ source }) => source.close()))
  }

  return {
    start,
    release,
    close,
    publish: (name, topic, bytes) =>
      entries.find(({ source }) => source.name === name)?.source.publish?.(topic, bytes) ?? false,
    acked: () => feeds.reduce((sum, feed) => sum + feed.counters().acked, 0),
    states,
    status: () => feeds.map((feed, index) => statusOf(feed, entries[index]!.source)),
    update,
    custodyFeeds: feeds.map((feed) => feed.custody),
  }

  function* states(): Generator<State> {
    yield* watch.states()
    for (const { source } of entries) {
      const messageSource = source.name
      const { links } = source.view()
      // One condition for all its connections: they have one server, and as a rule one cause.
      const some = (those: typeof links): SourceLinks => ({
        messageSource,
        clientIds: those.map(({ clientId }) => clientId),
        connections: links.length,
      })
      const paused = links.filter(({ isPausedLong }) => isPausedLong)
      const failing = links.filter(({ lastFault }) => lastFault !== null)
      if (paused.length > 0) yield { code: 'MESSAGE_SOURCE_PAUSED', ...some(paused) }
      const { lastFault: detail, lastAct } = failing[0] ?? { lastFault: null, lastAct: null }
      if (detail !== null)
        yield { code: 'MESSAGE_SOURCE_DISCONNECTED', ...some(failing), detail, act: lastAct ?? '' }
      yield* source.states()
    }
  }

  function statusOf(feed: FeedOfSource, source: MessageSource): MessageSourceStatus {
    const { name, kind, traits } = source
    return {
      name,
      kind,
      traits,
      ...source.view(),
      ...feed.counters(),
      isSilent: watch.isSilent(source),
      lastMessageAt: feed.lastMessageAt(),
    }
  }
}

/** `received`, `acked`: of all sources. */
type BrokerCounts = {
  received: number
  acked: number
  held: number
  propertiesSkipped: number
  lastOfClientsAt: EpochMs | null
}

/** The embedded broker as a message source: what is not of the others. */
export function embeddedBroker(
  { received, acked, held, propertiesSkipped, lastOfClientsAt: lastMessageAt }: BrokerCounts,
  others: readonly MessageSourceStatus[],
  windowMax: number,
): MessageSourceStatus {
  const sum = (key: 'received' | 'acked') => others.reduce((total, one) => total + one[key], 0)
  return {
    name: embeddedBrokerName,
    kind: 'broker',
    traits: { ackKind: 'each', partitioned: false, windowMax, holdMs: null, redelivers: 'on_reconnect' },
    url: null,
    links: [],
    partitions: [],
    lag: null,
    lost: null,
    retainedIgnored: 0,
    received: received - sum('received'),
    acked: acked - sum('acked'),
    redelivered: null,
    propertiesSkipped,
    outstanding: held,
    isSilent: false,
    lastMessageAt,
  }
}
