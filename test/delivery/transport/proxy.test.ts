import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import type { ProxyOptions } from '../../../src/delivery/delivery-options.ts'
import { proxyFor } from '../../../src/delivery/proxy.ts'
import { Secret } from '../../../src/std/secret.ts'
import { createAuthority } from '../../support/certificates.ts'
import { startConnectProxy } from '../../support/connect-proxy.ts'
import { createTransportWorld, acceptedBoth } from '../../support/transport-world.ts'
import { startScriptedService } from '../../support/scripted-service.ts'
import { startTlsService } from '../../support/tls-service.ts'

const { submit, open, send } = createTransportWorld()
const authority = createAuthority()
const { ca } = authority
const environment: ProxyOptions = { from: 'environment' }
const named = (url: string, auth: { user: string; password: Secret } | null = null): ProxyOptions => ({
  from: 'config',
  url,
  auth,
})

/** A service whose name only the proxy can resolve. */
async function hiddenService() {
  const service = await startTlsService({
    ...authority.issue({ names: ['ingest.depot.test'] }),
    answer: acceptedBoth,
  })
  return { ...service, url: `https://ingest.depot.test:${service.port}` }
}

describe('through a proxy of the environment', () => {
  test('the service is reached by CONNECT, and TLS is with the service itself', async () => {
    const [service, proxy] = [await hiddenService(), await startConnectProxy()]
    const { outcome } = await submit(service.url, { ca, proxy: environment, env: { HTTPS_PROXY: proxy.url } })
    expect(outcome).toMatchObject({ kind: 'answered', accepted: 'all' })
    expect(proxy.asked).toEqual([`ingest.depot.test:${service.port}`])
    expect(service.requests).toMatchObject([{ host: `ingest.depot.test:${service.port}` }])
  })

  test('name and password of its URL are sent', async () => {
    const service = await hiddenService()
    const authorization = `Basic ${Buffer.from('depot:p@ss').toString('base64')}`
    const proxy = await startConnectProxy({ authorization })
    const env = { https_proxy: proxy.url.replace('//', '//depot:p%40ss@') }
    expect((await submit(service.url, { ca, proxy: environment, env })).outcome.kind).toBe('answered')
  })

  test('one tunnel serves all submissions that follow each other', async () => {
    const [service, proxy] = [await hiddenService(), await startConnectProxy()]
    const gate = open(service.url, { ca, proxy: named(proxy.url) })
    for (let i = 0; i < 5; i += 1) expect((await send(gate)).outcome.kind).toBe('answered')
    expect(proxy.asked).toHaveLength(1)
    await gate.close()
  })
})

describe('through a proxy of the config', () => {
  test('with name and password', async () => {
    const service = await hiddenService()
    const proxy = await startConnectProxy({
      authorization: `Basic ${Buffer.from('u:p:q').toString('base64')}`,
    })
    const auth = { user: 'u', password: new Secret('p:q') }
    expect((await submit(service.url, { ca, proxy: named(proxy.url, auth) })).outcome.kind).toBe('answered')
  })

  test('that speaks TLS itself, with an authority of its own', async () => {
    const service = await hiddenService()
    const proxy = await startConnectProxy({ tls: authority.issue() })
    expect((await submit(service.url, { ca, proxy: named(proxy.url) })).outcome).toMatchObject({
      kind: 'answered',
    })
    expect(proxy.asked).toHaveLength(1)
  })

  test('plain http uses the tunnel as well', async () => {
    const [service, proxy] = [await startScriptedService(), await startConnectProxy()]
    expect((await submit(service.url, { proxy: named(proxy.url) })).outcome.kind).toBe('answered')
    expect(proxy.asked).toEqual([new URL(service.url).host])
    await service.close()
  })

  test('the service gets our certificate, the proxy does not', async () => {
    const clients = createAuthority('Clients')
    const mine = clients.issue({ names: ['depot-7'] })
    const service = await startTlsService({
      ...authority.issue(),
      clientCa: clients.ca,
      answer: acceptedBoth,
    })
    const proxy = await startConnectProxy()
    const clientCertificate = { cert: mine.cert, key: new Secret(mine.key), passphrase: null }
    const options = { ca, clientCertificate, proxy: named(proxy.url) }
    expect((await submit(service.url, options)).outcome.kind).toBe('answered')
    expect(service.requests).toMatchObject([{ clientName: 'depot-7' }])
  })
})

describe('a proxy that refuses is distinguished from the service', () => {
  test.each([
    [407, /requires a user name and a password/, /delivery\.proxy_auth/],
    [403, /refuses a connection to the service/, /allow CONNECT/],
    [405, /refuses a connection to the service/, /allow CONNECT/],
    [502, /cannot reach the service/, /delivery\.base_url/],
    [504, /cannot reach the service/, /delivery\.base_url/],
    [302, /refuses a connection to the service/, /allow CONNECT/],
  ])('%i', async (mood, words, act) => {
    const proxy = await startConnectProxy({ mood })
    expect((await submit('https://ingest.depot.test', { proxy: named(proxy.url) })).outcome).toMatchObject({
      kind: 'unreachable',
      reason: 'proxy',
      message: expect.stringMatching(words),
      act: expect.stringMatching(act),
    })
  })

  test('a proxy that does not listen, or whose name is unknown', async () => {
    for (const url of ['http://127.0.0.1:1', 'http://proxy.invalid:3128'])
      expect((await submit('https://ingest.depot.test', { proxy: named(url) })).outcome).toMatchObject({
        reason: 'proxy',
        message: expect.stringMatching(/is not reachable .*(ECONNREFUSED|ENOTFOUND|EAI_AGAIN)/),
        act: expect.stringContaining('HTTPS_PROXY'),
      })
  })

  test('a proxy that closes the connection without an answer', async () => {
    const proxy = await startConnectProxy({ mood: 'cut' })
    const { outcome } = await submit('https://ingest.depot.test', { proxy: named(proxy.url) })
    expect(outcome).toMatchObject({ kind: 'unreachable', reason: 'proxy' })
  })

  test('a proxy that does not answer: the wait ends, and no connection stays open', async () => {
    const proxy = await startConnectProxy({ mood: 'hang' })
    const gate = open('https://ingest.depot.test', {
      proxy: named(proxy.url),
      connectTimeoutMs: 100,
      maxInFlight: 2,
    })
    // Twice as often as there are connections: none of them is lost to the proxy.
    for (let i = 0; i < 4; i += 1)
      expect((await send(gate)).outcome).toMatchObject({
        reason: 'timeout',
        message: expect.stringMatching(/^The proxy opened no connection .*within 100 ms/),
      })
    await gate.close()
    expect(proxy.asked).toHaveLength(4)
    await expect.poll(() => proxy.open()).toBe(0)
  })

  test('no password is shown', async () => {
    const proxy = await startConnectProxy({ mood: 407 })
    const auth = { user: 'depot', password: new Secret('hush-hush') }
    const { outcome } = await submit('https://ingest.depot.test', { proxy: named(proxy.url, auth) })
    expect(JSON.stringify(outcome)).not.toContain('hush')
    expect(JSON.stringify(outcome)).not.toContain(Buffer.from('depot:hush-hush').toString('base64'))
  })
})

type Cases = {
  choice: { to: string; env: Record<string, string>; proxy: string | null }[]
  excluded: { to: string; list: string; direct: boolean }[]
}
const { choice, excluded } = parse(
  readFileSync(join(import.meta.dirname, 'proxy.cases.yaml'), 'utf8'),
) as Cases

describe('the choice of the proxy', () => {
  const urlOf = (baseUrl: string, env: Record<string, string>) =>
    proxyFor(baseUrl, environment, env)?.url ?? null

  test.each(choice)('to $to with $env: $proxy', ({ to, env, proxy }) => {
    expect(urlOf(to, env)).toBe(proxy)
  })

  test.each(excluded)('to $to is direct with NO_PROXY=$list: $direct', ({ to, list, direct }) => {
    const proxyEnv = { HTTPS_PROXY: 'http://p:3128' }
    expect(urlOf(to, { ...proxyEnv, NO_PROXY: list }) === null).toBe(direct)
    expect(urlOf(to, { ...proxyEnv, no_proxy: list, NO_PROXY: '*' }) === null).toBe(direct)
  })

  test('a proxy of the config is used whatever the environment says', () => {
    const env = { HTTPS_PROXY: 'http://p', NO_PROXY: '*' }
    expect(proxyFor('https://localhost', named('http://q:1'), env)).toEqual({
      url: 'http://q:1',
      authorization: null,
    })
    expect(proxyFor('https://h.example', { from: 'none' }, env)).toBeNull()
  })

  test.each([
    'socks5://hush@p:1080',
    'http://',
    'ht tp://hush@p',
    'http://user:hush%ss@p:3128',
    'u:hu%sh@p:1',
  ])('a variable that names none we can use stops the start, unquoted: %s', (HTTPS_PROXY) => {
    let thrown: unknown
    try {
      proxyFor('https://h.example', environment, { HTTPS_PROXY })
    } catch (error) {
      thrown = error
    }
    expect(thrown).toMatchObject({ code: 'CONFIG_INVALID', what: expect.stringContaining('HTTPS_PROXY') })
    expect(String(thrown)).not.toContain('hush')
  })
})
