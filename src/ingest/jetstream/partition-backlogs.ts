// partition-backlogs.ts: how many messages wait in each partition, of this gateway and of others, and which
// of them NATS removed before a gateway took them: by a purge, a limit, an age, or with a durable.
//
// Each look compares a durable with the look before. What waited then and is neither delivered nor waiting
// now is lost:
//
//   all that the stream had then is gone        lost = waited - delivered
//   fewer wait than the deliveries explain      lost = waited - delivered - waiting
//   it is another durable                       all that waited
//   nothing was delivered, and the first that   the share of the messages before the one that is the first
//   waited is not the first any more            now (a limit that removes as much as comes)
//
// Deliveries count those that came again, and what came meanwhile waits, too: so these are lower bounds. A
// durable or stream with another leader begins anew: it may not know all of it yet. A loss is said by the
// gateway that has the partition; where none has it, by each one. What is removed while no gateway runs is
// seen by none.

import { every, type CancelTimer, type Clock } from '../../std/clock.ts'
import type { EngineLosses } from '../message-sources/engine-losses.ts'
import type { Connection } from './nats-connection.ts'
import { durableName, partitionFilters } from './nats-subjects.ts'
import { nextMessage } from './partition-consumer/outstanding-messages.ts'
import type { JetStreamOptions } from './types.ts'

/** A durable, and its stream, at one time. */
export type Waiting = {
  /** When the durable was created: another time is another durable. */
  created: string
  /** Of both; null where there is one node. */
  leaders: string | null
  /** Not delivered. */
  waiting: number
  /** Delivered, to any gateway, and not acknowledged. */
  outstanding: number
  /** Its deliveries since it exists, and the place in the stream of the last one. */
  deliveries: number
  place: number
  /** Place of the first message that waits; null for none. */
  first: number | null
  /** The first and the last place of the stream, read before and after the others. */
  streamFirst: number
  streamLast: number
}

type Deps = {
  clock: Clock
  lost: EngineLosses
  /** The member that has each partition. */
  owners: () => readonly (string | null)[]
  /** It is another durable than before. */
  replaced: (partition: number) => void
}

export class PartitionBacklogs {
  readonly #deps: Deps
  readonly #options: JetStreamOptions
  #seen = new Map<number, Waiting>()

  constructor(deps: Deps, options: JetStreamOptions) {
    this.#deps = deps
    this.#options = options
  }

  /** Until the returned function is called. */
  watch(connection: Connection): CancelTimer {
    const end = every(this.#deps.clock, this.#options.watchEveryMs, () => this.#look(connection))
    return () => {
      end()
      // Nothing is known without a connection; the deliveries go on elsewhere.
      this.#seen.clear()
    }
  }

  /** For the gateways of the group; what a gateway took and has not acknowledged, if it is gone. */
  lagOf(partition: number): number | null {
    const seen = this.#seen.get(partition)
    if (seen === undefined) return null
    const isTaken = this.#deps.owners()[partition] !== null
    return seen.waiting + (isTaken ? 0 : seen.outstanding)
  }

  /** Null while it is not known of all partitions. */
  lag(): number | null {
    const lags = Array.from({ length: this.#options.partitions }, (_, partition) => this.lagOf(partition))
    return lags.reduce((sum, lag) => (sum === null || lag === null ? null : sum + lag), 0)
  }

  async #look(connection: Connection): Promise<void> {
    try {
      const found = await readWaiting(connection, this.#options)
      if (connection.nc.isClosed()) return
      for (const [partition, now] of found) this.#compare(partition, now)
    } catch {
      // What fails is said where messages are taken; the next look compares with the one before.
    }
  }

  #compare(partition: number, now: Waiting): void {
    const before = this.#seen.get(partition)
    this.#seen.set(partition, now)
    const owner = this.#deps.owners()[partition] ?? null
    if (before === undefined) return
    const isReplaced = before.created !== now.created
    if (isReplaced) this.#deps.replaced(partition)
    if (owner !== null && owner !== this.#options.member) return
    const name = durableName(this.#options, partition)
    if (isReplaced) this.#deps.lost.note(name, before.waiting, 'deleted')
    else this.#deps.lost.note(name, removedBetween(before, now), 'removed')
  }
}

/** At least so many messages were removed that waited. */
export function removedBetween(before: Waiting, now: Waiting): number {
  const { waiting, first, streamLast } = before
  const delivered = now.deliveries - before.deliveries
  if (waiting === 0 || now.leaders !== before.leaders || delivered < 0 || now.place < before.place) return 0
  const rest = Math.max(0, waiting - delivered)
  if (now.streamFirst > streamLast) return rest
  const fewer = Math.max(0, rest - now.waiting)
  const isNextKnown = now.first !== null || now.waiting === 0
  if (delivered > 0 || first === null || !isNextKnown || now.first === first) return fewer
  const end = Math.min(now.first ?? Infinity, streamLast + 1)
  const share = (end - first) / (streamLast + 1 - first)
  return Math.min(waiting, Math.max(fewer, Math.round(waiting * share)))
}

async function readWaiting(connection: Connection, options: JetStreamOptions): Promise<Map<number, Waiting>> {
  const { jsm } = connection
  const { stream } = options
  const { state, cluster } = await jsm.streams.info(stream)
  const found = await Promise.all(
    Array.from({ length: options.partitions }, async (_, partition) => {
      const info = await jsm.consumers.info(stream, durableName(options, partition)).catch(() => null)
      if (info === null) return null
      const { num_pending: waiting, num_ack_pending: outstanding, delivered, created } = info
      const where = { stream, filters: partitionFilters(options, partition) }
      const place = delivered.stream_seq
      const first = waiting === 0 ? null : ((await nextMessage(connection, where, place))?.seq ?? null)
      const leaders = cluster === undefined ? null : `${cluster.leader ?? ''} ${info.cluster?.leader ?? ''}`
      const deliveries = delivered.consumer_seq
      return { partition, created, leaders, waiting, outstanding, deliveries, place, first }
    }),
  )
  const { state: later } = await jsm.streams.info(stream)
  const ends = { streamFirst: state.first_seq, streamLast: later.last_seq }
  return new Map(found.flatMap((one) => (one === null ? [] : [[one.partition, { ...one, ...ends }]])))
}
