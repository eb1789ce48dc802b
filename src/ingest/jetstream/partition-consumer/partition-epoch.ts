// partition-epoch.ts: the messages of one partition, from the first pull until something is not as it must
// be. Owner of the rule that makes acknowledgements of `ack_policy: all` safe.
//
// An acknowledgement of JetStream covers all messages of the durable up to its place in the stream, also
// those that another client got. So it is given only where this epoch got them all:
//
//   consumer sequence   one more for each delivery of the durable, to any client. It must ascend by one: a
//                       gap is a message that another one got, or that was lost on the way
//   stream sequence     must ascend: a step back is a message that JetStream delivers again
//   first messages      those that were outstanding when the epoch began, in their order (`pending`)
//   next message        the stream has none of the partition between them and it (skipped-messages.ts)
//
// Else it takes nothing more. What it took until then is in order, and is acknowledged; the next epoch begins
// with what JetStream has outstanding (partition-consumer.ts). A gateway that wakes up after others took its
// partition sees the gap, too, whatever its own clock says.
//
// Pulls. At most two are open; together with what is outstanding they ask for no more than the window. While
// there is no room, nothing is asked for; messages that are on their way then wait here, at most a window.
// JetStream sends a heartbeat for an open pull; without one, and without a message, for two periods the epoch
// is checked. The consumer leader that held the pull may be dead: a client that only waits is silent until
// the pull ends.

import type { StoredMsg } from '@nats-io/jetstream'
import type { Msg } from '@nats-io/transport-node'
import { createInbox } from '@nats-io/transport-node'
import { readDelivery, type Delivery } from '../delivered-message.ts'
import type { Epoch, EpochDeps, EpochOptions, Trouble } from './epoch-types.ts'
import { createComparison } from './skipped-messages.ts'
import { createUnacknowledged } from './unacknowledged.ts'

export type { Epoch, EpochDeps } from './epoch-types.ts'

const heartbeatMs = 800
/** Heartbeats come a little late. */
const silentAfterMs = 2 * heartbeatMs + 300
const pullMsMax = 5000
/** Below it a pull is not worth it. */
const pullMsMin = 500

const accepted = '+ACK'
const inProgress = '+WPI'

export function openEpoch(deps: EpochDeps, options: EpochOptions): Epoch {
  const { clock, nc, feed } = deps
  const { windowMax, pending } = options
  const partition = feed.assign(options.label)
  const unacknowledged = createUnacknowledged()
  const inbox = createInbox()
  const nextSubject = `$JS.API.CONSUMER.MSG.NEXT.${options.stream}.${options.durable}`
  const last = { consumerSeq: options.consumerSeq, streamSeq: 0 }
  const delivery: Delivery = { deliveries: 0, streamSeq: 0, consumerSeq: 0, storedAtMs: 0, pending: 0 }
  let pendingNext = 0
  /** What each open pull still asks for, by its number; in the order in which JetStream serves them. */
  const pulls = new Map<number, number>()
  let pullNumber = 0
  let asked = 0
  /** Came while there was no room. */
  let waiting: Msg[] = []
  let heardAtMs = clock.monotonic()
  let progressAtMs = heardAtMs
  let isOver = false
  /** Takes nothing more. */
  let isHalted = false
  /** The deliveries since the last silence follow what was known before. */
  let isCompared = false
  let troubled = Promise.withResolvers<Trouble>()
  let settled: (() => void) | null = null
  const comparison = createComparison({
    clock,
    next: deps.next,
    isNext: (to) => feed.room(partition) > 0 && placeOf(waiting[0]) === to,
    take: takeSkipped,
    done: update,
    failed: () => halt('refused'),
  })
  const subscription = nc.subscribe(`${inbox}.*`, {
    callback(error, message) {
      if (error) halt('refused')
      else if (!isHalted) receive(message)
    },
  })
  pull()

  return {
    partition,
    last,
    trouble: () => troubled.promise,
    resume() {
      troubled = Promise.withResolvers<Trouble>()
      pulls.clear()
      asked = 0
      heardAtMs = clock.monotonic()
      isCompared = false
      // The last one may be lost with the leader.
      acknowledgeLast()
      pull()
    },
    update,
    acknowledge,
    flush,
    halt,
    isHalted: () => isHalted,
    end,
    settle,
    tick,
    outstanding: () => partition.taken - partition.acked + waiting.length,
  }

  // ---- messages

  function receive(message: Msg): void {
    const now = clock.monotonic()
    heardAtMs = now
    const { reply = '' } = message
    if (reply === '') return status(message)
    if (!readDelivery(reply, delivery)) return halt('refused')
    if (now >= deps.ownedUntilMs()) return halt('not_owner')
    if (delivery.consumerSeq !== last.consumerSeq + 1) return halt('gap')
    if (delivery.streamSeq <= last.streamSeq) return halt('again')
    if (!isExpected(delivery.streamSeq))
      comparison.begin(Math.max(last.streamSeq, options.ackFloor), delivery.streamSeq)
    last.consumerSeq = delivery.consumerSeq
    last.streamSeq = delivery.streamSeq
    count()
    if (mustWait()) waiting.push(message)
    else take(message, reply)
    if (asked <= windowMax / 4) pull()
  }

  /** False: something may be between what is known and this place. */
  function isExpected(place: number): boolean {
    if (pendingNext === pending.length) {
      const was = isCompared
      isCompared = true
      return was
    }
    const is = place === pending[pendingNext]
    while (pendingNext < pending.length && pending[pendingNext]! <= place) pendingNext += 1
    // It is behind all of them: compared now.
    if (pending.at(-1)! < place) isCompared = true
    return is
  }

  function mustWait(): boolean {
    return waiting.length > 0 || comparison.limit() !== Infinity || feed.room(partition) === 0
  }

  function placeOf(message: Msg | undefined): number {
    if (message === undefined || !readDelivery(message.reply ?? '', delivery)) return 0
    return delivery.streamSeq
  }

  function take(message: Msg, reply: string): void {
    unacknowledged.add(reply, delivery.streamSeq)
    deps.taken()
    feed.take(partition, delivery.streamSeq, deps.read(message, delivery))
  }

  /** It is acknowledged with the one behind it. */
  function takeSkipped({ seq, subject, data, header, time }: StoredMsg): void {
    unacknowledged.add('', seq)
    deps.taken()
    const said = { deliveries: 2, streamSeq: seq, consumerSeq: 0, storedAtMs: time.getTime(), pending: 0 }
    feed.take(partition, seq, deps.read({ subject, data, headers: header }, said))
  }

  /** One less for the oldest pull. */
  function count(): void {
    for (const [number, rest] of pulls) {
      if (rest === 1) pulls.delete(number)
      else pulls.set(number, rest - 1)
      asked -= 1
      return
    }
  }

  function status({ subject, headers }: Msg): void {
    const code = headers?.code ?? 0
    if (code === 100) {
      // JetStream delivered more than came here.
      if (Number(headers?.get('Nats-Last-Consumer')) > last.consumerSeq) halt('gap')
      return
    }
    const number = Number(subject.slice(inbox.length + 1))
    asked -= pulls.get(number) ?? 0
    pulls.delete(number)
    // 404, 408: it is over. Anything else is not usual: no leader, another leader, no durable.
    if (code === 404 || code === 408) pull()
    else troubled.resolve('silent')
  }

  // ---- pulls

  function pull(): void {
    if (isHalted) return
    const room = feed.room(partition) - waiting.length - asked
    if (room <= 0 || (asked > 0 && room < windowMax / 4) || pulls.size >= 2) return
    const expiresMs = Math.min(pullMsMax, deps.ownedUntilMs() - clock.monotonic())
    if (expiresMs < pullMsMin) return
    pullNumber += 1
    pulls.set(pullNumber, room)
    asked += room
    const request = {
      batch: room,
      expires: Math.round(expiresMs) * 1_000_000,
      idle_heartbeat: Math.round(Math.min(heartbeatMs, expiresMs / 2.5)) * 1_000_000,
    }
    // Nothing was open: the silence begins now.
    if (pulls.size === 1) heardAtMs = clock.monotonic()
    publish(nextSubject, JSON.stringify(request), `${inbox}.${pullNumber}`)
  }

  function update(): void {
    // halt() empties it.
    while (waiting.length > 0 && feed.room(partition) > 0 && placeOf(waiting[0]) < comparison.limit()) {
      const message = waiting.shift()!
      take(message, message.reply!)
    }
    pull()
  }

  function tick(): void {
    if (isOver) return
    const now = clock.monotonic()
    if (!isHalted && pulls.size > 0 && now - heardAtMs > silentAfterMs) troubled.resolve('silent')
    else update()
    if (now - progressAtMs < options.ackWaitMs / 3) return
    progressAtMs = now
    unacknowledged.forEach((reply) => publish(reply, inProgress))
    for (const { reply = '' } of waiting) publish(reply, inProgress)
  }

  // ---- acknowledgements

  function acknowledge(position: number): void {
    if (!isOver) unacknowledged.acknowledge(position)
  }

  function flush(): void {
    if (isOver) return
    acknowledgeLast()
    if (partition.acked === partition.taken) settled?.()
    update()
  }

  function acknowledgeLast(): void {
    const reply = unacknowledged.lastReply()
    if (reply !== null) publish(reply, accepted)
  }

  async function settle(limitMs: number): Promise<void> {
    if (isOver) return
    halt('ended')
    if (partition.acked < partition.taken)
      await new Promise<void>((resolve) => {
        settled = resolve
        clock.after(limitMs, resolve)
      })
    const lastReply = unacknowledged.lastReply()
    if (isOver || lastReply === null) return
    // With an answer: then JetStream has it.
    await nc.request(lastReply, accepted, { timeout: limitMs }).catch(() => undefined)
  }

  function end(trouble: Trouble): void {
    if (isOver) return
    halt(trouble)
    isOver = true
    settled?.()
    feed.revoke(partition)
  }

  function halt(trouble: Trouble): void {
    troubled.resolve(trouble)
    if (isHalted) return
    isHalted = true
    comparison.stop()
    waiting = []
    subscription.unsubscribe()
  }

  /** A closed connection ends the epoch by itself. */
  function publish(subject: string, text: string, reply?: string): void {
    if (nc.isClosed()) return
    nc.publish(subject, text, reply === undefined ? undefined : { reply })
  }
}
