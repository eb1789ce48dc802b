import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { deviceOrderNames } from '../../../../src/domain/device-state.ts'
import { routes } from '../../../../src/ops/http/route-table.ts'
import { prefersHtml } from '../../../../src/ops/http/accepted-type.ts'
import { methodsOf } from '../../../../src/ops/http/http-routing/route.ts'
import { httpWords, startHttp, type HttpWorld } from '../../../support/http-steps.ts'
import { get, startedOps } from '../../../support/ops-world.ts'
import { exchange } from '../../../support/raw-http.ts'
import { stepCases } from '../../../support/step-cases.ts'

const problem = 'application/problem+json; charset=utf-8'

stepCases(import.meta.filename, startHttp, {
  ...httpWords,
  wrong: (world: HttpWorld, [path, query, parameter, found]: string[]) =>
    httpWords.ask(world, {
      path: `${path}?${query}`,
      status: 400,
      has: { 'content-type': problem },
      json: {
        code: 'REQUEST_INVALID',
        status: 400,
        parameter,
        found,
        instance: path,
        why: expect.stringContaining(parameter ?? ''),
      },
    }),
  nearest: (world: HttpWorld, [rest = '', ...nearest]: string[]) => {
    const path = `/${rest}`
    return httpWords.ask(world, {
      path,
      status: 404,
      json: { code: 'PATH_UNKNOWN', nearest, instance: path },
    })
  },
  unknownDevice: (world: HttpWorld, [start, what, length = 0]: [string, string, number?]) => {
    const path = start.padEnd(length, 'k')
    world.ops.attach({
      mapping: { device: () => null, async *devices() {}, deviceTotals: () => ({}) } as never,
    })
    return httpWords.ask(world, { path, status: 404, json: { code: 'NOT_FOUND', what } })
  },
  longHead: async ({ url }: HttpWorld, bytes: number) =>
    expect(await exchange(url, `GET / HTTP/1.1\r\nx: ${'a'.repeat(bytes)}`)).toMatch(
      /^HTTP\/1\.1 431 [^]*"code":"HEAD_TOO_LARGE"/,
    ),
  typeFor: (_world: HttpWorld, [type, accept]: string[]) => expect(prefersHtml(accept)).toBe(type === 'html'),
})

type ProblemBody = Record<string, unknown>

/** Nothing is attached to it: routes, parameters and rights come first. */
let ops: Awaited<ReturnType<typeof startedOps>>
beforeAll(async () => void (ops = await startedOps()))
afterAll(() => ops[Symbol.asyncDispose]())

async function ask(path: string, init?: RequestInit) {
  const { status, headers, text } = await ops.ask(path, init)
  return { status, headers, body: JSON.parse(text) as ProblemBody }
}

describe('a wrong parameter', () => {
  test('is answered with the allowed values, and all wrong ones are named', async () => {
    const { body } = await ask('/devices?sort=age&limit=x&all=1')
    const problems = body['problems'] as { parameter: string; allowed?: string[] }[]
    expect(problems.map(({ parameter }) => parameter).toSorted()).toEqual(['all', 'limit', 'sort'])
    expect(problems.find(({ parameter }) => parameter === 'sort')?.allowed).toEqual(deviceOrderNames)
    expect(problems.find(({ parameter }) => parameter === 'all')?.allowed).toEqual([
      'find',
      'state',
      'source',
      'provider',
      'address',
      'sort',
      'hours',
      'limit',
    ])
    expect(body['why']).toContain('limit must be a whole number from 1 to 1000, found "x".')
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
})
