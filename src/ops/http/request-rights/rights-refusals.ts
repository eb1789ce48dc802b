// rights-refusals.ts: the answers to requests that are not admitted.

import { problem, type JsonAnswer } from '../json-answer.ts'
import { loginUrl } from './login-places.ts'

const challenge = { 'www-authenticate': 'Basic realm="telemetry-gateway", charset="UTF-8"' }

const foreignAct =
  'Use the address in ops.listen, or add the name to ops.allowed_hosts. In a browser, type the address.'

export const withoutUsers = problem(403, 'NO_USERS', {
  what: 'This is not possible over TCP.',
  why: 'The config has no users (ops.users).',
  act:
    'Use the command `telemetry-gateway` on the machine of the gateway, as root or as a member of the group ' +
    'of the gateway: it uses the control socket. Or configure ops.users.',
})

export function withoutRight(right: string): JsonAnswer {
  const why = `The user does not have the right \`${right}\`.`
  return problem(403, 'RIGHT_MISSING', {
    what: 'The user may not do this.',
    why,
    act: 'Add the right in ops.users.',
  })
}

export const withoutToken = problem(403, 'TOKEN_MISSING', {
  what: 'The change is refused.',
  why: 'The request has no valid token of the login, so another site may have caused it.',
  act: 'Open the page again, and repeat the change there. A program uses HTTP Basic authentication instead.',
})

/** A browser would ask for the password itself, in place of the login page. */
export function unauthorized(why: string, isBrowser: boolean): JsonAnswer {
  const answer = problem(401, 'LOGIN_REQUIRED', {
    what: 'The request needs a user and a password.',
    why,
    act: `Send them with HTTP Basic authentication, log in at ${loginUrl}, or use the control socket.`,
  })
  return isBrowser ? answer : { ...answer, headers: challenge }
}

export const tooMany = {
  ...problem(429, 'LOGIN_BUSY', {
    what: 'Too many passwords are being checked.',
    why: 'The gateway checks a few at a time.',
    act: 'Try again in a second.',
  }),
  headers: { 'retry-after': '1' },
}

export function tooManyWrong(retryInMs: number): JsonAnswer {
  const seconds = Math.ceil(retryInMs / 1000)
  const answer = problem(429, 'LOGIN_LIMITED', {
    what: 'The password was not checked.',
    why: 'Too many wrong passwords came from this address.',
    act: `Try again in ${seconds} s.`,
  })
  return { ...answer, headers: { 'retry-after': String(seconds) } }
}

export function foreignRefused(why: string): JsonAnswer {
  return problem(403, 'ORIGIN_REFUSED', { what: 'The request is refused.', why, act: foreignAct })
}

export function otherGateway(spoolPath: string): JsonAnswer {
  return problem(421, 'OTHER_GATEWAY', {
    what: 'The request is for another gateway.',
    why: `The gateway at this socket has the spool ${spoolPath}.`,
    act: 'Nothing was changed.',
  })
}
