// delayed-wills.ts: wills that wait for their Will Delay Interval (MQTT 5, 3.1.3.2.2).
//
// A will is taken when its delay has passed, or when the session of its client ends, whichever comes first
// [MQTT-3.1.2-8]; the caller gives the shorter of both times. It is dropped when its client comes back to its
// session before that [MQTT-3.1.3-9]. Where the client comes back to none, because it has asked for a clean
// start or its session has expired or was removed, the will is taken at once.
//
// In memory: a restart drops the wills that wait, as it drops those of open connections. Bounds: `countMax`
// wills and `bytesMax` bytes. At a bound those that have waited longest are taken early, and counted.

import { clientNameOf, propertiesLength, type Message, type Sender } from '../../../domain/message.ts'
import type { CancelTimer, Clock } from '../../../std/clock.ts'

export type Will = Pick<
  Message,
  'topic' | 'bytes' | 'retain' | 'sender' | 'userProperties' | 'properties'
> & {
  /** Of the connection that it belongs to. */
  readonly address: string | null
}

export type DelayedWills = {
  /** Takes it after `delayMs`, unless its client comes back before. */
  wait(will: Will, delayMs: number): void
  /** A client has connected: to the session that it had, or not. */
  clientConnected(sender: Sender, isSessionPresent: boolean): void
  counters(): DelayedWillCounters
  /** Drops those that wait, and takes no more. */
  close(): void
}

export type DelayedWillCounters = {
  /** That wait now. */
  willsDelayed: number
  /** Taken before their delay had passed, because too many waited. */
  willsTakenEarly: number
}

type Bounds = { countMax: number; bytesMax: number }

type Waiting = { will: Will; size: number; dueAtMs: number }

const boundsOfAll: Bounds = { countMax: 10_000, bytesMax: 16 * 1024 ** 2 }
/** What one costs beside its texts and bytes. */
const overheadBytes = 512

export function createDelayedWills(
  { clock, take }: { clock: Clock; take: (will: Will) => void },
  { countMax, bytesMax }: Bounds = boundsOfAll,
): DelayedWills {
  /** By their clients. The one that has waited longest is first. */
  const waiting = new Map<string, Waiting>()
  let bytes = 0
  let takenEarly = 0
  let closed = false
  let timer: { dueAtMs: number; cancel: CancelTimer } | null = null
  return {
    wait,
    clientConnected,
    counters: () => ({ willsDelayed: waiting.size, willsTakenEarly: takenEarly }),
    close,
  }

  function wait(will: Will, delayMs: number): void {
    if (closed) return
    const key = clientNameOf(will.sender)
    // The connection before left one, too, and its session has ended since.
    takeNow(key)
    const size = sizeOf(will)
    for (const longest of waiting.keys()) {
      if (waiting.size < countMax && bytes + size <= bytesMax) break
      takenEarly += 1
      takeNow(longest)
    }
    const dueAtMs = clock.monotonic() + delayMs
    // The bytes are a part of what was read at once, which would stay in memory with them.
    waiting.set(key, { will: { ...will, bytes: Buffer.from(will.bytes) }, size, dueAtMs })
    bytes += size
    wakeAt(dueAtMs)
  }

  function clientConnected(sender: Sender, isSessionPresent: boolean): void {
    if (waiting.size === 0) return
    const key = clientNameOf(sender)
    if (isSessionPresent) remove(key)
    else takeNow(key)
  }

  function takeNow(key: string): void {
    const will = remove(key)
    if (will !== null) take(will)
  }

  function remove(key: string): Will | null {
    const found = waiting.get(key)
    if (found === undefined) return null
    waiting.delete(key)
    bytes -= found.size
    return found.will
  }

  /** One timer for all. It may be early, where its will has left. */
  function wakeAt(dueAtMs: number): void {
    if (timer !== null && timer.dueAtMs <= dueAtMs) return
    timer?.cancel()
    timer = { dueAtMs, cancel: clock.after(dueAtMs - clock.monotonic(), takeDue) }
  }

  function takeDue(): void {
    timer = null
    const now = clock.monotonic()
    let next = Number.POSITIVE_INFINITY
    for (const [key, { dueAtMs }] of waiting) {
      if (dueAtMs <= now) takeNow(key)
      else next = Math.min(next, dueAtMs)
    }
    if (next < Number.POSITIVE_INFINITY) wakeAt(next)
  }

  function close(): void {
    closed = true
    timer?.cancel()
    timer = null
    waiting.clear()
    bytes = 0
  }
}

function sizeOf(will: Will): number {
  return will.topic.length + will.bytes.length + propertiesLength(will) + overheadBytes
}
