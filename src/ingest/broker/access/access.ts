// access.ts: decides which clients may connect, and who they are.
//
//   certificate    TLS has checked it; it suffices where `certificates` is on
//   token          the client gives it as its user name; its identity is the name of the token
//   password       of the config, or a scrypt hash of the config or the password file
//   anonymous      without any of them, where that is allowed
//
// The identity is the name that the client proved: of the token or user, else of the certificate.
//
//   access-config.ts      the config
//   password-checks.ts    checks hashes one at a time, fairly, and remembers the right ones
//   fair-queue.ts         the order of these checks
//   refusal-delays.ts     how long the answer to a wrong password waits
//   auth-failures.ts      who was refused how often
//   users.ts              the users of a listener, from config and password file
//   withdrawal.ts         which open connections new rules end
//   certificate-check.ts  whether an accepted certificate would be accepted today
//   connect-rules.ts      the rules for a CONNECT
//
// Each listener has rules of its own, or those of the broker. `load` replaces all of them at once, or keeps
// the old ones. A right password never waits for wrong ones of others. No password,
// token or unknown user name leaves this folder.

import type { Clock } from '../../../std/clock.ts'
import { createBoundedUtf8Reader } from '../../../std/file-system/utf8-text.ts'
import { hash, timingSafeEqual } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import type { Emit } from '../../../domain/event.ts'
import type { Refusal } from './connect-rules.ts'
import { createAuthFailures, type AuthFailureView } from './auth-failures.ts'
import { createPasswordChecks, type PasswordCheckCounters } from './password-checks.ts'
import { createRefusalDelays } from './refusal-delays.ts'
import { loadUsers, type ReadText, type Users, type UsersOptions } from './users.ts'
import type { AdmittedBy, Holder, NextRules } from './withdrawal.ts'

/** The rules of one listener. */
export type AccessOptions = UsersOptions & {
  /** Clients that give no user name may connect. */
  anonymous: boolean
  /** A certificate suffices. */
  certificates: boolean
}

export type PasswordOptions = {
  waitingMax: number
  rememberedMax: number
  refusalDelayMs: number
  refusalDelayMaxMs: number
}

/** What a client says in its CONNECT, and what TLS and TCP know of it. */
export type Attempt = {
  /** The number of the listener, in the order of the config. */
  listener: number
  userName: string | null
  password: Buffer | null
  certificateName: string | null
  address: string | null
  /** Its connection is closed: nobody waits for the judgement. */
  isClosed: () => boolean
}

/**
 * Admitted with the name that the client proved, and the user name that may be shown: a token stays secret.
 * CONNACK 3: try again later; 4: bad user name or password; 5: not authorized.
 */
export type Judgement = Admitted | { kind: 'refused'; refusal: Refusal }
export type Admitted = {
  kind: 'admitted'
  identity: string | null
  userName: string | null
  by: AdmittedBy
}

export type Access = {
  /** `judged` is called at once, or when the check or the delay of a refusal is over. */
  judge(attempt: Attempt, judged: (judgement: Judgement) => void): void
  /** The name of a client as it may be shown: one that is not configured may be a password or a token. */
  shownName(attempt: Pick<Attempt, 'listener' | 'userName'>): string | null
  /** Whether the rules in force admit it, too. */
  mayStay(holder: Pick<Holder, 'listener' | 'admittedBy'>): boolean
  /** Whether a listener has a user or token of this name. */
  isUser(name: string): boolean
  /**
   * Reads the password files and puts the rules in force, one for each listener. Rejects with
   * PASSWORDS_INVALID, or with what `judge` throws; the former rules are then kept.
   */
  load(listeners: readonly AccessOptions[], judge?: (next: NextRules) => void): Promise<void>
  counters(): AccessCounters
  close(): void
}

export type AccessCounters = PasswordCheckCounters & {
  refusalsDelayed: number
  authFailures: AuthFailureView
}

type Rules = { anonymous: boolean; certificates: boolean; users: Users }

export function createAccess(
  { clock, emit, readText = createBoundedUtf8Reader() }: { clock: Clock; emit: Emit; readText?: ReadText },
  options: PasswordOptions,
): Access {
  const { refusalDelayMs: delayMs, refusalDelayMaxMs: delayMaxMs } = options
  const checks = createPasswordChecks(options)
  const delays = createRefusalDelays({ clock }, { delayMs, delayMaxMs })
  const failures = createAuthFailures({ clock, emit })
  let rules: readonly Rules[] = []
  return {
    judge,
    shownName,
    mayStay: ({ listener, admittedBy }) => mayStay(rules[listener], admittedBy),
    isUser: (name) => rules.some(({ users }) => users.hasName(name)),
    load,
    counters: () => ({
      ...checks.counters(),
      refusalsDelayed: delays.waiting(),
      authFailures: failures.view(),
    }),
    close() {
      delays.close()
      failures.close()
    },
  }

  async function load(
    listeners: readonly AccessOptions[],
    judge: (next: NextRules) => void = () => undefined,
  ): Promise<void> {
    const loaded: Rules[] = []
    for (const { anonymous, certificates, ...named } of listeners)
      loaded.push({ anonymous, certificates, users: await loadUsers(named, readText) })
    const isEmptied = (index: number) => rules[index]!.users.size > 0 && loaded[index]?.users.size === 0
    judge({
      mayStay: ({ listener, admittedBy }) => mayStay(loaded[listener], admittedBy),
      emptied: [...rules.keys()].filter(isEmptied),
    })
    rules = loaded
    checks.forget()
  }

  function shownName({ listener, userName }: Pick<Attempt, 'listener' | 'userName'>): string | null {
    const users = rules[listener]?.users
    if (userName === null || users === undefined) return null
    if (users.isEmpty || users.passwordOf(userName) !== null) return userName
    return users.tokenName(userName)
  }

  function judge(attempt: Attempt, judged: (judgement: Judgement) => void): void {
    const { userName, certificateName } = attempt
    const own = rules[attempt.listener]
    if (own === undefined) {
      judged(refused(5, 'no_user_name'))
      return
    }
    const isFree = own.anonymous || (own.certificates && certificateName !== null)
    // Without users there is nothing to compare with: a name only describes the client, like a client id.
    if (userName === null || (own.users.isEmpty && isFree)) {
      const by: AdmittedBy = { kind: 'free', hasCertificate: certificateName !== null }
      judged(
        isFree ? { kind: 'admitted', identity: certificateName, userName, by } : refused(5, 'no_user_name'),
      )
      return
    }
    const tokenName = own.users.tokenName(userName)
    if (tokenName === null) judgePassword(attempt, userName, own.users, judged)
    else judged(asUser(tokenName, own.users))
  }

  function judgePassword(
    attempt: Attempt,
    userName: string,
    users: Users,
    judged: (judgement: Judgement) => void,
  ): void {
    const { address, password, isClosed } = attempt
    const attemptedMs = clock.monotonic()
    const expected = users.passwordOf(userName)
    if (expected === null || password === null) settle(false)
    else if (expected.kind === 'digest') settle(timingSafeEqual(digestOf(password), expected.digest))
    else {
      const suspect = delays.isSuspect(address, userName)
      checks.check({ address, userName, password, expected: expected.hash, suspect, isClosed }, (result) => {
        if (result === 'busy') judged(refused(3, 'passwords_busy'))
        else settle(result === 'right')
      })
    }

    function settle(isRight: boolean): void {
      if (isRight) {
        delays.admitted(address, userName)
        judged(asUser(userName, users))
        return
      }
      failures.note(address, expected === null ? null : userName)
      delays.refused({ address, userName, attemptedMs }, () => {
        if (!isClosed()) judged(refused(4, 'bad_credentials'))
      })
    }
  }
}

function asUser(name: string, users: Users): Admitted {
  return {
    kind: 'admitted',
    identity: name,
    userName: name,
    by: { kind: 'user', name, proof: users.proofOf(name)! },
  }
}

function mayStay(rules: Rules | undefined, by: AdmittedBy): boolean {
  if (rules === undefined) return false
  if (by.kind === 'user') return isDeepStrictEqual(rules.users.proofOf(by.name), by.proof)
  return rules.anonymous || (rules.certificates && by.hasCertificate)
}

function refused(returnCode: Refusal['returnCode'], reason: Refusal['reason']): Judgement {
  return { kind: 'refused', refusal: { returnCode, reason } }
}

function digestOf(value: Buffer): Buffer {
  return hash('sha256', value, 'buffer')
}
