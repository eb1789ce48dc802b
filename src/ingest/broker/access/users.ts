// users.ts: the users and tokens of a listener: those of the config, and those of its password file.
// Passwords and tokens are kept as hashes; a password that the config has as plain text as its SHA-256.

import { createHmac, hash, randomBytes } from 'node:crypto'
import { GatewayError, codeOf, messageOf } from '../../../std/gateway-error.ts'
import { parsePasswordFile } from '../../../std/passwords/password-file.ts'
import { parsePasswordHash, type PasswordHash } from '../../../std/passwords/passwords.ts'
import { quote } from '../../../std/quote.ts'
import type { Secret } from '../../../std/secret.ts'
import { createBoundedUtf8Reader } from '../../../std/file-system/utf8-text.ts'

export type ExpectedPassword = { kind: 'digest'; digest: Buffer } | { kind: 'hash'; hash: PasswordHash }

/** What a client proved. */
export type Proof = ExpectedPassword | { kind: 'token'; digest: Buffer }

export type Users = {
  readonly size: number
  /** There are neither users nor tokens, so that user names are not checked. */
  readonly isEmpty: boolean
  passwordOf(userName: string): ExpectedPassword | null
  /** Whether a user or a token has this name. */
  hasName(name: string): boolean
  /** The name that a token stands for; null for any other text. */
  tokenName(userName: string): string | null
  /** What proves this user or the name of a token; null where there is none. */
  proofOf(name: string): Proof | null
}

export type ReadText = (path: string) => Promise<string>

export type UsersOptions = {
  /** A password that begins with `$scrypt$` is a hash. */
  users: readonly { name: string; password: Secret }[]
  passwordFile: string | null
  tokens: readonly { name: string; token: Secret }[]
}

/** Rejects with PASSWORDS_INVALID. */
export async function loadUsers(
  { users, passwordFile, tokens }: UsersOptions,
  readText: ReadText = createBoundedUtf8Reader(),
): Promise<Users> {
  const passwords = new Map<string, ExpectedPassword>()
  for (const { name, password } of users) passwords.set(name, expectedOf(password.reveal()))
  if (passwordFile !== null)
    for (const [name, found] of await usersOf(passwordFile, new Set(passwords.keys()), readText))
      passwords.set(name, { kind: 'hash', hash: found })
  // Looked up by a keyed hash: the time of a look-up tells nothing about the tokens.
  const key = randomBytes(32)
  const digestOf = (text: string) => createHmac('sha256', key).update(text).digest('base64')
  const names = new Map(tokens.map(({ name, token }) => [digestOf(token.reveal()), name]))
  const proofs = new Map(
    tokens.map(({ name, token }): [string, Proof] => [
      name,
      { kind: 'token', digest: hash('sha256', token.reveal(), 'buffer') },
    ]),
  )
  return {
    size: passwords.size + names.size,
    isEmpty: passwordFile === null && passwords.size === 0 && names.size === 0,
    hasName: (name) => passwords.has(name) || tokens.some((one) => one.name === name),
    passwordOf: (userName) => passwords.get(userName) ?? null,
    proofOf: (name) => passwords.get(name) ?? proofs.get(name) ?? null,
    tokenName: (userName) => (names.size === 0 ? null : (names.get(digestOf(userName)) ?? null)),
  }
}

function expectedOf(password: string): ExpectedPassword {
  const found = parsePasswordHash(password)
  return found === null
    ? { kind: 'digest', digest: hash('sha256', password, 'buffer') }
    : { kind: 'hash', hash: found }
}

async function usersOf(
  path: string,
  configured: ReadonlySet<string>,
  readText: ReadText,
): Promise<ReadonlyMap<string, PasswordHash>> {
  let text: string
  try {
    text = await readText(path)
  } catch (error) {
    throw invalid(path, codeOf(error) === 'ENOENT' ? 'There is no such file.' : `${messageOf(error)}.`, error)
  }
  const { users, problems } = parsePasswordFile(text)
  const twice = [...users.keys()].filter((name) => configured.has(name))
  const lines = [
    ...problems.map(({ line, message }) => `line ${line} ${message}`),
    ...twice.slice(0, 10).map((name) => `user ${quote(name, 64)} is in the config, too`),
  ]
  if (lines.length > 0) throw invalid(path, `${lines.join('; ')}.`)
  return users
}

function invalid(path: string, why: string, cause?: unknown): GatewayError {
  return new GatewayError('PASSWORDS_INVALID', {
    what: `The password file ${path} cannot be used.`,
    why,
    act: 'Correct the file, or write it with `passwd`. The user of the daemon must be able to read it.',
    ...(cause === undefined ? {} : { cause }),
  })
}
