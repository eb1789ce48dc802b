// access.ts: decides which clients may connect. Names and passwords are compared by their hashes in constant
// time. An unknown name takes as long as a wrong password, so the response time reveals nothing.

import { hash, timingSafeEqual } from 'node:crypto'
import type { Secret } from '../../../std/secret.ts'
import type { Refusal } from './connect-rules.ts'

export type AccessOptions = {
  /** Clients that give no user name may connect. */
  anonymous: boolean
  users: readonly { name: string; password: Secret }[]
}

export type Access = {
  /** Null where the client may connect. CONNACK 4: bad user name or password; 5: not authorized. */
  refusalOf(userName: string | null, password: Buffer | null): Refusal | null
}

export function createAccess(options: AccessOptions): Access {
  const users = options.users.map(({ name, password }) => ({
    name: digest(name),
    password: digest(password.reveal()),
  }))
  return { refusalOf }

  function refusalOf(userName: string | null, password: Buffer | null): Refusal | null {
    if (userName === null) return options.anonymous ? null : { returnCode: 5, reason: 'no_user_name' }
    // Without users there is nothing to compare with: a name only describes the client, like a client id.
    if (users.length === 0 && options.anonymous) return null
    const givenName = digest(userName)
    const givenPassword = digest(password ?? Buffer.alloc(0))
    let known = false
    for (const user of users) {
      const sameName = timingSafeEqual(user.name, givenName)
      const samePassword = timingSafeEqual(user.password, givenPassword)
      if (sameName && samePassword) known = true
    }
    return known ? null : { returnCode: 4, reason: 'bad_credentials' }
  }
}

function digest(value: string | Buffer): Buffer {
  return hash('sha256', value, 'buffer')
}
