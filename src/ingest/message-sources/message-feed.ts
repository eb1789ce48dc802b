// message-feed.ts: hands the messages of one source to the intake, and gives it the acknowledgements: in the
// order of the messages within a partition, once, and only while the partition is assigned.
//
// A partition pays for the time of its messages like a client of the embedded broker. While it waits for its
// turn it has no room: the source reads nothing of it, and the server keeps the rest.
//
// Per message: no promise and no closure. The spool calls one function for each; the functions are used
// again, each bound to a slot that has the partition and the position.

import { assert } from '../../std/assert.ts'
import type { Clock, EpochMs } from '../../std/clock.ts'
import type { GatewayError } from '../../std/gateway-error.ts'
import { noSender, type Sender, type Stored } from '../../domain/message.ts'
import type { Ack } from '../../spool/spool.ts'
import type { Intake } from '../intake/intake.ts'
import type { IntakeSpool, ReceivedMessage } from '../types.ts'
import { newPartition } from './partition.ts'
import { boundProperties } from './source-message.ts'
import type {
  CommittedPart,
  CustodyFeed,
  FeedCustody,
  MessageFeed,
  MessageSource,
  Partition,
  PartitionBudgets,
  SourceCounters,
  SourceMessage,
} from './types.ts'

export type FeedOfSource = {
  start(): void
  /** There may be more or less room now. */
  update(): void
  counters(): SourceCounters
  /** Monotonic, and by the wall clock; null before the first message. */
  lastMessageAtMs(): number | null
  lastMessageAt(): EpochMs | null
  /** For custody `delivered`. */
  readonly custody: CustodyFeed
}

type Deps = {
  intake: Pick<Intake, 'accept' | 'connectionEnded' | 'readingPaused' | 'pausesSender'>
  spool: Pick<IntakeSpool, 'holdReason'>
  clock: Clock
  limits: PartitionBudgets
  /** Null: custody `spool`. */
  custody: FeedCustody | null
}

type Slot = { partition: Partition | null; position: number; ordinal: number; ack: Ack }

/** Parked entries that wait here for their turn, until they are stored and delivered again. */
const parkedMax = 200
/** Slots that are kept for reuse; more may be in use. */
const freeMax = 65_536

export function createMessageFeed(
  { intake, spool, clock, limits, custody }: Deps,
  source: MessageSource,
): FeedOfSource {
  const { windowMax, ackKind } = source.traits
  const free: Slot[] = []
  const partitions = new Set<Partition>()
  let toFlush: Partition[] = []
  const counters = { received: 0, acked: 0, redelivered: 0, propertiesSkipped: 0 }
  let lastMessageAtMs: number | null = null
  /** Partitions with commits that custody does not know of yet. */
  const uncollected = new Set<Partition>()
  /** One object for all messages, as the intake allows. */
  const message: ReceivedMessage = {
    topic: '',
    bytes: Buffer.alloc(0),
    qos: 0,
    retain: false,
    dup: false,
    sender: noSender,
    arrivedAt: 0,
    serial: 0,
    from: source.name,
    userProperties: null,
    properties: null,
    violation: null,
    refusal: null,
    // The packet identifier belongs to our link, not to the client that sent the message.
    link: null,
    messageId: 0,
  }
  /** The same for what the message has of its server. */
  const stored: Stored = { at: 0, serial: 0 }
  const feed: MessageFeed = { assign, revoke, room, take }
  const feedCustody: CustodyFeed = {
    source,
    collect,
    delivered,
    isReady: () => !isHeld() && source.view().links.every(({ state }) => state === 'connected'),
    giveBackAll,
    windowUse,
  }

  return {
    start: () => source.start(feed),
    update,
    counters: () => ({ ...counters, outstanding: outstanding() }),
    lastMessageAtMs: () => lastMessageAtMs,
    lastMessageAt: () =>
      lastMessageAtMs === null ? null : clock.now() - Math.round(clock.monotonic() - lastMessageAtMs),
    custody: feedCustody,
  }

  function assign(
    label: string,
    sender: Sender = noSender,
    holds: Partition['holds'] = 'messages',
  ): Partition {
    const budget =
      holds === 'parked'
        ? null
        : limits.openBridgeBudget(`${source.name}/${label}`, { resumeReading: update })
    const partition = newPartition({ label, sender, holds, budget }, clock.monotonic())
    partitions.add(partition)
    return partition
  }

  function revoke(partition: Partition): void {
    if (!partition.assigned) return
    partition.assigned = false
    partition.budget?.close()
    partitions.delete(partition)
    uncollected.delete(partition)
    intake.connectionEnded(partition.sender)
  }

  function update(): void {
    source.want(isHeld() ? 0 : windowMax)
  }

  function isHeld(): boolean {
    return spool.holdReason() !== null || intake.readingPaused() || custody?.isHolding() === true
  }

  function room({ assigned, sender, holds, taken, acked, budget }: Partition): number {
    if (!assigned || budget?.isTimeSpent() === true || isHeld() || intake.pausesSender(sender)) return 0
    const most = holds === 'parked' ? Math.min(parkedMax, windowMax) : windowMax
    return Math.max(0, most - (taken - acked))
  }

  function take(partition: Partition, position: number | null, from: SourceMessage): void {
    assert(partition.assigned, 'a revoked partition hands nothing over')
    const now = clock.monotonic()
    partition.lastTakenAtMs = now
    lastMessageAtMs = now
    if (partition.holds === 'parked') {
      assert(custody !== null && position !== null, 'custody takes its entries back')
      custody.takeBack(partition, from.bytes, slotFor(partition, position).ack)
      return
    }
    counters.received += 1
    if (from.redelivered) counters.redelivered += 1
    message.topic = from.topic
    message.bytes = from.bytes
    message.qos = position === null ? 0 : from.qos
    message.retain = from.retain
    message.dup = from.redelivered
    if (from.userProperties !== null || from.properties !== null)
      counters.propertiesSkipped += boundProperties(from)
    message.userProperties = from.userProperties
    message.properties = from.properties
    message.stored = storedOf(from)
    message.violation = from.ignoredFor
    message.refusal = from.refusal
    message.sender = partition.sender
    intake.accept(message, position === null ? null : slotFor(partition, position).ack)
    partition.budget?.countTime(clock.monotonic() - now)
  }

  function storedOf({ storedAt, storedSerial = 0 }: SourceMessage): Stored | null {
    if (storedAt === null) return null
    stored.at = storedAt
    stored.serial = storedSerial
    return stored
  }

  function slotFor(partition: Partition, position: number): Slot {
    const slot = free.pop() ?? newSlot()
    slot.partition = partition
    slot.position = position
    slot.ordinal = partition.taken
    partition.taken += 1
    return slot
  }

  function newSlot(): Slot {
    const slot: Slot = {
      partition: null,
      position: 0,
      ordinal: 0,
      ack(fault) {
        const { partition, position, ordinal } = slot
        assert(partition !== null, 'an acknowledgement is given once')
        slot.partition = null
        if (free.length < freeMax) free.push(slot)
        settle(partition, position, { ordinal, fault })
      },
    }
    return slot
  }

  function settle(
    partition: Partition,
    position: number,
    { ordinal, fault }: { ordinal: number; fault: GatewayError | null },
  ): void {
    // Of an older link, or behind a message that was given back: the server delivers it again.
    if (!partition.assigned) return
    if (fault !== null) {
      revoke(partition)
      source.giveBack(partition)
      return
    }
    assert(ordinal === partition.committed, 'acknowledgements keep the order of the messages')
    partition.committed += 1
    partition.lastCommitted = position
    if (custody !== null) {
      uncollected.add(partition)
      return
    }
    partition.acked += 1
    partition.lastAcked = position
    counters.acked += 1
    if (ackKind === 'each') source.acknowledge(partition, position)
    if (toFlush.length === 0) queueMicrotask(flush)
    if (toFlush.at(-1) !== partition && !toFlush.includes(partition)) toFlush.push(partition)
  }

  /** Right after the commit gave its last acknowledgement. */
  function flush(): void {
    const flushed = toFlush
    toFlush = []
    for (const partition of flushed) {
      if (!partition.assigned) continue
      if (ackKind === 'up_to') source.acknowledge(partition, partition.lastAcked)
      source.flush(partition)
    }
  }

  function outstanding(): number {
    let sum = 0
    for (const { taken, acked } of partitions) sum += taken - acked
    return sum
  }

  // ------------------------------------------------------------------ custody `delivered`

  function collect(): readonly CommittedPart[] {
    if (uncollected.size === 0) return []
    const parts = [...uncollected].map((partition) => ({
      feed: feedCustody,
      partition,
      count: partition.committed,
      position: partition.lastCommitted,
    }))
    uncollected.clear()
    return parts
  }

  function delivered({ partition, count, position }: CommittedPart): void {
    if (!partition.assigned || count <= partition.acked) return
    if (partition.holds === 'messages') counters.acked += count - partition.acked
    partition.acked = count
    partition.lastAcked = position
    source.acknowledge(partition, position)
    source.flush(partition)
  }

  function giveBackAll(): void {
    for (const partition of Array.from(partitions)) {
      revoke(partition)
      source.giveBack(partition)
    }
  }

  function windowUse(): number {
    let most = 0
    for (const { holds, taken, acked } of partitions)
      if (holds === 'messages') most = Math.max(most, taken - acked)
    return most / windowMax
  }
}
