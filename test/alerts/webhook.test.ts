// Webhooks against real HTTP servers: signed bodies, hostile answers, TLS, proxies.

import type { ServerResponse } from 'node:http'
import { describe, expect, test } from 'vitest'
import { alertSchema } from '../../src/alerts/alerts.ts'
import type { AlertReceiver, Sent } from '../../src/alerts/types.ts'
import { alert, change, receiverOf, sendTo as send, startHttpReceiver } from '../support/alert-world.ts'
import { createAuthority } from '../support/certificates.ts'
import { startConnectProxy } from '../support/connect-proxy.ts'

type Proxy = (Parameters<typeof receiverOf>[1] & object)['proxy']

const receiver = (written: object, proxy?: Proxy): AlertReceiver =>
  receiverOf({ type: 'webhook', ...written }, { ourTime: () => 1_763_700_061_999, ...(proxy && { proxy }) })

describe('a webhook', () => {
  test('gets the alert as the documented JSON, with the headers of the config', async () => {
    const { url, requests } = await startHttpReceiver()
    const to = receiver({ url: `${url}/hook?token=abc`, headers: { Authorization: 'Bearer xyz' } })
    const cleared = change('SPOOL_FULL', { kind: 'cleared', clearedAt: 1_763_700_060_000 })
    expect(await send(to, alert({ changes: [change('DEAD_LETTERS'), cleared] }))).toEqual({
      kind: 'sent',
      detail: 'HTTP 200: ok',
      warning: null,
    })
    const [request] = requests
    expect(request).toMatchObject({ method: 'POST', url: '/hook?token=abc' })
    expect(request?.headers).toMatchObject({
      authorization: 'Bearer xyz',
      'content-type': 'application/json',
      'gateway-alert-id': 'alert-1',
      'gateway-timestamp': '1763700061',
    })
    expect(request?.headers['gateway-signature']).toBeUndefined()
    const body = alertSchema.parse(JSON.parse(request?.body ?? ''))
    expect(body).toMatchObject({
      version: 1,
      id: 'alert-1',
      severity: 'error',
      test: false,
      gateway: 'depot-north',
    })
    expect(body.changes.map(({ kind, since, clearedAt }) => [kind, since, clearedAt])).toEqual([
      ['raised', '2025-11-21T04:40:00.000Z', null],
      ['cleared', '2025-11-21T04:40:00.000Z', '2025-11-21T04:41:00.000Z'],
    ])
  })

  test.each([
    ['chat', 'application/json'],
    ['text', 'text/plain; charset=utf-8'],
  ])('in the form %s has the text, as short as chat servers want it', async (body, type) => {
    const { url, requests } = await startHttpReceiver()
    await send(
      receiver({ url, body }),
      alert({ changes: Array.from({ length: 64 }, () => change('DEAD_LETTERS')) }),
    )
    const { headers, body: sent } = requests[0]!
    expect(headers['content-type']).toBe(type)
    const text = body === 'chat' ? (JSON.parse(sent) as { text: string }).text : sent
    expect(text.length).toBeLessThan(2000)
    expect(text).toContain('act   What to do.')
    expect(text).toMatch(/\d+ more changes: see the status\./)
  })

  test('in a chat has nothing that calls all members or hides an address behind words', async () => {
    const { url, requests } = await startHttpReceiver()
    const hostile = change('DEAD_LETTERS', {
      key: '<!channel> @everyone <https://evil.example|here> [log in](https://evil.example)',
    })
    await send(receiver({ url, body: 'chat' }), alert({ changes: [hostile] }))
    const { text } = JSON.parse(requests[0]?.body ?? '') as { text: string }
    expect(text).toContain('(!channel) @ everyone (https://evil.example|here) [log in] (')
    expect(text).not.toMatch(/[<>]|@\w|\]\(/)
  })

  test('has a user of its URL as Authorization, and shows neither user nor path', async () => {
    const { url, requests } = await startHttpReceiver()
    const to = receiver({ url: `${url.replace('//', '//ann:p%40ss@')}/services/T00/secret` })
    await send(to)
    expect(requests[0]?.headers.authorization).toBe(`Basic ${Buffer.from('ann:p@ss').toString('base64')}`)
    expect(to.target).toBe(`${url}/***`)
    const headers = { Authorization: 'Bearer y', 'User-Agent': 'z' }
    await send(receiver({ url: url.replace('//', '//ann:x@'), headers }))
    expect(requests[1]?.headers).toMatchObject({ authorization: 'Bearer y', 'user-agent': 'z' })
  })
})

describe('a webhook that does not take the alert', () => {
  test.each([
    [500, {}, /^HTTP 500: no$/, null],
    [429, { 'retry-after': '120' }, /^HTTP 429/, 120_000],
    [503, { 'retry-after': 'tomorrow' }, /^HTTP 503/, null],
    [410, {}, /^HTTP 410/, null],
    [
      302,
      { location: 'http://127.0.0.1:1/other?token=secret' },
      /^HTTP 302: it redirects to http:\/\/127.0.0.1:1\/\*\*\*$/,
      null,
    ],
    [307, { location: '/there' }, /^HTTP 307: it redirects$/, null],
    [302, { location: 'file:///etc/passwd' }, /^HTTP 302: it redirects$/, null],
  ])('with %d %j has failed, and no redirect is followed', async (status, headers, why, retryAfterMs) => {
    const { url, requests } = await startHttpReceiver({
      answer: (response) => void response.writeHead(status, headers).end('no'),
    })
    const sent = await send(receiver({ url, secret: 'shared' }))
    expect(sent).toMatchObject({ kind: 'failed', why: expect.stringMatching(why), retryAfterMs })
    expect(requests).toHaveLength(1)
  })

  test('and repeats every secret in its answer, shows none of them', async () => {
    const { url } = await startHttpReceiver({
      answer: (response, { headers, url: path }) =>
        void response
          .writeHead(403)
          .end(`${JSON.stringify(headers)} ${path} ${Buffer.from('top-secret-1').toString('base64')} bye`),
    })
    const secret = `${url}/services/top-secret-1?key=top-secret-2`
    const headers = { 'x-token': 'Token top-secret-3' }
    const shown = JSON.stringify(await send(receiver({ url: secret, headers })))
    expect(shown).toContain('HTTP 403')
    expect(shown).not.toMatch(/top-secret/)
    expect(shown).not.toContain(Buffer.from('top-secret-1').toString('base64'))
  })

  test('and answers without end is read to 2 KiB, on one line without control characters', async () => {
    const { url } = await startHttpReceiver({
      answer(response) {
        response.writeHead(500)
        const flood = () => {
          while (response.writable && response.write('\u001b[31m\r\nx'.repeat(4000)));
        }
        response.on('drain', flood)
        flood()
      },
    })
    const sent = (await send(receiver({ url }))) as Sent & { kind: 'failed' }
    expect(sent.why.length).toBeLessThan(600)
    expect(Array.from(sent.why).filter((character) => character < ' ')).toEqual([])
  })

  test.each([
    ['accepts and says nothing', () => undefined],
    [
      'sends its answer byte by byte',
      (response: ServerResponse) => {
        response.writeHead(200)
        const timer = setInterval(() => response.write('.'), 20)
        response.on('close', () => clearInterval(timer))
      },
    ],
  ])('because it %s, has failed after its timeout or counts by its status', async (_, answer) => {
    const { url } = await startHttpReceiver({ answer })
    const startedMs = performance.now()
    const sent = await send(receiver({ url, timeout: '200ms' }))
    expect(performance.now() - startedMs).toBeLessThan(1500)
    expect(sent.kind === 'failed' ? sent.why : sent.detail).toMatch(/^(It took longer than 200 ms|HTTP 200)/)
  })

  test('because its name does not exist, or nothing listens, has failed with the cause', async () => {
    expect(await send(receiver({ url: 'http://no-such-host.invalid/' }))).toMatchObject({
      kind: 'failed',
      why: expect.stringMatching(/host name/),
    })
    expect(await send(receiver({ url: 'http://127.0.0.1:1/' }))).toMatchObject({
      why: expect.stringMatching(/^Nothing listens on 127\.0\.0\.1:1 /),
    })
  })

  test('is given up at once when the gateway stops', async () => {
    const { url, requests } = await startHttpReceiver({ answer: () => undefined })
    const stop = new AbortController()
    const sending = send(receiver({ url }), alert(), stop.signal)
    await expect.poll(() => requests.length).toBe(1)
    const startedMs = performance.now()
    stop.abort()
    expect((await sending).kind).toBe('failed')
    expect(performance.now() - startedMs).toBeLessThan(1000)
  })
})

describe('a webhook with TLS', () => {
  const authority = createAuthority()
  const own = authority.issue({ names: ['localhost'] })
  const other = authority.issue({ names: ['elsewhere.example'] })

  test('is trusted by its own authority, and not without it', async () => {
    const { url } = await startHttpReceiver({ tls: own })
    const place = url.replace('127.0.0.1', 'localhost')
    expect((await send(receiver({ url: place, ca: authority.ca }))).kind).toBe('sent')
    expect(await send(receiver({ url: place }))).toMatchObject({
      why: expect.stringMatching(/^The receiver sends its own certificate and no intermediate one/),
      act: expect.stringContaining('`ca`'),
    })
    expect((await receiver({ url: place, ca: authority.ca }).check(AbortSignal.timeout(5000))).kind).toBe(
      'sent',
    )
    expect((await receiver({ url: place }).check(AbortSignal.timeout(5000))).kind).toBe('failed')
  })

  test('of another name is refused', async () => {
    const { url } = await startHttpReceiver({ tls: other })
    const sent = await send(receiver({ url: url.replace('127.0.0.1', 'localhost'), ca: authority.ca }))
    expect(sent).toMatchObject({
      why: expect.stringMatching(/^The certificate of the receiver is for "elsewhere\.example"/),
    })
  })

  test('is reached through the proxy of delivery, but never on this machine, nor with `proxy: none`', async () => {
    const proxy = await startConnectProxy()
    const through = { from: 'config', url: proxy.url, auth: null } as const
    const { url, requests } = await startHttpReceiver()
    await send(receiver({ url }, through))
    expect(requests).toHaveLength(1)
    const far = { url: 'http://no-such-host.invalid/', timeout: '2s' }
    expect(await send(receiver(far, through))).toMatchObject({ why: expect.stringMatching(/proxy/) })
    expect(await send(receiver({ ...far, proxy: 'none' }, through))).toMatchObject({
      why: expect.stringMatching(/host name/),
    })
  })
})
