// user-check.ts: the passwords of the users in ops.users: by HTTP Basic authentication, or by the login page.
//
// A check takes tens of milliseconds of a core and shares its threads with the spool, so it is not repeated:
// what was right stays known, as an HMAC under a key of this process. At most `checksMax` checks wait, and
// at most `checksOfAddressMax` of one address; the request beyond is answered 429. Wrong passwords are
// answered later and later, by address and user; a right one never is. A user of an address that gave many
// wrong ones waits for the next check: wrong-passwords.ts.

import { createHmac, randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Clock } from '../../../std/clock.ts'
import { verifyPassword, type PasswordHash } from '../../../std/passwords/passwords.ts'
import { passwordHashOf, type OpsConfig } from '../../config.ts'
import type { WrongPasswords } from './wrong-passwords.ts'

export type OpsUser = { name: string; rights: ReadonlySet<'read' | 'change'> }

export type UserCheck =
  | { kind: 'user'; user: OpsUser }
  | { kind: 'none' }
  | { kind: 'wrong'; name: string }
  /** Too many at once. */
  | { kind: 'busy' }
  /** Too many wrong ones of this address. */
  | { kind: 'limited'; name: string; retryInMs: number }

const checksMax = 8
const checksOfAddressMax = 2
const knownMax = 256
/** Address and user with a wrong password. The oldest is forgotten. */
const failuresMax = 1000
const failureKeptMs = 15 * 60_000
const delayMs = { first: 100, most: 5000 }
/** Refusals that wait. Beyond, they are sent at once: a delay must not collect connections. */
const delayedMax = 16

type Listed = OpsUser & { hash: PasswordHash }
type Failure = { count: number; atMs: number }

export type Credentials = { name: string; password: Buffer }

export type CheckUser = (given: Credentials | null, address: string) => Promise<UserCheck>

export function createUserCheck(
  { clock, limits }: { clock: Pick<Clock, 'monotonic'>; limits: WrongPasswords },
  users: OpsConfig['users'],
): CheckUser {
  const listed = new Map<string, Listed>()
  for (const user of users) {
    const { name, rights } = user
    const hash = passwordHashOf(user)
    if (hash !== null) listed.set(name, { name, rights: new Set(rights), hash })
  }
  /** Checked for names that do not exist, so that the time does not show which do. */
  const [anyone] = listed.values()
  const key = randomBytes(32)
  const known = new Set<string>()
  const failures = new Map<string, Failure>()
  const waiting = new Map<string, number>()
  let checks = 0
  let delayed = 0
  return check

  async function check(given: Credentials | null, address: string): Promise<UserCheck> {
    if (given === null || anyone === undefined) return { kind: 'none' }
    const { name, password } = given
    const user = listed.get(name)
    const digest = createHmac('sha256', key)
      .update(`${Buffer.byteLength(name)}:${name}`)
      .update(password)
      .digest('base64')
    if (user !== undefined && known.has(digest)) return { kind: 'user', user }
    const retryInMs = limits.waitMs({ address, name }, clock.monotonic())
    if (retryInMs > 0) return { kind: 'limited', name, retryInMs }
    const ofAddress = waiting.get(address) ?? 0
    if (checks >= checksMax || ofAddress >= checksOfAddressMax) return { kind: 'busy' }
    checks += 1
    waiting.set(address, ofAddress + 1)
    let isRight = false
    try {
      isRight = (await verifyPassword(password, (user ?? anyone).hash)) && user !== undefined
    } finally {
      checks -= 1
      const left = (waiting.get(address) ?? 1) - 1
      if (left > 0) waiting.set(address, left)
      else waiting.delete(address)
    }
    if (isRight && user !== undefined) {
      if (known.size >= knownMax) known.clear()
      known.add(digest)
      failures.delete(`${address} ${name}`)
      return { kind: 'user', user }
    }
    limits.note({ address, name }, clock.monotonic())
    await delayAfter(`${address} ${name.slice(0, 64)}`)
    return { kind: 'wrong', name }
  }

  async function delayAfter(who: string): Promise<void> {
    const now = performance.now()
    const before = failures.get(who)
    const count = before !== undefined && now - before.atMs < failureKeptMs ? before.count + 1 : 1
    failures.delete(who)
    failures.set(who, { count, atMs: now })
    const [oldest] = failures.keys()
    if (failures.size > failuresMax && oldest !== undefined) failures.delete(oldest)
    if (delayed >= delayedMax) return
    delayed += 1
    await sleep(Math.min(delayMs.most, delayMs.first * 2 ** Math.min(count - 1, 10)), undefined, {
      ref: false,
    })
    delayed -= 1
  }
}

export function basicCredentials(header: string | undefined): Credentials | null {
  const text = /^Basic +([A-Za-z0-9+/=]{1,2048})$/i.exec(header ?? '')?.[1]
  if (text === undefined) return null
  const bytes = Buffer.from(text, 'base64')
  const colon = bytes.indexOf(0x3a)
  if (colon < 0) return null
  return { name: bytes.subarray(0, colon).toString('utf8'), password: bytes.subarray(colon + 1) }
}

/** A session of the one stays valid for the other. */
export function isSameUser(a: OpsConfig['users'][number], b: OpsConfig['users'][number]): boolean {
  return (
    a.name === b.name &&
    a.rights.length === b.rights.length &&
    a.rights.every((right) => b.rights.includes(right)) &&
    hashTextOf(a) === hashTextOf(b)
  )
}

function hashTextOf(user: OpsConfig['users'][number]): string {
  const { salt, hash } = passwordHashOf(user) ?? { salt: null, hash: null }
  return `${salt?.toString('hex')} ${hash?.toString('hex')}`
}
