// jetstream-parking.ts: the queues of custody `delivered` at NATS, beside the stream of the messages.
//
//   stream PREFIX-parked   payloads and messages that wait. Its durable PREFIX-parked has ack_policy
//                          explicit, so several gateways take from it at once; what is acknowledged is
//                          deleted (workqueue)
//   stream PREFIX-dead     copies of dead letters; nothing deletes them but a person
//
// Both are looked at for each connection, and again while something is missing (parking-streams.ts).
//
// An entry is stored when the stream has confirmed it (PubAck). Entries that wait here for their turn are
// reported as in progress, or NATS would deliver them to another gateway after ack_wait.
//
// What is given back is released by a NAK for each entry, and comes again, to any gateway.

import { headers as newHeaders } from '@nats-io/transport-node'
import type { JsMsg } from '@nats-io/jetstream'
import { pause, type Clock } from '../../../std/clock.ts'
import { noSender } from '../../../domain/message.ts'
import type { MessageFeed, Partition } from '../../message-sources/message-sources.ts'
import { emptyMessage } from '../../message-sources/source-message.ts'
import type { CustodyQueue, SourceCustody, StoredEntry } from '../../message-sources/types.ts'
import type { Connection } from '../nats-connection.ts'
import {
  createParking,
  isMissingParking,
  parkedAckWaitMs,
  parkingFindings,
  parkingName,
  parkingSubject,
  type ParkingFindings,
  type ParkingOptions,
} from './parking-streams.ts'

export type JetStreamParking = Pick<SourceCustody, 'store'> & {
  open(feed: MessageFeed): void
  /** Streams and durable exist, or it is reported. */
  ensure(connection: Connection): Promise<void>
  /** Takes entries until the returned function is called. */
  join(connection: Connection): () => void
  want(messages: number): void
  acknowledge(position: number): void
  giveBack(): void
}

type Deps = {
  clock: Clock
  connection: () => Connection | null
  failed: (error: unknown) => void
  report: (findings: ParkingFindings) => void
  /** It was there, was deleted, and is there again, empty. */
  created: (queue: CustodyQueue) => void
}

const fetchMs = 2000
const restMs = 500
const retryMs = 3000
/** Entries that are published before the first confirm is awaited. */
const publishedMax = 100

export function createJetStreamParking(
  { clock, connection, failed, report, created }: Deps,
  options: ParkingOptions,
): JetStreamParking {
  const parked = parkingName(options, 'parked')
  /** Everything exists; and is as it must be. */
  let isThere = false
  let isLookedAt = false
  /** It was so, in this run. */
  let wasThere = false
  let lookedAtMs = 0
  let feed: MessageFeed | null = null
  let wanted = 0
  let partition: Partition | null = null
  let unacked: { position: number; message: JsMsg }[] = []
  let position = 0
  const entry = emptyMessage()

  // ---- storing

  async function store(
    queue: CustodyQueue,
    entries: readonly StoredEntry[],
    signal: AbortSignal,
  ): Promise<void> {
    const made = connection()
    if (made === null) throw new Error('there is no connection to NATS')
    for (let from = 0; from < entries.length; from += publishedMax) {
      signal.throwIfAborted()
      const some = entries.slice(from, from + publishedMax)
      await Promise.all(some.map((one) => publish(made, queue, one)))
    }
  }

  async function publish(
    { js }: Connection,
    queue: CustodyQueue,
    { headers, body }: StoredEntry,
  ): Promise<void> {
    const added = newHeaders()
    for (const [key, value] of Object.entries(headers)) added.set(key, value)
    const expect = { streamName: parkingName(options, queue) }
    try {
      await js.publish(parkingSubject(options, queue), body, { headers: added, expect })
    } catch (error) {
      // The stream may have been deleted.
      isLookedAt = false
      throw error
    }
  }

  async function ensure(made: Connection): Promise<void> {
    const queues = options.provision ? await createParking(made, options) : []
    if (wasThere) for (const queue of queues) created(queue)
    await look(made)
  }

  /** Streams and durable are as they must be, or it is reported. */
  async function look(made: Connection): Promise<void> {
    const findings = await parkingFindings(made, options)
    report(findings)
    isThere = findings.missing.length === 0
    wasThere ||= isThere
    isLookedAt = isThere && findings.different.length === 0
  }

  // ---- taking back

  function join(made: Connection): () => void {
    const ending = new AbortController()
    // It handles its failures.
    void run(made, ending.signal)
    return () => {
      ending.abort()
      end()
    }
  }

  async function run(made: Connection, signal: AbortSignal): Promise<void> {
    let progressAtMs = clock.monotonic()
    while (!signal.aborted) {
      try {
        if (!isLookedAt && clock.monotonic() - lookedAtMs >= retryMs) {
          lookedAtMs = clock.monotonic()
          await ensure(made)
          if (signal.aborted) return
        }
        partition ??= feed?.assign(parked, noSender, 'parked') ?? null
        if (clock.monotonic() - progressAtMs > parkedAckWaitMs / 4) {
          progressAtMs = clock.monotonic()
          for (const { message } of unacked) message.working()
        }
        const room = partition === null || wanted === 0 || !isThere ? 0 : feed!.room(partition)
        if (room === 0) await pause(clock, restMs, signal)
        else await take(made, room, signal)
      } catch (error) {
        if (signal.aborted) return
        if (isMissingParking(error)) isThere = isLookedAt = false
        else failed(error)
        await pause(clock, retryMs, signal)
      }
    }
  }

  async function take({ js }: Connection, room: number, signal: AbortSignal): Promise<void> {
    const consumer = await js.consumers.get(parked, parked)
    for await (const message of await consumer.fetch({ max_messages: room, expires: fetchMs })) {
      if (signal.aborted || partition === null) return
      position += 1
      unacked.push({ position, message })
      entry.bytes = Buffer.from(message.data.buffer, message.data.byteOffset, message.data.length)
      entry.redelivered = message.redelivered
      feed!.take(partition, position, entry)
    }
  }

  /** What was not acknowledged comes again after ack_wait. */
  function end(): void {
    const own = partition
    partition = null
    unacked = []
    if (own !== null) feed?.revoke(own)
  }

  return {
    open: (given) => void (feed = given),
    ensure,
    join,
    want: (messages) => void (wanted = messages),
    acknowledge(upTo) {
      const index = unacked.findIndex((one) => one.position > upTo)
      const gone = unacked.splice(0, index < 0 ? unacked.length : index)
      for (const { message } of gone) message.ack()
    },
    giveBack() {
      for (const { message } of unacked) message.nak()
      end()
    },
    store,
  }
}
