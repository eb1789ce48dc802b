// access.ts: who may connect. Names and passwords are compared by their hashes in constant time, and an unknown
// name costs as much as a wrong password, so that an answer's time tells nothing.

import { hash, timingSafeEqual } from 'node:crypto'
import type { Secret } from '../../std/secret.ts'

export type AccessOptions = {
  /** Clients that give no user name may connect. */
  anonymous: boolean
  users: readonly { name: string; password: Secret }[]
}

export type AccessDecision =
  | { kind: 'admitted' }
  /** CONNACK 4: bad user name or password; 5: not authorized. */
  | { kind: 'refused'; returnCode: 4 | 5; reason: string }

export type Access = {
  check(userName: string | null, password: Buffer | null): AccessDecision
}

export function createAccess(options: AccessOptions): Access {
  const users = options.users.map(({ name, password }) => ({
    name: digest(name),
    password: digest(password.reveal()),
  }))

  function judge(userName: string | null, password: Buffer | null): AccessDecision {
    if (userName === null) {
      if (options.anonymous) return { kind: 'admitted' }
      return { kind: 'refused', returnCode: 5, reason: 'it gave no user name and anonymous access is off' }
    }
    // Nobody to compare with: a name is then what a client calls itself, no more than a client id.
    if (users.length === 0 && options.anonymous) return { kind: 'admitted' }
    const givenName = digest(userName)
    const givenPassword = digest(password ?? Buffer.alloc(0))
    let known = false
    for (const user of users) {
      const sameName = timingSafeEqual(user.name, givenName)
      const samePassword = timingSafeEqual(user.password, givenPassword)
      if (sameName && samePassword) known = true
    }
    if (known) return { kind: 'admitted' }
    return { kind: 'refused', returnCode: 4, reason: 'its user name or password is wrong' }
  }

  return { check: judge }
}

function digest(value: string | Buffer): Buffer {
  return hash('sha256', value, 'buffer')
}
