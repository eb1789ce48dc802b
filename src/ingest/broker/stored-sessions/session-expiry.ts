// session-expiry.ts: when a stored session has expired, and how often its time of use is written.
//
// A session without a connection is kept for its expiry: the Session Expiry Interval that its client gave
// (MQTT 5, 3.1.2.11.2), at most the setting `session_expiry`; the setting itself for MQTT 3.1.1. 0 is the
// expiry of a session that ends with its connection.
//
// The time of use on the disk is older than the end of the last connection: a connection that lasts writes it
// at each sweep, and only after a share of the expiry. So a session that is read from the disk is kept for
// this time longer. A time of use that was written while our time was not known is no time at all: a clock
// without a battery starts years back, and with its correction every session would have expired. Such a
// session counts from the start of the process, until its time is written. A short expiry does so, too: a
// write may have waited for a lost store for longer than the expiry. A session that ends too early costs
// messages: its client drops what is not acknowledged. One that ends too late costs a connection that its
// client closes.

import { timeUnknown, type OurTime } from '../../../domain/arrival.ts'
import type { Clock, EpochMs } from '../../../std/clock.ts'
import type { Session } from './client-session.ts'

export type SessionExpiry = {
  /** Of the expiry that a client asks for; Infinity, where the setting decides, stays. */
  granted(askedMs: number): number
  of(session: Session): number
  isExpired(session: Session): boolean
  /** The time of use for the disk; `timeUnknown` while our time is. */
  usedAtOf(session: Session): EpochMs
  /** How old the time of use on the disk may be before it is written again. */
  refreshMs(session: Session): number
}

/** Between two looks at all sessions. */
export const sweepMs = 60_000
/** Share of the expiry after which the time of use is written again. */
const refreshShare = 1 / 20
const refreshMsMin = 1000
/** Below it an expiry counts from the start of the process. */
const shortMs = sweepMs / refreshShare

export function createSessionExpiry(
  { clock, ourTime }: { clock: Clock; ourTime: Pick<OurTime, 'now' | 'offsetMs'> },
  { sessionExpiryMs }: { sessionExpiryMs: number },
): SessionExpiry {
  const startedAtMs = clock.monotonic()
  return { granted, of, isExpired, usedAtOf, refreshMs }

  function granted(askedMs: number): number {
    return askedMs === Number.POSITIVE_INFINITY ? askedMs : Math.min(askedMs, sessionExpiryMs)
  }

  function of(session: Session): number {
    return Math.min(session.expiryMs, sessionExpiryMs)
  }

  function usedAtOf({ connections, usedAtMs }: Session): EpochMs {
    const offsetMs = ourTime.offsetMs()
    if (offsetMs === null) return timeUnknown
    const agoMs = connections > 0 ? 0 : clock.monotonic() - (usedAtMs ?? startedAtMs)
    return ourTime.now() + offsetMs - agoMs
  }

  function refreshMs(session: Session): number {
    return Math.min(Math.max(of(session) * refreshShare, refreshMsMin), sessionExpiryMs * refreshShare)
  }

  function isExpired(session: Session): boolean {
    // [MQTT-4.1.0-1]
    if (session.connections > 0) return false
    const expiryMs = of(session)
    const { usedAtMs, usedAt } = session
    if (clock.monotonic() - (usedAtMs ?? startedAtMs) > expiryMs) return true
    if (usedAtMs !== null || expiryMs < shortMs) return false
    const offsetMs = ourTime.offsetMs()
    // While our time is not known, nothing is judged by it.
    return offsetMs !== null && ourTime.now() + offsetMs - usedAt > expiryMs + refreshMs(session) + sweepMs
  }
}
