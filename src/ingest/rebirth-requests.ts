// rebirth-requests.ts: asks nodes of Sparkplug to publish their births again, where the gateway missed one
// (mapping/sparkplug decides that). A request goes back on the way on which the message came: to the client
// that published it, if it has subscribed to its command topic, or to the broker of the bridge.
//
// A node that does not answer is asked less and less often: after a minute, two, four, ... at most once an
// hour. All nodes together get at most `perSecondMax`: names of nodes come from the messages, so a client
// can invent any number. What is not sent is counted; data without a birth is a dead letter in any case.

import type { Emit } from '../domain/event.ts'
import { embeddedBrokerName, type Message } from '../domain/message.ts'
import type { MapResult } from '../mapping/mapping.ts'
import type { Clock } from '../std/clock.ts'

export type RebirthRequest = NonNullable<MapResult['rebirth']>

export type RebirthCounters = {
  /** Requests that were published. */
  rebirthsRequested: number
  /** Not published: the node, or all nodes together, had one shortly before. */
  rebirthsLimited: number
  /** Not published: the client has not subscribed, or the bridge is not connected. */
  rebirthsUnreachable: number
}

export type RebirthRequests = {
  request(request: RebirthRequest, message: Message): void
  counters(): RebirthCounters
}

type Deps = {
  clock: Clock
  emit: Emit
  /** Publishes on the way back of the message; false where there is none. */
  publish: (message: Message, request: RebirthRequest) => boolean
}

const firstPauseMs = 60_000
const longestPauseMs = 3_600_000
const perSecondMax = 20
/** Of nodes that were asked. At the bound the one that was asked first is forgotten. */
const nodesMax = 4096

type Asked = { atMs: number; pauseMs: number }

export function createRebirthRequests({ clock, emit, publish }: Deps, isEnabled: boolean): RebirthRequests {
  const asked = new Map<string, Asked>()
  const counts: RebirthCounters = { rebirthsRequested: 0, rebirthsLimited: 0, rebirthsUnreachable: 0 }
  let secondAtMs = 0
  let inSecond = 0
  return { request, counters: () => ({ ...counts }) }

  function request(rebirth: RebirthRequest, message: Message): void {
    if (!isEnabled) return
    const now = clock.monotonic()
    const messageSource = message.from ?? embeddedBrokerName
    const key = `${messageSource}|${rebirth.topic}`
    const last = asked.get(key)
    if ((last !== undefined && now - last.atMs < last.pauseMs) || isFull(now)) {
      counts.rebirthsLimited += 1
      return
    }
    if (!publish(message, rebirth)) {
      counts.rebirthsUnreachable += 1
      return
    }
    inSecond += 1
    counts.rebirthsRequested += 1
    note(key, { atMs: now, pauseMs: nextPause(last, now) })
    emit({ kind: 'rebirth_requested', messageSource, topic: rebirth.topic })
  }

  function isFull(now: number): boolean {
    if (now - secondAtMs >= 1000) {
      secondAtMs = now
      inSecond = 0
    }
    return inSecond >= perSecondMax
  }

  function note(key: string, entry: Asked): void {
    asked.delete(key)
    const [oldest] = asked.keys()
    if (asked.size >= nodesMax && oldest !== undefined) asked.delete(oldest)
    asked.set(key, entry)
  }
}

/** A node that was in order for as long as it would have been left alone starts again. */
function nextPause(last: Asked | undefined, now: number): number {
  if (last === undefined || now - last.atMs >= 2 * last.pauseMs + firstPauseMs) return firstPauseMs
  return Math.min(last.pauseMs * 2, longestPauseMs)
}
