// heartbeat.ts: requests a URL every few minutes while the gateway is healthy. The monitor behind the URL
// calls a person when the requests stay out: also where the machine, its power or its uplink is gone, and no
// alert can leave it.
//
//   healthy       `url`
//   not healthy   `unhealthy_url`, or nothing without one
//   the change    is sent at once, at most every 10 s
//   a failed one  is repeated after 10 s, doubled to `every`
//
// It runs in the event loop of the gateway, so a gateway that hangs sends none.

import type { Clock } from '../std/clock.ts'
import type { State } from '../domain/condition-state.ts'
import type { Emit } from '../domain/event.ts'
import { failingState, tryOnce } from './receiver-try.ts'
import type { AlertReceiverView, Sent, Situation } from './types.ts'

export type HeartbeatRequest = {
  target: string
  timeoutMs: number
  /** Requests the URL for the state. */
  send(
    situation: Pick<Situation, 'verdict' | 'sentence'>,
    isHealthy: boolean,
    ends: AbortSignal,
  ): Promise<Sent>
  hasUnhealthyUrl: boolean
  check(ends: AbortSignal): Promise<Sent>
}

export type HeartbeatSettings = {
  name: string
  request: HeartbeatRequest
  everyMs: number
  healthyVerdicts: readonly string[]
}

/** The verdicts that count as healthy. */
export function healthyVerdictsOf({ healthy }: { healthy: 'ok' | 'degraded' }): readonly string[] {
  return healthy === 'ok' ? ['ok'] : ['ok', 'degraded']
}

export type Heartbeat = {
  look(situation: Situation): void
  view(): AlertReceiverView
  /** Another target gets a request at once. */
  use(settings: HeartbeatSettings, isSameTarget: boolean): void
  retryNow(): void
  states(): readonly State[]
  stop(): Promise<void>
}

const changeMinMs = 10_000
const retryMinMs = 10_000

export function createHeartbeat(
  { clock, emit }: { clock: Clock; emit: Emit },
  first: HeartbeatSettings,
): Heartbeat {
  const stopping = new AbortController()
  let settings = first
  /** What the last request said, and when it began. */
  let last: { isHealthy: boolean; atMs: number } | null = null
  let failures = 0
  let retryAt = 0
  let lastSentAt: number | null = null
  let lastFailedAt: number | null = null
  let lastFailure: string | null = null
  let lastAct = ''
  const counts = { sent: 0, failed: 0 }
  let running: Promise<void> | null = null

  const states = () => failingState(settings.name, { failures, why: lastFailure, act: lastAct })
  return { look, view, states, use, retryNow, stop }

  function look(situation: Situation): void {
    const nowMs = clock.monotonic()
    if (running !== null || nowMs < retryAt) return
    const isHealthy = situation.isReady && settings.healthyVerdicts.includes(situation.verdict)
    if (!isHealthy && !settings.request.hasUnhealthyUrl) return
    if (last !== null && failures === 0) {
      const waitMs = isHealthy === last.isHealthy ? settings.everyMs : Math.min(changeMinMs, settings.everyMs)
      if (nowMs - last.atMs < waitMs) return
    }
    last = { isHealthy, atMs: nowMs }
    running = attempt(situation, isHealthy).finally(() => {
      running = null
    })
  }

  async function attempt(situation: Situation, isHealthy: boolean): Promise<void> {
    const { name, request, everyMs } = settings
    const send = (ends: AbortSignal) => request.send(situation, isHealthy, ends)
    const sent = await tryOnce(clock, request, send, stopping.signal)
    if (stopping.signal.aborted) return
    if (sent.kind === 'sent') {
      counts.sent += 1
      lastSentAt = clock.now()
      failures = 0
      return
    }
    failures += 1
    counts.failed += 1
    lastFailedAt = clock.now()
    lastFailure = sent.why
    lastAct = sent.act
    const retryInMs = Math.min(everyMs, retryMinMs * 2 ** Math.min(failures - 1, 20))
    retryAt = clock.monotonic() + retryInMs
    emit({ kind: 'alert_failed', receiver: name, why: sent.why, act: sent.act, failures, retryInMs })
  }

  function use(next: HeartbeatSettings, isSameTarget: boolean): void {
    settings = next
    retryNow()
    if (!isSameTarget) last = null
  }

  function retryNow(): void {
    retryAt = 0
  }

  function view(): AlertReceiverView {
    const waitsMs = retryAt - clock.monotonic()
    return {
      name: settings.name,
      type: 'heartbeat',
      target: settings.request.target,
      lastSentAt,
      lastFailedAt,
      lastFailure,
      failures,
      nextTryAt: failures > 0 && waitsMs > 0 ? Math.round(clock.now() + waitsMs) : null,
      waiting: 0,
      heldBack: null,
      dropped: 0,
      ...counts,
    }
  }

  async function stop(): Promise<void> {
    stopping.abort()
    await running
  }
}
