// login-sessions.ts: who is logged in with a browser. A session is a random number in a cookie; here it is
// known by its SHA-256 only, and in memory only: a restart logs everyone out.
//
//   cookie   gateway_session_PORT, with __Host- in front where it is sent over TLS only: browsers keep one
//            set of cookies for all ports of a host. HttpOnly, SameSite=Strict
//   ends     by logout; without a request for `idleMs`; after `ageMs`; when the user changes in the config.
//            A new login ends the session of the same browser, so that nobody can plant one (fixation)
//   bound    `sessionsMax` in all and `sessionsOfUserMax` of one user; the one that was not used for longest
//            makes room
//   token    a second random number, which forms and scripts of our pages send back: a page of another site
//            cannot read it

import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { Clock } from '../../../std/clock.ts'
import type { OpsUser } from './user-check.ts'

export type LoginSession = {
  readonly user: OpsUser
  /** Changes need it. */
  readonly token: string
  /** False when it has ended. Counts as use. */
  use(this: void): boolean
}

export type LoginSessions = {
  /** The session of the request; null where it has none. It counts as use. */
  of(request: IncomingMessage): LoginSession | null
  /** Ends that of the request. Gives the header `Set-Cookie`. */
  open(request: IncomingMessage, user: OpsUser): string
  /** Gives the header `Set-Cookie`, which removes the cookie. */
  end(request: IncomingMessage): string
  /** Ends the sessions of users for whom `stays` is false. */
  renew(stays: (user: OpsUser) => boolean): void
  readonly count: number
}

export type SessionOptions = { idleMs: number; ageMs: number; isSecure: boolean }

type Kept = LoginSession & { openedMs: number; usedMs: number; isClosed: boolean }

export const sessionsMax = 200
export const sessionsOfUserMax = 20
const idBytes = 32
const idPattern = /^[A-Za-z0-9_-]{43}$/

export function createLoginSessions(
  { clock }: { clock: Pick<Clock, 'monotonic'> },
  { idleMs, ageMs, isSecure }: SessionOptions,
): LoginSessions {
  /** By the digest of the id; that which was used last is last. */
  const sessions = new Map<string, Kept>()
  return {
    of(request) {
      const key = keyOf(request)
      const kept = key === null ? undefined : sessions.get(key)
      return kept?.use() === true ? kept : null
    },
    open,
    end(request) {
      endOf(request)
      return cookie(request, '', 0)
    },
    renew(stays) {
      for (const [key, kept] of sessions) if (!stays(kept.user)) close(key, kept)
    },
    get count() {
      sweep()
      return sessions.size
    },
  }

  function open(request: IncomingMessage, user: OpsUser): string {
    endOf(request)
    sweep()
    const own = [...sessions].filter(([, kept]) => kept.user.name === user.name)
    const [leastUsed] = own.length >= sessionsOfUserMax ? own : sessions.size >= sessionsMax ? sessions : []
    if (leastUsed !== undefined) close(...leastUsed)
    const id = randomBytes(idBytes).toString('base64url')
    const nowMs = clock.monotonic()
    const token = randomBytes(idBytes).toString('base64url')
    const key = digestOf(id)
    const kept = { user, token, openedMs: nowMs, usedMs: nowMs, isClosed: false, use: () => use(key, kept) }
    sessions.set(key, kept)
    return cookie(request, id, Math.floor(ageMs / 1000))
  }

  function endOf(request: IncomingMessage): void {
    const key = keyOf(request)
    const kept = key === null ? undefined : sessions.get(key)
    if (key !== null && kept !== undefined) close(key, kept)
  }

  function use(key: string, kept: Kept): boolean {
    if (kept.isClosed) return false
    if (isOver(kept)) {
      close(key, kept)
      return false
    }
    kept.usedMs = clock.monotonic()
    // The last one is that which was used last.
    sessions.delete(key)
    sessions.set(key, kept)
    return true
  }

  function close(key: string, kept: Kept): void {
    kept.isClosed = true
    sessions.delete(key)
  }

  function sweep(): void {
    for (const [key, kept] of sessions) if (isOver(kept)) close(key, kept)
  }

  function isOver({ openedMs, usedMs }: Kept): boolean {
    const nowMs = clock.monotonic()
    return nowMs - usedMs >= idleMs || nowMs - openedMs >= ageMs
  }

  function cookie(request: IncomingMessage, id: string, maxAgeS: number): string {
    const attributes = `Path=/; Max-Age=${maxAgeS}; HttpOnly; SameSite=Strict`
    return `${nameOf(request)}=${id}; ${attributes}${isSecure ? '; Secure' : ''}`
  }

  function nameOf({ socket }: IncomingMessage): string {
    return `${isSecure ? '__Host-' : ''}gateway_session_${socket.localPort ?? 0}`
  }

  /** Null where the request has no cookie of ours, or two. */
  function keyOf(request: IncomingMessage): string | null {
    const name = nameOf(request)
    const ids = (request.headers.cookie ?? '')
      .split(';')
      .map((one) => one.trim())
      .flatMap((one) => (one.startsWith(`${name}=`) ? [one.slice(name.length + 1)] : []))
    const [id] = ids
    return ids.length === 1 && id !== undefined && idPattern.test(id) ? digestOf(id) : null
  }
}

/** In a time that shows nothing of the token. */
export function isToken(session: Pick<LoginSession, 'token'>, given: string): boolean {
  const [own, other] = [session.token, given].map((text) => createHash('sha256').update(text).digest())
  return own !== undefined && other !== undefined && timingSafeEqual(own, other)
}

function digestOf(id: string): string {
  return createHash('sha256').update(id).digest('base64')
}
