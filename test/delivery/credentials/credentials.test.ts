import { readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile, chmod } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { parse } from 'yaml'
import { sharedFileProblem } from '../../../src/delivery/credentials/file-problems.ts'
import { createCredentials } from '../../../src/delivery/credentials/credentials.ts'
import { createKeyring } from '../../../src/delivery/credentials/keyring.ts'
import type { GatewayEvent } from '../../../src/domain/event.ts'
import { Secret } from '../../../src/std/secret.ts'
import { providerOptions } from '../../support/delivery-world.ts'
import { createFakeClock } from '../../support/fake-clock.ts'

type Cases = {
  unusable: { name: string; keys: Record<string, string>; why: string }[]
  files: { name: string; text: string; why: string }[]
  shared: { name: string; text: string; why?: string }[]
}

const { unusable, files, shared } = parse(
  readFileSync(join(import.meta.dirname, 'credentials.cases.yaml'), 'utf8'),
) as Cases

const environment = { AWS_ACCESS_KEY_ID: 'AKID', AWS_SECRET_ACCESS_KEY: 'hush' }

let folder: string
let path: string

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'credentials-'))
  path = join(folder, 'ingestion.json')
})

afterEach(() => rm(folder, { recursive: true }))

const write = (fields: Record<string, unknown>) => writeFile(path, JSON.stringify(fields))

describe('from the environment', () => {
  test('with a session token where there is one', async () => {
    const env = { ...environment, AWS_SESSION_TOKEN: 'token' }
    const source = createCredentials({ clock: createFakeClock(), env }, { source: 'environment' })
    expect(await source.current()).toEqual({
      accessKeyId: 'AKID',
      secretAccessKey: 'hush',
      sessionToken: 'token',
    })
  })

  test.each(['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY'])('names %s when it is missing', async (name) => {
    const env = { ...environment, [name]: '' }
    const source = createCredentials({ clock: createFakeClock(), env }, { source: 'environment' })
    await expect(source.current()).rejects.toMatchObject({
      code: 'CREDENTIALS_MISSING',
      why: `${name} is not set.`,
    })
  })
})

const session = { accessKeyId: 'AKID', secretAccessKey: 'hush', sessionToken: 'token' }

describe('what no header can hold is refused when it is read', () => {
  test.each(unusable)('$name', async ({ keys: changes, why: words }) => {
    const keys = { ...session, ...changes }
    const { accessKeyId, secretAccessKey, sessionToken } = keys
    const env = {
      AWS_ACCESS_KEY_ID: accessKeyId,
      AWS_SECRET_ACCESS_KEY: secretAccessKey,
      AWS_SESSION_TOKEN: sessionToken,
    }
    await write(keys)
    const sources = [
      { source: 'environment' as const },
      { source: 'file' as const, path },
      {
        source: 'keys' as const,
        accessKeyId,
        secretAccessKey: new Secret(secretAccessKey),
        sessionToken: new Secret(sessionToken),
      },
    ]
    for (const options of sources) {
      const found = createCredentials({ clock: createFakeClock(), env }, options).current()
      const problem = await found.catch((error: unknown) => error)
      expect(problem).toMatchObject({ code: 'CREDENTIALS_MISSING', why: expect.stringContaining(words) })
      expect((problem as { why: string }).why).not.toContain('hush')
    }
  })
})

describe('from a file', () => {
  const setUp = () => {
    const clock = createFakeClock()
    return { clock, source: createCredentials({ clock, env: {} }, { source: 'file', path }) }
  }

  test('the old ones stay in use while the file cannot be read', async () => {
    const { clock, source } = setUp()
    await write({ accessKeyId: 'ONE', secretAccessKey: 'first' })
    await source.current()
    await writeFile(path, '{"accessKeyId":')
    await clock.advance(6000)
    expect((await source.current()).accessKeyId).toBe('ONE')
    expect((await source.reread()).accessKeyId).toBe('ONE')
  })

  test('the key names of the AWS tools are accepted', async () => {
    await write({ Version: 1, AccessKeyId: 'ONE', SecretAccessKey: 'first\n', SessionToken: 't' })
    expect(await setUp().source.current()).toEqual({
      accessKeyId: 'ONE',
      secretAccessKey: 'first',
      sessionToken: 't',
    })
  })

  test('the session token may be named Token, as in answers of instances and containers', async () => {
    await write({ AccessKeyId: 'ONE', SecretAccessKey: 'first', Token: 't' })
    expect(await setUp().source.current()).toMatchObject({ sessionToken: 't' })
  })

  test.each(files)('$name is an error that does not quote it', async ({ text, why: words }) => {
    await writeFile(path, text)
    const failed = await setUp()
      .source.current()
      .catch((error: unknown) => error)
    expect(failed).toMatchObject({ code: 'CREDENTIALS_MISSING', why: `${words}.` })
    expect(String(failed)).not.toContain('hush')
  })

  test('those about to expire are read again; those that expired and cannot be refreshed are missing', async () => {
    const { clock, source } = setUp()
    const expiring = (ms: number) => new Date(clock.now() + ms).toISOString()
    await write({ accessKeyId: 'ONE', secretAccessKey: 'first', expiration: expiring(600_000) })
    await source.current()
    await clock.advance(599_000)
    expect((await source.current()).accessKeyId).toBe('ONE')
    await clock.advance(2000)
    await expect(source.current()).rejects.toMatchObject({ why: 'the credentials have expired.' })
    await rm(path)
    await expect(source.current()).rejects.toMatchObject({ code: 'CREDENTIALS_MISSING' })
  })
})

describe('a file that is watched', () => {
  async function watched() {
    const clock = createFakeClock()
    const source = createCredentials({ clock, env: {} }, { source: 'file', path })
    let changes = 0
    const cancel = source.watch(() => (changes += 1))
    onTestFinished(cancel)
    return {
      source,
      clock,
      /** Lets the watch look so often, and waits for its reads of the disk. */
      async looks(times: number) {
        for (let i = 0; i < times; i += 1) {
          await clock.advance(2000)
          // The next look is the only timer, or a read is running.
          await expect.poll(() => clock.nextIn()).toBe(2000)
        }
      },
      changes: () => changes,
      cancel,
    }
  }

  test('reports the first credentials that are found', async () => {
    const { source, looks, changes } = await watched()
    await expect(source.current()).rejects.toMatchObject({ code: 'CREDENTIALS_MISSING' })
    await looks(2)
    await write({ accessKeyId: 'ONE', secretAccessKey: 'first' })
    await looks(1)
    expect(changes()).toBe(1)
  })

  test('does not report a file that is incomplete, removed, or written again unchanged', async () => {
    await write({ accessKeyId: 'ONE', secretAccessKey: 'first' })
    const { source, looks, changes } = await watched()
    await source.current()
    await writeFile(path, '{"accessKeyId":')
    await looks(1)
    await rm(path)
    await looks(1)
    await write({ accessKeyId: 'ONE', secretAccessKey: 'first' })
    await looks(1)
    expect(changes()).toBe(0)
    expect((await source.current()).accessKeyId).toBe('ONE')
  })

  test('reports nothing after it is cancelled', async () => {
    await write({ accessKeyId: 'ONE', secretAccessKey: 'first' })
    const { clock, cancel } = await watched()
    cancel()
    expect(clock.pending()).toBe(0)
  })
})

describe('the keyring', () => {
  test('reports each time that credentials are available again, also unchanged ones', async () => {
    const clock = createFakeClock()
    const events: GatewayEvent[] = []
    const deps = { clock, env: {}, emit: (event: GatewayEvent) => void events.push(event), offsetMs: () => 0 }
    const keyring = createKeyring(
      deps,
      providerOptions('http://h', { credentials: { source: 'file', path } }),
    )
    const expiring = (ms: number) => new Date(clock.now() + ms).toISOString()
    await write({ accessKeyId: 'ONE', secretAccessKey: 'first', expiration: expiring(60_000) })
    expect(await keyring.ready({ again: false })).toBeNull()
    await clock.advance(61_000)
    expect(await keyring.ready({ again: false })).toContain('expired')
    await write({ accessKeyId: 'ONE', secretAccessKey: 'first', expiration: expiring(900_000) })
    expect(await keyring.ready({ again: false })).toBeNull()
    expect(events.filter(({ kind }) => kind === 'credentials_found')).toHaveLength(2)
  })
})

describe('the shared credentials file', () => {
  test.each(shared)('$name', async ({ text, why }) => {
    await writeFile(path, text)
    await chmod(path, 0o600)
    const problem = await sharedFileProblem({ AWS_SHARED_CREDENTIALS_FILE: path }, null)
    expect(problem).toBe(why?.replace('{{path}}', path) ?? null)
    expect(problem ?? '').not.toContain('hush')
  })

  test('that is missing leaves the search to the chain', async () => {
    expect(await sharedFileProblem({ AWS_SHARED_CREDENTIALS_FILE: '/nowhere/credentials' }, 'x')).toBeNull()
  })
})
