// redelivered-order.ts: the order of messages that a gateway had taken before it was lost in an outage.
//
// RabbitMQ delivers what came back first, in the order in which it came back. With custody `delivered` a
// gateway gives back in an outage what it never submitted (queue-consumer.ts). What it had submitted came
// before that, and comes back when the gateway is stopped or lost: behind it.
//
//   the queue got           1 2 3 4 5 6 7 8 9
//   submitted, given back   1 2 3 | 4 5 6 7
//   delivered afterwards    4 5 6 7 1 2 3 8 9      first those that were delivered before, then 8
//
// The first ones of a consumer, as far as they are redelivered, are kept until one comes that is not, until
// as many have come as RabbitMQ sends without an acknowledgement, or until none has come for a while. Then
// the second part is put first, where the stored times of messages with one routing key show that (the
// timestamp interceptor of RabbitMQ adds them) and none contradicts it. Times of different routing keys are
// not compared: the clocks of nodes differ, and a device is usually connected to one of them.
//
// Messages are acknowledged by position, up to one. Those that moved have another delivery tag than their
// position, and are acknowledged one by one.

import type { ConsumeMessage } from 'amqplib'
import type { CancelTimer, Clock } from '../../../std/clock.ts'
import { storedAtHeader } from '../amqp-delivery.ts'

export type RedeliveredOrder = {
  /** True where it keeps the delivery. Where it gives back others first, it calls `release` before. */
  keeps(delivery: ConsumeMessage): boolean
  /** The delivery tag of a position, which `release` has put into the delivery. */
  tagOf(position: number): number
  /** Gives up what it keeps: it is given back to RabbitMQ. */
  drop(): void
  /** The tags to acknowledge one by one, and the one up to which all are; null if there is none. */
  acknowledge(position: number): { single: number[]; upTo: number | null }
}

type Moved = { first: number; last: number; tags: readonly number[] }

/**
 * RabbitMQ returns what a lost consumer had and makes the next one active in one step: what comes then, comes
 * without a gap. The bound of a wait for messages that never come.
 */
const quietMs = 1000

export function createRedeliveredOrder(
  clock: Clock,
  keptMax: number,
  release: (deliveries: readonly ConsumeMessage[]) => void,
): RedeliveredOrder {
  let kept: ConsumeMessage[] = []
  let cancelQuiet: CancelTimer = () => {}
  /** Not acknowledged, in order. Hardly ever more than one. */
  let moved: Moved[] = []
  let acked = 0

  function groupOf(position: number): Moved | undefined {
    return moved.find(({ first, last }) => first <= position && position <= last)
  }

  function tagOf(position: number): number {
    const group = groupOf(position)
    return group === undefined ? position : group.tags[position - group.first]!
  }

  function finish(): void {
    cancelQuiet()
    if (kept.length === 0) return
    const deliveries = kept
    kept = []
    const first = deliveries[0]!.fields.deliveryTag
    const isWithoutGap = deliveries.at(-1)!.fields.deliveryTag === first + deliveries.length - 1
    const start = isWithoutGap ? secondPart(deliveries) : 0
    if (start === 0) return release(deliveries)
    const ordered = [...deliveries.slice(start), ...deliveries.slice(0, start)]
    const tags = ordered.map(({ fields }) => fields.deliveryTag)
    moved.push({ first, last: first + tags.length - 1, tags })
    // From here on it is the position.
    ordered.forEach(({ fields }, index) => (fields.deliveryTag = first + index))
    release(ordered)
  }

  return {
    keeps(delivery) {
      if (!delivery.fields.redelivered) {
        if (kept.length > 0) finish()
        return false
      }
      kept.push(delivery)
      cancelQuiet()
      if (kept.length >= keptMax) finish()
      else cancelQuiet = clock.after(quietMs, finish)
      return true
    },
    tagOf,
    drop() {
      cancelQuiet()
      kept = []
    },
    acknowledge(position) {
      const single: number[] = []
      let upTo = position
      // Of one that did not move, the tag is the position, and what is before it has smaller tags.
      for (; upTo > acked && groupOf(upTo) !== undefined; upTo -= 1) single.push(tagOf(upTo))
      const isOpen = upTo > acked
      acked = Math.max(acked, position)
      if (moved.length > 0) moved = moved.filter(({ last }) => last > acked)
      return { single, upTo: isOpen ? upTo : null }
    },
  }
}

/** Where the part begins that belongs before the other one; 0 where nothing shows that there are two. */
function secondPart(deliveries: readonly ConsumeMessage[]): number {
  const lastOf = new Map<string, { index: number; time: number }>()
  let from = 1
  let to = deliveries.length
  let isShown = false
  for (const [index, delivery] of deliveries.entries()) {
    const time = storedAt(delivery)
    if (time === null) return 0
    const { routingKey } = delivery.fields
    const before = lastOf.get(routingKey)
    if (before !== undefined && time < before.time) {
      isShown = true
      from = Math.max(from, before.index + 1)
      to = Math.min(to, index)
    }
    lastOf.set(routingKey, { index, time })
  }
  if (!isShown || from > to) return 0
  const start = largestStepBack(deliveries, from, to)
  return isInOrder([...deliveries.slice(start), ...deliveries.slice(0, start)]) ? start : 0
}

/** Routing keys of messages in this range are on one side alone: only the times of all are left. */
function largestStepBack(deliveries: readonly ConsumeMessage[], from: number, to: number): number {
  let best = from
  let largest = -Infinity
  for (let index = from; index <= to; index += 1) {
    const step = storedAt(deliveries[index - 1]!)! - storedAt(deliveries[index]!)!
    if (step > largest) {
      largest = step
      best = index
    }
  }
  return best
}

function isInOrder(deliveries: readonly ConsumeMessage[]): boolean {
  const lastOf = new Map<string, number>()
  return deliveries.every((delivery) => {
    const time = storedAt(delivery)!
    const { routingKey } = delivery.fields
    const isLater = time >= (lastOf.get(routingKey) ?? 0)
    lastOf.set(routingKey, time)
    return isLater
  })
}

function storedAt({ properties }: ConsumeMessage): number | null {
  const value: unknown = properties.headers?.[storedAtHeader]
  return typeof value === 'number' ? value : null
}
