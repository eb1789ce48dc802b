// credentials-reader.ts: reads credentials from their configured source, once. credentials.ts caches them.

import { homedir } from 'node:os'
import { join } from 'node:path'
import { assertNever } from '../../std/assert.ts'
import { createBoundedUtf8Reader } from '../../std/file-system/utf8-text.ts'
import { codeOf } from '../../std/gateway-error.ts'
import { asCredentials } from './access-keys.ts'
import type { Credentials } from './access-keys.ts'
import { createChain } from './credentials-chain.ts'
import { jsonProblem, sharedFileProblem } from './file-problems.ts'
import type { CredentialsOptions, ProxyOptions } from '../delivery-options.ts'
import type { Environment } from '../proxy.ts'

export type ReadDeps = {
  env: Environment
  /** For token services of the AWS chain. */
  proxy: ProxyOptions
}

/**
 * Rejects with an Error whose message says what is missing and contains no secret. `ends`: it is given up.
 */
export function createReader(
  { env, proxy }: ReadDeps,
  options: CredentialsOptions,
): (ends: AbortSignal) => Promise<Credentials> {
  switch (options.source) {
    case 'environment':
      return () => Promise.resolve(fromEnvironment(env))
    case 'chain': {
      const chain = createChain({ env, proxy }, options)
      return async (ends) => {
        const { accessKeyId, secretAccessKey, sessionToken, expiration } = await chain(ends).catch(
          async (error: unknown) => {
            const problem = await sharedFileProblem(env, options.profile)
            throw problem === null ? error : new Error(problem, { cause: error })
          },
        )
        const credentials = asCredentials(accessKeyId, secretAccessKey, sessionToken)
        return expiration === undefined ? credentials : { ...credentials, expiration }
      }
    }
    case 'file': {
      const readText = createBoundedUtf8Reader()
      return async () => credentialsIn(await readText(options.path))
    }
    case 'keys':
      return () => {
        const { accessKeyId, secretAccessKey, sessionToken } = options
        return Promise.resolve(asCredentials(accessKeyId, secretAccessKey.reveal(), sessionToken?.reveal()))
      }
    default:
      return assertNever(options)
  }
}

/** The files that credentials are read from. */
export function filesOf(env: Environment, options: CredentialsOptions): readonly string[] {
  if (options.source === 'file') return [options.path]
  if (options.source !== 'chain') return []
  const shared = join(homedir(), '.aws')
  return [
    env['AWS_SHARED_CREDENTIALS_FILE'] ?? join(shared, 'credentials'),
    env['AWS_CONFIG_FILE'] ?? join(shared, 'config'),
    env['AWS_WEB_IDENTITY_TOKEN_FILE'],
    env['AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE'],
  ].filter((path) => path !== undefined)
}

/**
 * Why there are no keys at all. Null where there are some, also wrong ones, and where another program is
 * asked for them.
 */
export async function whyNoKeys(env: Environment, options: CredentialsOptions): Promise<string | null> {
  if (options.source === 'environment')
    return env['AWS_ACCESS_KEY_ID'] || env['AWS_SECRET_ACCESS_KEY'] ? null : 'AWS_ACCESS_KEY_ID is not set.'
  if (options.source !== 'file') return null
  const { path } = options
  const folder = env['CREDENTIALS_DIRECTORY'] ?? ''
  const passed =
    folder !== '' && path.startsWith(folder)
      ? ' systemd passes it: LoadCredential of the unit names the file.'
      : ''
  try {
    // The unit passes `{}` in the place of a file that is missing.
    const text = (await createBoundedUtf8Reader()(path)).trim()
    return text === '' || text === '{}' ? `The file ${path} is empty.${passed}` : null
  } catch (error) {
    return codeOf(error) === 'ENOENT' ? `There is no file ${path}.${passed}` : null
  }
}

function fromEnvironment(env: Environment): Credentials {
  const accessKeyId = env['AWS_ACCESS_KEY_ID']
  const secretAccessKey = env['AWS_SECRET_ACCESS_KEY']
  if (!accessKeyId) throw new Error('AWS_ACCESS_KEY_ID is not set')
  if (!secretAccessKey) throw new Error('AWS_SECRET_ACCESS_KEY is not set')
  return asCredentials(accessKeyId, secretAccessKey, env['AWS_SESSION_TOKEN'])
}

function credentialsIn(text: string): Credentials {
  let parsed: unknown
  try {
    parsed = JSON.parse(text)
  } catch {
    throw new Error(jsonProblem(text))
  }
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed))
    throw new Error(
      'the file is JSON, and not an object such as {"accessKeyId": "...", "secretAccessKey": "..."}',
    )
  const fields = new Map<string, unknown>(
    Object.entries(parsed).map(([name, value]) => [name.toLowerCase(), value]),
  )
  const accessKeyId = fields.get('accesskeyid')
  const secretAccessKey = fields.get('secretaccesskey')
  const sessionToken = fields.get('sessiontoken') ?? fields.get('token')
  const expiration = fields.get('expiration')
  if (typeof accessKeyId !== 'string') throw new Error('the file has no string "accessKeyId"')
  if (typeof secretAccessKey !== 'string') throw new Error('the file has no string "secretAccessKey"')
  const token = typeof sessionToken === 'string' ? sessionToken : undefined
  const credentials = asCredentials(accessKeyId, secretAccessKey, token)
  if (typeof expiration !== 'string' || Number.isNaN(Date.parse(expiration))) return credentials
  return { ...credentials, expiration: new Date(expiration) }
}
