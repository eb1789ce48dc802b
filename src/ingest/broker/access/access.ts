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

/** What a client says in its CONNECT, and what TLS and TCP know of it. */
export type Attempt = {
  userName: string | null
  password: Buffer | null
  certificateName: string | null
  address: string | null
}

/** Admitted with the name that the client proved. CONNACK 4: bad user name or password; 5: not authorized. */
export type Judgement = { kind: 'admitted'; identity: string | null } | { kind: 'refused'; refusal: Refusal }

export type Access = {
  judge(attempt: Attempt, judged: (judgement: Judgement) => void): void
}

export function createAccess(options: AccessOptions): Access {
  const users = options.users.map(({ name, password }) => ({
    name: digest(name),
    password: digest(password.reveal()),
  }))
  return { judge: (attempt, judged) => judged(judgementOf(attempt)) }

  function judgementOf({ userName, password, certificateName }: Attempt): Judgement {
    if (userName === null)
      return options.anonymous
        ? { kind: 'admitted', identity: certificateName }
        : { kind: 'refused', refusal: { returnCode: 5, reason: 'no_user_name' } }
    // Without users there is nothing to compare with: a name only describes the client, like a client id.
    if (users.length === 0 && options.anonymous) return { kind: 'admitted', identity: certificateName }
    const givenName = digest(userName)
    const givenPassword = digest(password ?? Buffer.alloc(0))
    let known = false
    for (const user of users) {
      const sameName = timingSafeEqual(user.name, givenName)
      const samePassword = timingSafeEqual(user.password, givenPassword)
      if (sameName && samePassword) known = true
    }
    return known
      ? { kind: 'admitted', identity: userName }
      : { kind: 'refused', refusal: { returnCode: 4, reason: 'bad_credentials' } }
  }
}

function digest(value: string | Buffer): Buffer {
  return hash('sha256', value, 'buffer')
}
