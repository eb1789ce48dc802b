// recent-messages.ts: the last messages of each device, raw, in memory. What a message became is not kept: it
// is mapped again when a person asks.
//
// A device keeps the last twenty, as many as its ring has room for (message-ring.ts), and at most
// `perSecondMax` of one second: so a device that floods costs no more than a counter.
//
// Of more than `allPerSecondMax` messages a second over all devices, the rest are not kept, and counted. All
// rings together have at most `bytesMax`. Rings grow only until half of that is used; the rest is for
// devices that come then, with their last two or three messages, and for messages that are longer than their
// ring. At the bound a new device gets the place of one that sent nothing for ten minutes, or it has none,
// which is counted.

import type { Message } from '../../domain/message.ts'
import type { EpochMs } from '../../std/clock.ts'
import { blockBytes, createMessageBlocks } from './message-blocks.ts'
import {
  createMessageRings,
  newRing,
  reset,
  type MessageRing,
  type RecentKind,
  type RecentMessage,
  type RingOwner,
} from './message-ring.ts'

export type RecentMessages = {
  add(owner: RingOwner, message: Message, became: RecentKind): void
  /** The newest first. */
  of(owner: RingOwner): readonly RecentMessage[]
  drop(owner: RingOwner): void
  counters(): { rings: number; ringBytes: number; notKept: number }
}

const perSecondMax = 20
/** Of all devices. A gateway that takes more has no time to keep what few people ask for. */
const allPerSecondMax = 5000
const quietMs = 600_000
/** Rings that are looked at for one to take, and messages between two looks. */
const lookedAt = 16
const messagesBetweenLooks = 100

export function createRecentMessages({ bytesMax }: { bytesMax: number }): RecentMessages {
  const blocksMax = Math.floor(bytesMax / blockBytes)
  const blocks = createMessageBlocks(blocksMax)
  const { write, read } = createMessageRings(blocks, blocksMax / 2)
  const rings: MessageRing[] = []
  /** Without an owner and without blocks. */
  const free: MessageRing[] = []
  let hand = 0
  let untilLook = 0
  let notKept = 0
  let second = 0
  let inThisSecond = 0
  return {
    add,
    of,
    drop,
    counters: () => ({
      rings: rings.length - free.length,
      ringBytes: blocks.inUse() * blockBytes,
      notKept,
    }),
  }

  function add(owner: RingOwner, message: Message, became: RecentKind): void {
    const { arrivedAt } = message
    if (arrivedAt - second >= 1000 || arrivedAt < second) {
      second = arrivedAt
      inThisSecond = 0
    }
    inThisSecond += 1
    if (inThisSecond > allPerSecondMax) {
      notKept += 1
      return
    }
    const ring = owner.ring ?? ringFor(owner, arrivedAt)
    if (ring === null) {
      notKept += 1
      return
    }
    ring.lastAt = arrivedAt
    if (arrivedAt - ring.secondAt >= 1000 || arrivedAt < ring.secondAt) {
      ring.secondAt = arrivedAt
      ring.inSecond = 0
    }
    ring.inSecond += 1
    if (ring.inSecond > perSecondMax) {
      ring.skipped += 1
      return
    }
    write(ring, message, became)
  }

  function ringFor(owner: RingOwner, now: EpochMs): MessageRing | null {
    let block = blocks.take()
    if (block < 0) {
      const quiet = quietOwner(now)
      if (quiet === null) return null
      drop(quiet)
      block = blocks.take()
    }
    const ring = free.pop() ?? addedRing()
    reset(ring, block)
    ring.owner = owner
    owner.ring = ring
    return ring
  }

  function addedRing(): MessageRing {
    const ring = newRing()
    rings.push(ring)
    return ring
  }

  /** Whose blocks another device may have. */
  function quietOwner(now: EpochMs): RingOwner | null {
    if (rings.length === 0) return null
    if (untilLook > 0) {
      untilLook -= 1
      return null
    }
    for (let step = 0; step < lookedAt; step += 1) {
      const ring = rings[hand]
      hand = (hand + 1) % rings.length
      if (ring !== undefined && ring.owner !== null && now - ring.lastAt >= quietMs) return ring.owner
    }
    untilLook = messagesBetweenLooks
    return null
  }

  function drop(owner: RingOwner): void {
    const { ring } = owner
    if (ring === null) return
    owner.ring = null
    ring.owner = null
    blocks.giveBack(ring.block)
    reset(ring, -1)
    free.push(ring)
  }

  function of({ ring }: RingOwner): readonly RecentMessage[] {
    return ring === null ? [] : read(ring)
  }
}
