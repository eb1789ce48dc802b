// access-config.ts: the sections `access`, `passwords` and `listeners[].access` of `ingest.broker`: which
// clients may connect, and how their passwords are checked.

import { z } from 'zod'
import { duration, filePath, secret } from '../../../std/schema.ts'
import { parsePasswordHash } from '../../../std/passwords/passwords.ts'
import type { AccessOptions, PasswordOptions } from './access.ts'

/** A shorter token could be found by trying. */
const tokenLengthMin = 16

export const accessSchema = z
  .strictObject({
    anonymous: z
      .boolean()
      .default(false)
      .describe(
        'Whether clients without a user name may connect. If false, they are refused with CONNACK 5. If ' +
          'true and no users and tokens are configured, user names are not checked.',
      ),
    anonymous_beyond_loopback: z
      .boolean()
      .default(false)
      .describe(
        'Confirms that `anonymous: true` is intended on a listener that other machines reach. Everybody who ' +
          'reaches the port may then publish for every device.',
      ),
    certificates: z
      .boolean()
      .default(false)
      .describe(
        'Whether a client certificate suffices to connect, without a user name. Needs `tls.client_ca`. If ' +
          'false, a client needs a user name and password besides its certificate, unless `anonymous` is true.',
      ),
    users: z
      .array(
        z.strictObject({
          name: z.string().min(1).describe('User name of the client.'),
          password: secret()
            .refine((password) => !isBrokenHash(password.reveal()), {
              error: 'must be a password, or a hash that `passwd` wrote: $scrypt$ln=..,r=8,p=1$..$..',
            })
            .describe('Password of the client, or its hash as `passwd` writes it (`$scrypt$...`).'),
        }),
      )
      .default([])
      .describe(
        'User names and passwords of clients. A client with another user name is refused with CONNACK 4.',
      ),
    password_file: filePath()
      .optional()
      .describe(
        'File with further users, one line `USER:HASH` each. `passwd` writes it. A change is put in force ' +
          'within seconds; connections of users that are not in it any more are closed.',
      ),
    tokens: z
      .array(
        z.strictObject({
          name: z
            .string()
            .min(1)
            .describe('Name that the token stands for. It is the identity of the client.'),
          token: secret()
            .refine((token) => token.reveal().length >= tokenLengthMin, {
              error: `must have at least ${tokenLengthMin} characters`,
            })
            .describe(`The token, at least ${tokenLengthMin} characters.`),
        }),
      )
      .default([])
      .describe(
        'Static tokens: a client that gives one as its user name may connect; its password is ignored. Log, ' +
          'mapping and messages get the name, never the token.',
      ),
  })
  .superRefine(({ users, tokens }, context) => {
    unique(
      context,
      ['users', 'name'],
      users.map(({ name }) => name),
    )
    unique(
      context,
      ['tokens', 'name'],
      tokens.map(({ name }) => name),
    )
    const texts = tokens.map(({ token }) => token.reveal())
    texts.forEach((text, index) => {
      if (texts.indexOf(text) < index)
        context.addIssue({ code: 'custom', path: ['tokens', index, 'token'], message: 'must be unique' })
    })
  })

export const passwordsSchema = z
  .strictObject({
    max_waiting: z
      .int()
      .min(1)
      .max(100_000)
      .default(10_000)
      .describe(
        'Passwords that wait to be checked. One is checked at a time, in turn by address and user. At the ' +
          'limit, the last one of the address that has most is refused with CONNACK 3; that client tries again.',
      ),
    max_remembered: z
      .int()
      .min(0)
      .max(1_000_000)
      .default(100_000)
      .describe(
        'Passwords that were right, so that a client that connects again does not wait. In memory only, as a ' +
          'keyed hash; some 100 bytes each. At the limit the one that was used longest ago is forgotten.',
      ),
    refusal_delay: duration({ minMs: 0, maxMs: 60_000 })
      .prefault('1s')
      .describe(
        'How long the answer to a wrong password waits. Doubled for each further one of the same address and ' +
          'user, up to max_refusal_delay. Others do not wait.',
      ),
    max_refusal_delay: duration({ minMs: 0, maxMs: 60_000 }).prefault('10s').describe('Longest such wait.'),
  })
  .prefault({})

export type AccessConfig = z.output<typeof accessSchema>

export function accessOptions(config: AccessConfig): AccessOptions {
  const { anonymous, certificates, users, tokens, password_file } = config
  return { anonymous, certificates, users, tokens, passwordFile: password_file ?? null }
}

export function passwordOptions(config: z.output<typeof passwordsSchema>): PasswordOptions {
  return {
    waitingMax: config.max_waiting,
    rememberedMax: config.max_remembered,
    refusalDelayMs: config.refusal_delay,
    refusalDelayMaxMs: config.max_refusal_delay,
  }
}

/** Whether nobody could connect with these rules. */
export function admitsNobody({
  anonymous,
  certificates,
  users,
  tokens,
  password_file,
}: AccessConfig): boolean {
  const named = users.length > 0 || tokens.length > 0 || password_file !== undefined
  return !anonymous && !certificates && !named
}

function isBrokenHash(text: string): boolean {
  return text.startsWith('$scrypt$') && parsePasswordHash(text) === null
}

function unique(context: z.RefinementCtx, [list, key]: [string, string], names: readonly string[]): void {
  names.forEach((name, index) => {
    if (names.indexOf(name) < index)
      context.addIssue({
        code: 'custom',
        path: [list, index, key],
        message: `must be unique, found "${name}" twice`,
      })
  })
}
