// request-rights.ts: who may do what over HTTP.
//
//   control socket   the permissions of the file decide; who can connect may do everything. The names that
//                    the client sends are claims: the kernel tells Node nothing about the peer
//   TCP              no request of a web page (request-origin.ts). /healthz and /readyz need no user. Reading
//                    needs the right `read` where there are users, unless ops.anonymous_read. The paths below
//                    /control need a user: `show` and `export` with `read`, the others with `change`. Without
//                    users nothing can be changed
//
// Refusals are counted by reason, and reported once a minute for each.

import type { IncomingMessage } from 'node:http'
import type { Clock } from '../../../std/clock.ts'
import type { Emit } from '../../../domain/event.ts'
import type { OpsConfig } from '../../config.ts'
import type { Caller } from '../../types.ts'
import { problem, type JsonAnswer } from '../json-answer.ts'
import { foreignIn } from './request-origin.ts'
import { createUserCheck } from './user-check.ts'

/** `open`: for probes. */
export type Right = 'open' | 'read' | 'show' | 'change'

export type Admitted = { kind: 'admitted'; caller: Caller } | { kind: 'refused'; answer: JsonAnswer }

export type RequestRights = {
  /** Of a request on TCP. */
  admit(request: IncomingMessage, right: Right): Promise<Admitted>
  /** Of a request on the control socket; refused where it is meant for another gateway. */
  admitOnSocket(request: IncomingMessage): Admitted
  /** Puts other users in force; passwords that were right are forgotten. */
  renew(users: OpsConfig['users']): void
  refusals(): ReadonlyMap<RefusalReason, number>
}

const reasons = [
  'host',
  'cross_site',
  'malformed',
  'no_users',
  'no_user',
  'bad_password',
  'right',
  'busy',
] as const
type RefusalReason = (typeof reasons)[number]

type Deps = { clock: Clock; emit: Emit }
type Options = Pick<OpsConfig, 'allowed_hosts' | 'users' | 'anonymous_read' | 'listen'> & {
  /** The client may name the spool that it means. */
  spoolPath: string
}

const reportEveryMs = 60_000
const nameLengthMax = 100
const act = 'Nothing was changed.'
const challenge = { 'www-authenticate': 'Basic realm="telemetry-gateway", charset="UTF-8"' }

export function createRequestRights({ clock, emit }: Deps, options: Options): RequestRights {
  let { users } = options
  const allowedHosts = new Set(
    [options.listen.host, ...options.allowed_hosts].map((host) => host.toLowerCase()),
  )
  let checkUser = createUserCheck(users)
  const counts = new Map<RefusalReason, number>(reasons.map((reason) => [reason, 0]))
  const reports = new Map<RefusalReason, { atMs: number; count: number }>()
  return { admit, admitOnSocket, renew, refusals: () => counts }

  function renew(next: OpsConfig['users']): void {
    users = next
    checkUser = createUserCheck(next)
  }

  async function admit(request: IncomingMessage, right: Right): Promise<Admitted> {
    const address = request.socket.remoteAddress?.replace(/^::ffff:/, '') ?? ''
    const refuse = (reason: RefusalReason, answer: JsonAnswer, user: string | null = null): Admitted => {
      report(reason, { address, user, path: (request.url ?? '').split('?', 1)[0] ?? '' })
      return { kind: 'refused', answer }
    }
    const foreign = foreignIn(request, allowedHosts)
    if (foreign !== null) {
      const { reason, why } = foreign
      return refuse(reason, problem(403, { what: 'The request is refused.', why, act: foreignAct }))
    }
    const anonymousRead = options.anonymous_read ?? users.length === 0
    const isOpen = right === 'open' || (right === 'read' && anonymousRead)
    if (isOpen && request.headers.authorization === undefined)
      return { kind: 'admitted', caller: { via: 'tcp', user: null, address } }
    if (users.length === 0) {
      if (isOpen) return { kind: 'admitted', caller: { via: 'tcp', user: null, address } }
      return refuse('no_users', withoutUsers)
    }
    const checked = await checkUser(request.headers.authorization, address)
    if (checked.kind === 'user') {
      const { user } = checked
      const needed = right === 'change' ? 'change' : 'read'
      if (!isOpen && !user.rights.has(needed)) return refuse('right', withoutRight(needed), user.name)
      return { kind: 'admitted', caller: { via: 'tcp', user: user.name, address } }
    }
    if (isOpen) return { kind: 'admitted', caller: { via: 'tcp', user: null, address } }
    if (checked.kind === 'busy') return refuse('busy', tooMany)
    if (checked.kind === 'none') return refuse('no_user', unauthorized('The request names no user.'))
    return refuse('bad_password', unauthorized('The user or the password is wrong.'), checked.name)
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
    if (meant !== null && meant !== options.spoolPath) {
      const what = 'The request is for another gateway.'
      const why = `The gateway at this socket has the spool ${options.spoolPath}.`
      return { kind: 'refused', answer: problem(421, { what, why, act }) }
    }
    const user = claimIn(headers['gateway-user'], nameLengthMax)
    const sudoUser = claimIn(headers['gateway-sudo-user'], nameLengthMax)
    return { kind: 'admitted', caller: { via: 'socket', user, sudoUser } }
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

const foreignAct =
  'Use the address in ops.listen, or add the name to ops.allowed_hosts. In a browser, type the address.'

const withoutUsers = problem(403, {
  what: 'This is not possible over TCP.',
  why: 'The config has no users (ops.users).',
  act:
    'Use the command `telemetry-gateway` on the machine of the gateway, as root or as a member of the group ' +
    'of the gateway: it uses the control socket. Or configure ops.users.',
})

function withoutRight(right: string): JsonAnswer {
  const why = `The user does not have the right \`${right}\`.`
  return problem(403, { what: 'The user may not do this.', why, act: 'Add the right in ops.users.' })
}

function unauthorized(why: string): JsonAnswer {
  const answer = problem(401, {
    what: 'The request needs a user and a password.',
    why,
    act: 'Send them with HTTP Basic authentication, or use the control socket.',
  })
  return { ...answer, headers: challenge }
}

const tooMany = {
  ...problem(429, {
    what: 'Too many passwords are being checked.',
    why: 'The gateway checks a few at a time.',
    act: 'Try again in a second.',
  }),
  headers: { 'retry-after': '1' },
}
