// redelivered-order.ts: the order of messages that a gateway had taken before it was lost in an outage.
//
// RabbitMQ delivers what came back first, in the order in which it came back. With custody `delivered` a
// gateway gives back in an outage what it never submitted (queue-consumer.ts). What it had submitted came
// before that, and comes back when the gateway is stopped or lost: behind it. Another gateway may have taken
// all of it, and later messages, and may be lost as well.
//
//   the queue got           1 2 3 4 5 6 7 8 9
//   submitted, given back   1 2 3 | 4 5 6 7
//   delivered afterwards    4 5 6 7 1 2 3 8 9      first those that were delivered before, then new ones
//
// Redelivered messages are kept until one comes that is not, until as many have come as RabbitMQ sends
// without an acknowledgement, or until none has come for a while. Then those of each routing key are put into
// the order of their stored times (the timestamp interceptor of RabbitMQ adds them). Times of different
// routing keys are not compared: the clocks of nodes differ, and a device is usually connected to one of
// them. Without a stored time the order stays.
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
    const ordered = isWithoutGap ? inOrder(deliveries) : deliveries
    if (ordered === deliveries) return release(deliveries)
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

/** The messages of each routing key in the order of their stored times, in the places of that routing key. */
function inOrder(deliveries: readonly ConsumeMessage[]): readonly ConsumeMessage[] {
  const placesOf = new Map<string, number[]>()
  for (const [place, { fields }] of deliveries.entries()) {
    const places = placesOf.get(fields.routingKey)
    if (places === undefined) placesOf.set(fields.routingKey, [place])
    else places.push(place)
  }
  let ordered: ConsumeMessage[] | null = null
  for (const places of placesOf.values()) {
    const sorted = sortedOf(places.map((place) => deliveries[place]!))
    if (sorted === null) continue
    ordered ??= [...deliveries]
    for (const [index, place] of places.entries()) ordered[place] = sorted[index]!
  }
  return ordered ?? deliveries
}

/** `run`: how many steps back in time are before it; `firstTime`: of its run. */
type Timed = { delivery: ConsumeMessage; time: number; run: number; firstTime: number }

/** Null where the order is right, or cannot be known. */
function sortedOf(deliveries: readonly ConsumeMessage[]): ConsumeMessage[] | null {
  const all: Timed[] = []
  for (const delivery of deliveries) {
    const time = storedAt(delivery)
    if (time === null) return null
    const before = all.at(-1)
    if (before === undefined) all.push({ delivery, time, run: 0, firstTime: time })
    else if (time < before.time) all.push({ delivery, time, run: before.run + 1, firstTime: time })
    else all.push({ delivery, time, run: before.run, firstTime: before.firstTime })
  }
  if ((all.at(-1)?.run ?? 0) === 0) return null
  return all.toSorted(compare).map(({ delivery }) => delivery)
}

/**
 * Of messages that were stored in the same millisecond, the one that came back later is the older one where a
 * run begins with them: they were on both sides of the cut between what was submitted and what was not.
 */
function compare(one: Timed, other: Timed): number {
  if (one.time !== other.time) return one.time - other.time
  if (one.run === other.run) return 0
  const [earlier, isOne] = one.run < other.run ? [one, true] : [other, false]
  const isCut = earlier.firstTime === earlier.time
  return isOne === isCut ? 1 : -1
}

function storedAt({ properties }: ConsumeMessage): number | null {
  const value: unknown = properties.headers?.[storedAtHeader]
  return typeof value === 'number' ? value : null
}
