// Credentials as the AWS tools find them, from real sources: files, a process, endpoints on loopback.

import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { chmod, open, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { createCredentials } from '../../../src/delivery/credentials/credentials.ts'
import type { ProxyOptions } from '../../../src/delivery/delivery-options.ts'
import { handed, startCredentialEndpoints } from '../../support/credential-endpoints.ts'
import { messageOf } from '../../../src/std/gateway-error.ts'
import { eventually } from '../../support/eventually.ts'
import { createFakeClock, turn } from '../../support/fake-clock.ts'
import { newFolder } from '../../support/folders.ts'

const hourMs = 3_600_000

/**
 * The package reads the environment of the process. Variables of the machine that runs the test are removed.
 */
beforeEach(() => {
  for (const name of Object.keys(process.env)) if (name.startsWith('AWS_')) vi.stubEnv(name, undefined)
  for (const name of ['AWS_SHARED_CREDENTIALS_FILE', 'AWS_CONFIG_FILE']) vi.stubEnv(name, '/nonexistent')
  vi.stubEnv('AWS_EC2_METADATA_DISABLED', 'true')
})

afterEach(() => vi.unstubAllEnvs())

function chainOf(profile: string | null = null, proxy: ProxyOptions = { from: 'none' }) {
  const clock = createFakeClock(Date.now())
  const failures: (string | null)[] = []
  const refreshFailed = (failure: { why: string } | null) => void failures.push(failure?.why ?? null)
  const deps = { clock, env: process.env, proxy, refreshFailed }
  return { clock, failures, source: createCredentials(deps, { source: 'chain', profile }) }
}

/** A profile whose process is this script. */
async function profileOf(name: string, folder: string, script: string): Promise<void> {
  const path = join(folder, 'give')
  await writeFile(path, `#!/bin/sh\n${script}\n`)
  await chmod(path, 0o700)
  await writeFile(join(folder, 'config'), `[profile ${name}]\ncredential_process = ${path}\n`)
  vi.stubEnv('AWS_CONFIG_FILE', join(folder, 'config'))
}

/** Resolves with the file of the token. */
async function webIdentity(token: string, tokenService: string): Promise<string> {
  const tokenFile = join(await newFolder(), 'token')
  await writeFile(tokenFile, token)
  vi.stubEnv('AWS_WEB_IDENTITY_TOKEN_FILE', tokenFile)
  vi.stubEnv('AWS_ROLE_ARN', 'arn:aws:iam::123456789012:role/depot')
  vi.stubEnv('AWS_REGION', 'eu-central-1')
  vi.stubEnv('AWS_ENDPOINT_URL_STS', tokenService)
  return tokenFile
}

describe('the chain finds credentials', () => {
  test('in the environment', async () => {
    vi.stubEnv('AWS_ACCESS_KEY_ID', 'AKIAENV')
    vi.stubEnv('AWS_SECRET_ACCESS_KEY', 'hush')
    vi.stubEnv('AWS_SESSION_TOKEN', 'token')
    expect(await chainOf().source.current()).toEqual({
      accessKeyId: 'AKIAENV',
      secretAccessKey: 'hush',
      sessionToken: 'token',
    })
  })

  test('in a profile of the shared file, and reads that again when it changes', async () => {
    const path = join(await newFolder(), 'credentials')
    const write = (key: string) =>
      writeFile(
        path,
        `[default]\naws_access_key_id = AKIADEFAULT\naws_secret_access_key = d\n\n` +
          `[depot]\naws_access_key_id = ${key}\naws_secret_access_key = s/+=\n`,
      )
    await write('AKIAONE')
    vi.stubEnv('AWS_SHARED_CREDENTIALS_FILE', path)
    const { source } = chainOf('depot')
    expect(await source.current()).toEqual({ accessKeyId: 'AKIAONE', secretAccessKey: 's/+=' })
    expect((await chainOf().source.current()).accessKeyId).toBe('AKIADEFAULT')
    await write('AKIATWO')
    expect((await source.reread()).accessKeyId).toBe('AKIATWO')
    expect((await source.current()).accessKeyId).toBe('AKIATWO')
  })

  test('from a process that a profile names', async () => {
    const folder = await newFolder()
    const answer = { Version: 1, AccessKeyId: 'ASIAPROCESS', SecretAccessKey: 's', SessionToken: 't' }
    await profileOf('depot', folder, `echo '${JSON.stringify(answer)}'`)
    expect(await chainOf('depot').source.current()).toMatchObject({
      accessKeyId: 'ASIAPROCESS',
      sessionToken: 't',
    })
  })

  test('and refuses a token that no header can hold, whatever gave it', async () => {
    const folder = await newFolder()
    const answer = { Version: 1, AccessKeyId: 'ASIAPROCESS', SecretAccessKey: 's', SessionToken: 't\nt' }
    await writeFile(join(folder, 'answer'), JSON.stringify(answer))
    await profileOf('depot', folder, `cat ${join(folder, 'answer')}`)
    await expect(chainOf('depot').source.current()).rejects.toMatchObject({
      code: 'CREDENTIALS_MISSING',
      why: expect.stringMatching(/the session token has a line break/),
    })
  })

  test('at the endpoint of a container, with the token of its file', async () => {
    const expiration = new Date(Date.now() + hourMs)
    const endpoints = await startCredentialEndpoints(handed('CONTAINER', expiration))
    const tokenFile = join(await newFolder(), 'token')
    await writeFile(tokenFile, 'pod-identity')
    vi.stubEnv('AWS_CONTAINER_CREDENTIALS_FULL_URI', `${endpoints.url}/container`)
    vi.stubEnv('AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE', tokenFile)
    expect(await chainOf().source.current()).toEqual({
      accessKeyId: 'ASIACONTAINER',
      secretAccessKey: 'secret of CONTAINER',
      sessionToken: 'token-of-CONTAINER',
      expiration,
    })
    expect(endpoints.asked).toMatchObject([{ what: 'GET /container', token: 'pod-identity' }])
  })

  test('in the metadata of an instance, version 2', async () => {
    const endpoints = await startCredentialEndpoints(handed('INSTANCE', new Date(Date.now() + hourMs)))
    vi.stubEnv('AWS_EC2_METADATA_DISABLED', 'false')
    vi.stubEnv('AWS_EC2_METADATA_SERVICE_ENDPOINT', endpoints.url)
    expect(await chainOf().source.current()).toMatchObject({
      accessKeyId: 'ASIAINSTANCE',
      sessionToken: 'token-of-INSTANCE',
    })
    expect(endpoints.asked[0]?.what).toBe('PUT /latest/api/token')
    expect(endpoints.asked.at(-1)).toMatchObject({ token: 'imds-token' })
  })

  test('for a web identity, whose token is read again each time', async () => {
    const endpoints = await startCredentialEndpoints(handed('WEB', new Date(Date.now() + hourMs)))
    const tokenFile = await webIdentity('first-identity', endpoints.url)
    const { source } = chainOf()
    expect(await source.current()).toMatchObject({ accessKeyId: 'ASIAWEB', sessionToken: 'token-of-WEB' })
    await writeFile(tokenFile, 'second-identity')
    await source.reread()
    expect(endpoints.asked.map(({ body }) => /WebIdentityToken=([\w-]+)/.exec(body)?.[1])).toEqual([
      'first-identity',
      'second-identity',
    ])
  })

  test('from token services through the proxy', async () => {
    const endpoints = await startCredentialEndpoints(handed('WEB', new Date(Date.now() + hourMs)))
    await webIdentity('identity', 'http://sts.depot.test')
    const asked: string[] = []
    // A request by plain http has the whole address for a proxy.
    const proxy = createServer((request, response) => {
      asked.push(request.url ?? '')
      let body = ''
      request.on('data', (part: Buffer) => (body += part.toString('latin1')))
      request.on('end', () => {
        void fetch(endpoints.url, { method: 'POST', body }).then(async (answer) =>
          response.end(await answer.text()),
        )
      })
    })
    await new Promise<void>((resolve) => {
      proxy.listen(0, '127.0.0.1', resolve)
    })
    onTestFinished(() => void proxy.close())
    const url = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`
    const { source } = chainOf(null, { from: 'config', url, auth: null })
    expect((await source.current()).accessKeyId).toBe('ASIAWEB')
    expect(asked).toEqual(['http://sts.depot.test/'])
  })

  test('that do not exist: the error says what is missing', async () => {
    await expect(chainOf('nobody').source.current()).rejects.toMatchObject({
      code: 'CREDENTIALS_MISSING',
      why: expect.stringMatching(/\w/),
    })
  })

  test('in several places without writing to the log of the daemon', async () => {
    const path = join(await newFolder(), 'credentials')
    await writeFile(path, '[depot]\naws_access_key_id = AKIAFILE\naws_secret_access_key = s\n')
    vi.stubEnv('AWS_SHARED_CREDENTIALS_FILE', path)
    vi.stubEnv('AWS_PROFILE', 'depot')
    vi.stubEnv('AWS_ACCESS_KEY_ID', 'AKIAENV')
    vi.stubEnv('AWS_SECRET_ACCESS_KEY', 'hush')
    const printed = vi.spyOn(console, 'warn').mockReturnValue()
    expect((await chainOf().source.current()).accessKeyId).toBe('AKIAFILE')
    expect(printed).not.toHaveBeenCalled()
  })
})

describe('temporary credentials', () => {
  async function fromContainer(livesMs: number) {
    const endpoints = await startCredentialEndpoints(handed('ONE', new Date(Date.now() + livesMs)))
    vi.stubEnv('AWS_CONTAINER_CREDENTIALS_FULL_URI', `${endpoints.url}/container`)
    const chain = chainOf()
    const next = (name: string) => endpoints.hand(handed(name, new Date(chain.clock.now() + livesMs)))
    expect((await chain.source.current()).accessKeyId).toBe('ASIAONE')
    return { ...chain, endpoints, next }
  }

  test('are refreshed before they expire, while the old ones stay in use', async () => {
    const { clock, source, endpoints, next } = await fromContainer(hourMs)
    next('TWO')
    await clock.advance(hourMs - 301_000)
    expect((await source.current()).accessKeyId).toBe('ASIAONE')
    expect(endpoints.asked).toHaveLength(1)
    await clock.advance(2000)
    // The refresh runs in the background.
    expect((await source.current()).accessKeyId).toBe('ASIAONE')
    await expect.poll(async () => (await source.current()).accessKeyId).toBe('ASIATWO')
    expect(endpoints.asked).toHaveLength(2)
  })

  test('stay in use while the refresh fails, which is reported once, and are missing when they have expired', async () => {
    // A process fails at once. To endpoints the package makes four requests, a second apart.
    const folder = await newFolder()
    const answer = join(folder, 'answer.json')
    const requests = join(folder, 'requests')
    const write = (name: string, expiration: Date) =>
      writeFile(
        answer,
        JSON.stringify({
          Version: 1,
          AccessKeyId: name,
          SecretAccessKey: 's',
          Expiration: expiration.toISOString(),
        }),
      )
    await profileOf('depot', folder, `echo request >> ${requests}\ncat ${answer}`)
    const { clock, source, failures } = chainOf('depot')
    await write('ASIAONE', new Date(clock.now() + hourMs))
    expect((await source.current()).accessKeyId).toBe('ASIAONE')
    await rm(answer)
    await clock.advance(hourMs - 200_000)
    expect((await source.current()).accessKeyId).toBe('ASIAONE')
    await eventually(() => failures.length === 1)
    const before = await readFile(requests, 'utf8')
    await source.current()
    expect(await readFile(requests, 'utf8')).toBe(before)
    await clock.advance(200_000)
    await expect(source.current()).rejects.toMatchObject({ code: 'CREDENTIALS_MISSING' })
    await write('ASIATWO', new Date(clock.now() + hourMs))
    expect((await source.current()).accessKeyId).toBe('ASIATWO')
    expect(failures).toEqual([expect.stringMatching(/./), null])
  })

  test('stay in use on a machine whose clock is a day ahead, until its time is known', async () => {
    const endpoints = await startCredentialEndpoints(handed('ONE', new Date(Date.now() + hourMs)))
    vi.stubEnv('AWS_CONTAINER_CREDENTIALS_FULL_URI', `${endpoints.url}/container`)
    const clock = createFakeClock(Date.now() + 24 * hourMs)
    let offsetMs: number | null = null
    const deps = { clock, env: process.env, offsetMs: () => offsetMs }
    const source = createCredentials(deps, { source: 'chain', profile: null })
    expect((await source.current()).accessKeyId).toBe('ASIAONE')
    offsetMs = -24 * hourMs
    const askedThen = endpoints.asked.length
    expect((await source.current()).accessKeyId).toBe('ASIAONE')
    // At the true time they are valid for an hour: nothing to refresh.
    await clock.advance(60_000)
    await source.current()
    expect(endpoints.asked.length - askedThen).toBeLessThanOrEqual(1)
  })
})

// The last ones: the package still tries for some seconds after the end of a lookup.
describe('a lookup without an answer is given up after 30 s, ended, and made afresh', () => {
  /** Gives it up; `begun`: it waits for the answer. */
  async function giveUp({ clock, source }: ReturnType<typeof chainOf>, begun: () => boolean): Promise<void> {
    let fault: Promise<unknown> = Promise.resolve()
    // The one before may take a moment to end.
    const begin = () => {
      fault = source.reread().catch((error: unknown) => error)
      return clock.pending()
    }
    await expect.poll(begin, { timeout: 20_000 }).toBe(1)
    await eventually(begun)
    await clock.advance(30_000)
    expect(await fault).toMatchObject({
      code: 'CREDENTIALS_MISSING',
      why: expect.stringMatching(/no answer came within 30000 ms/),
    })
  }

  test('a process, with what it started', async () => {
    const folder = await newFolder()
    const [starts, pipe, given] = [join(folder, 'starts'), join(folder, 'pipe'), join(folder, 'given')]
    await writeFile(starts, '')
    execFileSync('mkfifo', [pipe])
    const answer = { Version: 1, AccessKeyId: 'ASIALATE', SecretAccessKey: 's' }
    const script = join(folder, 'mute')
    await writeFile(
      script,
      `#!/bin/sh\necho $$ >> ${starts}\n` +
        `[ -e ${given} ] && exec cat ${given}\n` +
        `timeout 60 cat ${pipe} & echo $! >> ${starts}\nwait\n`,
    )
    await chmod(script, 0o755)
    await writeFile(join(folder, 'config'), `[profile mute]\ncredential_process = ${script}\n`)
    vi.stubEnv('AWS_CONFIG_FILE', join(folder, 'config'))
    const chain = chainOf('mute')
    // The package starts it once more after a lookup that was given up; that one may end before it says anything.
    const alive = () =>
      readFileSync(starts, 'utf8')
        .split('\n')
        .filter((pid) => pid !== '' && existsSync(`/proc/${pid}`))
    for (let times = 1; times <= 5; times += 1) await giveUp(chain, () => alive().length === 2)
    await eventually(() => alive().length === 0)
    await writeFile(given, JSON.stringify(answer))
    expect((await chain.source.reread()).accessKeyId).toBe('ASIALATE')
  })

  test.each([
    ['a container', { AWS_CONTAINER_CREDENTIALS_FULL_URI: '/container' }],
    [
      'a token service',
      {
        AWS_ROLE_ARN: 'arn:aws:iam::123456789012:role/depot',
        AWS_REGION: 'eu-central-1',
        AWS_ENDPOINT_URL_STS: '/',
      },
    ],
  ])('%s', async (_name, variables) => {
    const endpoints = await startCredentialEndpoints(handed('HANDED', new Date(Date.now() + hourMs)))
    for (const [name, value] of Object.entries(variables))
      vi.stubEnv(name, value.startsWith('/') ? endpoints.url + value : value)
    const tokenFile = join(await newFolder(), 'token')
    await writeFile(tokenFile, 'identity')
    vi.stubEnv('AWS_WEB_IDENTITY_TOKEN_FILE', tokenFile)
    const chain = chainOf()
    endpoints.fail('mute')
    for (let times = 1; times <= 3; times += 1)
      await giveUp(chain, () => endpoints.asked.length >= times && endpoints.open() > 0)
    await eventually(() => endpoints.open() === 0)
    endpoints.fail(null)
    // The package tries three times to reach a container, a second apart.
    const found = () => chain.source.reread().then((keys) => keys.accessKeyId, messageOf)
    await expect.poll(found, { timeout: 20_000 }).toBe('ASIAHANDED')
  })
})

test('reads of a disk that hangs are bounded: two, and then none starts before one ends', async () => {
  const folder = await newFolder()
  const pipe = join(folder, 'credentials')
  execFileSync('mkfifo', [pipe])
  // While it is open and empty, reads hang.
  const held = await open(pipe, 'r+')
  vi.stubEnv('AWS_CONFIG_FILE', join(folder, 'none'))
  vi.stubEnv('AWS_SHARED_CREDENTIALS_FILE', pipe)
  onTestFinished(() => void vi.unstubAllEnvs())
  const clock = createFakeClock(Date.now())
  const source = createCredentials({ clock, env: process.env }, { source: 'chain', profile: 'fleet' })
  const giveUp = async () => {
    const fault = source.reread().catch((error: unknown) => error)
    await turn()
    await clock.advance(30_000)
    return ((await fault) as { why: string }).why
  }
  expect(await giveUp()).toMatch(/no answer came/)
  expect(await giveUp()).toMatch(/no answer came/)
  expect(await giveUp()).toMatch(/2 reads of the credentials hang/)
  await rm(pipe)
  await writeFile(pipe, '[fleet]\naws_access_key_id = AKIALATE\naws_secret_access_key = s\n')
  // Both reads end.
  await held.close()
  const found = () => source.reread().then(({ accessKeyId }) => accessKeyId, messageOf)
  await expect.poll(found).toBe('AKIALATE')
})
