// event-stream.ts: GET /events: the state for pages that stay open, as server-sent events.
//
//   event: status   every 2 s while someone watches: the parts of /status that change all the time
//   event: sample   every 10 s: the newest sample of /history?span=hour
//
// An event is made once for all: ten browsers cost the gateway little more than one. A watcher that does not
// read misses events, and its connection is closed when nothing leaves it for 10 s (listening/). At most
// `watchersMax` watch; further ones are answered 503. A stream ends with the session of its user, and with
// the daemon.

import type { ServerResponse } from 'node:http'
import type { CancelTimer, Clock } from '../../../std/clock.ts'
import type { History, HistoryView } from '../../history/history.ts'
import type { Status } from '../../status-schema/status-schema.ts'
import { problem, type JsonAnswer } from '../json-answer.ts'
import type { Access } from '../request-rights/request-rights.ts'

export const eventStreamType = 'text/event-stream; charset=utf-8'

/** The connections are bounded, too; others need theirs. */
export const watchersMax = 32
const statusEveryMs = 2000
/** After this, a browser connects again. */
const retryMs = 3000
const conditionsMax = 20

export type EventStreams = {
  /** Streams, and gives null; or refuses. */
  open(response: ServerResponse, access: Pick<Access, 'isOpen'>): JsonAnswer | null
  counters(): { watchers: number; refused: number; missed: number }
  stop(): void
}

type Deps = { clock: Clock; status: () => Status; history: Pick<History, 'read' | 'follow'> }

type Watcher = { response: ServerResponse; access: Pick<Access, 'isOpen'>; isBlocked: boolean }

export function createEventStreams({ clock, status, history }: Deps): EventStreams {
  const watchers = new Set<Watcher>()
  const counts = { refused: 0, missed: 0 }
  let cancel: CancelTimer = () => {}
  let unfollow = () => {}
  return {
    open,
    counters: () => ({ watchers: watchers.size, ...counts }),
    stop() {
      cancel()
      unfollow()
      for (const { response } of watchers) response.end()
      watchers.clear()
    },
  }

  function open(response: ServerResponse, access: Pick<Access, 'isOpen'>): JsonAnswer | null {
    if (watchers.size >= watchersMax) {
      counts.refused += 1
      return tooMany
    }
    const watcher: Watcher = { response, access, isBlocked: false }
    watchers.add(watcher)
    response.on('drain', () => (watcher.isBlocked = false))
    // A client that resets the connection is gone like any other.
    response.on('error', () => response.destroy())
    response.once('close', () => leave(watcher))
    response.writeHead(200, {
      'content-type': eventStreamType,
      connection: 'close',
      'x-accel-buffering': 'no',
    })
    send(watcher, `retry: ${retryMs}\n\n${statusEvent()}`)
    if (watchers.size === 1) begin()
    return null
  }

  function begin(): void {
    unfollow = history.follow(() => sendAll(sampleEvent))
    schedule()
  }

  function leave(watcher: Watcher): void {
    watchers.delete(watcher)
    if (watchers.size > 0) return
    cancel()
    unfollow()
  }

  function schedule(): void {
    cancel()
    cancel = clock.after(statusEveryMs, () => {
      schedule()
      for (const watcher of watchers) if (!watcher.access.isOpen()) watcher.response.end()
      sendAll(statusEvent)
    })
  }

  function sendAll(make: () => string): void {
    let text: string | null = null
    for (const watcher of watchers) {
      if (watcher.isBlocked) counts.missed += 1
      else send(watcher, (text ??= make()))
    }
  }

  function send(watcher: Watcher, text: string): void {
    if (watcher.response.writableEnded) return
    watcher.isBlocked = !watcher.response.write(text)
  }

  function statusEvent(): string {
    return `event: status\ndata: ${JSON.stringify(liveStatus(status()))}\n\n`
  }

  function sampleEvent(): string {
    return `event: sample\ndata: ${JSON.stringify(lastSample(history.read('hour')))}\n\n`
  }
}

/** The parts of /status that change all the time, with the names that they have there. */
export function liveStatus(status: Status) {
  const { verdict, sentence, ready, notReady, now, providers, lanes, waiting, totals, spool, devices } =
    status
  const { stores: _stores, ...spoolNow } = spool
  const { skewed: _skewed, ...devicesNow } = devices
  return {
    now,
    verdict,
    sentence,
    ready,
    notReady,
    lastMessageAt: status.lastMessageAt,
    lastMessageAgeSeconds: status.lastMessageAgeSeconds,
    lastAcceptedAt: status.lastAcceptedAt,
    lastAcceptedAgeSeconds: status.lastAcceptedAgeSeconds,
    providers,
    lanes,
    waiting,
    totals: {
      messages: totals.messages,
      payloads: totals.payloads,
      delivered: totals.delivered,
      dead: totals.dead,
      dropped: totals.dropped,
    },
    spool: spoolNow,
    devices: devicesNow,
    clients: { connections: status.clients.connections },
    conditions: status.conditions
      .slice(0, conditionsMax)
      .map(({ code, key, severity, since, what }) => ({ code, key, severity, since, what })),
    conditionsHidden: status.conditionsHidden + Math.max(0, status.conditions.length - conditionsMax),
  }
}

/** The newest one, with the names of /history; null where there is none. */
function lastSample(view: HistoryView) {
  const { now, span, stepSeconds, answers, from: _from, ...columns } = view
  const last = Object.entries(columns).map(([name, values]) => [name, values.at(-1) ?? null])
  return {
    now,
    span,
    stepSeconds,
    ...(Object.fromEntries(last) as Record<string, number | null>),
    answers: answers.map(({ kind, submissions }) => ({ kind, submissions: submissions.at(-1) ?? null })),
  }
}

const tooMany = problem(503, 'UNAVAILABLE', {
  what: 'Too many pages watch the gateway.',
  why: `The daemon serves at most ${watchersMax} streams of events at once.`,
  act: 'Close one of them, or request /status now and then.',
})
