// link-status.ts: the state of a connection of a bridge for /status, and the events that say when it is
// connected, lost and released. One for each link of any kind of bridge, over all its connections;
// the link decides when the state changes.

import type { Clock } from '../../std/clock.ts'
import type { Emit, EventOf } from '../../domain/event.ts'
import type { LinkState, LinkView } from './types.ts'

export type LinkStatus = {
  state(): LinkState
  set(next: LinkState): void
  connected(url: string, session?: LinkSession): void
  /** It waits for the next try. */
  lost(fault: Pick<EventOf<'message_source_lost'>, 'reason' | 'detail' | 'act'>, retryInMs: number): void
  /** It has been paused for `pauseAfterMs`: that is a condition, until it is paused no more. */
  reportPaused(): void
  /** It has stopped. */
  released(session: EventOf<'message_source_released'>['session']): void
  /** A message came. */
  took(atMs: number): void
  view(): LinkView
}

/** What an MQTT broker had kept. */
type LinkSession = { present: boolean; removedFilters: readonly string[] }

export function createLinkStatus(
  { clock, emit }: { clock: Clock; emit: Emit },
  { messageSource, clientId }: { messageSource: string; clientId: string },
): LinkStatus {
  let state: LinkState = 'waiting'
  let sinceMs = clock.monotonic()
  let since = clock.now()
  let sessionPresent: boolean | null = null
  let losses = 0
  let lastFault: string | null = null
  let lastAct: string | null = null
  let isPausedLong = false
  let messages = 0
  let lastMessageMs: number | null = null

  function set(next: LinkState): void {
    if (state === next) return
    // Each try of a connection that is down is the same time without one.
    const stays = isDown(state) && isDown(next)
    state = next
    isPausedLong = false
    if (stays) return
    sinceMs = clock.monotonic()
    since = clock.now()
  }

  return {
    state() {
      return state
    },
    set,
    connected(url, session) {
      sessionPresent = session?.present ?? null
      lastFault = null
      lastAct = null
      set('connected')
      emit({
        kind: 'message_source_connected',
        messageSource,
        clientId,
        url,
        sessionPresent,
        removedFilters: session?.removedFilters ?? [],
      })
    },
    lost({ reason, detail, act }, retryInMs) {
      losses += 1
      lastFault = detail
      lastAct = act
      set('waiting')
      emit({ kind: 'message_source_lost', messageSource, clientId, reason, detail, act, retryInMs })
    },
    reportPaused() {
      isPausedLong = state === 'paused'
    },
    released(session) {
      if (state !== 'stopped') emit({ kind: 'message_source_released', messageSource, clientId, session })
      set('stopped')
    },
    took(atMs) {
      messages += 1
      lastMessageMs = atMs
    },
    view: () => ({
      clientId,
      state,
      since,
      sinceMs,
      sessionPresent,
      losses,
      lastFault,
      lastAct,
      isPausedLong,
      messages,
      lastMessageMs,
    }),
  }
}

function isDown(state: LinkState): boolean {
  return state === 'connecting' || state === 'waiting'
}
