// request-rights.ts: who may do what over HTTP.
//
//   control socket   the permissions of the file decide; who can connect may do everything. The names that
//                    the client sends are claims: the kernel tells Node nothing about the peer
//   TCP              no request of a web page of another site (request-origin.ts). /healthz and /readyz need
//                    no user. Reading needs the right `read` where there are users, unless
//                    ops.anonymous_read. The paths below /control need a user: `show` and `export` with
//                    `read`, the others with `change`. Without users nothing can be changed
//
// A user is who sends a password with the request (HTTP Basic), or who has logged in with a browser
// (login-sessions.ts). What a browser sends by itself is no proof that a person wanted it, so each POST of a
// session also needs the token of the session: in the header `gateway-token`, or in the field `token` of a
// form, which http-routing checks. A browser without a session is sent to the login page.
//
// Refusals are counted by reason, and reported once a minute for each.

import type { IncomingMessage } from 'node:http'
import { assertNever } from '../../../std/assert.ts'
import type { Clock } from '../../../std/clock.ts'
import type { Emit } from '../../../domain/event.ts'
import type { OpsConfig } from '../../config.ts'
import type { Caller } from '../../types.ts'
import { prefersHtml } from '../accepted-type.ts'
import type { JsonAnswer, TextAnswer } from '../json-answer.ts'
import { createLoginSessions, isToken, type LoginSession } from './login-sessions.ts'
import { goOn, loginPlace } from './login-places.ts'
import { foreignIn, isForeignLink } from './request-origin.ts'
import {
  foreignRefused,
  otherGateway,
  tooMany,
  tooManyWrong,
  unauthorized,
  withoutRight,
  withoutToken,
  withoutUsers,
} from './rights-refusals.ts'
import { basicCredentials, createUserCheck, isSameUser, type OpsUser, type UserCheck } from './user-check.ts'
import { createWrongPasswords } from './wrong-passwords.ts'

/** `open`: for probes. */
export type Right = 'open' | 'read' | 'show' | 'change'

/** Who asks, and what he may. */
export type Access = {
  /** Null: nobody is named. */
  user: string | null
  mayRead: boolean
  mayChange: boolean
  /** The config has users. */
  hasUsers: boolean
  /** Of a session: forms and scripts of our pages send it with each POST. Null without a session. */
  token: string | null
  /** False when the session has ended. For answers that go on: it counts as use of the session. */
  isOpen(): boolean
}

export type Admitted =
  { kind: 'admitted'; caller: Caller; access: Access } | { kind: 'refused'; answer: JsonAnswer | TextAnswer }

/** What a route says of itself. */
export type Wanted = {
  right: Right
  /** A page for browsers: links of other sites may open it. */
  isPage: boolean
  /** A form, whose token http-routing checks. */
  isForm: boolean
}

type Login = { name: string; password: string }

export type RequestRights = {
  /** Of a request on TCP. */
  admit(request: IncomingMessage, wanted: Wanted): Promise<Admitted>
  /** The user of a right password, and the headers of the answer; or why not. */
  login(request: IncomingMessage, login: Login): Promise<LoginResult>
  /** The answer to a form without the token of its session. */
  refuseForm(request: IncomingMessage, access: Access): JsonAnswer
  /** Gives the header `Set-Cookie`. */
  logout(request: IncomingMessage): string
  readonly sessions: number
  /** Of a request on the control socket; refused where it is meant for another gateway. */
  admitOnSocket(request: IncomingMessage): Admitted
  /** Puts other users in force; passwords that were right are forgotten. Sessions of changed users end. */
  renew(users: OpsConfig['users']): void
  refusals(): ReadonlyMap<RefusalReason, number>
}

export type LoginResult =
  | { kind: 'open'; user: string; setCookie: string }
  | { kind: 'failed'; why: 'wrong' | 'busy' | 'limited' | 'no_users' }

const reasons = [
  'host',
  'cross_site',
  'malformed',
  'no_users',
  'no_user',
  'bad_password',
  'right',
  'busy',
  'limited',
  'no_token',
] as const
type RefusalReason = (typeof reasons)[number]

type Deps = { clock: Clock; emit: Emit }
type Options = Pick<OpsConfig, 'allowed_hosts' | 'users' | 'anonymous_read' | 'listen' | 'login' | 'tls'> & {
  /** The client may name the spool that it means. */
  spoolPath: string
}

const reportEveryMs = 60_000
const nameLengthMax = 100

export function createRequestRights({ clock, emit }: Deps, options: Options): RequestRights {
  let { users } = options
  const allowedHosts = new Set(
    [options.listen.host, ...options.allowed_hosts].map((host) => host.toLowerCase()),
  )
  const limits = createWrongPasswords()
  let checkUser = createUserCheck({ clock, limits }, users)
  const sessions = createLoginSessions(
    { clock },
    {
      idleMs: options.login.idle,
      ageMs: options.login.max_age,
      isSecure: options.tls !== undefined || options.login.secure_cookie,
    },
  )
  const counts = new Map<RefusalReason, number>(reasons.map((reason) => [reason, 0]))
  const reports = new Map<RefusalReason, { atMs: number; count: number }>()
  return {
    admit,
    admitOnSocket,
    login,
    refuseForm(request, { user }) {
      refuse(request, 'no_token', withoutToken, user)
      return withoutToken
    },
    logout: sessions.end,
    get sessions() {
      return sessions.count
    },
    renew,
    refusals: () => counts,
  }

  function renew(next: OpsConfig['users']): void {
    const same = new Set(
      users.filter((user) => next.some((one) => isSameUser(user, one))).map(({ name }) => name),
    )
    users = next
    checkUser = createUserCheck({ clock, limits }, next)
    sessions.renew(({ name }) => same.has(name))
  }

  async function admit(request: IncomingMessage, wanted: Wanted): Promise<Admitted> {
    const { right } = wanted
    const address = addressOf(request)
    const foreign = foreignIn(request, { allowedHosts, isProbe: right === 'open', isPage: wanted.isPage })
    if (foreign !== null) {
      const { reason, why } = foreign
      return refuse(request, reason, foreignRefused(why))
    }
    const anonymousRead = options.anonymous_read ?? users.length === 0
    const isOpen = right === 'open' || (right === 'read' && anonymousRead)
    const { authorization } = request.headers
    const anyone = () => admitted(null, { address, session: null, anonymousRead })
    if (users.length === 0) return isOpen ? anyone() : refuse(request, 'no_users', withoutUsers)
    if (authorization === undefined) {
      const session = sessions.of(request)
      if (session !== null) return admitSession(request, session, { wanted, isOpen, anonymousRead })
      if (isOpen) return anyone()
      // What the browser sends here is without the cookie of the session.
      if (wanted.isPage && isForeignLink(request))
        return { kind: 'refused', answer: goOn(request.url ?? '/') }
    }
    const checked: UserCheck = await checkUser(basicCredentials(authorization), address)
    if (checked.kind === 'user') {
      const { user } = checked
      const needed = right === 'change' ? 'change' : 'read'
      if (!isOpen && !user.rights.has(needed))
        return refuse(request, 'right', withoutRight(needed), user.name)
      return admitted(user, { address, session: null, anonymousRead })
    }
    return isOpen ? anyone() : refuseUser(request, checked)
  }

  function admitSession(
    request: IncomingMessage,
    session: LoginSession,
    { wanted, isOpen, anonymousRead }: { wanted: Wanted; isOpen: boolean; anonymousRead: boolean },
  ): Admitted {
    const { user } = session
    const needed = wanted.right === 'change' ? 'change' : 'read'
    if (!isOpen && !user.rights.has(needed)) return refuse(request, 'right', withoutRight(needed), user.name)
    const token = request.headers['gateway-token']
    const needsToken = request.method === 'POST' && !wanted.isForm
    if (needsToken && !(typeof token === 'string' && isToken(session, token)))
      return refuse(request, 'no_token', withoutToken, user.name)
    return admitted(user, { address: addressOf(request), session, anonymousRead })
  }

  function admitted(
    user: OpsUser | null,
    of: { address: string; session: LoginSession | null; anonymousRead: boolean },
  ): Admitted {
    const { address, session, anonymousRead } = of
    return {
      kind: 'admitted',
      caller: { via: 'tcp', user: user?.name ?? null, address },
      access: {
        user: user?.name ?? null,
        mayRead: anonymousRead || user?.rights.has('read') === true,
        mayChange: user?.rights.has('change') === true,
        hasUsers: users.length > 0,
        token: session?.token ?? null,
        isOpen: () => session?.use() ?? true,
      },
    }
  }

  function refuseUser(request: IncomingMessage, checked: Exclude<UserCheck, { kind: 'user' }>): Admitted {
    const isBrowser = request.headers['sec-fetch-site'] !== undefined
    switch (checked.kind) {
      case 'busy':
        return refuse(request, 'busy', tooMany)
      case 'limited':
        return refuse(request, 'limited', tooManyWrong(checked.retryInMs), checked.name)
      case 'wrong':
        return refuse(
          request,
          'bad_password',
          unauthorized('The user or the password is wrong.', isBrowser),
          checked.name,
        )
      case 'none':
        if (request.method === 'GET' && prefersHtml(request.headers.accept))
          return { kind: 'refused', answer: loginPlace(request.url ?? '/') }
        return refuse(request, 'no_user', unauthorized('The request names no user.', isBrowser))
      default:
        return assertNever(checked)
    }
  }

  async function login(request: IncomingMessage, { name, password }: Login): Promise<LoginResult> {
    if (users.length === 0) return { kind: 'failed', why: 'no_users' }
    const checked = await checkUser({ name, password: Buffer.from(password) }, addressOf(request))
    if (checked.kind === 'user')
      return { kind: 'open', user: name, setCookie: sessions.open(request, checked.user) }
    if (checked.kind !== 'none') refuseUser(request, checked)
    return { kind: 'failed', why: checked.kind === 'none' ? 'wrong' : checked.kind }
  }

  function refuse(
    request: IncomingMessage,
    reason: RefusalReason,
    answer: JsonAnswer,
    user: string | null = null,
  ): Admitted {
    report(reason, { address: addressOf(request), user, path: (request.url ?? '').split('?', 1)[0] ?? '' })
    return { kind: 'refused', answer }
  }

  function report(reason: RefusalReason, of: { address: string; user: string | null; path: string }): void {
    counts.set(reason, (counts.get(reason) ?? 0) + 1)
    const since = reports.get(reason) ?? { atMs: -Infinity, count: 0 }
    since.count += 1
    reports.set(reason, since)
    if (clock.monotonic() - since.atMs < reportEveryMs) return
    emit({ kind: 'request_refused', reason, count: since.count, ...of })
    reports.set(reason, { atMs: clock.monotonic(), count: 0 })
  }

  function admitOnSocket({ headers }: IncomingMessage): Admitted {
    const meant = claimIn(headers['gateway-spool'], 4096)
    if (meant !== null && meant !== options.spoolPath)
      return { kind: 'refused', answer: otherGateway(options.spoolPath) }
    const user = claimIn(headers['gateway-user'], nameLengthMax)
    const sudoUser = claimIn(headers['gateway-sudo-user'], nameLengthMax)
    return { kind: 'admitted', caller: { via: 'socket', user, sudoUser }, access: accessOnSocket(user) }
  }
}

/** A text that the client says of itself, percent-encoded. */
function claimIn(header: string | string[] | undefined, lengthMax: number): string | null {
  if (typeof header !== 'string') return null
  try {
    return decodeURIComponent(header).slice(0, lengthMax)
  } catch (error) {
    if (!(error instanceof URIError)) throw error
    return header.slice(0, lengthMax)
  }
}

/** Who can open the file of the socket may do everything. */
function accessOnSocket(user: string | null): Access {
  return { user, mayRead: true, mayChange: true, hasUsers: false, token: null, isOpen: () => true }
}

function addressOf({ socket }: IncomingMessage): string {
  return socket.remoteAddress?.replace(/^::ffff:/, '') ?? ''
}
