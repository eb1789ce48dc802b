// credentials.ts: the keys that sign, from where the config says.
//
// Remembered, so that a submission waits for nothing; refreshed five minutes before they expire, in time for
// one that starts now. A file of our own is looked at again when it changed (size, time or inode), at most
// every few seconds. While a refresh fails the old ones go on to serve: they may well still be good, and when
// they are not the service says 403, which is handled. reread() forgets nothing and asks the source itself.

import { readFile, stat } from 'node:fs/promises'
import { assertNever } from '../std/assert.ts'
import type { Clock, EpochMs } from '../std/clock.ts'
import { GatewayError, messageOf } from '../std/fault.ts'
import type { CredentialsOptions } from './options.ts'

export type Credentials = {
  accessKeyId: string
  secretAccessKey: string
  sessionToken?: string
  expiration?: Date
}

export type CredentialsSource = {
  /** Rejects with GatewayError CREDENTIALS_MISSING. The same object as long as they are the same. */
  current(): Promise<Credentials>
  /** Asks the source again, whatever is remembered. */
  reread(): Promise<Credentials>
}

type Deps = { clock: Clock; env: NodeJS.ProcessEnv }

/** Before they expire by this much, credentials are refreshed. */
const refreshBeforeMs = 300_000
/** A file, or a source whose refresh failed, is looked at no more often than this. */
const lookAgainMs = 5000

export function createCredentials({ clock, env }: Deps, options: CredentialsOptions): CredentialsSource {
  const read = readerOf(env, options)
  let known: { credentials: Credentials; mark: string } | null = null
  let lookedAt = Number.NEGATIVE_INFINITY
  let reading: Promise<Credentials> | null = null

  return { current, reread: () => once(true) }

  async function current(): Promise<Credentials> {
    if (known === null || isPast(known.credentials.expiration, clock.now()) || isDue(known.credentials))
      return once(false)
    return known.credentials
  }

  function isDue({ expiration }: Credentials): boolean {
    const expires = expiration !== undefined && expiration.getTime() - refreshBeforeMs <= clock.now()
    return (expires || options.source === 'file') && clock.monotonic() - lookedAt >= lookAgainMs
  }

  /** Everyone who asks meanwhile gets the same answer: four submissions must not be four calls. */
  function once(force: boolean): Promise<Credentials> {
    reading ??= refresh(force).finally(() => {
      reading = null
    })
    return reading
  }

  async function refresh(force: boolean): Promise<Credentials> {
    lookedAt = clock.monotonic()
    try {
      const mark = options.source === 'file' ? await markOf(options.path) : ''
      const unchanged = known !== null && options.source === 'file' && mark === known.mark
      if (known !== null && unchanged && !force && !isPast(known.credentials.expiration, clock.now()))
        return known.credentials
      const found = await read(force)
      if (isPast(found.expiration, clock.now())) throw new Error('the credentials have expired')
      const same = known !== null && sameKeys(known.credentials, found)
      known = { credentials: same && known !== null ? known.credentials : found, mark }
    } catch (error) {
      if (known === null) throw missing(options, error)
      if (isPast(known.credentials.expiration, clock.now())) throw missing(options, error)
    }
    return known.credentials
  }
}

function isPast(expiration: Date | undefined, now: EpochMs): boolean {
  return expiration !== undefined && expiration.getTime() <= now
}

function sameKeys(one: Credentials, other: Credentials): boolean {
  return (
    one.accessKeyId === other.accessKeyId &&
    one.secretAccessKey === other.secretAccessKey &&
    one.sessionToken === other.sessionToken &&
    one.expiration?.getTime() === other.expiration?.getTime()
  )
}

function readerOf(
  env: NodeJS.ProcessEnv,
  options: CredentialsOptions,
): (force: boolean) => Promise<Credentials> {
  switch (options.source) {
    case 'environment':
      return () => Promise.resolve(fromEnvironment(env))
    case 'chain':
      return chainReader(options.profile)
    case 'file':
      return () => fromFile(options.path)
    case 'keys':
      return () => {
        const { accessKeyId, secretAccessKey, sessionToken } = options
        return Promise.resolve(asCredentials(accessKeyId, secretAccessKey.reveal(), sessionToken?.reveal()))
      }
    default:
      return assertNever(options)
  }
}

function fromEnvironment(env: NodeJS.ProcessEnv): Credentials {
  const accessKeyId = env['AWS_ACCESS_KEY_ID']
  const secretAccessKey = env['AWS_SECRET_ACCESS_KEY']
  if (!accessKeyId) throw new Error('AWS_ACCESS_KEY_ID is not set')
  if (!secretAccessKey) throw new Error('AWS_SECRET_ACCESS_KEY is not set')
  return asCredentials(accessKeyId, secretAccessKey, env['AWS_SESSION_TOKEN'])
}

function chainReader(profile: string | null): (force: boolean) => Promise<Credentials> {
  let chain: ((options: { forceRefresh: boolean }) => Promise<Credentials>) | undefined
  return async (force) => {
    if (chain === undefined) {
      // Loaded where it is asked for: it is the largest of our packages, and most configs do without it.
      const { defaultProvider } = await import('@aws-sdk/credential-provider-node')
      chain = defaultProvider(profile === null ? {} : { profile })
    }
    return chain({ forceRefresh: force })
  }
}

async function fromFile(path: string): Promise<Credentials> {
  const text = await readFile(path, 'utf8')
  let parsed: unknown
  try {
    parsed = JSON.parse(text)
  } catch {
    // The parser's message quotes the text, which is a secret (invariant 11).
    throw new Error('the file is not JSON')
  }
  const fields = new Map<string, unknown>(
    typeof parsed === 'object' && parsed !== null
      ? Object.entries(parsed).map(([name, value]) => [name.toLowerCase(), value])
      : [],
  )
  const accessKeyId = fields.get('accesskeyid')
  const secretAccessKey = fields.get('secretaccesskey')
  const sessionToken = fields.get('sessiontoken')
  const expiration = fields.get('expiration')
  if (typeof accessKeyId !== 'string') throw new Error('the file has no text at "accessKeyId"')
  if (typeof secretAccessKey !== 'string') throw new Error('the file has no text at "secretAccessKey"')
  const token = typeof sessionToken === 'string' ? sessionToken : undefined
  const credentials = asCredentials(accessKeyId, secretAccessKey, token)
  if (typeof expiration !== 'string' || Number.isNaN(Date.parse(expiration))) return credentials
  return { ...credentials, expiration: new Date(expiration) }
}

/** Keys come with a line end when they were pasted or written by a shell; none has a space of its own. */
function asCredentials(
  accessKeyId: string,
  secretAccessKey: string,
  sessionToken: string | undefined,
): Credentials {
  const credentials = { accessKeyId: accessKeyId.trim(), secretAccessKey: secretAccessKey.trim() }
  if (!/^[\x21-\x7e]+$/.test(credentials.accessKeyId))
    throw new Error('the access key id is not printable ASCII')
  if (!/^[\x20-\x7e]+$/.test(credentials.secretAccessKey))
    throw new Error('the secret is not printable ASCII')
  const token = sessionToken?.trim()
  return token ? { ...credentials, sessionToken: token } : credentials
}

async function markOf(path: string): Promise<string> {
  const { ino, size, mtimeMs } = await stat(path)
  return `${ino} ${size} ${mtimeMs}`
}

function missing(options: CredentialsOptions, cause: unknown): GatewayError {
  const places = {
    environment: 'in the environment',
    chain: 'by the AWS credential chain',
    file: options.source === 'file' ? `in ${options.path}` : '',
    keys: 'in the config',
  }
  return new GatewayError('CREDENTIALS_MISSING', {
    what: `No credentials were found ${places[options.source]}.`,
    why: `${messageOf(cause)}.`,
    act: 'See `delivery.credentials` in the config; nothing is sent until they are there, and nothing is lost.',
    cause,
  })
}
