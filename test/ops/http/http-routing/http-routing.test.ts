import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { deviceOrderNames } from '../../../../src/domain/device-state.ts'
import { routes } from '../../../../src/ops/http/route-table.ts'
import { prefersHtml } from '../../../../src/ops/http/accepted-type.ts'
import { methodsOf } from '../../../../src/ops/http/http-routing/route.ts'
import { get, startedOps } from '../../../support/ops-world.ts'
import { exchange, rawRequest } from '../../../support/raw-http.ts'

type ProblemBody = Record<string, unknown>

/** Nothing is attached to it: routes, parameters and rights come first. */
let ops: Awaited<ReturnType<typeof startedOps>>
beforeAll(async () => void (ops = await startedOps()))
afterAll(() => ops[Symbol.asyncDispose]())

async function ask(path: string, init?: RequestInit) {
  const { status, headers, text } = await ops.ask(path, init)
  return { status, headers, body: JSON.parse(text) as ProblemBody }
}

/** The path as it stands: fetch would change it. */
async function askRaw(path: string, method = 'GET') {
  const { status, text } = await rawRequest(ops.url, path, { method })
  const body = JSON.parse(text) as ProblemBody
  return { body, answer: [status, body['code']] }
}

describe('a wrong parameter', () => {
  test.each([
    ['/devices?limit=abc', 'limit', 'abc'],
    ['/devices?limit=', 'limit', ''],
    ['/devices?limit=0', 'limit', '0'],
    ['/devices?limit=1001', 'limit', '1001'],
    ['/devices?limit=1e2', 'limit', '1e2'],
    ['/devices?limit=-1', 'limit', '-1'],
    ['/devices?limit=1.5', 'limit', '1.5'],
    ['/devices?limit=5&limit=6', 'limit', '5, 6'],
    ['/devices?state=lost', 'state', 'lost'],
    ['/devices?Limit=5', 'Limit', '5'],
    ['/devices?toString=5', 'toString', '5'],
    ['/devices?__proto__=5', '__proto__', '5'],
    ['/devices/truck-7?messages=yes', 'messages', 'yes'],
    ['/dead-letters?stage=other', 'stage', 'other'],
    ['/dead-letters?since=yesterday', 'since', 'yesterday'],
    ['/dead-letters?since=2026-02-31T00:00:00Z', 'since', '2026-02-31T00:00:00Z'],
    ['/dead-letters?device=', 'device', ''],
    ['/ledger?outcome=lost', 'outcome', 'lost'],
    ['/ledger?at=noon', 'at', 'noon'],
    ['/ledger?limit=10001', 'limit', '10001'],
    ['/quarantine?limit=many', 'limit', 'many'],
    ['/batches?reason=held&reason=stuck', 'reason', 'held, stuck'],
    ['/batches?olderThanMs=1h', 'olderThanMs', '1h'],
    ['/audit?since=x', 'since', 'x'],
    ['/tap?device=a&device=b', 'device', 'a, b'],
    ['/status?x=1', 'x', '1'],
    ['/?x=1', 'x', '1'],
  ])('of %s is answered 400, with its name and what was found', async (path, parameter, found) => {
    const { status, headers, body } = await ask(path)
    expect(status).toBe(400)
    expect(headers.get('content-type')).toBe('application/problem+json; charset=utf-8')
    expect(body).toMatchObject({ code: 'REQUEST_INVALID', status: 400, parameter, found })
    expect(body['instance']).toBe(path.split('?')[0])
    expect(body['why']).toContain(parameter)
  })

  test.each(['/healthz', '/readyz', '/verdict', '/metrics'])(
    'is ignored by %s: a probe or a scraper may add its own',
    async (path) => {
      const [plain, more] = [await get(ops.url, path), await get(ops.url, `${path}?x=1&x=2`)]
      expect(more.status).toBe(plain.status)
      expect(more.status).not.toBe(400)
    },
  )

  test('is answered with the allowed values, and all wrong ones are named', async () => {
    const { body } = await ask('/devices?sort=age&limit=x&all=1')
    const problems = body['problems'] as { parameter: string; allowed?: string[] }[]
    expect(problems.map(({ parameter }) => parameter).toSorted()).toEqual(['all', 'limit', 'sort'])
    expect(problems.find(({ parameter }) => parameter === 'sort')?.allowed).toEqual(deviceOrderNames)
    expect(problems.find(({ parameter }) => parameter === 'all')?.allowed).toEqual([
      'limit',
      'state',
      'find',
      'source',
      'provider',
      'address',
      'hours',
      'sort',
    ])
    expect(body['why']).toContain('limit must be a whole number from 1 to 1000, found "x".')
  })

  test('of a change is refused before the change begins, and a missing one too', async () => {
    const socket = ops.ops.control() ?? ''
    for (const path of [
      'dead-letters/purge?all=1&yes=true',
      'dead-letters/show',
      'spool/assign-lane?lane=0&provider=a',
      'spool/snapshot?to=/a&force=1',
      'batches/drop?all=1&all=1',
      'batches/split?all=1&parts=1',
      'reload?now=1',
    ]) {
      const { status, text } = await get(socket, `/control/${path}`, { method: 'POST' })
      expect([status, (JSON.parse(text) as ProblemBody)['code']], path).toEqual([400, 'REQUEST_INVALID'])
    }
  })

  test('does not hide that nobody may: rights come first', async () => {
    const { status, body } = await ask('/control/reload?now=1', { method: 'POST', body: 'x' })
    expect([status, body['code']]).toEqual([403, 'NO_USERS'])
  })
})

describe('a wrong method', () => {
  test('is answered 405 with the right ones, on every path', async () => {
    for (const { path } of routes) {
      const known = routes.filter((one) => one.path === path).flatMap(methodsOf)
      const wrong = ['POST', 'GET', 'DELETE'].find((method) => !known.includes(method)) ?? ''
      const { status, headers, body } = await ask(path.replace('{key}', 'truck-7'), { method: wrong })
      expect([path, status, headers.get('allow')]).toEqual([path, 405, known.join(', ')])
      expect(body).toMatchObject({ code: 'METHOD_NOT_ALLOWED', status: 405 })
    }
  })

  test.each(['PUT', 'DELETE', 'PATCH', 'OPTIONS', 'TRACE', 'PROPFIND', 'QUERY', 'M-SEARCH', 'SOURCE'])(
    '%s is refused like the others, also where the path is unknown',
    async (method) => {
      expect((await askRaw('/status', method)).answer).toEqual([405, 'METHOD_NOT_ALLOWED'])
      expect((await askRaw('/x', method)).answer).toEqual([404, 'PATH_UNKNOWN'])
    },
  )
})

describe('a path', () => {
  test.each([
    ['/statsu', ['/status']],
    ['/dead-leters', ['/dead-letters']],
    ['/status/', ['/status']],
    ['/STATUS', ['/status']],
    ['//status', ['/status']],
    ['/nothing-like-it', []],
    ['/control/relaod', ['/control/reload']],
    ['/%ff%zz', []],
    ['/%2e%2e/status', []],
  ])('%s that is unknown is answered with the nearest ones', async (path, nearest) => {
    const { answer, body } = await askRaw(path)
    expect(answer).toEqual([404, 'PATH_UNKNOWN'])
    expect(body).toMatchObject({ nearest, instance: path })
  })

  test.each([
    ['/devices/a%20b', 'a b'],
    ['/devices/a%2Fb', 'a/b'],
    ['/devices/100%', '100%'],
    [`/devices/${'k'.repeat(3000)}`, 'kkkkkkkk'],
  ])('%s names a device as the client means it', async (path, key) => {
    await using depot = await startedOps()
    depot.ops.attach({
      mapping: { device: () => null, async *devices() {}, deviceTotals: () => ({}) } as never,
    })
    const { status, text } = await rawRequest(depot.url, path)
    expect([status, JSON.parse(text)]).toMatchObject([
      404,
      { code: 'NOT_FOUND', what: expect.stringContaining(key) as string },
    ])
  })

  test('with escapes has the right of the path that it means', async () => {
    expect((await askRaw('/%63ontrol/reload', 'POST')).answer).toEqual([403, 'NO_USERS'])
  })
})

describe('every refusal', () => {
  test('is a problem with a code, and has the safety headers', async () => {
    const socket = ops.ops.control() ?? ''
    const answers = [
      await get(ops.url, '/no'),
      await get(ops.url, '/status', { method: 'PUT' }),
      await get(ops.url, '/status?x=1'),
      await get(ops.url, '/status', { headers: { 'sec-fetch-site': 'cross-site' } }),
      await get(ops.url, '/devices'),
      await get(ops.url, '/ledger'),
      await get(ops.url, '/tap'),
      await get(ops.url, '/control/reload', { method: 'POST' }),
      await get(socket, '/control/reload', { method: 'POST' }),
      await get(socket, '/control/reload', { method: 'POST', body: 'x' }),
      await get(socket, '/status', { headers: { 'gateway-spool': '/other' } }),
    ]
    expect(answers.map(({ status }) => status)).toEqual([
      404, 405, 400, 403, 503, 503, 503, 403, 503, 413, 421,
    ])
    for (const { status, headers, text } of answers) {
      expect(headers.get('content-type')).toBe('application/problem+json; charset=utf-8')
      expect(headers.get('x-content-type-options')).toBe('nosniff')
      expect(headers.get('content-security-policy')).toContain("default-src 'none'")
      const body = JSON.parse(text) as ProblemBody
      expect(body).toMatchObject({ status, code: expect.stringMatching(/^[A-Z_]+$/) as string })
      expect(body['type']).toBe(`urn:telemetry-gateway:problem:${String(body['code'])}`)
      for (const name of ['title', 'detail', 'instance', 'what', 'why', 'act'])
        expect(body[name], name).toMatch(/./)
    }
  })

  test('of a body comes before it is read, whatever its type', async () => {
    const head = `POST /status HTTP/1.1\r\nHost: ${new URL(ops.url).host}\r\nContent-Type: ;;;\r\n`
    const text = await exchange(ops.url, `${head}Content-Length: 99999999999\r\n\r\nx`)
    expect(text).toMatch(/^HTTP\/1\.1 405 /)
    expect(text.toLowerCase()).toContain('connection: close')
  })
})

describe('the list of paths', () => {
  test('has every route with methods, a sentence and parameters', async () => {
    const { headers, body } = await ask('/')
    expect(headers.get('content-type')).toBe('application/json; charset=utf-8')
    const paths = body['paths'] as {
      path: string
      methods: string[]
      summary: string
      parameters: object[]
    }[]
    expect(paths.map(({ path }) => path)).toEqual(routes.map(({ path }) => path))
    expect(paths.find(({ path }) => path === '/status')?.methods).toEqual(['GET', 'HEAD'])
    expect(paths.find(({ path }) => path === '/devices')?.parameters).toContainEqual(
      expect.objectContaining({ name: 'sort', in: 'query', required: false, allowed: deviceOrderNames }),
    )
    for (const { summary } of paths) expect(summary).toMatch(/^[A-Z].*\.$/)
  })

  test('is the overview of the page for a browser', async () => {
    const accept = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8'
    const { headers, text } = await get(ops.url, '/', { headers: { accept } })
    expect(headers.get('content-type')).toBe('text/html; charset=utf-8')
    const document = JSON.parse((await get(ops.url, '/openapi.json')).text) as {
      paths: Record<string, { get: { responses: Record<string, { content: object }> } }>
    }
    const types = Object.keys(document.paths['/']?.get.responses['200']?.content ?? {})
    expect(types).toEqual(['application/json; charset=utf-8', headers.get('content-type')])
    expect(text).toContain('<h1>Overview</h1>')
  })

  test.each([
    [undefined, false],
    ['*/*', false],
    ['application/json', false],
    ['text/html', true],
    ['text/*', true],
    ['TEXT/HTML;q=0.9, application/json;q=0.8', true],
    ['text/html;q=0.5, application/json', false],
    ['text/html;q=0', false],
  ])('for Accept %s is a page: %s', (accept, isPage) => {
    expect(prefersHtml(accept)).toBe(isPage)
  })
})
